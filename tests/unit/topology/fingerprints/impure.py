"""Functions whose result depends on more than their row, by what `es.declare` calls it.

The last line of each is the result, what stands above it is at the top of the module.
"""

from __future__ import annotations

from typing import Final

CLOCK: Final = r"""
import time
time.time()

from time import time as now
now()

import time as t
t.monotonic()

import time
time.perf_counter_ns()

import time
time.gmtime()

import time
time.ctime()

import time
time.strftime("%Y")

import time
time.clock_gettime(0)

import time
getattr(time, "time")()

import datetime
datetime.datetime.now()

import datetime
datetime.datetime.now(datetime.UTC)

import datetime as d
d.datetime.utcnow()

from datetime import datetime
datetime.today()

from datetime import date
date.today()

from datetime import datetime as dt
dt.now

from datetime import datetime
getattr(datetime, "now")()

from datetime import datetime
NAME = "now"
getattr(datetime, NAME)()

from datetime import datetime
(lambda kind: kind.now())(datetime)

from datetime import datetime
def when(kind):
    return kind.now()
when(datetime)

from datetime import datetime
def when(kind=datetime):
    return kind.now()
when()

from datetime import datetime
NOW = {"now": datetime.now}
NOW["now"]()

from datetime import datetime
from functools import partial
NOW = partial(datetime.now, None)
NOW()

from datetime import datetime
class Clock:
    now = datetime.now
Clock.now()

from datetime import datetime
class Clock:
    kind = datetime
    def read(self):
        return self.kind.now()
Clock().read()

from datetime import datetime
class Moment(datetime):
    pass
Moment.now()

from datetime import datetime
class Moment(datetime):
    @classmethod
    def fresh(cls):
        return cls.now()
Moment.fresh()

from datetime import datetime
class Moment(datetime):
    @classmethod
    def now(cls, tz=None):
        return super().now(tz)
Moment.now()

from datetime import date
class Day(date):
    pass
class Feast(Day):
    pass
Feast.today()

from datetime import datetime
import operator
operator.methodcaller("now")(datetime)

from datetime import datetime
import operator
NOW = operator.attrgetter("now")
NOW(datetime)()

from datetime import datetime
def clocked(fn):
    def call(row):
        return fn(row, datetime.now())
    return call
@clocked
def helper(row, at):
    return at
helper(row)

import datetime
[kind.today() for kind in (datetime.date,)]

import datetime
type(row["a"]).now() if isinstance(row["a"], datetime.datetime) else 0

from datetime import datetime
def one():
    return two()
def two():
    return three()
def three():
    return datetime.now()
one()

import calendar, time
calendar.timegm(time.gmtime())

import timeit
timeit.default_timer()

import sched
sched.scheduler()

import email.utils
email.utils.formatdate()

import email.utils
email.utils.localtime()

import gzip
gzip.compress(b"a")

import gzip
gzip.compress(row["a"], 9)

import gzip, io
gzip.GzipFile(fileobj=io.BytesIO(), mode="wb")

import logging
logging.LogRecord("a", 1, "b", 1, "c", (), None).created

import logging
logging.makeLogRecord({}).created

import logging
logging.Formatter("%(asctime)s").format(row["a"])

import logging
logging.getLogger("a").makeRecord("a", 1, "b", 1, "c", (), None)

import pandas as pd
pd.Timestamp("now")

import pandas as pd
pd.Timestamp("today")

import pandas as pd
pd.Timestamp.now()

import pandas as pd
pd.Timestamp.today("UTC")

from pandas import Timestamp
Timestamp.utcnow()

import pandas as pd
pd.to_datetime("now")

import pandas as pd
pd.to_datetime(["today", row["a"]])

import pandas as pd
WHEN = "now"
pd.to_datetime(WHEN)

import pandas as pd
def at(when="Now"):
    return pd.Timestamp(when)
at()

import pandas as pd
pd.Period.now("D")

import pandas as pd
pd.DatetimeIndex(["now"])

import pandas as pd
pd.Series(["now"]).astype("datetime64[ns]")

import numpy as np
np.datetime64("now")

import numpy as np
np.datetime64("today", "D")

import numpy as np
np.array(["now"], dtype="datetime64[s]")

import numpy as np
np.array(["today"]).astype("datetime64[D]")

from dateutil.parser import parse
parse(row["a"])

import dateutil.parser
dateutil.parser.parse("10:30")

import dateutil.utils
dateutil.utils.today()

from dateutil.rrule import rrule, DAILY
rrule(DAILY, count=3)

import pandas as pd
class Stamp(pd.Timestamp):
    pass
Stamp.now()

from datetime import datetime
class A:
    @staticmethod
    def t():
        return datetime.now
A.t()()

from datetime import datetime
D = {"k": datetime}
D["k"].now()

from datetime import datetime
L = [datetime]
[k.utcnow() for k in L]

from datetime import datetime as dt
f = lambda: dt.now()
f()

import datetime
x = datetime
x.datetime.now()

import datetime
def g(mod):
    return mod.datetime.now()
g(datetime)

import datetime
def g(m=datetime):
    return m.date.today()
g()

from datetime import datetime
def outer():
    clock = datetime
    def inner():
        return clock.now()
    return inner
outer()()

from datetime import datetime
class Meta(type):
    def now(cls):
        return datetime.now()
class A(metaclass=Meta): pass
A.now()

import time
class C:
    def __init__(self, f=time.time):
        self.f = f
    def __call__(self, row):
        return self.f()
C()(row)

import time
class C:
    f = staticmethod(time.time)
C.f()

import time
from functools import cached_property
class C:
    @cached_property
    def t(self):
        return time.time()
C().t

import dataclasses, datetime
@dataclasses.dataclass
class P:
    at: datetime.datetime = dataclasses.field(default_factory=datetime.datetime.now)
P().at

from pydantic import BaseModel, Field
import datetime
class P(BaseModel):
    at: datetime.datetime = Field(default_factory=datetime.datetime.now)
P().at

import time
def deco(fn):
    import functools
    @functools.wraps(fn)
    def w(*a):
        return fn(*a), time.time()
    return w
@deco
def h(r): return r
h(row)

import functools, time
@functools.lru_cache
def h(r): return time.time()
h(1)

import time
def gen():
    yield time.time()
next(gen())

from time import *
time()

import time as _t
getattr(_t, "mono" + "tonic")()

import operator, datetime
operator.attrgetter("datetime.now")(datetime)

import datetime
datetime.datetime.now.__call__()

import datetime
(datetime.datetime).now(tz=None)

import datetime
d = datetime.datetime.min
d.now()

import datetime
datetime.datetime.min.today()

import functools, datetime
functools.partial(getattr, datetime.datetime)("now")()

import datetime
list(map(lambda k: k.now(), [datetime.datetime]))

import datetime
match_ = datetime.datetime
(match_ := datetime.datetime).now()

import pandas as pd
pd.Timestamp(row["a"] or "now")

import pandas as pd
S = ["today"]
pd.to_datetime(S)

import pandas as pd
pd.to_datetime(arg="now")

import pandas
(pandas.Timestamp)("now")

import pandas as pd
T = pd.Timestamp
T("NOW")

import numpy as np
K = np.datetime64
K("now")

import numpy as np
np.array("today", "M8[D]")

import pandas as pd
pd.Timestamp(ts_input="today")

import pandas as pd
pd.date_range(end="today", periods=3)

import pandas as pd
pd.Period("now", freq="D")

import pydantic
class M(pydantic.BaseModel):
    at: pydantic.PastDate
M(**row)

import dateutil.parser as p
p.parse(row["a"], fuzzy=True)

import dateutil.parser
dateutil.parser.parser().parse(row["a"])

import logging
logging.Formatter().formatTime(row["a"])

import sched, time
sched.scheduler(time.time)

import calendar, datetime
calendar.Calendar().itermonthdates(datetime.date.today().year, 1)
"""

