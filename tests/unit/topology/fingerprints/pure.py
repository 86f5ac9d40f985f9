"""Ordinary functions of a row: none of them may be refused.

The last line of each is the result, what stands above it is at the top of the module.
"""

from __future__ import annotations

from typing import Final

STANDARD: Final = r"""
row["a"] > 3

sum(1 for part in row["a"] if part)

sorted(row["a"], key=lambda part: -part)

max(row["a"], default=0) + min(row["a"]) + abs(-1) + round(2.5) + pow(2, 3) + divmod(7, 2)[0]

{**row, "b": str(row["a"]).strip().upper()}

[int(part) for part in row["a"].split(",") if part.isdigit()]

dict(zip("abc", range(3))) | {"d": 4}

f"{row['a']:>10.2f}|{row['a']!r}"

"%s-%05d" % (row["a"], 3)

"{0} {name}".format(row["a"], name=3)

isinstance(row["a"], (int, str)) and callable(len) and hasattr(row, "get")

getattr(row["a"], "real", 0)

list(map(str, filter(None, reversed([1, 2])))) + list(enumerate("ab"))

any(part == "a" for part in row["a"]) or all([True])

print(row) or bytes(3) + bytearray(b"a") + bytes.fromhex("00")

chr(ord("a") + 1) + hex(255) + bin(3) + oct(8) + ascii("a") + format(3, "x")

int.from_bytes(b"ab", "big") + (5).bit_length() + int("7")

float.fromhex("0x1p3").is_integer()

complex(1, 2).conjugate()

memoryview(b"abc")[1] + slice(1, 2).start + type(row["a"]).__name__.count("s")

len({"a", "b"}) + len(set(row["a"]))

"a" in {"a", "b"} and row["a"] not in frozenset({"c"})

sorted({"a", "b"})

sorted(set(row["a"]) - {"b"})

min({"a", "b"}) + max(set(row["a"]))

{1, 2} <= {1, 2, 3} and {"a"}.issubset(row["a"]) and {"a"}.isdisjoint({"b"})

list({1, 2, 3})

sum({1, 2, 3}) + sum(1 for part in {"a", "b"})

sum(len(part) for part in set(row["a"]))

any(part.startswith("a") for part in {"a", "b"})

{part.upper() for part in {"a", "b"}} == {"A", "B"}

FIELDS = {"a", "b"}
{name: row.get(name) for name in FIELDS}

NAMES = frozenset(["a", "b"])
row["a"] in NAMES

NAMES = {"a", "b"}
", ".join(sorted(NAMES))

def known(row):
    seen = set()
    for part in row["a"]:
        if part in seen:
            return True
        seen.add(part)
    return False
known(row)

def counted(row):
    n = 0
    for part in set(row["a"]):
        if part:
            n += 1
    return n
counted(row)

def found(row):
    for part in {"a", "b"}:
        if part in row["a"]:
            return True
    return False
found(row)

list(dict.fromkeys(row["a"]))

list({"a": 1, "b": 2})

row["a"].pop() if isinstance(row["a"], list) else row["a"].pop("x", None)

import math
math.sqrt(2) + math.floor(2.5) + math.pi + math.fsum([0.1, 0.2]) + math.comb(5, 2) + math.log10(5) + math.isclose(1, 1)

from math import *
floor(2.5) + hypot(3, 4)

import cmath
cmath.sqrt(-1).imag

import json
json.loads(row["a"])

import json
json.dumps(row, sort_keys=True, default=str, separators=(",", ":"))

import json
class Encoder(json.JSONEncoder):
    def default(self, thing):
        return str(thing)
json.dumps(row, cls=Encoder)

import json, io
json.load(io.StringIO(row["a"]))

import json
def parsed(text):
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        return error.pos
parsed(row["a"])

import re
re.sub(r"\s+", " ", row["a"], flags=re.I) + re.escape("a")

import re
WORD = re.compile(r"(?P<n>\w+)", re.M)
[match.group("n") for match in WORD.finditer(row["a"])] + WORD.split("a")

import re
re.match("a", "b") is None or re.findall("a", "b")

import datetime
datetime.datetime.fromisoformat(row["a"]) + datetime.timedelta(days=1)

from datetime import datetime, timezone
datetime(2024, 1, 1, tzinfo=timezone.utc).timestamp()

from datetime import datetime, UTC
datetime.fromtimestamp(row["a"], UTC).isoformat()

from datetime import datetime, timezone
datetime.fromtimestamp(row["a"], tz=timezone.utc).date()

from datetime import datetime
datetime.strptime(row["a"], "%Y-%m-%d").date().isoformat()

from datetime import datetime, UTC
datetime.strptime(row["a"], "%Y-%m-%d").replace(tzinfo=UTC).timestamp()

import datetime as dt
dt.date(2024, 1, 1).isocalendar()[1] + dt.date.fromordinal(9).weekday() + dt.datetime.min.year

import datetime
datetime.datetime.combine(datetime.date(2024, 1, 1), datetime.time(3)).strftime("%A %d")

import datetime
datetime.datetime.utcfromtimestamp(0)

from datetime import datetime
class Moment(datetime):
    def week(self):
        return self.isocalendar()[1]
Moment(2024, 1, 1).week()

row["a"].timestamp() + row["a"].hour

row["a"].isoformat() + row["a"].strftime("%Y-%m")

from zoneinfo import ZoneInfo
row["a"].astimezone(ZoneInfo("Europe/Berlin")).hour

from zoneinfo import ZoneInfo
BERLIN = ZoneInfo("Europe/Berlin")
row["a"].replace(tzinfo=BERLIN).utcoffset()

import time
time.strptime(row["a"], "%Y").tm_year + time.gmtime(0).tm_year

import time
time.strftime("%Y", time.gmtime(row["a"]))

import calendar
calendar.monthrange(2024, 2)[1] + calendar.timegm((2024, 1, 1, 0, 0, 0)) + calendar.isleap(2024)

import calendar
calendar.month_name[3]

from decimal import Decimal, ROUND_HALF_UP
Decimal(row["a"]).quantize(Decimal("0.01"), rounding=ROUND_HALF_UP)

import decimal
decimal.Decimal("1.1").normalize().as_tuple().exponent

import decimal
def rounded(value):
    with decimal.localcontext() as context:
        context.prec = 6
        return value / 3
rounded(decimal.Decimal(1))

import decimal
decimal.Context(prec=5).divide(decimal.Decimal(1), 3)

from fractions import Fraction
Fraction(1, 3).limit_denominator(10).numerator

import numbers
isinstance(row["a"], numbers.Number)

import statistics
statistics.mean([1, 2]) + statistics.median([1]) + statistics.pstdev([1, 2]) + statistics.quantiles([1, 2, 3])[0]

import itertools
list(itertools.chain([1], itertools.accumulate([1, 2]), itertools.islice(itertools.count(), 3)))

from itertools import groupby, product, pairwise, combinations
[list(group) for _, group in groupby("aab")] + list(product("ab", "c")) + list(pairwise("abc"))

from collections import Counter, defaultdict, deque, OrderedDict, ChainMap, namedtuple
Counter(row["a"]).most_common(1)[0][0] and defaultdict(list) and deque([1], 3) and OrderedDict() and ChainMap({})

from collections import namedtuple
Pair = namedtuple("Pair", "x y")
Pair(1, 2)._replace(x=3).x

from collections.abc import Mapping, Iterable
isinstance(row, Mapping) or isinstance(row, Iterable)

import functools
functools.reduce(lambda a, b: a + b, row["a"], 0)

import functools
@functools.lru_cache(maxsize=None)
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)
fib(5)

import functools
ADD = functools.partial(int, base=16)
ADD("ff")

import functools
sorted(row["a"], key=functools.cmp_to_key(lambda a, b: a - b))

import functools
@functools.singledispatch
def shown(value):
    return "?"
@shown.register
def number(value: int):
    return "n"
shown(row["a"])

import operator
sorted(row["a"], key=operator.itemgetter(1)) + [operator.attrgetter("real")(1), operator.add(1, 2)]

import operator
operator.methodcaller("upper")("a")

import hashlib
hashlib.sha256(row["a"].encode()).hexdigest() + hashlib.md5(b"a").hexdigest() + hashlib.new("sha1").hexdigest()

import hashlib
hashlib.blake2b(b"a", digest_size=8).digest() + hashlib.pbkdf2_hmac("sha256", b"a", b"b", 1)

import hmac
hmac.new(b"a", b"b", "sha256").hexdigest()

import hmac, hashlib
hmac.compare_digest(hmac.digest(b"a", b"b", hashlib.sha256), b"c")

import base64
base64.b64encode(row["a"].encode()).decode() + base64.urlsafe_b64decode("YQ==").decode()

import binascii
binascii.crc32(b"a") + len(binascii.hexlify(b"a"))

import zlib
zlib.crc32(b"a") + zlib.adler32(b"a") + len(zlib.compress(b"a", 9)) + len(zlib.decompress(row["a"]))

import gzip
gzip.compress(b"a", mtime=0)

import gzip
gzip.decompress(row["a"])

import bz2, lzma
bz2.compress(b"a") + lzma.compress(b"a") + bz2.decompress(row["a"])

import struct
struct.pack(">I", 3) + struct.Struct("<d").pack(1.5)

import uuid
uuid.uuid5(uuid.NAMESPACE_URL, row["a"]).hex + str(uuid.uuid3(uuid.NAMESPACE_DNS, "a"))

import uuid
str(uuid.UUID(row["a"])) + uuid.UUID(int=3).hex

import ipaddress
ipaddress.ip_address(row["a"]) in ipaddress.ip_network("10.0.0.0/8")

from urllib.parse import urlsplit, parse_qs, quote, urlencode, urljoin, unquote_plus
urlsplit(row["a"]).netloc + quote("a b") + urlencode({"a": 1}) + urljoin("http://a", "b") + unquote_plus("a+b")

import urllib.parse
urllib.parse.parse_qsl("a=1")

import html
html.escape(row["a"]) + html.unescape("&amp;")

from html.parser import HTMLParser
class Texts(HTMLParser):
    def __init__(self):
        super().__init__()
        self.parts = []
    def handle_data(self, data):
        self.parts.append(data)
def texts(page):
    parser = Texts()
    parser.feed(page)
    return parser.parts
texts(row["a"])

import string
string.ascii_letters + string.Template("$a").substitute(a=1) + string.capwords("a b")

import textwrap
textwrap.shorten(row["a"], 20) + textwrap.dedent(" a") + textwrap.fill("a", 3)

import unicodedata
unicodedata.normalize("NFKD", row["a"]).encode("ascii", "ignore") + unicodedata.category("a").encode()

import difflib
difflib.SequenceMatcher(None, "a", "b").ratio() + len(difflib.get_close_matches("a", ["b"]))

import bisect, heapq
bisect.bisect_left([1, 2], 2) + heapq.nsmallest(1, [3, 1])[0]

import heapq
def top(values):
    heap = []
    for value in values:
        heapq.heappush(heap, value)
    return heapq.heappop(heap)
top(row["a"])

import copy
copy.deepcopy(row)["a"] and copy.copy(row)

import enum
class Level(enum.IntEnum):
    LOW = 1
    HIGH = enum.auto()
Level(row["a"]).name + Level["LOW"].name

import dataclasses
@dataclasses.dataclass(frozen=True, order=True)
class Point:
    x: int
    y: int = dataclasses.field(default=0)
dataclasses.asdict(dataclasses.replace(Point(1), y=2))

from typing import NamedTuple, Optional, Any, cast, TypedDict
class Pair(NamedTuple):
    x: int
    y: Optional[Any] = None
cast(int, Pair(1).x)

import array
array.array("i", [1, 2]).tobytes()

import csv, io
list(csv.reader(io.StringIO(row["a"]), delimiter=";"))

import csv, io
[line["x"] for line in csv.DictReader(row["a"].splitlines())]

import csv, io
def written(rows):
    out = io.StringIO()
    writer = csv.DictWriter(out, fieldnames=["a"], quoting=csv.QUOTE_ALL)
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()
written([row])

import io
io.BytesIO(b"a").read() + io.StringIO("a").read().encode()

import io
def lines(text):
    with io.StringIO(text) as source:
        return [line for line in source]
lines(row["a"])

import xml.etree.ElementTree as ET
ET.fromstring(row["a"]).find("b").text

from xml.etree import ElementTree
def page():
    root = ElementTree.Element("a", x="1")
    ElementTree.SubElement(root, "b").text = "c"
    return ElementTree.tostring(root)
page()

from xml.sax.saxutils import escape
escape(row["a"])

from xml.dom import minidom
minidom.parseString(row["a"]).documentElement.tagName

import configparser
def setting(text):
    parser = configparser.ConfigParser()
    parser.read_string(text)
    return parser["a"]["b"]
setting(row["a"])

import tomllib
tomllib.loads(row["a"])

import ast
ast.literal_eval(row["a"])

import shlex
shlex.split(row["a"]) + [shlex.quote("a b")]

import fnmatch
fnmatch.fnmatch(row["a"], "*.txt")

import os.path
os.path.join("a", os.path.basename(row["a"])) + os.path.splitext("a.b")[1] + os.sep

from pathlib import Path, PurePosixPath
Path(row["a"]).suffix + PurePosixPath("a/b").name + str(Path("a") / "b") + Path("a").with_suffix(".b").as_posix()

from pathlib import Path
PLACE = Path("a/b.txt")
PLACE.suffix + PLACE.with_name("c").name + str(PLACE / "d") + PLACE.parent.as_posix()

from http import HTTPStatus
HTTPStatus(row["a"]).phrase

from http.cookies import SimpleCookie
SimpleCookie(row["a"])["a"].value

import email.utils
email.utils.parsedate_to_datetime(row["a"]).isoformat() + email.utils.parseaddr("a@b")[1]

import email
email.message_from_string(row["a"])["Subject"]

import codecs
codecs.encode(row["a"], "rot13") + codecs.decode(b"a", "utf-8")

import colorsys
colorsys.rgb_to_hsv(1, 0, 0)

import graphlib
list(graphlib.TopologicalSorter({"a": ["b"]}).static_order())

import keyword
keyword.iskeyword(row["a"])

import pprint
pprint.pformat(row)

import reprlib
reprlib.repr(row["a"])

import types
types.SimpleNamespace(a=1).a + types.MappingProxyType({"a": 1})["a"]

import contextlib
def quiet(text):
    with contextlib.suppress(ValueError):
        return int(text)
quiet(row["a"])

import abc
class Shape(abc.ABC):
    @abc.abstractmethod
    def area(self): ...
class Square(Shape):
    def area(self):
        return 4
Square().area()

import logging
LOG = logging.getLogger(__name__)
LOG.info("row %s", row) or LOG.debug("a") or 3

import logging
logging.warning("a") or logging.getLogger("b").error("c")

import warnings
warnings.warn("old", DeprecationWarning) or 3

import sys
sys.maxsize + sys.float_info.max

import sys
print("a", file=sys.stderr)

import sys
sys.stdout.write("a") or sys.stderr.flush()

import random
random.Random(row["a"]).random()

import secrets
secrets.compare_digest("a", "b")

class Money:
    def __init__(self, amount):
        self.amount = amount
    def __eq__(self, other):
        return self.amount == other.amount
    def __hash__(self):
        return hash(self.amount)
{Money(1): 2}[Money(1)]

class Money:
    def __init__(self, amount):
        self.amount = amount
    def __repr__(self):
        return f"Money({self.amount})"
str(Money(1)) + f"{Money(2)!r}"

class Temperature:
    def __init__(self, degrees):
        self.degrees = degrees
    @property
    def now(self):
        return self.degrees
Temperature(3).now

class Basket:
    def sample(self):
        return 1
    def read(self):
        return 2
Basket().sample() + Basket().read()

def fact(n):
    return 1 if n < 2 else n * fact(n - 1)
fact(3)

def late(row):
    import math
    return math.floor(row["a"])
late(row)

def tried(row):
    try:
        return row["a"] / 0
    except ZeroDivisionError as error:
        return str(error)
    except (KeyError, ValueError, Exception):
        raise RuntimeError("no") from None
tried(row)

def matched(row):
    match row:
        case {"a": int(x)} if x > 3:
            return x
        case {"a": [first, *rest]}:
            return rest
    return None
matched(row)

def walked(row):
    total = 0
    for n, part in enumerate(row["a"]):
        total += n * part
    while total > 10:
        total -= 1
    return total
walked(row)

row["status"] in ("now", "today", "later")

import everstate as es
es.col("a").name

class C:
    names = frozenset({"a", "b"})
    def has(self, x):
        return x in self.names and len(self.names)
C().has(row["a"])

def f(s):
    return sorted(s)
f({"a", "b"})

def f(s):
    return len(s) + sum(1 for x in s)
f(set(row["a"]))

D = {"x": {"a", "b"}}
row["a"] in D["x"]

from sys import maxsize
maxsize

from math import pi, tau as t
pi + t

class Node:
    def __init__(self, kids):
        self.kids = kids
        self.level = 3
    def depth(self):
        return self.level + max([k.depth() for k in self.kids], default=0)
Node([]).depth()

import datetime
row["at"].timestamp() - datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC).timestamp()

import logging
log = logging.getLogger("x")
class Order:
    level = 3
log.info("x") or Order().level

import pandas as pd
pd.DataFrame({"now": [1]})["now"].sum() + (row["when"] == "now")

import collections
collections.Counter(x for x in row["a"]).items()

import warnings
def f():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return 1
f()

import string
getattr(string, "digits") + getattr(row["a"], "name", "")

class Registry:
    def __init__(self):
        self.items = {}
    def get(self, name):
        return getattr(self, "items")[name]
Registry().get

import types
types.SimpleNamespace(**row).a

from collections.abc import Callable
def apply(fn: Callable[[int], int], x: int) -> int:
    return fn(x)
apply(lambda v: v + 1, 3)

class Rates:
    def read(self, x):
        return x
    def open(self):
        return 1
Rates().read(1) + Rates().open()

import decimal
def f(x):
    with decimal.localcontext(prec=5):
        return x / 3
f(decimal.Decimal(1))

import operator, functools
functools.reduce(operator.or_, [{1}, {2}], set()) == {1, 2}

set(row["a"]) & {"x"} and bool(set(row["b"])) and {"a"} == set(row["b"])

{k: v for k, v in row.items() if k in {"a", "b"}}

def f(row):
    out = dict(row)
    for name in ("a", "b"):
        out.setdefault(name, None)
    return out
f(row)

def f(row):
    seen = {}
    return [seen.setdefault(x, x) for x in row["a"] if x not in seen]
f(row)
"""

