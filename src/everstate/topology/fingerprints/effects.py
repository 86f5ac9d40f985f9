"""What of Python and well-known packages gives another result each time it is called."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from everstate.topology.errors import FingerprintError

if TYPE_CHECKING:
    from everstate.topology.location import Location

#: Names by kind; a name stands for everything below it, and `read_*` for all that begin so.
_NAMES: Final[dict[str, str]] = {
    "clock": """
        time datetime.datetime.now datetime.datetime.utcnow datetime.datetime.today datetime.date.today
        pandas.Timestamp.now pandas.Timestamp.utcnow pandas.Timestamp.today
    """,
    "random": """
        random secrets os.urandom os.getrandom uuid.uuid1 uuid.uuid4 uuid.uuid6 uuid.uuid7 uuid.getnode numpy.random
        builtins.hash builtins.id
    """,
    "files": """
        io.open io.open_code io.FileIO builtins.open builtins.input os pathlib.Path.* shutil tempfile glob fileinput
        linecache mmap sqlite3 dbm shelve zipfile tarfile gzip.open bz2.open lzma.open codecs.open importlib.resources
        pkgutil.get_data polars.read_* polars.scan_* pandas.read_* numpy.load numpy.loadtxt numpy.genfromtxt
        numpy.fromfile numpy.memmap duckdb
    """,
    "network": """
        socket ssl http.client http.server http.cookiejar urllib.request ftplib smtplib imaplib poplib nntplib telnetlib
        xmlrpc socketserver select selectors webbrowser asyncio.open_connection asyncio.start_server requests httpx
        aiohttp urllib3 websockets websocket boto3 botocore aiobotocore redis valkey psycopg psycopg2 asyncpg pymysql
        mysql MySQLdb pyodbc oracledb cx_Oracle sqlalchemy pymongo motor cassandra elasticsearch opensearchpy kafka
        confluent_kafka aiokafka grpc paramiko fsspec s3fs gcsfs google.cloud azure openai anthropic snowflake
    """,
    "process": """
        subprocess pty multiprocessing os.system os.popen os.exec* os.spawn* os.posix_spawn* os.fork os.forkpty os.kill
        concurrent.futures.ProcessPoolExecutor
    """,
    "environment": """
        os.environ os.environb os._Environ os.getenv os.getenvb os.getcwd os.getcwdb os.getpid os.getppid os.getlogin
        os.uname os.cpu_count os.process_cpu_count os.path.expanduser os.path.expandvars os.path.abspath
        pathlib.Path.cwd pathlib.Path.home platform getpass sys.argv sys.flags sys.path sys.modules
    """,
    "code": """
        builtins.eval builtins.exec builtins.compile builtins.__import__ builtins.globals importlib.import_module
        importlib.reload runpy ctypes cffi
    """,
    "": """
        time.sleep time.struct_time time.strptime os.path os.sep os.fspath os.fsencode os.fsdecode os.PathLike
        os.linesep os.altsep os.extsep os.curdir os.pardir os.pathsep os.name os.strerror os.error zipfile.BadZipFile
        pathlib.Path.joinpath pathlib.Path.with_* pathlib.Path.relative_to pathlib.Path.is_relative_to
        pathlib.Path.is_absolute pathlib.Path.as_* pathlib.Path.match pathlib.Path.full_match pathlib.Path.name
        pathlib.Path.stem pathlib.Path.suffix pathlib.Path.suffixes pathlib.Path.parent pathlib.Path.parents
        pathlib.Path.parts pathlib.Path.root pathlib.Path.drive pathlib.Path.anchor pathlib.Path.__new__
        socket.error socket.timeout subprocess.CalledProcessError requests.exceptions httpx.HTTPError
    """,
}
_FILE_TESTS: Final = "exists lexists isfile isdir islink ismount getsize getmtime getctime getatime realpath samefile"
_TABLE: Final = {
    **{name: kind for kind, names in _NAMES.items() for name in names.split()},
    **{f"os.path.{name}": "files" for name in _FILE_TESTS.split()},
}
#: Methods of pathlib's paths, where a path is at hand but it cannot be told which thing is one.
_PATH_METHODS: Final = (
    "read_text read_bytes write_text write_bytes iterdir glob rglob walk exists is_file is_dir stat open"
)
PATH_METHODS: Final = frozenset(_PATH_METHODS.split())
_SAYING: Final[dict[str, tuple[str, str]]] = {
    "clock": ("reads the clock", "Take the time from the record, or declare it: @es.declare(clock=True)"),
    "random": ("differs each time it is called", "Derive it from the record, or declare it: @es.declare(random=True)"),
    "files": ("reads files", "Read it before the service is built, or declare it: @es.declare(files=[PATH])"),
    "network": ("uses the network", 'Make it a source topic, or declare it: @es.declare(network="what it asks")'),
    "environment": ("reads the environment", 'Use app.config(), or declare it: @es.declare(environment=["NAME"])'),
    "process": ("starts programs", 'Declare which version it is: @es.declare(version="1")'),
    "code": ("runs code that is not there yet", 'Declare which version it is: @es.declare(version="1")'),
}


@dataclass(frozen=True)
class Effect:
    """Something that a function does besides its arguments and result.

    Attributes:
        kind: What `es.declare` calls it.
        name: Through which function.
        location: Where the user's code reaches it.
    """

    kind: str
    name: str
    location: Location | None

    def refused(self) -> FingerprintError:
        """The error for it."""
        what, hint = _SAYING[self.kind]
        return FingerprintError(
            f"{self.name} {what}, so results could not be repeated", location=self.location, hint=hint
        )


def kind_of(name: str) -> str | None:
    """The kind of effect that a dotted name has; None if it has none."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        known = _TABLE.get(".".join(parts[:length]))
        if known is None:
            known = _pattern(".".join(parts[: length - 1]), parts[length - 1])
        if known is not None:
            return known or None
    return None


def _pattern(above: str, name: str) -> str | None:
    for pattern in _patterns().get(above, ()):
        if name.startswith(pattern[0]):
            return pattern[1]
    return None


def _patterns() -> dict[str, list[tuple[str, str]]]:
    if not _known_patterns:
        starred = [(name[:-1], kind) for name, kind in _TABLE.items() if name.endswith("*")]
        # The longest first, so that what is said of `with_*` wins over what is said of all.
        for name, kind in sorted(starred, key=lambda item: -len(item[0])):
            above, _, begin = name.rpartition(".")
            _known_patterns.setdefault(above, []).append((begin, kind))
    return _known_patterns


_known_patterns: dict[str, list[tuple[str, str]]] = {}
