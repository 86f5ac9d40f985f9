"""Kinds of classes and their objects, as texts to be filled; the marks are those of the functions."""

CLASSES = (
    """
class §C(§(int|float|str)):
    §(rate = §N|__slots__ = ()|def twice(self): return [self, self])
    def __repr__(self):
        return f"§C:{§(super().__repr__()|§N)}"

§T = §C(§N)

def §F(x):
    return repr(§T), str(§T), §T * 2, §T == §C(§N)
""",
    """
class §C(§(list|dict|set|tuple|collections.deque|collections.OrderedDict|collections.Counter)):
    def __len__(self):
        return §N

§T = §C(§([(1, 2)]|()|[(§N, §N), (3, §N)]))
§T.extra = §V

def §F(x):
    v = §T.extra
    return len(§T), sorted(map(str, §T)), §L
""",
    """
class §C(§(Decimal|fractions.Fraction|dt.date|dt.timedelta)):
    unit = §W
    def __format__(self, spec):
        return §W + spec

§T = §C(§(2024, §N, §N|§N))

def §F(x):
    return str(§T), f"{§T:>§N}", §T.unit, §T > §T
""",
    """
@dataclass(§(frozen=True|order=True|eq=False|repr=False|unsafe_hash=True|slots=True|kw_only=True|match_args=False))
class §C:
    a: int = §N
    b: str = field(default=§W, §(compare=True|repr=False|compare=False|init=False|kw_only=True|hash=True))
    c: list = field(default_factory=§(list|dict|lambda: [§N]))

§T = §C(§(|a=§N))

def §F(x):
    other = §C(a=§N)
    try:
        other.a = x
        return repr(§T), §T == other, §T < other, dataclasses.astuple(other)
    except (AttributeError, TypeError) as error:
        return type(error).__name__, repr(other)
""",
    """
@dataclass
class §C:
    a: int
    b: §(dataclasses.InitVar[int]|typing.ClassVar[int]|int) = §N
    def __post_init__(self, *more):
        self.a = self.a §(+|*) §N
        self.more = more

def §F(x):
    return vars(§C(x)), §C(x), [f.name for f in dataclasses.fields(§C)]
""",
    """
class §C(enum.§(Enum|IntEnum|Flag|IntFlag)):
    A = §N
    B = §(§N|enum.auto()|8)
    C = B

    @property
    def shown(self):
        return self.name * §N

    def __str__(self):
        return "§C" + str(self.value §(+|*) §N)

def §F(x):
    return str(§C.A), §C.B.shown, [m.name for m in §C], §C.A.value, §C.C is §C.B
""",
    """
class §C(enum.Enum):
    A = (§N, §W)
    B = (§N, §W)

    def __init__(self, number, word):
        self.number = number
        self.word = word * §N

    @classmethod
    def _missing_(cls, value):
        return cls.§(A|B)

def §F(x):
    return §C(x).word, §C.B.number, §C((§N, §W)).name
""",
    """
§C = collections.namedtuple("§(P|Q)", "a b§( c|)", defaults=[§N], §(rename=True|module="m"))

class §D(typing.NamedTuple):
    a: int
    b: str = §W
    def both(self):
        return self.a, self.b * §N

def §F(x):
    try:
        return §C(x), §C(x, §N)._asdict(), §D(x).both(), §D(x)._replace(b=§W), §D._fields, x < §N
    except TypeError as error:
        return str(error)
""",
    """
class §C(typing.TypedDict, total=§(True|False)):
    a: int
    b: str

def §F(x):
    made = §C(a=x, b=§W)
    return made, sorted(§C.__required_keys__), §C.__annotations__
""",
    """
class §C:
    __slots__ = ("a", "__b"§(|, "d"))
    def __init__(self, a, b=§N):
        self.a = a
        self.__b = b
    def total(self):
        return self.a §(+|-) self.__b

§T = §C(§N, §(§N|b=§N))

def §F(x):
    return §T.total(), §C(x).total(), hasattr(§T, "d"), §C.__slots__
""",
    """
class §D:
    def __init__(self, k=§N):
        self.k = k
    def __set_name__(self, owner, name):
        self.name = name
    def __get__(self, thing, kind=None):
        return self if thing is None else thing._v §(+|*) self.k
    def __set__(self, thing, value):
        thing._v = value §(-|+) §N

class §C:
    first = §D()
    second = §D(§N)

def §F(x):
    thing = §C()
    thing.first = x
    return thing.second, thing.first, §C.first.name
""",
    """
class §C:
    def __init__(self, a):
        self._a = a
    @property
    def a(self):
        return self._a §(+|-) §N
    @a.setter
    def a(self, value):
        self._a = value * §N
    @functools.cached_property
    def b(self):
        return [self._a, §N]
    @staticmethod
    def c(y, z=§N):
        return y * z
    @classmethod
    def d(cls, *args):
        return cls(§N).a, args
    e = partialmethod(lambda self, p, q: (p, q, self._a), §N)

def §F(x):
    made = §C(x)
    made.a = §N
    return made.a, made.b, made.c(x), §C.c(§N), made.d(x), made.e(§N)
""",
    """
class §G:
    k = §N
    def name(self):
        return "base", self.k
    def hook(self, x):
        return x §(+|*) self.k

class §H:
    k = §N
    def name(self):
        return "mixin", super().name()

class §D(§G):
    def hook(self, x):
        return super().hook(x) §(+|-) §N

class §C(§(§H, §D|§D|§H, §G)):
    §(k = §N|def name(self): return super().name()|pass)

def §F(x):
    return §C().name(), §C().hook(x), [c.k for c in §C.__mro__[:-1]]
""",
    """
class §D(type):
    def __new__(mcs, name, bases, space, **named):
        space["made"] = §(sorted(n for n in space if n[0] != "_")|§N|list(named))
        return super().__new__(mcs, name, bases, space)
    def __init__(cls, name, bases, space, **named):
        super().__init__(name, bases, space)
        cls.more = named
    def __call__(cls, *args):
        made = super().__call__(*args)
        made.stamp = §N
        return made
    @property
    def size(cls):
        return §N

class §C(metaclass=§D, §(flag=§N|depth=§V)):
    b = §N
    a = §N

def §F(x):
    return §C.made, §C().stamp, §C.size, repr(§C.more), §C.a
""",
    """
class §C:
    known = {}
    order = []
    def __init_subclass__(cls, tag=§W, **named):
        super().__init_subclass__(**named)
        §C.known[tag] = cls
        §C.order.append(cls.weight)

class §G(§C, tag=§W):
    weight = §N

class §H(§C§(, tag=§W|)):
    weight = §N

def §F(x):
    return §C.order, sorted(§C.known), [k.weight for k in §C.known.values()], §C.__subclasses__()[-1].weight
""",
    """
class §C:
    def __init__(self, **values):
        self.__dict__.update(values)
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return name.§(upper|title|lower)() * §N
    def __call__(self, x, k=§N):
        return x §(*|-) k + self.a
    def __contains__(self, y):
        return y §(>|<|==) §N
    def __iter__(self):
        return iter([self.a, §N])
    def __getitem__(self, key):
        return key, §N

§T = §C(a=§N, b=§V)

def §F(x):
    v = §T.b
    return §T(x), §T.other, x in §T, list(§T), §T[x:§N], §L
""",
    """
@functools.total_ordering
class §C:
    def __init__(self, v):
        self.v = v
    def __eq__(self, other):
        return self.v % §N == other.v % §N
    def __lt__(self, other):
        return self.v §(<|>) other.v
    def __hash__(self):
        return self.v % §N
    def __bool__(self):
        return self.v §(>|!=) §N
    def __add__(self, other):
        return §C(self.v + §N)
    __radd__ = §(__add__|lambda self, other: self)
    def __neg__(self):
        return self.v * -§N

def §F(x):
    a, b = §C(x), §C(§N)
    return a == b, a >= b, bool(a), (a + b).v, (1 + b).v, -a, len({a, b}), max(a, b).v
""",
    """
class §D(ABC):
    @abstractmethod
    def area(self): ...
    def scaled(self, k=§N):
        return self.area() * k

class §C(§D):
    §(def area(self): return §N|area = lambda self: §N)

class §G:
    pass

§D.register(§(§G|int|str))

def §F(x):
    return §C().scaled(), isinstance(x, §D), isinstance(§G(), §D), issubclass(str, §D)
""",
    """
class §C:
    def __enter__(self):
        self.log = [§N]
        return self
    def __exit__(self, kind, error, trace):
        self.log.append(§W)
        return §(True|kind is ZeroDivisionError|False)
    async def later(self):
        return §N

def §F(x):
    with §C() as made:
        made.log.append(§N // x)
    return made.log
""",
    """
class §C:
    __match_args__ = ("§(a|b)", "c")
    def __init__(self, a, b, c=§N):
        self.a, self.b, self.c = a, b, c

def §F(x):
    match §C(x, §N):
        case §C(1 | 2, d):
            return "few", d
        case §C(e, c=f) if e > §N:
            return e, f
        case object(b=g):
            return g
""",
    """
§C = §(dataclasses.make_dataclass("M", ["a", ("b", int, §N)])|type("M", (§(list|object),), {"a": §N, "b": §N}))
§D = types.new_class("N", (), {}, lambda space: space.update(a=§N, go=lambda self, x: x §(+|-) §N))

def §F(x):
    return getattr(§C, "a", None), §C.b, §D.a, §D().go(x)
""",
    """
class §C:
    a = §N
    table = [§V, §N]
    names = {n: n * §N for n in "ab"}
    for _i in range(§N):
        table.append(_i)
    def go(self, x):
        v = self.table
        return §L, self.names, self.__class__.a §(+|*) x

§C.a = §(§C.a + §N|§N)
§C.late = lambda self: §N
§(setattr(§C, "more", §N)|del §C.names|pass)

def §F(x):
    return §C().go(x), §C().late(), getattr(§C, "more", 0)
""",
    """
class §C(Exception):
    code = §N
    def __str__(self):
        return f"{self.code}-{self.args}"

class §D(§(§C|ValueError)):
    code = §N

def §F(x):
    try:
        raise §(§C|§D)(x, §N)
    except §D as error:
        return "d", str(error)
    except Exception as error:
        return "c", str(error), [note for note in getattr(error, "__notes__", [§N])]
""",
    """
class §C:
    "§(About|Of)"
    def __init__(self, a: int = §N):
        self.a = a
    def __repr__(self):
        return f"{type(self).__qualname__}({self.a})"
    def __reduce__(self):
        return §C, (self.a,)

§T = [§C(), §C(§N)]

def §F(x):
    return §T, §C.__doc__, §C.__init__.__annotations__, §C.__name__, copy.copy(§T[§(0|1)])
""",
    """
class §C(dict):
    def __missing__(self, key):
        return key, §N

class §D(list):
    §(def append(self, v): super().append(v * §N)|def sum(self): return sum(self))

class §G(str):
    def __eq__(self, other):
        return self.lower() == other.§(lower|upper)()
    __hash__ = §(str.__hash__|None)

§T = §C(a=§D([§N, §N]))

def §F(x):
    made = §D(§T["a"])
    made.append(x)
    return §T[x], made, §G("A") == §W
""",
)
