"""The standard library as it was looked through: what depends on its arguments alone, and what else does what.

A name stands for everything below it, `strftime*` for all that begin so; what is not named here is not known, and that
counts as an effect, too. The longest name that fits decides.
"""

from __future__ import annotations

from typing import Final

#: Depends on its arguments alone. What only writes (print, loggers) is here as well: a result does not show it.
PURE: Final = """
    builtins abc array ast base64 binascii bisect bz2 calendar cmath codecs collections colorsys configparser
    contextlib copy copyreg.__newobj__ copyreg.__newobj_ex__ copyreg._reconstructor csv dataclasses datetime decimal
    difflib enum errno fnmatch fractions functools graphlib hashlib heapq hmac html http.HTTPStatus http.HTTPMethod
    http.cookies http.client.responses http.client.HTTPException ipaddress itertools json keyword lzma math numbers
    operator pprint pyexpat quopri re reprlib shlex statistics string stringprep struct tabnanny textwrap token tomllib
    types typing unicodedata uuid xml xmlrpc.client.dumps xmlrpc.client.loads zlib zoneinfo __future__ genericpath

    email.errors email.header email.headerregistry email.message email.message_from_bytes email.message_from_string
    email.parser email.policy email.quoprimime email.base64mime email.utils glob.escape glob.translate gzip.decompress
    gzip.BadGzipFile inspect.cleandoc inspect.getdoc inspect.getmro inspect.is* inspect.signature inspect.Signature
    inspect.Parameter inspect.get_annotations inspect.getfullargspec inspect.unwrap io.StringIO io.BytesIO
    io.TextIOWrapper io.IOBase io.RawIOBase io.BufferedIOBase io.TextIOBase io.BufferedReader io.BufferedWriter
    io.SEEK_SET io.SEEK_CUR io.SEEK_END io.UnsupportedOperation logging.getLogger logging.Logger logging.LoggerAdapter
    logging.RootLogger logging.debug logging.info logging.warning logging.warn logging.error logging.critical
    logging.exception logging.log logging.NullHandler logging.DEBUG logging.INFO logging.WARNING logging.WARN
    logging.ERROR logging.CRITICAL logging.FATAL logging.NOTSET logging.getLevelName os.path.join os.path.basename
    os.path.dirname os.path.split os.path.splitext os.path.splitdrive os.path.splitroot os.path.normpath
    os.path.normcase os.path.isabs os.path.commonpath os.path.commonprefix os.path.sep os.path.altsep os.path.extsep
    os.path.curdir os.path.pardir os.path.pathsep os.path.supports_unicode_filenames os.sep os.fspath os.fsencode
    os.fsdecode os.PathLike os.linesep os.altsep os.extsep os.curdir os.pardir os.pathsep os.name os.error os.devnull
    pathlib.Path.joinpath pathlib.Path.with_* pathlib.Path.relative_to pathlib.Path.is_relative_to
    pathlib.Path.is_absolute pathlib.Path.as_* pathlib.Path.match pathlib.Path.full_match pathlib.Path.name
    pathlib.Path.stem pathlib.Path.suffix pathlib.Path.suffixes pathlib.Path.parent pathlib.Path.parents
    pathlib.Path.parts pathlib.Path.root pathlib.Path.drive pathlib.Path.anchor pathlib.Path.__*
    pathlib.PurePath pathlib.PurePosixPath pathlib.PureWindowsPath pathlib.Path pathlib.PosixPath pathlib.WindowsPath
    plistlib.loads plistlib.dumps plistlib.UID plistlib.FMT_XML plistlib.FMT_BINARY plistlib.InvalidFileException
    secrets.compare_digest socket.error socket.timeout socket.gaierror socket.herror subprocess.SubprocessError
    subprocess.CalledProcessError subprocess.TimeoutExpired sqlite3.Error ssl.SSLError sys.maxsize sys.maxunicode
    sys.float_info sys.int_info sys.float_repr_style sys.byteorder sys.intern sys.exc_info sys.exception sys.stdout
    sys.stderr sys.hash_info time.struct_time time.strptime time.sleep traceback.format_exception_only urllib.parse
    urllib.error warnings.warn warnings.catch_warnings warnings.warn_explicit zipfile.BadZipFile tarfile.TarError
    pickle.PickleError shutil.Error asyncio.TimeoutError asyncio.CancelledError queue.Empty queue.Full
"""