PACKAGES: Final = r"""
import numpy as np
np.sqrt(2) + np.mean([1, 2]) + np.array([1, 2]).sum() + np.pi

import numpy as np
np.percentile([1, 2], 50) + np.linalg.norm([1, 2]) + np.where([True], 1, 2)[0] + np.float64(3)

import numpy as np
np.dot([1, 2], [3, 4]) + np.cumsum([1])[0] + np.unique(row["a"]).size + np.fft.fft([1])[0].real + np.int64(1)

import numpy as np
np.datetime64("2024-01-01") + np.timedelta64(1, "D")

import numpy as np
np.random.default_rng(42).random()

import numpy as np
np.random.default_rng(seed=row["a"]).normal(size=3).sum()

import numpy as np
np.frombuffer(row["a"], dtype="<i4").tolist() + np.fromstring("1 2", sep=" ").tolist()

import numpy as np
def safe(a, b):
    with np.errstate(divide="ignore"):
        return np.divide(a, b)
safe(1, 0)

import numpy as np
np.vectorize(lambda x: x + 1)([1, 2])

import numpy as np
TABLE = np.arange(10).reshape(2, 5)
TABLE[1, 2] + TABLE.mean(axis=0)[0]

from numpy import clip, log1p
clip(row["a"], 0, 1) + log1p(2)

import numpy as np
np.polynomial.Polynomial([1, 2])(3) + np.char.upper(["a"])[0].size

import pandas as pd
pd.DataFrame({"a": [1, 2]}).groupby("a").sum()["b"].tolist()

import pandas as pd
pd.Timestamp(row["a"]).tz_convert("UTC").isoformat()

import pandas as pd
pd.to_datetime(row["a"], utc=True) - pd.Timedelta(days=1)

import pandas as pd
pd.Series(row["a"]).rolling(3).mean().fillna(0).to_list()

import pandas as pd
pd.DataFrame(row["a"]).sample(2, random_state=7).to_dict("records")

import pandas as pd
pd.concat([pd.Series([1]), pd.Series([2])]).sort_values().iloc[0] + pd.isna(3)

import pandas as pd
pd.merge(pd.DataFrame({"a": [1]}), pd.DataFrame({"a": [1]}), on="a").to_json()

import pandas as pd
pd.DataFrame({"a": [1]}).query("a > 0").to_csv()

import pandas as pd
pd.json_normalize(row["a"]).columns.tolist()

import pandas as pd
pd.date_range("2024-01-01", periods=3, freq="D").strftime("%Y").tolist()

import pandas as pd
pd.cut([1, 2], 2).codes.tolist() + pd.Categorical(["a"]).codes.tolist() + list(pd.to_numeric(["1"]))

import pandas as pd
pd.Series(["a"]).str.upper().value_counts().to_dict()

import polars as pl
pl.DataFrame({"a": [1, 2]}).filter(pl.col("a") > 1).select(pl.sum("a")).item()

import polars as pl
pl.DataFrame({"a": [1, 2]}).group_by("a", maintain_order=True).len().rows()

import polars as pl
pl.DataFrame({"a": [1, 2]}).group_by("a").len().sort("a").rows()

import polars as pl
pl.Series(["a", "b"]).unique(maintain_order=True).to_list() + pl.Series([1]).sample(1, seed=3).to_list()

import polars as pl
pl.Series(["a", "b"]).unique().sort().to_list()

import polars as pl
pl.Series([1, 2]).mean() + pl.Series([1]).cast(pl.Float64)[0]

import pyarrow as pa
pa.array([1, 2]).to_pylist() + pa.table({"a": [1]}).column("a").to_pylist() + [pa.int64()]

import pyarrow.compute as pc
pc.sum([1, 2]).as_py() + pc.utf8_upper("a").as_py()

import pyarrow as pa, pyarrow.compute as pc
pc.if_else(pa.array([True]), 1, 2).to_pylist()

from dateutil.relativedelta import relativedelta
row["a"] + relativedelta(months=1)

from dateutil.parser import isoparse
isoparse(row["a"])

from dateutil import parser
import datetime
parser.parse(row["a"], default=datetime.datetime(2000, 1, 1))

from dateutil import tz
row["a"].astimezone(tz.gettz("Europe/Berlin")).hour + (tz.UTC is tz.tzutc())

from dateutil.rrule import rrule, DAILY
import datetime
list(rrule(DAILY, count=3, dtstart=datetime.datetime(2024, 1, 1)))

import pytz
pytz.timezone("Europe/Berlin").localize(row["a"]).utcoffset()

from pydantic import BaseModel, Field, field_validator
class Order(BaseModel):
    amount: int = Field(gt=0)
    @field_validator("amount")
    @classmethod
    def positive(cls, value):
        return value
Order.model_validate(row).model_dump()

from pydantic import TypeAdapter
TypeAdapter(list[int]).validate_python(row["a"])

from typing_extensions import TypedDict
class Options(TypedDict, total=False):
    depth: int
Options(depth=1)["depth"]

def total(values):
    n = 0
    def add(value):
        nonlocal n
        n += value
    for value in values:
        add(value)
    return n
total([1, row["x"]])

def counts(text):
    found = {}
    for sign in text:
        found.setdefault(sign, [0])[0] += 1
    return sorted(found.items())
counts(row["t"])

class Sum:
    def __init__(self):
        self.n = 0
    def add(self, value):
        self.n += value
        return self
Sum().add(row["x"]).n
"""