RANDOM: Final = r"""
import random
random.random()

from random import choice
choice([1, 2])

import random
random.shuffle([1, 2])

import random
random.Random().random()

import random
random.Random(None).random()

import random
RNG = random.Random(3)
RNG.random()

import random
random.SystemRandom().random()

import random
class Dice(random.Random):
    pass
Dice().random()

import random
PICK = {"one": random.choice}
PICK["one"]([1])

import random
getattr(random, "random")()

import secrets
secrets.token_hex()

import secrets
secrets.choice([1])

import uuid
uuid.uuid4()

import uuid
uuid.uuid1()

import uuid
str(uuid.uuid4())

import uuid
uuid.getnode()

import os
os.urandom(3)

import numpy as np
np.random.rand()

import numpy as np
np.random.default_rng()

import numpy as np
np.random.default_rng(None).random()

import numpy as np
from numpy.random import default_rng
default_rng().normal()

import numpy as np
RNG = np.random.default_rng(1)
RNG.random()

import numpy as np
np.random.seed(1) or np.random.random()

import numpy as np
np.random.RandomState().rand()

import numpy as np
np.random.shuffle([1, 2])

import pandas as pd
pd.DataFrame({"a": [1, 2]}).sample(1)

import pandas as pd
FRAME = pd.DataFrame({"a": [1, 2]})
FRAME.sample(frac=0.5)

import pandas as pd
pd.Series([1, 2]).sample(n=1, random_state=None)

import pandas as pd
pd.DataFrame({"a": [1, 2]}).groupby("a").sample(1)

import pandas as pd
def draw(frame):
    return frame.sample(1)
draw(pd.DataFrame({"a": [1]}))

import polars as pl
pl.DataFrame({"a": [1, 2]}).sample(1)

import polars as pl
pl.Series([1, 2]).shuffle()

import polars as pl
pl.Series([1, 2]).sample(1, shuffle=True)

import polars as pl
pl.DataFrame({"a": [1]}).select(pl.col("a").shuffle())

import pyarrow.compute as pc
pc.random(3)

import statistics
statistics.NormalDist().samples(3)

hash(row["a"])

hash((1, "a"))

row["a"].__hash__()

str.__hash__(row["a"])

object.__hash__(row)

tuple.__hash__((1, 2))

(lambda f: f("a"))(hash)

list(map(hash, ["a"]))

sorted(["a", "b"], key=hash)

HASH = {"h": hash}
HASH["h"]("a")

getattr("a", "__hash__")()

id(row)

sorted([1, 2], key=id)

object.__repr__(row)

repr(object())

str(object())

class Thing:
    pass
str(Thing())

class Thing:
    pass
f"{Thing()}"

class Thing:
    pass
ONE = Thing()
repr(ONE)

class Thing:
    pass
ONE = Thing()
"%s" % ONE

class Thing:
    pass
ONE = Thing()
"{}".format(ONE)

def other():
    return 1
str(other)

f"{(lambda: 1)}"

def other():
    return 1
f"{other!r}"

import os, binascii
binascii.hexlify(os.urandom(2))

import email.utils
email.utils.make_msgid()

list({"a", "b"})

list(set(row["a"]))

tuple(frozenset(row["a"]))

"".join({"a", "b"})

",".join(set(row["a"]))

[x for x in {"a", "b"}]

[x.upper() for x in set(row["a"])]

next(iter({"a", "b"}))

next(iter(set(row["a"])))

set(row["a"]).pop()

str({"a", "b"})

f"{set(row['a'])}"

repr(frozenset(row["a"]))

list(enumerate({"a", "b"}))

list(zip({"a", "b"}, [1, 2]))

list(map(str.upper, {"a", "b"}))

[*{"a", "b"}]

(lambda *a: a[0])(*{"a", "b"})

NAMES = {"a", "b"}
list(NAMES)

NAMES = frozenset(["a", "b"])
[name for name in NAMES]

NAMES = {"a", "b"}
dict.fromkeys(NAMES)

NAMES = {"a", "b"}
list({name: 1 for name in NAMES})

list({"a", "b"} | {"c"})

list({"a": 1}.keys() & {"a", "b"})

list(set(row["a"]) - {"b"})

list({"a"}.union(row["a"]))

def names(row):
    return set(row["a"])
list(names(row))

def first(names: set[str]):
    for name in names:
        return name
first({"a", "b"})

def first(row):
    names = set(row["a"])
    found = []
    for name in names:
        found.append(name)
    return found
first(row)

def first(row):
    names = {part for part in row["a"]}
    a, b = names
    return a
first(row)

def first(row):
    names = set()
    names.add(row["a"])
    return list(names)
first(row)

class Kinds:
    names = {"a", "b"}
list(Kinds.names)

import json
json.dumps(list({"a", "b"}))

import itertools
list(itertools.chain({"a", "b"}, ["c"]))

import collections
collections.Counter({"a", "b"}).most_common(1)

PRICES = {"a": 0.1, "b": 0.2}
sum(PRICES[name] for name in set(row["a"]))

max({"a", "b"}, key=len)

sorted({"a", "b"}, key=len)

import functools
functools.reduce(lambda a, b: a + b, {"a", "b"})

import heapq
heapq.nlargest(1, {"a", "b"}, key=len)

import polars as pl
pl.Series(["a", "b"]).unique().to_list()

import polars as pl
pl.DataFrame({"a": [1, 2]}).group_by("a").len()

import random as r
[r.Random(row["a"]), r.random()]

import random
f = random.random
f()

from random import Random
R = Random
R().random()

from random import SystemRandom as S
S().choice([1])

import random
random.Random(*[]).random()

import numpy as np
g = np.random.default_rng
g()

import numpy
numpy.random.Generator(numpy.random.PCG64()).random()

from numpy import random
random.rand()

import numpy.random as nr
nr.randint(3)

import pandas as pd
pd.DataFrame({"a":[1]}).sample

import pandas as pd
pd.DataFrame({"a":[1]}).sample(**{})

import pandas as pd
getattr(pd.Series([1]), "sample")()

import pandas as pd
pd.DataFrame.sample(pd.DataFrame())

import polars as pl
S = pl.Series([1, 2])
S.shuffle()

class T: pass
T().__hash__()

class T: pass
hash(T())

class T:
    def __eq__(self, o): return hash(self) == hash(o)
T() == T()

import functools
functools.partial(hash, "a")()

h = hash
h("a")

import builtins
builtins.hash("a")

{}.__class__.__base__.__hash__("a")

class T: pass
X = T()
f"{X}"

class T: pass
def f():
    t = T()
    return str(t)
f()

class T: pass
"x" + repr(T())

class T: pass
"{x}".format(x=T())

str(print) + str(fn)

object().__repr__()

import reprlib
class T: pass
reprlib.repr(T())

def f(r):
    s = frozenset(r["a"].split())
    return [x for x in s]
f(row)

def f(r):
    s: set = set(r["a"])
    out = ""
    for x in s:
        out += x
    return out
f(row)

def f(r):
    s = set()
    s |= {"a", r["a"]}
    return tuple(s)
f(row)

def f(r):
    s = {x for x in r["a"]}
    t = s
    return t.pop()
f(row)

def f(r):
    a, *b = set(r["a"])
    return a
f(row)

def f(s: "set[str]"):
    return list(s)
f({"a"})

from typing import Set
def f(s: Set[str]):
    return list(s)
f({"a"})

def f(names=frozenset({"a", "b"})):
    return list(names)
f()

class C:
    names = frozenset({"a", "b"})
    def first(self):
        return next(iter(self.names))
C().first()

class C:
    def __init__(self):
        self.names = {"a", "b"}
    def first(self):
        return list(self.names)
C().first()

D = {"x": {"a", "b"}}
list(D["x"])

def f(s):
    return list(s)
f({"a", "b"})

def f(*, s):
    return [x for x in s]
f(s=set(row["a"]))

(lambda s: "".join(s))({"a", "b"})

import json
json.dumps(sorted({"a"}) + [*{"b", "c"}])

print(*{"a", "b"}) or list(row["a"].keys() - {"x"})

def f():
    yield from {"a", "b"}
list(f())

import collections
collections.deque({"a", "b"})

import numpy as np
np.array(list({"a", "b"}))

import pandas as pd
pd.Series(list(set(row["a"])))

bytes({1, 2}) + "".join({"a", "b"}).encode()

sorted({"a", "b"}, key=lambda x: len(x))

min({"a", "b"}, key=len)

dict(enumerate({"a", "b"}))

list({"a", "b"}.__iter__())

[*map(str, {"a", "b"})]

row["a"].split("x", *{"a"})

list(reversed(list({"a", "b"})))

import enum
class E(enum.Enum):
    A = 1
    B = 2
list({E.A, E.B})

import polars as pl
pl.DataFrame({"a":[1]}).unique()

import secrets as s
s.token_urlsafe(3)

from os import urandom
urandom(2)

import polars as pl
pl.Series([row["t"]]).hash()[0]

N = [0]
def count():
    N[0] += 1
    return N[0]
count()

N = 0
def count():
    global N
    N = N + 1
    return N
count()

class Seen:
    rows = 0
def count():
    Seen.rows += 1
    return Seen.rows
count()

def counter():
    n = 0
    def count():
        nonlocal n
        n += 1
        return n
    return count
COUNT = counter()
COUNT()
"""

