"""Settings of the process that change results: they must be those that a new process has.

Functions run in Spark's workers, which are new processes, and in the test driver, which is the user's own. Functions
and what they refer to travel to the workers by value; statements at the top of a module are not run there. So a
precision that a module sets for `decimal` holds in the test driver and not in the workers: what a function depends on
has to be said in the function.
"""

from __future__ import annotations

import decimal
import functools
import locale
import sys
import types
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, Final

from everstate.fingerprints.outside import origins
from everstate.fingerprints.outside.effects import Effect

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from everstate.location import Location

PATCHED: Final = "was replaced in this process, but not in the workers, which would calculate differently"
_SAYING: Final = "was changed in this process, but not in the workers, which would calculate differently"
_DECIMAL: Final = decimal.Context(
    prec=28,
    rounding=decimal.ROUND_HALF_EVEN,
    Emin=-999999,
    Emax=999999,
    capitals=1,
    clamp=0,
    flags=[],
    traps=[decimal.InvalidOperation, decimal.DivisionByZero, decimal.Overflow],
)
#: What is made of functions, and what cannot be changed.
_MADE_OF: Final = (staticmethod, classmethod, property, functools.partialmethod, functools.cached_property)
_PLAIN: Final = (str, bytes, int, float, tuple, frozenset, type(None))
#: Classes that keep the names which `register_..._accessor` and `register_..._namespace` gave them.
_REGISTERS: Final = {
    "pandas": ("DataFrame", "Series", "Index"),
    "polars": ("DataFrame", "Expr", "LazyFrame", "Series"),
}
_DIALECTS: Final = frozenset({"excel", "excel-tab", "unix"})
_FIELD_SIZE: Final = 131072
_INT_DIGITS: Final = 4300
_RECURSION: Final = 1000
_NUMPY_SHOWN: Final = {
    "precision": 8,
    "threshold": 1000,
    "edgeitems": 3,
    "linewidth": 75,
    "suppress": False,
    "nanstr": "nan",
    "infstr": "inf",
    "sign": "-",
    "floatmode": "maxprec",
    "formatter": None,
}
_POLARS_SHOWN: Final = {
    "set_fmt_float": "mixed",
    "set_thousands_separator": "",
    "set_decimal_separator": ".",
    "set_trim_decimal_zeros": False,
}
_NUMPY_ERRORS: Final = {"divide": "warn", "over": "warn", "under": "ignore", "invalid": "warn"}


def changed(names: set[str], location: Location | None, *, texts: bool, recursive: bool) -> Iterator[Effect]:
    """The settings that are not those of a new process, of what a part reaches.

    Args:
        names: What it reaches outside the user's code.
        location: Where it is.
        texts: It makes texts of values.
        recursive: Something in it calls itself.
    """
    if recursive and sys.getrecursionlimit() != _RECURSION:
        yield Effect("settings", "sys.setrecursionlimit", location, _SAYING)
    tops = {name.partition(".")[0] for name in names} | {"builtins"}
    for top, setting, shown, is_changed in _SETTINGS:
        if top in tops and top in sys.modules and (texts or not shown) and is_changed():
            yield Effect("settings", setting, location, _SAYING)
    for name in _filled(tops | {"copyreg"} if "copy" in tops else tops):
        yield Effect("settings", name, location, _SAYING)


def _filled(tops: set[str]) -> Iterator[str]:
    """Tables of Python's modules into which functions of the user's were put, as `copyreg.pickle` does."""
    for top in sorted(tops & sys.stdlib_module_names):
        for name, table in vars(sys.modules.get(top, types)).items():
            if type(table) is dict and not name.startswith("__") and any(map(_is_users_code, table.values())):
                yield f"{top}.{name}"


def _is_users_code(part: Any) -> bool:
    return isinstance(part, FunctionType) and is_users(part.__code__)


def patched(thing: type) -> str:
    """The name of something of the user's that stands in a class of a library; empty if there is none.

    The workers load libraries from where they are installed, so they do not have it.
    """
    return next((str(name) for name, part in vars(thing).items() if _holds_users(part)), "")


def _holds_users(part: Any, depth: int = 3) -> bool:
    """Whether a member of a class is the user's, or a property, a partial or the like that is made of such."""
    if isinstance(part, FunctionType):
        return is_users(part.__code__)
    if isinstance(part, type):
        return _is_in_users_file(part)
    if isinstance(part, _MADE_OF):
        inner = (getattr(part, name, None) for name in ("__func__", "fget", "fset", "func"))
        return depth > 0 and any(_holds_users(found, depth - 1) for found in inner if found is not None)
    return not isinstance(part, _PLAIN) and _is_in_users_file(type(part))


