"""Random values as expressions: those of Python itself and of its library, nested.

In these texts `§N` stands for a number, `§W` for a text, `§V` for any value, `§(a|b)` for one of several.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.unit.fingerprints.random_programs.grammar import Program

LEAVES = (
    "§N", "§N.5", "-§N.0", "§W", "b'§(a|bc|)'", "§(True|False|None|...)", "§Nj", "Decimal('§N.§N0')",
    "fractions.Fraction(§N, §N)", "dt.date(2024, §N, §N)", "dt.datetime(2024, §N, §N, fold=§(0|1))",
    "dt.datetime(2024, 1, §N, tzinfo=dt.timezone(dt.timedelta(hours=§N), §W))",
    "dt.datetime(2024, 7, 1, tzinfo=zoneinfo.ZoneInfo('§(Europe/Berlin|Asia/Tokyo)'))", "dt.time(§N, §N)",
    "dt.timedelta(days=§N, seconds=§N)", "uuid.UUID(int=§N)", "range(§N, §N0)", "slice(§N, None, §N)",
    "bytearray(b'§N')", "re.compile('§N+', §(re.I|re.M|0))",
    "np.array([§N, §N], dtype=§(np.int8|np.float64|'<i4'|object))",
    "np.ma.array([§N, 2], mask=[§(0|1), §(0|1)])", "np.array([(§N, §N)], dtype=[('§(a|b)', 'i4'), ('c', 'i4')])",
    "np.float32(§N.5)", "np.datetime64('2024-01-0§(1|2)')", "np.arange(6).reshape(2, 3, order='§(C|F)')",
    "types.SimpleNamespace(a=§N, b=§W)", "string.Template('$a §N').template", "math.§(pi|e|inf|tau)",
    "np.matrix([[§N, §N]])", "decimal.Context(prec=§N)", "array.array('§(b|h|d)', [§N])", "memoryview(b'§N').tobytes()",
    "ipaddress.ip_address('10.0.0.§N')", "pathlib.PurePosixPath('a/§N')",
)  # fmt: skip
NODES = (
    "[§V, §V]", "(§V, §V)", "{§W: §V, §N: §V}", "{§N, §W}", "frozenset({§N, §N})",
    "collections.OrderedDict([(§W, §V), ('k', §V)])", "collections.Counter(§W * §N)",
    "collections.defaultdict(§(int|list|dict|str), a=§V)", "collections.deque([§V, §V], maxlen=§(2|5|None))",
    "collections.ChainMap({'a': §V}, {'b': §V})", "types.MappingProxyType({'a': §V})",
    "collections.namedtuple('§(P|Q)', 'a b', defaults=[§N])(§V)", "copy.copy(§V)", "[*§((1, 2)|'ab'|range(3)), §V]",
    "{**{'a': §N}, 'b': §V}", "dict(a=§V, b=§V)", "[§V for _ in range(2)]", "collections.UserDict(a=§V)",
    "collections.UserList([§V])", "tuple(§([§N, §N]|§W))",
)  # fmt: skip
#: Ways in which a function may look at a value, whose name is V.
LOOKS = (
    "repr(V)", "str(V)", "V", "type(V).__name__", "V == copy.copy(V)", "bool(V)", "len(repr(V)) + x",
    "getattr(V, 'items', lambda: [0])()", "isinstance(V, (list, dict, tuple))", "f'{V!s:>8}'", "[V][x % 1]",
    "dict(enumerate([V])).get(x % 2)", "sorted(map(str, [V]))", "(lambda v: v)(V)", "hasattr(V, 'maxlen')",
    "getattr(V, 'default_factory', None)", "getattr(V, 'dtype', 0)", "getattr(V, 'mask', 0)",
)  # fmt: skip


def value(program: Program, depth: int = 2) -> str:
    """An expression that gives a value."""
    leaf = depth <= 0 or program.random.random() < 0.35
    return program.filled(program.random.choice(LEAVES if leaf else NODES), depth - 1)


def look(program: Program, name: str) -> str:
    """An expression that shows something of a value."""
    return program.random.choice(LOOKS).replace("V", name)