FILES: Final = r"""
open("x")

(lambda f: f("x"))(open)

import io
io.open("x")

import io
io.FileIO("x")

import builtins
builtins.open("x")

import codecs
codecs.open("x")

from pathlib import Path
Path("x").read_text()

from pathlib import Path
PLACE = Path("x")
PLACE.read_bytes()

from pathlib import Path
(lambda p: p.exists())(Path("x"))

from pathlib import Path
Path("x").stat().st_size

from pathlib import Path
list(Path("x").iterdir())

from pathlib import Path
Path("x").resolve()

from pathlib import Path
Path.read_text(Path("x"))

from pathlib import Path
class Place(Path):
    pass
Place.read_text

import os
os.listdir(".")

import os
os.stat("x")

from os import scandir
scandir(".")

import os.path
os.path.exists("x")

from os.path import getmtime
getmtime("x")

import os
os.remove("x")

import tempfile
tempfile.mkstemp()

import glob
glob.glob("*")

import fileinput
fileinput.input()

import linecache
linecache.getline("x", 1)

import configparser
configparser.ConfigParser().read("x")

import configparser
def setting(parser):
    parser.read("x")
    return parser
setting(configparser.ConfigParser())

from configparser import ConfigParser
PARSER = ConfigParser()
PARSER.read("x")

import xml.etree.ElementTree as ET
ET.parse("x").getroot()

from xml.etree import ElementTree
ElementTree.iterparse("x")

from xml.etree.ElementTree import ElementTree
ElementTree(file="x")

from xml.dom import minidom
minidom.parse("x")

import xml.sax
xml.sax.parse("x", None)

import sqlite3
sqlite3.connect("x")

import dbm
dbm.open("x")

import shelve
shelve.open("x")

import zipfile
zipfile.ZipFile("x")

import tarfile
tarfile.open("x")

import gzip
gzip.open("x")

import bz2
bz2.open("x")

import bz2
bz2.BZ2File("x")

import lzma
lzma.open("x")

import mmap
mmap.mmap(0, 1)

import mimetypes
mimetypes.guess_type("a.txt")

import netrc
netrc.netrc()

import wave
wave.open("x")

import zoneinfo
zoneinfo.available_timezones()

import importlib.resources
importlib.resources.files("x")

import pkgutil
pkgutil.get_data("x", "y")

import numpy as np
np.load("x")

import numpy as np
np.loadtxt("x")

import numpy as np
np.fromfile("x")

import numpy as np
np.memmap("x")

import numpy as np
np.genfromtxt("x")

from numpy import load as get
get("x")

import pandas as pd
pd.read_csv("x")

from pandas import read_parquet
read_parquet("x")

import pandas as pd
pd.read_sql("x", None)

import pandas as pd
pd.HDFStore("x")

import pandas as pd
pd.ExcelFile("x")

import polars as pl
pl.read_csv("x")

import polars as pl
pl.scan_parquet("x")

from polars import read_ipc
read_ipc("x")

import polars as pl
pl.DataFrame.deserialize("x")

import pyarrow.csv
pyarrow.csv.read_csv("x")

import pyarrow.parquet as pq
pq.read_table("x")

from pyarrow.parquet import ParquetFile
ParquetFile("x")

import pyarrow.dataset as ds
ds.dataset("x")

from pyarrow import fs
fs.LocalFileSystem()

import pyarrow.feather
pyarrow.feather.read_table("x")

import pyarrow as pa
pa.memory_map("x")

import pyarrow as pa
pa.OSFile("x")

import pyarrow.json
pyarrow.json.read_json("x")

import pyarrow.orc
pyarrow.orc.read_table("x")

input()

import sys
sys.stdin.readline()

import readline
readline.get_line_buffer()

from io import open as o
o("x")

import os
os.open("x", 0)

import pathlib
pathlib.Path("a").open().read()

import pathlib
P = pathlib.Path
P("a").read_text()

import pathlib
def f(p):
    return p.is_file()
f(pathlib.Path("a"))

from pathlib import Path
getattr(Path("x"), "read_text")()

import pathlib
pathlib.PosixPath("a").read_bytes()

import csv
list(csv.reader(open("x")))

import json
json.load(open("x"))

import tomllib
tomllib.load(open("x", "rb"))

import configparser
c = configparser.RawConfigParser()
c.read(["x"])

import configparser
class P(configparser.ConfigParser): pass
P().read("x")

import xml.etree.ElementTree as E
E.ElementTree().parse("x")

import xml.etree.ElementTree
xml.etree.ElementTree.parse

import xml.dom.minidom as m
m.parse("a")

from xml.sax import make_parser
make_parser().parse("x")

import pandas as pd
f = pd.read_json
f("x")

import pandas as pd
getattr(pd, "read_csv")("x")

import pandas as pd
def r(lib):
    return lib.read_csv("x")
r(pd)

import pandas as pd, io
pd.read_csv(io.StringIO("a"))

import polars as pl
pl.LazyFrame.deserialize("x")

import polars as pl
pl.read_database("x", None)

import polars
polars.scan_ndjson("x").collect()

import pyarrow.parquet
pyarrow.parquet.ParquetDataset("x")

import pyarrow as pa
pa.parquet.read_table("x")

import pyarrow
pyarrow.csv.open_csv("x")

from pyarrow.dataset import dataset
dataset("x")

from pyarrow import csv
csv.read_csv("x")

from numpy import memmap
memmap("x")

import numpy as np
np.lib.npyio.NpzFile("x")

import numpy
numpy.fromregex("x", "y", [])

from fileinput import FileInput
FileInput()

import zipfile
zipfile.is_zipfile("x")

import importlib.resources as r
r.read_text("a", "b")

from linecache import getlines
getlines("x")

import mimetypes
mimetypes.guess_extension("text/plain")

import tempfile
tempfile.NamedTemporaryFile()

from shutil import copy
copy("a", "b")

import dbm.dumb
dbm.dumb.open("x")

import codecs
codecs.open("a")

import os.path as p
p.getsize("x")

import posixpath
posixpath.exists("x")

import posix
posix.listdir(".")

import _io
_io.open("x")

import sys
sys.stdin.read()

import sys
next(iter(sys.stdin))
"""