def _is_in_users_file(kind: type) -> bool:
    """Whether a class is from a module of the user's; what Cython makes says that it is from none."""
    file = getattr(sys.modules.get(str(kind.__module__)), "__file__", None)
    return file is not None and origins.of_file(file).kind == "user"


def extensions(tops: set[str]) -> dict[str, str]:
    """The attributes that the user has registered with data frames and their like, by name."""
    return {
        name: shown for top in sorted(tops & _REGISTERS.keys()) if top in sys.modules for name, shown in _added(top)
    }


def _added(top: str) -> Iterator[tuple[str, str]]:
    for name in _REGISTERS[top]:
        kind = getattr(sys.modules[top], name, object)
        for attribute in getattr(kind, "_accessors", ()):
            part = vars(kind).get(attribute)
            held = [*getattr(part, "__dict__", {}).values()]
            if any(isinstance(one, type) and _is_in_users_file(one) for one in held):
                yield attribute, f"{top}.{name}.{attribute}"


def is_users(code: CodeType) -> bool:
    """Whether code comes from a file of the user's."""
    return not code.co_filename.startswith("<") and origins.of_file(code.co_filename).kind == "user"


def _decimal() -> bool:
    """Rows may bring decimals, so that a function need not name the module to depend on it."""
    return any(_facts(context) != _facts(_DECIMAL) for context in (decimal.getcontext(), decimal.DefaultContext))


def _facts(context: decimal.Context) -> list[Any]:
    names = ("prec", "rounding", "Emin", "Emax", "capitals", "clamp")
    return [*(getattr(context, name) for name in names), *(on for _, on in sorted(context.traps.items(), key=str))]


def _locale() -> bool:
    """Of what formats numbers and dates and sorts texts; `strftime` follows it without naming it."""
    kinds = (locale.LC_NUMERIC, locale.LC_TIME, locale.LC_COLLATE, locale.LC_MONETARY)
    return any(locale.setlocale(kind) not in ("C", "C.UTF-8", "POSIX") for kind in kinds)


def _digits() -> bool:
    return sys.get_int_max_str_digits() != _INT_DIGITS


def _calendar() -> bool:
    import calendar  # noqa: PLC0415 - it is only looked at where it is loaded

    return calendar.firstweekday() != 0


def _csv() -> bool:
    import csv  # noqa: PLC0415

    return csv.field_size_limit() != _FIELD_SIZE or not _DIALECTS.issuperset(csv.list_dialects())


def _numpy() -> bool:
    numpy = sys.modules["numpy"]
    return numpy.geterr() != _NUMPY_ERRORS or numpy.geterrcall() is not None


def _numpy_shown() -> bool:
    now = sys.modules["numpy"].get_printoptions()
    return any(now.get(name) != value for name, value in _NUMPY_SHOWN.items())


def _pandas() -> bool:
    return _differs_in_pandas("compute.", "future.", "mode.")


def _pandas_shown() -> bool:
    return _differs_in_pandas("display.")


def _differs_in_pandas(*groups: str) -> bool:
    # pandas' own function for it warns of options that will go.
    config: Any = sys.modules["pandas._config.config"]
    return any(
        functools.reduce(lambda held, part: held[part], name.split("."), config._global_config) != option.defval  # noqa: SLF001
        for name, option in config._registered_options.items()  # noqa: SLF001
        if name.startswith(groups)
    )


def _polars_shown() -> bool:
    state = sys.modules["polars"].Config.state(if_set=True, env_only=False)
    shown = {name: value for name, value in state.items() if name.startswith(("POLARS_FMT", "POLARS_TABLE", "set_"))}
    return any(value != _POLARS_SHOWN.get(name) for name, value in shown.items())


#: The module that must be reached, the setting, and whether only texts depend on it.
_SETTINGS: Final[tuple[tuple[str, str, bool, Callable[[], bool]], ...]] = (
    ("builtins", "decimal.getcontext", False, _decimal),
    ("builtins", "locale.setlocale", False, _locale),
    ("builtins", "sys.set_int_max_str_digits", False, _digits),
    ("calendar", "calendar.setfirstweekday", False, _calendar),
    ("csv", "csv.register_dialect or csv.field_size_limit", False, _csv),
    ("numpy", "numpy.seterr", False, _numpy),
    ("numpy", "numpy.set_printoptions", True, _numpy_shown),
    ("pandas", "pandas.set_option", False, _pandas),
    ("pandas", "pandas.set_option", True, _pandas_shown),
    ("polars", "polars.Config", True, _polars_shown),
)
