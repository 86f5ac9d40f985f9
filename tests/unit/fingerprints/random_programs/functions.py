"""Kinds of functions, as texts to be filled.

`§F` is the function that is called with a number, `§G` and `§H` are helpers, `§C`, `§D` classes, `§T` a table; `§I` is
a number made of `x`, `§V` a value, `§L` a look at the value `v`. Kinds that begin with `# number` give numbers.
"""

FUNCTIONS = (
    """
# number
def §F(x):
    return §I + §N * (§I)
""",
    """
# number
def §G(a, b=§N, *, c=§N):
    return a * b - c

def §F(x):
    return §(§G(x)|§G(x, §N)|§G(x, c=§N)|§G(b=x, a=§N, c=§N)|§G(§I, c=§I, b=§N))
""",
    """
§T = §V

def §F(x):
    v = §T
    return §L
""",
    """
§T = {§W: §V, §W: §V}

def §F(x):
    return [(k, repr(v)) for k, v in §T.items()]
""",
    """
§T = [§N, §N]
§T.append(§N)
§T[0] = §N
for i in range(§N):
    §T.append(i * §N)
del i

def §F(x):
    return §T[x % len(§T)] §(+|-|*) sum(§T)
""",
    """
# number
def §G(k):
    def inner(y):
        def innermost(z):
            return z §(*|+|-) k + y
        return innermost(y §(+|-) §N)
    return inner

§H = §G(§N)

def §F(x):
    return §H(x) + §G(x)(§N)
""",
    """
def §G():
    count = §N
    def step(by):
        nonlocal count
        count §(+=|-=|*=) by
        return count
    return step

def §F(x):
    step = §G()
    return [step(§N), step(x)]
""",
    """
def §G(fn):
    §(@wraps(fn)|)
    def wrapper(*args, **named):
        return fn(*args, **named) §(+|*|-) §N
    return wrapper

def §H(times, extra=§N):
    def decorate(fn):
        def wrapper(x):
            return [fn(x + extra)] * times
        return wrapper
    return decorate

@§H(§N, §(extra=§N|§N))
@§G
def §F(x):
    return §I
""",
    """
class §C:
    def __init__(self, fn):
        self.fn = fn
        self.by = §N
    def __call__(self, x):
        return self.fn(x) §(+|-) self.by

@§C
def §F(x):
    return §I
""",
    """
def §G(a, b, c=§N, *rest, d=§N, **more):
    return [a, b, c, rest, d, more]

§H = partial(§G, §N, §(d=§N|c=§N|e=§N))

def §F(x):
    return §H(§(x|b=x|x, x))
""",
    """
§T = [lambda x: x + §N, lambda x, k=§N: x * k, lambda *a: len(a), str, abs]

def §F(x):
    return [fn(x) for fn in §T]
""",
    """
§T = {"a": lambda x: §I, "b": lambda x: §I}

def §F(x):
    return §T["§(a|b)"](x), {k: fn(§N) for k, fn in §T.items()}
""",
    """
def §F(x):
    return [y * §N for y in range(x + §N) if y % 2 §(==|!=) §(0|1) if y], {y: z for y in (1, 2) for z in range(y)}
""",
    """
def §G(n):
    for i in range(n):
        if i == §N:
            continue
        got = yield i * §N
        if i > §N:
            return
    §(else|if True):
        yield from (§N, §N)

def §F(x):
    return list(§G(abs(x) + §N))
""",
    """
def §F(x):
    match {"kind": x % 4, "items": [x, §N, §N], "word": §W}:
        case {"kind": 0 | §N, **rest} if x > §N:
            return rest
        case {"items": [first, *others], "word": str() as w} if first != §N:
            return others, w
        case {"kind": int(k)}:
            return k
        case _:
            return §V
""",
    """
def §F(x):
    try:
        if x §(>|<) §N:
            raise §(ValueError|KeyError|IndexError)(§W)
        return 10 // (x - §N)
    except (§(ValueError|LookupError), ZeroDivisionError) as error:
        return type(error).__name__ + str(error)
    else:
        return §N
    finally:
        x += 1
""",
    """
def §F(x):
    if (y := x * §N) > §N and (z := y - 1):
        return [y, z, [w := i * y for i in range(2)], w]
    return y
""",
    """
def §F(x):
    w = §W
    return f"{x:§(>5|<6|05d|+|,)}|{w!§(r|s|a):>{§N}}|{x + §N=}|{x §(+|*) §N:.§Nf}{{}}"
""",
    """
def §F(x):
    a, *b, c = [x, §N, §N, *range(§N)]
    (d, e), f = (a, c), b
    return {**{"a": a, "d": d}, **{"a": e, "f": f}}
""",
    """
def §G(n):
    return §N if n <= 0 else n + §H(n - 1)

def §H(n):
    return §N if n <= 0 else §G(n - §(1|2)) * 2

def §F(x):
    return §G(x % 7)
""",
    """
@singledispatch
def §G(value):
    return "any", §N

@§G.register
def _(value: §(int|bool|float)):
    return "number", value §(+|-) §N

@§G.register(str)
def _(value):
    return "text", value * §N

def §F(x):
    return [§G(x), §G(str(x)), §G(None), §G(x > 1)]
""",
    """
§G = itemgetter(§(0, 1|1, 0|1))
§H = methodcaller("§(split|partition|count)", "§(a|b)")

def §F(x):
    return §G([x, §N, §N]), §H("xaybz"), attrgetter("§(real|imag)")(x)
""",
    """
if §(True|False|1 > §N):
    from math import floor as §G
else:
    from math import ceil as §G

def §F(x):
    return §G(x / §N)
""",
    """
§G = len
def §F(x):
    def len(value):
        return §N
    max = §(len|§G|abs|str)
    return len([x]), max(§([x]|"abc"))
""",
    """
@contextlib.contextmanager
def §G(log, k=§N):
    log.append(k)
    try:
        yield k * §N
    except ZeroDivisionError:
        log.append("zero")
    finally:
        log.append(§W)

def §F(x):
    log = []
    with §G(log) as k, §G(log, §N):
        log.append(k // (x % §N))
    return log
""",
    """
§T = [0]

def §G(v):
    §T[0] += §N
    return v §(+|*) §T[0]

def §H(a, b, c=0):
    return [a, b, c]

def §F(x):
    return §H(§(a=§G(x), b=§G(§N)|b=§G(x), a=§G(§N)|§G(x), §G(§N)|c=§G(x), a=§G(§N), b=§G(x)))
""",
    """
def §F(x, seen=[]):
    seen.append(x)
    del seen[:-§N]
    return list(seen)
""",
    """
§T = []
for k in range(3):
    §T.append(lambda x§(, k=k|): x * 10 + k)
k = §N

def §F(x):
    return [fn(x) for fn in §T]
""",
    """
§T = §N

def §G():
    global §T
    §T = §T §(+|-) §N
    return §T

def §F(x):
    return [§G(), §T, x]
""",
    """
def §F(x):
    total = §N
    for i in range(abs(x) + 2):
        if i % 3 == §(0|1|2):
            continue
        if i > §N:
            break
        total §(+=|*=) i
    else:
        total = -total
    while total > §N:
        total -= §N + 1
    return total
""",
    """
# number
def §F(x):
    if x > §N:
        y = §I
    elif x > 0:
        y = §I
    else:
        return §N
    return y §(+|-) §N
""",
    """
§T = {name: number for number, name in enumerate([§W, §W, "q"])}
§T.update(z=§N)
§T.§(pop("q")|setdefault("q", §N)|clear())

def §F(x):
    return §T, §T.get(§W, x)
""",
    """
@functools.lru_cache(maxsize=§(None|2))
def §G(n):
    return §N if n < 2 else §G(n - 1) + §G(n - 2)

def §F(x):
    return §G(abs(x) % 8)
""",
    """
def §G(x: "§(int|float)", y: §(int|str) = §N) -> §(int|None):
    "§(a|b) text"
    return x

def §F(x):
    return §(§G.__doc__|§G.__name__|str(inspect.signature(§G))|§G.__annotations__|typing.get_type_hints(§G)|§G(x))
""",
    """
§G = reduce(lambda f, g: lambda x: g(f(x)), [lambda x: x + §N, lambda x: x * §N, §(abs|str|int)])

def §F(x):
    return §G(x)
""",
    """
§G = §(operator.add|operator.sub|operator.mul|max|min|pow)
§H = §(np.add|np.subtract|np.maximum)

def §F(x):
    return §G(x % 5, §N), int(§H(x, §N)), list(itertools.§(accumulate|permutations|pairwise)([x, §N]))
""",
    """
def §G(values, *, key=None, reverse=§(True|False)):
    return sorted(values, key=key, reverse=reverse)

def §F(x):
    return §G([x, §N, -§N, §N], key=§(abs|lambda v: -v|None|lambda v: v % §N)), §G("bca")
""",
    """
def §F(x):
    v = §V
    w = §V
    x, v = x + §N, [w, v]
    return §L
""",
)