NETWORK: Final = r"""
import socket
socket.create_connection(("a", 1))

import socket
socket.gethostname()

from socket import getaddrinfo
getaddrinfo("a", 1)

import ssl
ssl.create_default_context()

from urllib.request import urlopen
urlopen("http://a")

import urllib.request as r
r.urlretrieve("http://a")

import urllib.robotparser
urllib.robotparser.RobotFileParser("http://a").read()

import http.client
http.client.HTTPConnection("a")

import ftplib
ftplib.FTP("a")

import smtplib
smtplib.SMTP("a")

import imaplib
imaplib.IMAP4("a")

import xmlrpc.client
xmlrpc.client.ServerProxy("http://a")

def ask():
    import requests
    return requests.get("http://a")
ask()

import urllib.request
ASK = {"get": urllib.request.urlopen}
ASK["get"]("http://a")

import urllib
urllib.request.urlopen("http://a")

import select
select.select([], [], [])

import urllib.request as u
u.Request("http://a")

from socket import socket as s
s()

import socket
socket.gethostbyname("a")

import _socket
_socket.gethostname()

from http.client import HTTPSConnection as H
H("a")

import http.server
http.server.HTTPServer(("", 0), None)

import xmlrpc.server
xmlrpc.server.SimpleXMLRPCServer(("", 1))

import socketserver
socketserver.TCPServer(("", 1), None)

import webbrowser
webbrowser.open("x")

import asyncio
asyncio.open_connection("a", 1)

def f():
    import httpx
    return httpx.get("x")
f()

def f():
    from sqlalchemy import create_engine
    return create_engine("x")
f()
"""

