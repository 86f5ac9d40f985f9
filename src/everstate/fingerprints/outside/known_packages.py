"""Packages as they were looked through, in the form of `known_standard`.

The version of a package is part of the fingerprint, so what is pure here may differ between versions. A package that is
not named is not known.
"""

from __future__ import annotations

from typing import Final

#: Depends on its arguments alone, but for what is named below.
PURE: Final = """
    everstate numpy pandas polars pyarrow dateutil pytz tzdata six pydantic pydantic_core annotated_types
    typing_extensions typing_inspection attr attrs cattrs msgspec marshmallow jsonschema frozendict immutables
    more_itertools toolz cytoolz sortedcontainers orjson ujson simplejson rapidjson msgpack cbor2 yaml tomli toml
    google.protobuf fastavro regex parse unidecode text_unidecode slugify jellyfish rapidfuzz Levenshtein thefuzz
    phonenumbers stdnum babel.numbers isodate ciso8601 iso8601 xxhash mmh3 blake3 lz4 zstandard zstd snappy brotli
    cramjam shapely haversine h3 pint uncertainties sympy mpmath packaging semver idna yarl netaddr wcwidth html5lib
    bs4 markupsafe bleach glom jmespath
"""

EFFECTS: Final[dict[str, str]] = {
    "clock": """
        pandas.Timestamp.now pandas.Timestamp.utcnow pandas.Timestamp.today pandas.Period.now dateutil.parser.parse
        dateutil.parser.parser dateutil.parser.DEFAULTPARSER dateutil.utils.today dateutil.rrule.rrule
        dateutil.rrule.rrulestr pydantic.PastDate pydantic.FutureDate pydantic.PastDatetime pydantic.FutureDatetime
    """,
    "random": """
        numpy.random pyarrow.compute.random pyarrow.compute.Generator sympy.random mpmath.rand cytoolz.random_sample
        toolz.random_sample more_itertools.random_product more_itertools.random_permutation
        more_itertools.random_combination more_itertools.random_combination_with_replacement more_itertools.sample
    """,
    "zone": "dateutil.tz.tzlocal dateutil.tz.gettz dateutil.tz.tzfile pandas.Timestamp.fromtimestamp",
    "files": """
        polars.read_* polars.scan_* polars.io polars.DataFrame.deserialize polars.LazyFrame.deserialize
        polars.Expr.deserialize polars.SQLContext pandas.read_* pandas.io pandas.HDFStore pandas.ExcelFile
        pandas.ExcelWriter pandas.plotting numpy.load numpy.loadtxt numpy.genfromtxt numpy.fromfile numpy.memmap
        numpy.save* numpy.DataSource numpy.lib.npyio numpy.lib.format.open_memmap numpy.fromregex numpy.ctypeslib
        pyarrow.csv pyarrow.parquet pyarrow._parquet pyarrow._csv pyarrow.dataset pyarrow._dataset pyarrow.fs
        pyarrow._fs pyarrow.feather pyarrow._feather pyarrow.json pyarrow._json pyarrow.orc pyarrow._orc pyarrow.hdfs
        pyarrow.memory_map pyarrow.create_memory_map pyarrow.OSFile pyarrow.MemoryMappedFile pyarrow.input_stream
        pyarrow.output_stream pyarrow.plasma dateutil.zoneinfo pydantic.FilePath pydantic.DirectoryPath
        pydantic.NewPath duckdb fastavro.schema.load_schema
    """,
    "network": """
        requests httpx aiohttp urllib3 websockets websocket boto3 botocore aiobotocore redis valkey psycopg psycopg2
        asyncpg pymysql mysql MySQLdb pyodbc oracledb cx_Oracle sqlalchemy pymongo motor cassandra elasticsearch
        opensearchpy kafka confluent_kafka aiokafka grpc paramiko fsspec s3fs gcsfs google.cloud azure openai anthropic
        snowflake geopy email_validator tldextract pyarrow.flight pyarrow._flight pyarrow.S3FileSystem
    """,
    "process": "cffi",
    "environment": """
        numpy.geterr numpy.geterrcall numpy.getbufsize numpy.get_printoptions numpy.show_config numpy.show_runtime
        numpy.get_include numpy.info numpy.who numpy.__config__ pandas.get_option pandas.options pandas.describe_option
        pandas.show_versions pandas.util.version polars.thread_pool_size polars.threadpool_size polars.Config
        polars.show_versions polars.build_info polars.get_index_type pyarrow.cpu_count pyarrow.io_thread_count
        pyarrow.total_allocated_bytes pyarrow.default_memory_pool pyarrow.show_info pyarrow.show_versions
        pyarrow.cpp_version pyarrow.get_include
    """,
    "settings": """
        numpy.seterr numpy.seterrcall numpy.setbufsize numpy.set_printoptions numpy.set_string_function
        pandas.set_option pandas.reset_option polars.Config.set_* polars.Config.load polars.Config.restore_defaults
        polars.enable_string_cache polars.disable_string_cache polars.set_random_seed pyarrow.set_cpu_count
        pyarrow.set_memory_pool pyarrow.set_io_thread_count pyarrow.register_extension_type mpmath.mp
    """,
    "code": "pandas.eval polars.plugins polars.sql polars.sql_expr yaml.load yaml.unsafe_load yaml.full_load",
    "unknown": """
        numpy.testing numpy.f2py numpy.distutils numpy.core pandas.testing pandas.tests pandas._testing pyarrow.tests
        pyarrow.cuda pyarrow.jvm polars.testing everstate.engine everstate.log everstate.cli everstate.testing
        everstate.generations everstate.serve
    """,
    "": "pandas.io.json pandas.io.formats.style pandas.json_normalize dateutil.tz.tzutc dateutil.tz.UTC",
}

METHODS: Final[dict[str, str]] = {
    "pandas": "random: sample; code: query eval; files: to_pickle to_sql to_hdf to_excel to_clipboard",
    "polars": """
        random: sample shuffle hash hash_rows; order: unique group_by; files: deserialize read_database; code: sql
    """,
    "numpy": "files: tofile dump",
}
