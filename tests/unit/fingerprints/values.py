"""Values that differ in something which code can see: two expressions, and what shows the difference."""

from __future__ import annotations

PROGRAM = """
import array, collections, dataclasses, datetime, decimal, enum, fractions, functools, ipaddress, itertools, json, math
import operator, pathlib, re, string, struct, types, typing, uuid, weakref, zoneinfo, copy, logging
from collections import ChainMap, Counter, OrderedDict, UserDict, UserList, UserString, defaultdict, deque, namedtuple
from dataclasses import dataclass, field
from datetime import date, datetime as Datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from functools import partial
from types import MappingProxyType, SimpleNamespace
{setup}
{values}
"""

CLASSES = """
class Int(int): pass
class Str(str): pass
class Float(float): pass
class Bytes(bytes): pass
class Bytearray(bytearray): pass
class Complex(complex): pass
class List(list): pass
class Tuple(tuple): pass
class Dict(dict): pass
class Set(set): pass
class Frozen(frozenset): pass
class Money(Decimal): pass
class Ratio(Fraction): pass
class Day(date): pass
class Moment(Datetime): pass
class Clock(time): pass
class Delta(timedelta): pass
class Deque(deque): pass
class Count(Counter): pass
class Ordered(OrderedDict): pass
class Default(defaultdict): pass
class Chain(ChainMap): pass
class Users(UserDict): pass
class Array(array.array): pass
class Part(partial): pass
class Space(SimpleNamespace): pass
class Id(uuid.UUID): pass
class Address(ipaddress.IPv4Address): pass
class Folder(pathlib.PurePosixPath): pass
class Template(string.Template): pass
class Failure(Exception): pass
class Rate(float):
    def __new__(cls, value, unit):
        made = super().__new__(cls, value)
        made.unit = unit
        return made
class Hidden(dict):
    def items(self): return []
    def __iter__(self): return iter(())
    def keys(self): return []
    def __reduce__(self): return (Hidden, ())
class Slots:
    __slots__ = ("__private", "plain")
    def __init__(self, private, plain=0): self.__private = private; self.plain = plain
    def get(self): return self.__private
class Inner(Slots):
    __slots__ = ("__private", "more")
    def __init__(self, private, inner, more=0):
        super().__init__(private); self.__private = inner; self.more = more
    def inner(self): return self.__private
class Loose(Slots): pass
class Thing:
    def __init__(self, **named): vars(self).update(named)
class Quiet:
    def __init__(self, value): self.value = value
    def __getstate__(self): return {}
    def __reduce__(self): return (Quiet, (0,))
    def __eq__(self, other): return True
    def __hash__(self): return 1
    def __repr__(self): return "Quiet"
class Odd:
    def __init__(self, value): self.value = value
    def __getattr__(self, name): return 7
@dataclass
class Point:
    x: int
    y: int = 0
    z: int = field(default=0, compare=False, repr=False)
    w: int = field(default=5, init=False)
@dataclass(slots=True, frozen=True)
class Slotted:
    x: int
    y: int = field(default=0, compare=False)
class Pair(typing.NamedTuple):
    x: int
    y: int = 0
class Level(enum.Enum):
    LOW = 1
    HIGH = 2
class Mode(enum.Flag):
    R = 1
    W = 2
    X = 4
class Kind(enum.IntEnum):
    A = 1
class Zone(datetime.tzinfo):
    def __init__(self, hours): self.hours = hours
    def utcoffset(self, when): return timedelta(hours=self.hours)
    def dst(self, when): return None
    def tzname(self, when): return "Z"
def point(**more):
    made = Point(1)
    vars(made).update(more)
    return made
def cyclic(n):
    made = [n]; made.append(made); return made
def tangled(n):
    a, b = Thing(), Thing(); a.b = b; b.a = a; b.n = n; return a
def shared(same):
    one = [0]; return [one, one if same else [0]]
def moved():
    made = OrderedDict(a=1, b=2); made.move_to_end("a"); return made
def noted(made, **named):
    for name, value in named.items(): setattr(made, name, value)
    return made
@functools.singledispatch
def generic(value): return 0
@generic.register
def generic_int(value: int): return 1
def plus(a, b=0): return a + b
def twice(a, b=0): return a * 2 + b
"""
#: Two expressions each, and what shows that they differ (`repr(x)` where nothing else is said).
PLAIN: dict[str, tuple[str, ...]] = {
    "true and one": ("True", "1"),
    "one and a float": ("1", "1.0"),
    "zero and minus zero": ("0.0", "-0.0"),
    "sign of a nan": ("float('nan')", "-float('nan')", "math.copysign(1, x)"),
    "payload of a nan": (
        "struct.unpack('>d', bytes.fromhex('7ff8000000000001'))[0]",
        "struct.unpack('>d', bytes.fromhex('7ff8000000000002'))[0]",
        "struct.pack('>d', x)",
    ),
    "identity of a nan": ("[math.nan, math.nan]", "[math.nan, float('nan')]", "x[0] in x[1:]"),
    "nan in two lists": ("[[math.nan], [math.nan]]", "[[math.nan], [float('nan')]]", "x[0] == x[1]"),
    "minus zero in a complex": ("complex(0.0, 0.0)", "complex(0.0, -0.0)"),
    "surrogates": ("'\\ud800'", "'\\ud801'"),
    "text and bytes": ("'a'", "b'a'"),
    "composed text": ("'\\u00e9'", "'e\\u0301'", "len(x)"),
    "big integer": ("10 ** 5000", "10 ** 5000 + 1", "hash(x)"),
    "none and not implemented": ("None", "NotImplemented"),
    "none and ellipsis": ("None", "..."),
    "none and its text": ("None", "'None'"),
    "ellipsis and its text": ("...", "'...'"),
    "list and tuple": ("[1]", "(1,)"),
    "set and frozenset": ("{1}", "frozenset({1})"),
    "bytes and bytearray": ("b'a'", "bytearray(b'a')"),
    "dict and Counter": ("dict(a=1)", "Counter(a=1)"),
    "dict and OrderedDict": ("dict(a=1)", "OrderedDict(a=1)"),
    "Counter and OrderedDict": ("Counter(a=1)", "OrderedDict(a=1)"),
    "dict and defaultdict": ("dict(a=1)", "defaultdict(None, a=1)"),
    "dict and mappingproxy": ("dict(a=1)", "MappingProxyType(dict(a=1))"),
    "mapping in a proxy": ("MappingProxyType(dict(a=1))", "MappingProxyType(Counter(a=1))"),
    "order of a dict": ("dict(a=1, b=2)", "dict(b=2, a=1)"),
    "order of an OrderedDict": ("OrderedDict(a=1, b=2)", "OrderedDict(b=2, a=1)"),
    "moved in an OrderedDict": ("OrderedDict(a=1, b=2)", "moved()"),
    "keys of a dict by type": ("{1: 2}", "{True: 2}"),
    "factory": ("defaultdict(int)", "defaultdict(list)"),
    "factory of the user's": ("defaultdict(lambda: 1)", "defaultdict(lambda: 2)", "x['a']"),
    "attribute of a Counter": ("noted(Counter('a'), n=1)", "noted(Counter('a'), n=2)", "x.n"),
    "attribute of an OrderedDict": ("noted(OrderedDict(a=1), n=1)", "noted(OrderedDict(a=1), n=2)", "x.n"),
    "attribute of a partial": ("noted(partial(int), n=1)", "noted(partial(int), n=2)", "x.n"),
    "maps of a ChainMap": ("ChainMap(dict(a=1), dict(a=2))", "ChainMap(dict(a=1), dict(a=3))", "x.parents['a']"),
    "UserDict": ("UserDict(a=1)", "UserDict(a=2)"),
    "UserList": ("UserList([1])", "UserList([2])"),
    "UserString": ("UserString('a')", "UserString('b')"),
    "maxlen": ("deque([1], maxlen=2)", "deque([1], maxlen=3)"),
    "items of a deque": ("deque([1], maxlen=2)", "deque([2], maxlen=2)"),
    "shared list": ("shared(True)", "shared(False)", "x[0] is x[1]"),
    "shared rows": ("[[0] * 2] * 2", "[[0] * 2 for _ in range(2)]", "(y := copy.deepcopy(x))[0] is y[1]"),
    "shared dict": ("[d := dict(a=1), d]", "[dict(a=1), dict(a=1)]", "x[0] is x[1]"),
    "cycle": ("cyclic(1)", "cyclic(2)"),
    "cycle of objects": ("tangled(1)", "tangled(2)", "x.b.n"),
    "typecode of an array": ("array.array('i', [1])", "array.array('l', [1])"),
    "items of an array": ("array.array('i', [1])", "array.array('i', [2])"),
    "range": ("range(3)", "range(0, 3, 2)"),
    "slice": ("slice(1, 2)", "slice(1, 3)"),
    "flags of a pattern": ("re.compile('a')", "re.compile('a', re.I)"),
    "pattern of bytes": ("re.compile('a')", "re.compile(b'a')"),
    "argument of a partial": ("partial(plus, 1)", "partial(plus, 2)", "x()"),
    "function of a partial": ("partial(plus, 1)", "partial(twice, 1)", "x()"),
    "keyword of a partial": ("partial(plus, 1, b=1)", "partial(plus, 1, b=2)", "x()"),
    "partial of a partial": ("partial(partial(plus, 1), 2)", "partial(partial(plus, 1), 3)", "x()"),
    "itemgetter": ("operator.itemgetter('a')", "operator.itemgetter('b')"),
    "attrgetter": ("operator.attrgetter('a')", "operator.attrgetter('b')"),
    "methodcaller": ("operator.methodcaller('upper')", "operator.methodcaller('lower')", "x('aB')"),
    "argument of a methodcaller": ("operator.methodcaller('f', 1)", "operator.methodcaller('f', 2)"),
    "bound method of a text": ("'a'.join", "'b'.join", "x(['c', 'd'])"),
    "bound method of a list": ("[1].count", "[2].count", "x(1)"),
    "method by type": ("types.MethodType(plus, 1)", "types.MethodType(plus, 2)", "x()"),
    "unbound method": ("str.upper", "str.lower", "x('aB')"),
    "function of C": ("math.floor", "math.ceil", "x(1.5)"),
    "function of Python": ("json.dumps", "json.loads", "x('1')"),
    "class": ("int", "float", "x(1)"),
    "decimals that are equal": ("Decimal('1.0')", "Decimal('1.00')"),
    "decimal nan": ("Decimal('nan1')", "Decimal('nan2')"),
    "signalling decimal": ("Decimal('nan')", "Decimal('snan')"),
    "context": ("decimal.Context(prec=3)", "decimal.Context(prec=4)", "x.prec"),
    "rounding of a context": (
        "decimal.Context(rounding=decimal.ROUND_UP)",
        "decimal.Context(rounding=decimal.ROUND_DOWN)",
        "x.rounding",
    ),
    "fraction": ("Fraction(1, 2)", "Fraction(1, 3)"),
    "fraction and decimal": ("Fraction(1, 2)", "Decimal('0.5')"),
    "date and datetime": ("date(2024, 1, 1)", "Datetime(2024, 1, 1)"),
    "fold": ("Datetime(2024, 1, 1, fold=0)", "Datetime(2024, 1, 1, fold=1)"),
    "microsecond": ("Datetime(2024, 1, 1, 0, 0, 0, 1)", "Datetime(2024, 1, 1, 0, 0, 0, 2)"),
    "zone": ("Datetime(2024, 1, 1, tzinfo=timezone.utc)", "Datetime(2024, 1, 1)"),
    "zone by name": ("zoneinfo.ZoneInfo('UTC')", "zoneinfo.ZoneInfo('Europe/Berlin')"),
    "name of a zone": ("timezone(timedelta(0))", "timezone(timedelta(0), 'X')", "x.tzname(None)"),
    "zone of a time": ("time(1, tzinfo=timezone.utc)", "time(1)"),
    "own zone": ("time(1, tzinfo=Zone(1))", "time(1, tzinfo=Zone(2))", "x.utcoffset()"),
    "timedelta": ("timedelta(1)", "timedelta(2)"),
    "uuid": ("uuid.UUID(int=1)", "uuid.UUID(int=2)"),
    "address": ("ipaddress.ip_address('10.0.0.1')", "ipaddress.ip_address('10.0.0.2')"),
    "scope of an address": ("ipaddress.ip_address('fe80::1%a')", "ipaddress.ip_address('fe80::1%b')"),
    "network": ("ipaddress.ip_network('10.0.0.0/8')", "ipaddress.ip_network('10.0.0.0/9')"),
    "path": ("pathlib.PurePosixPath('a')", "pathlib.PurePosixPath('b')"),
    "kind of path": ("pathlib.PurePosixPath('a')", "pathlib.PureWindowsPath('a')"),
    "path and pure path": ("pathlib.PurePath('a')", "pathlib.Path('a')", "type(x)"),
    "separator in a Windows path": (
        "pathlib.PureWindowsPath('a/b')",
        "pathlib.PurePosixPath('a\\\\b')",
        "len(x.parts)",
    ),
    "template": ("string.Template('a')", "string.Template('b')", "x.template"),
    "format": ("struct.Struct('<i')", "struct.Struct('>i')", "x.format"),
    "encoder": ("json.JSONEncoder(indent=1)", "json.JSONEncoder(indent=2)", "x.encode([1])"),
    "sorted keys of an encoder": ("json.JSONEncoder()", "json.JSONEncoder(sort_keys=True)", "x.sort_keys"),
    "default of an encoder": (
        "json.JSONEncoder(default=lambda v: 1)",
        "json.JSONEncoder(default=lambda v: 2)",
        "x.encode(object())",
    ),
    "decoder": ("json.JSONDecoder()", "json.JSONDecoder(parse_float=Decimal)", "x.decode('1.5')"),
    "namespace": ("SimpleNamespace(a=1)", "SimpleNamespace(a=2)"),
    "order of a namespace": ("SimpleNamespace(a=1, b=2)", "SimpleNamespace(b=2, a=1)"),
    "namespace and dict": ("SimpleNamespace(a=1)", "dict(a=1)"),
    "exception": ("ValueError('a')", "ValueError('b')"),
    "kind of exception": ("ValueError('a')", "TypeError('a')"),
    "cause of an exception": ("noted(ValueError('a'), n=1)", "noted(ValueError('a'), n=2)", "x.n"),
    "member": ("Level.LOW", "Level.HIGH"),
    "member and value": ("Kind.A", "1", "type(x)"),
    "flags": ("Mode.R | Mode.W", "Mode.R | Mode.X"),
    "no flag": ("Mode(0)", "Mode.R"),
    "flag with another boundary": ("re.I | re.M", "re.I | re.S"),
    "hint": ("list[int]", "list[str]"),
    "literal": ("typing.Literal[1]", "typing.Literal[True]"),
    "annotated": ("typing.Annotated[int, 1]", "typing.Annotated[int, 2]"),
    "bound of a type variable": ("typing.TypeVar('T', bound=int)", "typing.TypeVar('T', bound=str)", "x.__bound__"),
    "types of a variable": ("typing.TypeVar('T', int, str)", "typing.TypeVar('T', int, float)", "x.__constraints__"),
    "callable hint": ("typing.Callable[[int], str]", "typing.Callable[[str], str]"),
    "supertype": ("typing.NewType('N', int)", "typing.NewType('N', str)", "x.__supertype__"),
    "static method": ("staticmethod(plus)", "staticmethod(twice)", "x(1)"),
    "class method": ("classmethod(plus)", "classmethod(twice)", "x.__func__(1)"),
    "property": ("property(plus)", "property(twice)", "x.fget(1)"),
    "cached function": ("functools.lru_cache(plus)", "functools.lru_cache(twice)", "x(1)"),
    "size of a cache": ("functools.lru_cache(1)(plus)", "functools.lru_cache(2)(plus)", "x.cache_parameters()"),
    "typed cache": ("functools.lru_cache(typed=True)(plus)", "functools.lru_cache(plus)", "x.cache_parameters()"),
    "cached property": ("functools.cached_property(plus)", "functools.cached_property(twice)", "x.func(1)"),
    "partial method": ("functools.partialmethod(plus, 1)", "functools.partialmethod(plus, 2)", "x.args"),
    "dispatch by method": (
        "functools.singledispatchmethod(plus)",
        "functools.singledispatchmethod(twice)",
        "x.func(1)",
    ),
    "lambda": ("lambda v: v", "lambda v: v + 1", "x(1)"),
    "set of functions": ("{plus}", "{twice}", "[f(1) for f in x]"),
    "functions in a dict": ("{'a': plus}", "{'a': twice}", "x['a'](1)"),
    "class of objects": ("object()", "Thing()", "type(x)"),
    "type": ("type(None)", "type(...)"),
}
SUBCLASSES: dict[str, tuple[str, ...]] = {
    **{
        f"{kind} by value": (f"{kind}({one})", f"{kind}({other})", *more)
        for kind, one, other, *more in [
            ("Int", "1", "2"),
            ("Str", "'a'", "'b'"),
            ("Float", "1.5", "2.5"),
            ("Bytes", "b'a'", "b'b'"),
            ("Bytearray", "b'a'", "b'b'"),
            ("Complex", "1j", "2j"),
            ("List", "[1]", "[2]"),
            ("Tuple", "[1]", "[2]"),
            ("Dict", "a=1", "a=2"),
            ("Set", "[1]", "[2]"),
            ("Frozen", "[1]", "[2]"),
            ("Money", "'1.5'", "'2.5'"),
            ("Ratio", "1, 2", "1, 3"),
            ("Day", "2024, 1, 1", "2024, 1, 2"),
            ("Moment", "2024, 1, 1", "2024, 1, 2"),
            ("Clock", "1", "2"),
            ("Delta", "1", "2"),
            ("Deque", "[1]", "[2]"),
            ("Count", "'a'", "'b'"),
            ("Ordered", "a=1", "a=2"),
            ("Default", "int, a=1", "int, a=2"),
            ("Chain", "{1: 1}", "{1: 2}"),
            ("Users", "a=1", "a=2"),
            ("Array", "'i', [1]", "'i', [2]"),
            ("Part", "plus, 1", "plus, 2", "x()"),
            ("Space", "a=1", "a=2"),
            ("Id", "int=1", "int=2", "str(x)"),
            ("Address", "'10.0.0.1'", "'10.0.0.2'"),
            ("Folder", "'a'", "'b'"),
            ("Template", "'a'", "'b'", "x.template"),
            ("Failure", "'a'", "'b'"),
        ]
    },
    "unit of a float": ("Rate(1, 'a')", "Rate(1, 'b')", "x.unit"),
    "number with a unit": ("Rate(1, 'a')", "Rate(2, 'a')"),
    "maxlen of an own deque": ("Deque([1], 2)", "Deque([1], 3)"),
    "factory of an own defaultdict": ("Default(int)", "Default(list)"),
    "order of an own dict": ("Dict(a=1, b=2)", "Dict(b=2, a=1)"),
    "zone of an own moment": ("Moment(2024, 1, 1, tzinfo=timezone.utc)", "Moment(2024, 1, 1)"),
    "fold of an own moment": ("Moment(2024, 1, 1, fold=1)", "Moment(2024, 1, 1)", "x.fold"),
    "attribute of an own list": ("noted(List(), n=1)", "noted(List(), n=2)", "x.n"),
    "attribute of an own decimal": ("noted(Money(1), n=1)", "noted(Money(1), n=2)", "x.n"),
    "attribute of an own day": ("noted(Day(1, 1, 1), n=1)", "noted(Day(1, 1, 1), n=2)", "x.n"),
    "attribute of an own path": ("noted(Folder('a'), n=1)", "noted(Folder('a'), n=2)", "x.n"),
    "attribute of an own exception": ("noted(Failure(), n=1)", "noted(Failure(), n=2)", "x.n"),
    "attribute of an own uuid": ("Id(int=1)", "uuid.UUID(int=1)", "type(x)"),
    "own int and int": ("Int(1)", "1", "type(x)"),
    "two classes of int": ("Int(1)", "type('Other', (int,), {'n': 1})(1)", "type(x)"),
    "dict that hides its items": ("Hidden(a=1)", "Hidden(a=2)", "dict.__repr__(x)"),
    "typecode of an own array": ("Array('i', [1])", "Array('l', [1])"),
    "keyword of an own partial": ("Part(plus, 1, b=1)", "Part(plus, 1, b=2)", "x()"),
    "minus zero of an own float": ("Float(0.0)", "Float(-0.0)"),
    "digits of an own decimal": ("Money('1.0')", "Money('1.00')"),
}
OBJECTS: dict[str, tuple[str, ...]] = {
    "private slot": ("Slots(1)", "Slots(2)", "x.get()"),
    "plain slot": ("Slots(1, 1)", "Slots(1, 2)", "x.plain"),
    "inherited private slot": ("Inner(1, 1)", "Inner(2, 1)", "x.get()"),
    "own private slot of one name": ("Inner(1, 1)", "Inner(1, 2)", "x.inner()"),
    "slot of a subclass": ("Inner(1, 1, 1)", "Inner(1, 1, 2)", "x.more"),
    "empty slot": ("Slots(1)", "(lambda s: (delattr(s, 'plain'), s)[1])(Slots(1))", "hasattr(x, 'plain')"),
    "slot beside a dict": ("Loose(1)", "Loose(2)", "x.get()"),
    "dict beside slots": ("noted(Loose(1), n=1)", "noted(Loose(1), n=2)", "x.n"),
    "attribute": ("Thing(a=1)", "Thing(a=2)", "x.a"),
    "private attribute": ("Thing(_a=1)", "Thing(_a=2)", "x._a"),
    "attribute with a name of Python's": ("Thing(__a__=1)", "Thing(__a__=2)", "x.__a__"),
    "order of attributes": ("Thing(a=1, b=2)", "Thing(b=2, a=1)", "vars(x)"),
    "attribute that is not a name": ("Thing(**{'a b': 1})", "Thing(**{'a b': 2})", "vars(x)"),
    "state that is hidden": ("Quiet(1)", "Quiet(2)", "x.value"),
    "attributes out of nothing": ("Odd(1)", "Odd(2)", "x.value"),
    "nested object": ("Thing(a=Thing(b=1))", "Thing(a=Thing(b=2))", "x.a.b"),
    "shared object": ("[t := Thing(), t]", "[Thing(), Thing()]", "x[0] is x[1]"),
    "function in an object": ("Thing(f=plus)", "Thing(f=twice)", "x.f(1)"),
    "dataclass": ("Point(1)", "Point(2)"),
    "field outside comparisons": ("Point(1, 2, 3)", "Point(1, 2, 4)", "x.z"),
    "field outside the constructor": ("noted(Point(1), w=1)", "noted(Point(1), w=2)", "x.w"),
    "attribute beside the fields": ("point(n=1)", "point(n=2)", "x.n"),
    "dataclass with slots": ("Slotted(1)", "Slotted(2)"),
    "field of slots outside comparisons": ("Slotted(1, 1)", "Slotted(1, 2)", "x.y"),
    "named tuple": ("Pair(1)", "Pair(2)"),
    "named tuple and tuple": ("Pair(1, 2)", "(1, 2)"),
    "named tuple made by a call": ("namedtuple('P', 'x')(1)", "namedtuple('P', 'x')(2)"),
    "names of a tuple": ("namedtuple('P', 'x')(1)", "namedtuple('P', 'y')(1)"),
    "bound method": ("Slots(1).get", "Slots(2).get", "x()"),
    "objects in a set": ("{Quiet(1)}", "{Quiet(2)}", "[q.value for q in x]"),
    "object as a key": ("{Quiet(1): 1}", "{Quiet(2): 1}", "[q.value for q in x]"),
    "class in an object": ("Thing(kind=int)", "Thing(kind=str)", "x.kind"),
    "instance and class": ("Thing", "Thing()", "type(x)"),
    "deleted attribute": ("Thing(a=None)", "Thing()", "hasattr(x, 'a')"),
}
NUMPY = """
import numpy as np
class Unit(np.ndarray): pass
def unit(name):
    made = np.zeros(2).view(Unit); made.unit = name; return made
def frozen(made): made.flags.writeable = False; return made
def filled(value, fill): return np.ma.array([1, 2], mask=[True, False], fill_value=fill) + value
def hard(made): return made.harden_mask()
def double(x): return x * 2
def triple(x): return x * 3
"""
ARRAYS: dict[str, tuple[str, ...]] = {
    "numbers": ("np.array([1, 2])", "np.array([1, 3])"),
    "type of the cells": ("np.array([1, 2])", "np.array([1, 2], dtype='i4')", "x.dtype"),
    "byte order": ("np.array([1], dtype='<i4')", "np.array([1], dtype='>i4')", "x.dtype"),
    "shape": ("np.zeros((2, 3))", "np.zeros((3, 2))"),
    "no cells": ("np.zeros((0, 3))", "np.zeros((3, 0))", "x.shape"),
    "order in memory": ("np.ones((2, 2))", "np.ones((2, 2), order='F')", "x.flags.f_contiguous"),
    "readable only": ("np.ones(2)", "frozen(np.ones(2))", "x.flags.writeable"),
    "mask": ("np.ma.array([1, 2], mask=[0, 1])", "np.ma.array([1, 2], mask=[1, 0])"),
    "no mask": ("np.ma.array([1, 2])", "np.ma.array([1, 2], mask=[0, 0])", "x.mask"),
    "masked and plain": ("np.ma.array([1, 2])", "np.array([1, 2])"),
    "fill value": ("filled(1, 5)", "filled(1, 6)", "x.fill_value"),
    "hard mask": ("np.ma.array([1], mask=[1])", "hard(np.ma.array([1], mask=[1]))", "x.hardmask"),
    "matrix": ("np.array([[1, 2], [3, 4]])", "np.asmatrix([[1, 2], [3, 4]])", "x * x"),
    "names of fields": (
        "np.array([(1, 2)], dtype=[('a', int), ('b', int)])",
        "np.array([(1, 2)], dtype=[('a', int), ('c', int)])",
        "x.dtype.names",
    ),
    "order of fields": (
        "np.array([(1, 2)], dtype=[('a', int), ('b', int)])",
        "np.array([(1, 2)], dtype=[('b', int), ('a', int)])",
    ),
    "types of fields": ("np.zeros(1, dtype=[('a', 'i8')])", "np.zeros(1, dtype=[('a', 'f8')])"),
    "places of fields": (
        "np.zeros(1, dtype=np.dtype([('a', 'i1'), ('b', 'i4')]))",
        "np.zeros(1, dtype=np.dtype([('a', 'i1'), ('b', 'i4')], align=True))",
        "x.dtype.itemsize",
    ),
    "fields of arrays": ("np.zeros(1, dtype=[('a', 'i4', 2)])", "np.zeros(1, dtype=[('a', 'i4', 3)])"),
    "record array": ("np.zeros(1, dtype=[('a', int)])", "np.rec.array([(0,)], dtype=[('a', int)])", "type(x)"),
    "record": (
        "np.array([(1, 2)], dtype=[('a', int), ('b', int)])[0]",
        "np.array([(1, 2)], dtype=[('a', int), ('c', int)])[0]",
        "x.dtype.names",
    ),
    "metadata": ("np.dtype(int)", "np.dtype(int, metadata={'u': 1})", "x.metadata"),
    "unit of moments": ("np.datetime64('2024-01-01', 's')", "np.datetime64('2024-01-01', 'ms')", "x.dtype"),
    "moments": ("np.datetime64('2024-01-01')", "np.datetime64('2024-01-02')"),
    "no moment": ("np.datetime64('NaT')", "np.timedelta64('NaT')", "x.dtype"),
    "number and number": ("np.float64(1)", "np.float32(1)"),
    "number and Python's": ("np.float64(1)", "1.0"),
    "truth": ("np.bool_(True)", "True"),
    "text": ("np.str_('a')", "'a'", "type(x)"),
    "array of one and number": ("np.array(1.0)", "np.float64(1)", "type(x)"),
    "objects": ("np.array([1, 'a'], dtype=object)", "np.array([1, 'b'], dtype=object)"),
    "shape of objects": ("np.empty((0, 2), dtype=object)", "np.empty((2, 0), dtype=object)", "x.shape"),
    "own class": ("unit('a')", "unit('b')", "x.unit"),
    "own class and plain": ("unit('a')", "np.zeros(2)", "type(x)"),
    "polynomial": ("np.poly1d([1, 2])", "np.poly1d([1, 3])"),
    "function over cells": ("np.vectorize(double)", "np.vectorize(triple)", "x(1)"),
    "function of arrays": ("np.sin", "np.cos", "x(0)"),
    "function of a module": ("np.median", "np.mean", "x([0, 0, 3])"),
    "shared array": ("[a := np.zeros(1), a]", "[np.zeros(1), np.zeros(1)]", "x[0] is x[1]"),
}
PANDAS = """
import numpy as np, pandas as pd, polars as pl, pyarrow as pa
def noted(made, **named): made.attrs.update(named); return made
"""
FRAMES: dict[str, tuple[str, ...]] = {
    "index": ("pd.Index([1, 2])", "pd.Index([1, 3])"),
    "name of an index": ("pd.Index([1], name='a')", "pd.Index([1], name='b')"),
    "range and index": ("pd.RangeIndex(2)", "pd.Index([0, 1])"),
    "levels": ("pd.MultiIndex.from_tuples([(1, 2)])", "pd.MultiIndex.from_tuples([(1, 3)])"),
    "names of levels": (
        "pd.MultiIndex.from_tuples([(1, 2)], names=['a', 'b'])",
        "pd.MultiIndex.from_tuples([(1, 2)], names=['a', 'c'])",
    ),
    "frequency": ("pd.date_range('2024', periods=2, freq='D')", "pd.DatetimeIndex(['2024-01-01', '2024-01-02'])"),
    "series": ("pd.Series([1, 2])", "pd.Series([1, 3])"),
    "name of a series": ("pd.Series([1], name='a')", "pd.Series([1], name='b')"),
    "index of a series": ("pd.Series([1], index=['a'])", "pd.Series([1], index=['b'])"),
    "type of a series": ("pd.Series([1])", "pd.Series([1], dtype='Int64')", "x.dtype"),
    "categories": (
        "pd.Series(['a'], dtype=pd.CategoricalDtype(['a', 'b']))",
        "pd.Series(['a'], dtype=pd.CategoricalDtype(['a', 'c']))",
        "x.cat.categories",
    ),
    "order of categories": (
        "pd.Series(['a'], dtype=pd.CategoricalDtype(['a', 'b'], ordered=True))",
        "pd.Series(['a'], dtype=pd.CategoricalDtype(['a', 'b']))",
        "x.cat.ordered",
    ),
    "frame": ("pd.DataFrame({'a': [1]})", "pd.DataFrame({'a': [2]})"),
    "columns": ("pd.DataFrame({'a': [1]})", "pd.DataFrame({'b': [1]})"),
    "order of columns": ("pd.DataFrame({'a': [1], 'b': [1]})", "pd.DataFrame({'b': [1], 'a': [1]})"),
    "type of a column": ("pd.DataFrame({'a': [1]})", "pd.DataFrame({'a': [1]}, dtype='int32')", "x.dtypes"),
    "attributes": ("noted(pd.DataFrame(), n=1)", "noted(pd.DataFrame(), n=2)", "x.attrs"),
    "timestamp": ("pd.Timestamp('2024-01-01')", "pd.Timestamp('2024-01-02')"),
    "nanosecond": ("pd.Timestamp(1)", "pd.Timestamp(2)", "x.value"),
    "zone of a timestamp": ("pd.Timestamp('2024')", "pd.Timestamp('2024', tz='UTC')"),
    "delta": ("pd.Timedelta(1)", "pd.Timedelta(2)", "x.value"),
    "interval": ("pd.Interval(0, 1)", "pd.Interval(0, 1, closed='left')"),
    "period": ("pd.Period('2024', 'Y')", "pd.Period('2024', 'M')"),
    "missing": ("pd.NA", "pd.NaT"),
    "offset": ("pd.offsets.Day(1)", "pd.offsets.Day(2)"),
    "numbers of a Polars series": ("pl.Series('a', [1])", "pl.Series('a', [2])"),
    "name of a Polars series": ("pl.Series('a', [1])", "pl.Series('b', [1])"),
    "type of a Polars series": ("pl.Series('a', [1])", "pl.Series('a', [1], dtype=pl.Int32)"),
    "unit of a Polars series": (
        "pl.Series('a', [1]).cast(pl.Datetime('us'))",
        "pl.Series('a', [1000]).cast(pl.Datetime('ns'))",
        "x.dtype",
    ),
    "null and nan": ("pl.Series([None], dtype=pl.Float64)", "pl.Series([float('nan')])"),
    "Polars enum": ("pl.Enum(['a', 'b'])", "pl.Enum(['a', 'c'])"),
    "long Polars enum": (
        "pl.Enum([str(n) for n in range(900)])",
        "pl.Enum([str(n) for n in range(899)] + ['x'])",
        "x.categories.to_list()",
    ),
    "Polars struct": ("pl.Struct({'a': pl.Int8})", "pl.Struct({'b': pl.Int8})"),
    "Polars list": ("pl.List(pl.Int8)", "pl.List(pl.Int16)"),
    "Polars list of enums": ("pl.List(pl.Enum(['a']))", "pl.List(pl.Enum(['b']))"),
    "Polars array": ("pl.Array(pl.Int8, 2)", "pl.Array(pl.Int8, 3)"),
    "Polars decimal": ("pl.Decimal(10, 2)", "pl.Decimal(10, 3)"),
    "Polars type": ("pl.Int8", "pl.Int16"),
    "Polars frame": ("pl.DataFrame({'a': [1]})", "pl.DataFrame({'a': [2]})"),
    "columns of a Polars frame": ("pl.DataFrame({'a': [1]})", "pl.DataFrame({'b': [1]})"),
    "Polars schema": ("pl.Schema({'a': pl.Int8})", "pl.Schema({'a': pl.Int16})"),
    "order of a Polars schema": (
        "pl.Schema({'a': pl.Int8, 'b': pl.Int8})",
        "pl.Schema({'b': pl.Int8, 'a': pl.Int8})",
    ),
    "expression": ("pl.col('a') + 1", "pl.col('a') + 2", "x.meta.serialize(format='json')"),
    "Arrow array": ("pa.array([1])", "pa.array([2])"),
    "type of an Arrow array": ("pa.array([1])", "pa.array([1], pa.int8())", "x.type"),
    "Arrow scalar": ("pa.scalar(1)", "pa.scalar(2)"),
    "Arrow type": ("pa.timestamp('s')", "pa.timestamp('ms')"),
    "Arrow schema": ("pa.schema([('a', pa.int8())])", "pa.schema([('a', pa.int16())])"),
    "metadata of an Arrow schema": (
        "pa.schema([('a', pa.int8())], metadata={'m': '1'})",
        "pa.schema([('a', pa.int8())], metadata={'m': '2'})",
    ),
    "Arrow table": ("pa.table({'a': [1]})", "pa.table({'a': [2]})"),
}
SETUPS = {"PLAIN": CLASSES, "SUBCLASSES": CLASSES, "OBJECTS": CLASSES, "ARRAYS": NUMPY, "FRAMES": PANDAS}