ENVIRONMENT: Final = r"""
import os
os.environ["A"]

from os import environ
environ.get("A")

import os
os.getenv("A")

import os
dict(os.environ)

import os
os.getcwd()

import os
os.getpid()

import os
os.cpu_count()

import os
os.uname()

import os.path
os.path.expanduser("~")

import os.path
os.path.abspath("a")

import os.path
os.path.relpath("a")

from pathlib import Path
Path.cwd()

from pathlib import Path
Path("a").absolute()

import sys
sys.argv[1]

import sys
sys.path

import sys
sys.modules

import sys
sys.flags

import sys
sys.platform

import sys
sys.version_info

import sys
sys.getrecursionlimit()

import sys
sys.getsizeof(row)

import sys
sys.getrefcount(row)

import sys
sys.executable

import platform
platform.node()

import platform
platform.python_version()

import getpass
getpass.getuser()

import getpass
getpass.getpass()

import shutil
shutil.which("x")

import locale
locale.getlocale()

import locale
locale.currency(3)

import locale
locale.strxfrm("a")

import gettext
gettext.gettext("a")

import sysconfig
sysconfig.get_paths()

import site
site.getsitepackages()

import resource
resource.getrusage(0)

import pwd
pwd.getpwuid(0)

import tempfile
tempfile.gettempdir()

import gc
gc.get_count()

import tracemalloc
tracemalloc.get_traced_memory()

import shutil
shutil.get_terminal_size()

import time
time.localtime(0)

import time
time.mktime((2024, 1, 1, 0, 0, 0, 0, 1, 0))

import time
time.tzname

import time
time.timezone

import datetime
datetime.datetime.fromtimestamp(0)

from datetime import date
date.fromtimestamp(0)

from datetime import datetime as d
d.fromtimestamp(row["a"])

row["a"].astimezone()

import datetime
datetime.datetime(2024, 1, 1).timestamp()

import datetime
datetime.datetime(2024, 1, 1).astimezone(datetime.UTC)

import datetime
datetime.datetime.strptime(row["a"], "%Y").timestamp()

import datetime
def at(row):
    when = datetime.datetime(2024, 1, 1)
    return when.timestamp()
at(row)

row["a"].strftime("%s")

import datetime
class Moment(datetime.datetime):
    pass
Moment.fromtimestamp(0)

from dateutil import tz
tz.tzlocal()

from dateutil import tz
tz.gettz()

import pandas as pd
pd.get_option("mode.copy_on_write")

import pandas as pd
pd.options.display

import numpy as np
np.geterr()

import numpy as np
np.show_config()

import polars as pl
pl.thread_pool_size()

import pyarrow as pa
pa.cpu_count()

import pyarrow as pa
pa.total_allocated_bytes()

import logging
LOG = logging.getLogger("a")
LOG.level

import logging
logging.getLogger("a").isEnabledFor(10)

import logging
LOG = logging.getLogger("a")
LOG.isEnabledFor(10)

import warnings
warnings.filters

from os import environ as e
e["A"]

import os
E = os.environ
E["A"]

import os
os.environ.copy()

import os
f = os.environ.get
f("A")

import os
"A" in os.environ

import os
os.path.expandvars("$A")

from os.path import abspath
abspath("a")

from platform import system
system()

import sys as s
s.argv

from sys import argv
argv[0]

from sys import version
version

import sys
sys.implementation.name

import sys
sys.getdefaultencoding()

import sys
sys.getfilesystemencoding()

import locale
locale.format_string("%d", 3)

import locale
locale.atof("1")

import calendar
calendar.LocaleTextCalendar().formatmonth(2024, 1)

import os
os.get_terminal_size()

import datetime
f = datetime.datetime.fromtimestamp
f(0)

import datetime
datetime.datetime.fromtimestamp(0, None)

import datetime
datetime.datetime.fromtimestamp(0, tz=None)

import datetime
D = datetime.datetime(2024, 1, 1)
D.timestamp()

import datetime
D = datetime.datetime(2024, 1, 1)
D.astimezone(datetime.timezone.utc)

import datetime
datetime.datetime.utcfromtimestamp(0).timestamp()

row["a"].replace(tzinfo=None).timestamp()

row["a"].astimezone(None)

row["a"].astimezone(tz=None)

import time
time.strftime("%Z", time.localtime())

import time
time.localtime

import dateutil.tz
dateutil.tz.tzlocal()

from dateutil.tz import gettz
gettz()

import numpy as np
np.get_printoptions()

import pandas as pd
pd.options.mode

import pyarrow as pa
pa.default_memory_pool()

import gc
gc.get_objects()

import logging
logging.root.level

import logging
logging.getLogger().getEffectiveLevel()

import warnings
with_ = warnings.filters
len(warnings.filters)

import sys
sys.getswitchinterval()

import sys
sys.gettrace()

import os
os.times()

import resource
resource.getrlimit(0)
"""

