"""The functions of Polars that are known to work row by row.

Named as Polars writes them to JSON: `Abs`, or `StringExpr.Contains` for one of a family. A function that is not here is
refused: nobody has looked whether its result for a row depends on the rows beside it. Tests call every public function
of Polars on rows in several cuts, orders and companies, and hold this list against what they find.
"""

from __future__ import annotations

from typing import Final


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: Functions that have a name of their own inside: `{"StringExpr": {"Contains": ...}}`.
FAMILIES: Final = _names(
    "ArrayExpr BinaryExpr Bitwise Boolean Business Categorical Extension FillNullWithStrategy ListExpr MapExpr "
    "Pow Random Range RollingExpr RollingExprBy Sql StringExpr StructExpr TemporalExpr Trigonometry"
)


def _family(name: str, members: str) -> frozenset[str]:
    return frozenset(f"{name}.{member}" for member in members.split())


#: What gives a row's value out of the row's values alone.
BY_ROW: Final = (
    _names(
        "Abs AsList AsStruct Atan2 Ceil Clip Coalesce Erf Erfc Exp FillNull Floor Log Log1p MaxHorizontal "
        "MeanHorizontal MinHorizontal Negate Reinterpret RepeatBy Replace ReplaceStrict Round RoundSF Sign "
        "SumHorizontal ToPhysical Truncate"
    )
    | _family(
        "ArrayExpr",
        "ArgMax ArgMin Concat Contains CountMatches Dot Get Join Length Max Mean Median Min Shift Sort Std Sum "
        "ToList ToStruct Var",
    )
    | _family(
        "BinaryExpr",
        "Base64Decode Base64Encode Contains EndsWith Get Head HexDecode HexEncode Reinterpret Size Slice "
        "StartsWith Tail",
    )
    | _family(
        "Bitwise",
        "CountOnes CountZeros LeadingOnes LeadingZeros TrailingOnes TrailingZeros",
    )
    | _family(
        "Boolean",
        "AllHorizontal AnyHorizontal IsBetween IsClose IsFinite IsIn IsInfinite IsNan IsNotNan IsNotNull IsNull Not",
    )
    | _family(
        "Business",
        "AddBusinessDay BusinessDayCount IsBusinessDay",
    )
    | _family(
        "Categorical",
        "EndsWith LenBytes LenChars Physical Slice StartsWith",
    )
    | _family(
        "FillNullWithStrategy",
        "One Zero",
    )
    | _family(
        "ListExpr",
        "ArgMax ArgMin Concat Contains CountMatches Diff DropNulls Gather GatherEvery Get Join Length Max Mean "
        "Median Min SetOperation Shift Slice Sort Std Sum ToArray ToMap ToStruct Var",
    )
    | _family(
        "MapExpr",
        "ContainsKey Entries Get Keys Length Values",
    )
    | _family(
        "Pow",
        "Cbrt Generic Sqrt",
    )
    | _family(
        "Range",
        "DateRanges DatetimeRanges IntRanges LinearSpaces TimeRanges",
    )
    | _family(
        "Sql",
        "Binary",
    )
    | _family(
        "StringExpr",
        "Base64Decode Base64Encode ConcatHorizontal Contains ContainsAny CountMatches EndsWith EscapeRegex "
        "Extract ExtractAll ExtractGroups ExtractMany Find FindMany Format Head HexDecode HexEncode JsonDecode "
        "JsonPathMatch LenBytes LenChars Lowercase Normalize PadEnd PadStart Replace ReplaceMany Reverse Slice "
        "Split SplitExact SplitN SplitRegex StartsWith StripChars StripCharsEnd StripCharsStart StripPrefix "
        "StripSuffix Strptime Tail Titlecase ToDecimal ToInteger Uppercase ZFill",
    )
    | _family(
        "StructExpr",
        "Drop FieldByName JsonEncode PrefixFields RenameFields SelectFields SuffixFields",
    )
    | _family(
        "TemporalExpr",
        "BaseUtcOffset CastTimeUnit Century Combine ConvertTimeZone DSTOffset Date DatetimeFunction Day "
        "DaysInMonth Duration Hour IsLeapYear IsoYear Microsecond Millennium Millisecond Minute Month MonthEnd "
        "MonthStart Nanosecond OffsetBy OrdinalDay Quarter Replace ReplaceTimeZone Round Second Time TimeStamp "
        "ToString TotalDays TotalHours TotalMicroseconds TotalMilliseconds TotalMinutes TotalNanoseconds "
        "TotalSeconds Truncate Week WeekDay Year",
    )
    | _family(
        "Trigonometry",
        "ArcCos ArcCosh ArcSin ArcSinh ArcTan ArcTanh Cos Cosh Cot Degrees Radians Sin Sinh Tan Tanh",
    )
)

#: What gives a value out of the items of one list, in `list.eval` and its like; over rows it would need several.
BY_LIST: Final = (
    _names(
        "ArgMax ArgMin ArgSort ArgUnique ArgWhere CumCount CumMax CumMin CumProd CumSum Diff DropNans DropNulls "
        "EwmMean EwmStd EwmVar GatherEvery Interpolate Kurtosis Mode NullCount PctChange PeakMax PeakMin Product "
        "Quantile RLE RLEID Rank Reverse Shift Skew TopK Unique"
    )
    | _family(
        "Agg",
        "Count First Implode Item Last Max Mean Median Min NUnique Std Sum Var",
    )
    | _family(
        "Boolean",
        "All Any HasNulls IsDuplicated IsEmpty IsFirstDistinct IsLastDistinct IsSorted IsUnique",
    )
    | _family(
        "FillNullWithStrategy",
        "Backward Forward Max Mean Min",
    )
    | _family(
        "Range",
        "IntRange",
    )
    | _family(
        "RollingExpr",
        "Max Mean Median Min Quantile Std Sum Var",
    )
)

#: Names that `name.prefix` and its like give; `Map` calls a Python function.
RENAMINGS: Final = frozenset({"Prefix", "Replace", "Suffix", "ToLowercase", "ToUppercase"})

#: Where `list.eval` and its like evaluate: within one list. `Cumulative` goes over rows.
IN_LISTS: Final = frozenset({"Array", "ArrayAgg", "List", "ListAgg"})

#: Inputs that are a set or a mapping for all rows: by position, they must be constants.
CONSTANTS: Final[dict[str, tuple[int, ...]]] = {
    "Replace": (1, 2),
    "ReplaceStrict": (1, 2),
    "StringExpr.ContainsAny": (1,),
    "StringExpr.ReplaceMany": (1, 2),
    "Business.AddBusinessDay": (2,),
    "Business.BusinessDayCount": (2,),
    "Business.IsBusinessDay": (1,),
}

#: Inputs that are a set for all rows, or a list for each: by position, they must be constants or lists.
COLLECTIONS: Final[dict[str, tuple[int, ...]]] = {
    "Boolean.IsIn": (1,),
    "StringExpr.ExtractMany": (1,),
    "StringExpr.FindMany": (1,),
}