#: Everything else that is worth a word of its own, by the kind of effect.
EFFECTS: Final[dict[str, str]] = {
    "clock": """
        time datetime.datetime.now datetime.datetime.utcnow datetime.datetime.today datetime.date.today
        email.utils.formatdate email.utils.localtime gzip.compress gzip.GzipFile timeit sched logging.LogRecord
        logging.makeLogRecord logging.Formatter logging.Logger.makeRecord logging.Formatter.formatTime
    """,
    "random": """
        random secrets os.urandom os.getrandom uuid.uuid1 uuid.uuid4 uuid.uuid6 uuid.uuid7 uuid.uuid8 uuid.getnode
        builtins.hash builtins.id builtins.object.__repr__ builtins.object.__str__ builtins.object.__hash__
        statistics.NormalDist.samples email.utils.make_msgid
    """,
    "zone": """
        datetime.datetime.fromtimestamp datetime.date.fromtimestamp time.localtime time.mktime time.tzname
        time.timezone time.altzone time.daylight
    """,
    "files": """
        io.open io.open_code io.FileIO io.text_encoding builtins.open builtins.input os pathlib.Path.*
        shutil tempfile glob fileinput linecache mmap sqlite3 dbm shelve zipfile tarfile zipimport
        gzip.open bz2.open bz2.BZ2File lzma.open lzma.LZMAFile codecs.open importlib.resources pkgutil.get_data
        inspect.getsource inspect.getsourcelines inspect.getsourcefile inspect.getcomments inspect.getfile
        configparser.ConfigParser.read configparser.RawConfigParser.read xml.etree.ElementTree.parse
        xml.etree.ElementTree.iterparse xml.etree.ElementTree.ElementTree.parse xml.etree.ElementTree.ElementTree.write
        xml.etree.ElementTree.ElementTree xml.dom.minidom.parse xml.dom.pulldom.parse xml.sax.parse xml.sax.make_parser
        filecmp mimetypes netrc wave zoneinfo.available_timezones zoneinfo.ZoneInfo.from_file zoneinfo.reset_tzpath
        zoneinfo.TZPATH curses termios tty sys.stdin readline ensurepip venv mailbox
    """,
    "network": """
        socket ssl http.client http.server http.cookiejar urllib.request urllib.robotparser ftplib smtplib imaplib
        poplib nntplib telnetlib xmlrpc socketserver select selectors webbrowser wsgiref asyncio.open_connection
        asyncio.start_server
    """,
    "process": """
        subprocess pty multiprocessing os.system os.popen os.exec* os.spawn* os.posix_spawn* os.fork os.forkpty os.kill
        concurrent threading asyncio queue signal contextvars _thread
    """,
    "environment": """
        calendar.LocaleTextCalendar calendar.LocaleHTMLCalendar calendar.different_locale
        sys.stdout.encoding sys.stdout.isatty sys.stdout.fileno sys.stdout.name sys.stdout.buffer
        os.environ os.environb os._Environ os.getenv os.getenvb os.getcwd os.getcwdb os.getpid os.getppid os.getlogin
        os.uname os.cpu_count os.process_cpu_count os.sched_getaffinity os.getuid os.geteuid os.getgid os.getloadavg
        os.times os.ctermid os.ttyname os.get_terminal_size os.path.expanduser os.path.expandvars os.path.abspath
        os.path.relpath pathlib.Path.cwd pathlib.Path.home pathlib.Path.absolute pathlib.Path.expanduser platform
        getpass sys sysconfig site pwd grp spwd resource gc tracemalloc tempfile.gettempdir shutil.get_terminal_size
        shutil.which logging.Logger.isEnabledFor logging.Logger.getEffectiveLevel logging.Logger.hasHandlers
        logging.Logger.level logging.Logger.handlers logging.root logging.lastResort locale gettext warnings.filters
    """,
    "settings": """
        decimal.getcontext decimal.setcontext decimal.DefaultContext locale.setlocale sys.set* calendar.setfirstweekday
        warnings.simplefilter warnings.filterwarnings warnings.resetwarnings random.seed csv.field_size_limit
        csv.register_dialect csv.unregister_dialect socket.setdefaulttimeout logging.basicConfig logging.disable
        logging.config logging.addLevelName logging.setLoggerClass logging.Logger.setLevel logging.Logger.addHandler
        os.chdir os.putenv os.unsetenv os.umask os.nice os.setuid time.tzset gc.disable gc.enable gc.collect
        gc.set_threshold codecs.register codecs.register_error copyreg atexit faulthandler mimetypes.add_type
        http.client.HTTPConnection.debuglevel xml.etree.ElementTree.register_namespace email.charset.add_charset
    """,
    "code": """
        builtins.eval builtins.exec builtins.compile builtins.__import__ builtins.globals builtins.breakpoint
        builtins.help builtins.exit builtins.quit builtins.copyright builtins.credits builtins.license importlib runpy
        ctypes pkgutil code codeop pdb bdb cProfile profile trace pickle marshal types.FunctionType types.CodeType
        types.LambdaType types.CellType inspect.stack inspect.trace inspect.currentframe inspect.getframeinfo
        inspect.getouterframes inspect.getinnerframes sys._getframe sys._current_frames sys.settrace sys.setprofile
        sys.exit traceback weakref os._exit os.abort
    """,
}

#: Methods that something of a module has whose type cannot be told, such as those of a parser that is passed on.
METHODS: Final[dict[str, str]] = {
    "configparser": "files: read",
    "pathlib": """
        files: read_text read_bytes write_text write_bytes iterdir glob rglob walk exists is_file is_dir is_symlink
        stat lstat open resolve readlink samefile unlink mkdir rmdir touch rename symlink_to hardlink_to chmod owner
        group
    """,
    "logging": """
        environment: isEnabledFor getEffectiveLevel hasHandlers; settings: setLevel addHandler; clock: makeRecord
    """,
    "statistics": "random: samples",
}