SETTINGS: Final = r"""
import decimal
decimal.getcontext().prec

import decimal
decimal.setcontext(decimal.Context(prec=3))

from decimal import getcontext
setattr(getcontext(), "prec", 3)

import numpy as np
np.seterr(divide="raise")

import numpy as np
np.set_printoptions(precision=2)

import pandas as pd
pd.set_option("mode.copy_on_write", True)

import polars as pl
pl.Config.set_tbl_rows(3)

import polars as pl
pl.Config.state()

import locale
locale.setlocale(locale.LC_ALL, "C")

import sys
sys.setrecursionlimit(3000)

import calendar
calendar.setfirstweekday(6)

import warnings
warnings.simplefilter("error")

import random
random.seed(1)

import csv
csv.field_size_limit(10)

import csv
csv.register_dialect("mine", delimiter=";")

import sys
sys.set_int_max_str_digits(0)

import socket
socket.setdefaulttimeout(1)

import logging
logging.basicConfig()

import os
os.chdir("/")

import os
os.putenv("A", "b")

import time
time.tzset()

import gc
gc.disable()

import decimal
decimal.getcontext().rounding

from decimal import setcontext as s
s(None)

import decimal
getattr(decimal, "getcontext")()

import numpy as np
np.seterrcall(print)

import numpy
numpy.setbufsize(16)

import pandas
pandas.reset_option("all")

import polars as pl
pl.enable_string_cache()

import polars as pl
pl.set_random_seed(1)

import logging
logging.disable(10)

import logging
L = logging.getLogger("a")
L.setLevel(10)

import locale
locale.setlocale(locale.LC_TIME)

import sys
sys.setswitchinterval(1)

import codecs
codecs.register(print)

import os
os.umask(0)

import faulthandler
faulthandler.enable()
"""

CODE: Final = r"""
import subprocess
subprocess.run(["ls"])

import os
os.system("ls")

import os
os.popen("ls")

import os
os.fork()

import multiprocessing
multiprocessing.Pool()

from concurrent.futures import ProcessPoolExecutor
ProcessPoolExecutor()

from concurrent.futures import ThreadPoolExecutor
ThreadPoolExecutor().submit(len, "a").result()

import threading
threading.Thread(target=len)

import threading
threading.get_ident()

import threading
threading.local()

import asyncio
asyncio.run(None)

import queue
queue.Queue().get()

import signal
signal.alarm(1)

import contextvars
contextvars.ContextVar("a").get(1)

import weakref
weakref.ref(row)()

import ctypes
ctypes.CDLL(None)

eval("1")

exec("1")

compile("1", "x", "eval")

(lambda f: f("1"))(eval)

__import__("time").time()

globals()["a"]

import importlib
importlib.import_module("a")

import importlib.metadata
importlib.metadata.version("polars")

import importlib.util
importlib.util.find_spec("a")

import runpy
runpy.run_path("a")

import pkgutil
list(pkgutil.iter_modules())

import code
code.interact()

import pickle
pickle.loads(row["a"])

import pickle
pickle.dumps(row)

import marshal
marshal.loads(row["a"])

import inspect
inspect.getsource(len)

import inspect
inspect.getsourcelines(fn)

import inspect
inspect.stack()

import inspect
inspect.currentframe()

import sys
sys._getframe()

import traceback
traceback.format_exc()

import types
types.FunctionType(None, {})

import atexit
atexit.register(len)

import copyreg
copyreg.pickle(int, str)

import pdb
pdb.set_trace()

breakpoint()

import pandas as pd
pd.DataFrame({"a": [1]}).eval(row["a"])

import pandas as pd
pd.eval(row["a"])

import pandas as pd
LIMIT = 3
pd.DataFrame({"a": [1]}).query("a > @LIMIT")

import datetime
getattr(datetime.datetime, row["a"])()

from datetime import datetime
vars(datetime)[row["a"]]

import subprocess as s
s.check_output("ls")

from os import system as s
s("ls")

from subprocess import Popen
Popen("ls")

import concurrent.futures as f
f.ThreadPoolExecutor()

from threading import Lock
Lock()

import threading
LOCK = threading.Lock
LOCK()

import asyncio
asyncio.new_event_loop()

import builtins
builtins.eval("1")

e = eval
e("1")

import importlib as i
i.reload(None)

from importlib import import_module as i
i("x")

from pickle import loads
loads(b"")

import pickle
pickle.Unpickler(None).load()

import ctypes
ctypes.c_int(3)

import types
types.CodeType

from inspect import currentframe
currentframe().f_back

import traceback
traceback.extract_stack()

import sys
sys._getframe(1).f_locals

import weakref
weakref.WeakValueDictionary()

import gc, weakref
weakref.getweakrefcount(row)

import pandas as pd
Q = "a > 1"
pd.DataFrame().query(Q)

import pandas as pd
pd.eval(expr=row["a"])

import polars as pl
pl.sql("select 1")

import code
code.InteractiveInterpreter()

import signal
signal.getsignal(2)

import queue
queue.SimpleQueue()

import contextvars
contextvars.copy_context()
"""

#: Packages that nobody has looked at, or parts of known ones.
UNKNOWN: Final = r"""
import pyspark
pyspark.SparkConf()

import py4j.java_gateway
py4j.java_gateway.JavaGateway()

import pytest
pytest.approx(1)

import hypothesis
hypothesis.settings()

import numpy as np
np.testing.assert_equal(1, 1)

import numpy.f2py
numpy.f2py.get_include()

import argparse
argparse.ArgumentParser()

import unittest
unittest.TestCase()

import everstate.engine.job
everstate.engine.job.pickled(None)

import pyspark.sql.functions as F
F.col("a")

from everstate.log.opening import open_log
open_log("x")

import everstate.testing
everstate.testing.Driver(None)
"""

#: With effects of several kinds, or of one that has other words.
SEVERAL: Final = r"""
import uuid
uuid.uuid1().time

import http.cookiejar
http.cookiejar.time2isoz()

import zipfile, io
zipfile.ZipFile(io.BytesIO(), "w").writestr("a", "b")

import logging
class H(logging.Handler):
    def emit(self, record):
        self.at = record.created
H().at

import uuid
uuid.UUID(bytes=__import__("os").urandom(16))

import plistlib
plistlib.load(open("x"))

import sys
sys.stdout.encoding

import sys
sys.stdout.isatty()

import multiprocessing
multiprocessing.cpu_count()

import datetime
datetime.datetime.now().timestamp()

import time
time.ctime(row["a"])

import decimal
decimal.DefaultContext.prec

import threading
threading.active_count()

import threading
threading.current_thread().name

getattr(__builtins__, "eval")("1") if False else eval(row["a"])

import shelve
shelve.Shelf({})

import unittest.mock
unittest.mock.patch("a")
"""
