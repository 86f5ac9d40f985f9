"""Names that are not there, as users of Kafka Streams, Quix Streams, Polars and Spark would try them: what to use here.

A name is compared without case and underscores, so that `groupBy`, `group_by` and `groupby` are one. Names that begin
with an underscore are Python's own protocols (copying, pickling, inspection) and are answered as Python answers them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NoReturn

from everstate.errors import AbsentError, UnsupportedError
from everstate.errors.calls import suggestion
from everstate.location import caller
from everstate.schema.topic_names import dead_letter_topic

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_WINDOW: Final = (
    "Name the group first: group_by('user').window(es.tumbling('1h')).agg(n=es.count()); there are es.hopping('1h', "
    "'5m'), es.sliding('10m') and es.session('30m'), too."
)
_GROUP: Final = "Name the group first: group_by('customer').agg(total=col('amount').sum(), orders=es.count())"
_UNBOUNDED: Final = "Rows keep coming, so keep the best per group: agg(best=es.top_k('amount', 3))."
_LOOK: Final = "A service is a description: run it, and look at its topic with: everstate consume TOPIC --latest"
_ROW_FUNCTION: Final = "Use map(f) for the value, with_columns(name=expression) for columns."
_STATE: Final = "Use apply(f, stateful=True), with f(row, state), on a stream."
_PROCESS: Final = "Use process(f, on_timer=g, states=[es.value('last', float)]), with f(row, ctx) and g(ctx)"
_AGGREGATE_FIRST: Final = "Aggregate first: .agg(orders=es.count()) gives a table, which has it."
_OUTPUT: Final = "Write to a topic: .to('topic')"

#: What streams and tables have in common.
_FLOW: Final = (
    ("mapbatches mapelements mapinpandas mappartitions maprows mapvalues", _ROW_FUNCTION),
    ("keyby repartition reset selectkey setkey withkey", "Use rekey('column')."),
    ("groupbykey", "Name the key's column: group_by('id')."),
    ("output produce saveastable sink sinkto totopic write writestream", _OUTPUT),
    ("foreach foreachpartition inspect tap", "Use peek(f) for a side effect."),
    ("foreachbatch", "Hand what an output publishes to Spark: .to('topic').to_spark(f), with f(frame, batch_id)."),
    (
        (
            "cache collect display fetch first head lazy persist print printtable show tail take toarrow tolist "
            "topandas topolars"
        ),
        _LOOK,
    ),
    (
        (
            "groupbydynamic groupbyrolling hopping hoppingwindow rolling session sessionwindow sliding "
            "slidingwindow tumbling tumblingwindow window windowby windowedby"
        ),
        _WINDOW,
    ),
    (
        (
            "agg aggregate avg count cube fold last len max mean median min nunique over quantile reduce rollup "
            "std sum var"
        ),
        _GROUP,
    ),
    ("assign withcolumn", "Use with_columns(name=expression)."),
    ("todf withcolumnrenamed withcolumnsrenamed", "Use rename({'old': 'new'})."),
    ("where", "Use filter(condition)."),
    ("filternot remove", "Use filter(~condition)."),
    ("query", "Use filter(col('amount') > 5)."),
    ("selectexpr", "Use select(name=expression)."),
    ("sql", "Use select(name=expression) and filter(condition)."),
    ("astype cast", "Use with_columns(col('amount').cast(int))."),
    ("explode", "Use flat_map(f) on a stream: one row for each item."),
    ("unnest", "Use select(name=col('struct').struct.field('name'))."),
    ("fillna fillnan fillnull", "Use with_columns(col('amount').fill_null(0))."),
    ("dropna dropnans dropnulls", "Use filter(col('amount').is_not_null())."),
    ("gatherevery limit orderby reverse sample slice sort sortby topk", _UNBOUNDED),
    (
        (
            "applyinpandaswithstate cumsum diff flatmapgroupswithstate flattransform mapgroupswithstate process "
            "processvalues shift statefulmap transform transformvalues transformwithstate withrowcount "
            "withrowindex"
        ),
        _STATE,
    ),
    (
        "dedup deduplicate distinct dropduplicates unique",
        (
            "Keep the newest per key: .to('topic', key='id') on a stream, or read the topic with app.table(),"
            " which has one row for each key."
        ),
    ),
    (
        "crossjoin fulljoin innerjoin leftjoin outerjoin",
        "Use join(other, how='left') of two tables; how may be 'inner', 'left' or 'outer'.",
    ),
    ("through to_topic", "to('topic') returns what is on the topic, to build on."),
    ("split", "Use branch(condition, ...): each row goes to the first that is true."),
    ("withwatermark", "Say for how long windows accept late rows: es.tumbling('5m', grace='1m')."),
    ("partitionby", "Use group_by('column'), or rekey('column')."),
    ("pivot", "Name the columns: agg(a=col('x').filter(...).sum())."),
    ("columns dtypes fields names printschema", "Use .schema, and .schema.names."),
    ("describe describetopology explain", "Describe the whole service: app.describe()"),
    ("awaittermination execute run start stop", "Run the service: app.run(), or everstate run SERVICE.py"),
    ("settimestamp", "Say when a row happened where it is read: app.stream(..., time=col('at'))."),
    ("pipe", "Call the function: f(flow)."),
    ("hstack", "Use join(other) of two tables."),
)
_STREAM: Final = (
    (
        "innerjoin joinasof joininterval joinlookup joinwhere leftjoin outerjoin",
        (
            "Use join(other, within='1h', how='left') with a stream, join(table, on='column', how='left') with a table "
            "or a global table."
        ),
    ),
    ("concat extend union unionall unionbyname vstack", "Use merge(other)."),
    (
        "expire ttl withttl",
        "Rows of a stream are not kept. A table has it: group_by('id').agg(n=es.count()).expire(after='7d').",
    ),
    (
        "deduplicate distinct dropduplicates dropduplicateswithinwatermark unique",
        "Use dedup('event_id', within='1h'), or keep the newest of each id: .to('topic', key='id').",
    ),
    (
        "suppress",
        "Rows of a stream are not changes. A table has it: group_by('id').agg(n=es.count()).suppress(until='10m').",
    ),
    (
        (
            "applyinpandaswithstate flatmapgroupswithstate mapgroupswithstate ontimer processvalues punctuate schedule "
            "timer transformvalues transformwithstate"
        ),
        f"{_PROCESS}.",
    ),
    ("latest toktable totable", "Read the topic with app.table(), or publish it by key: .to('topic', key='id')"),
)
_TABLE: Final = (
    (
        "concat extend union unionall unionbyname vstack",
        "Two tables may hold the same key: say how they combine with join(other, how='outer').",
    ),
    ("changes toretractstream tostream", "Publish it with .to('topic') and read that topic with app.stream()."),
    ("foreignkeyjoin joinasof joinlookup", "Use join(other, on='column')."),
    ("evict retain ttl withttl", "Use expire(after='7d')."),
    (
        "ontimer process processvalues punctuate schedule timer transformvalues transformwithstate",
        f"{_PROCESS}, on a stream: read the topic with app.stream().",
    ),
    ("insert", "Put records on its topic: everstate produce TOPIC"),
    ("get", _LOOK),
)
_GLOBAL: Final = (
    ("join leftjoin", "Join it from the other side: orders.join(people, on='customer')"),
    ("show consume collect get items keys len", _LOOK),
    (
        (
            "agg apply branch dedup drop dropna expire filter fillna flatmap groupby map mapvalues merge peek process "
            "rekey rename select suppress to tospark tostream toktable update where window withcolumn withcolumns"
        ),
        (
            "A global table is only joined. Read the topic with app.table() for that, publish the result with "
            ".to('topic'), and read that topic with app.global_table()."
        ),
    ),
)
_GROUPED: Final = (
    (
        "alldistinct avg first last max mean median min nunique quantile std sum var",
        "Use agg(total=col('amount').sum()), and so on.",
    ),
    ("count len size", "Use agg(orders=es.count())."),
    ("all collect collectlist implode", "Use agg(items=es.collect('item'))."),
    ("head limit tail topk", "Use agg(best=es.top_k('amount', 3))."),
    ("apply applyinpandas fold map mapgroups process transform", "Use aggregate(init, add, remove)."),
    ("hoppingwindow sessionwindow slidingwindow tumblingwindow window windowedby", _WINDOW),
    (
        "drop expire filter having join merge peek rekey rename select sink suppress to tospark update withcolumns",
        _AGGREGATE_FIRST,
    ),
    ("dedup", "Leave out what comes twice before the group: stream.dedup('event_id', within='1h').group_by('user')"),
    ("pivot", "Name the columns: agg(a=col('x').filter(...).sum())."),
)
_WINDOWED: Final = (
    ("apply applyinpandas fold map mapgroups process transform", "Use aggregate(init, add, schema=...)."),
    (
        "groupby hoppingwindow sessionwindow slidingwindow tumblingwindow window windowedby",
        (
            "A group has one window. Aggregate it, .agg(n=es.count()), and group the table that this gives; or give "
            "each window an output of its own."
        ),
    ),
)
_SERVICE: Final = (
    (
        "addsource agent consume dataframe fromtopic kstream readstream source",
        "Read a topic with app.stream('topic', schema=...), or app.table('topic', key='id', schema=...).",
    ),
    (
        "ktable lookup read",
        "Read a topic with app.table('topic', key='id', schema=...), and join it.",
    ),
    ("broadcast globalktable", "Read the topic with app.global_table('topic', key='id', schema=...), and join it."),
    (
        "createtopic topic",
        (
            "Name the topic where it is read or written: app.stream('topic', schema=...), flow.to('topic'); "
            "it is created if necessary."
        ),
    ),
    ("addoutput getproducer output produce sink to", "Outputs are declared on what is published: flow.to('topic')"),
    ("awaittermination build deploy execute main", "Use app.run(), or everstate run SERVICE.py"),
    ("close shutdown terminate", "Use app.stop()."),
    ("cleanup clear reset", "Use app.clear_state(); a changed service needs no reset."),
    ("diff plan", "On the command line: everstate plan SERVICE.py"),
    ("generations rollback", "On the command line: everstate rollback SERVICE.py, everstate generations SERVICE.py"),
    ("get setting", "Use app.config(name, default)."),
    ("schedule timer", "Timers belong to a key: stream.process(f, on_timer=g), with ctx.timer('name', at=...) in f."),
)
_DRIVER: Final = (
    ("append createinputtopic emit input pipeinput produce push put write", "Use driver.send('topic', key, value)."),
    (
        "consume createoutputtopic output read readkeyvalue readoutput readrecord",
        "Use driver.records('topic'), or driver.table('topic').",
    ),
    ("get getkeyvaluestore getstatestore state store", "Use driver.table('topic') for a table."),
    ("advancewallclocktime settime tick", "Use driver.advance(ts)."),
    ("delete remove", "Use driver.tombstone('topic', key)."),
    (
        "close commit flush process run start stop",
        "Leave it out: every send is processed at once; driver.batch() puts several into one micro-batch.",
    ),
    ("deadletters dlq errors", f"Use driver.records({dead_letter_topic('OUTPUT')!r})."),
    ("deploy", "Use driver.upgrade(service)."),
)
_MODULE: Final = (
    ("app application kafkastreams sparksession streamsbuilder topology", "Use es.Service(name)."),
    ("driver testdriver topologytestdriver", "Use es.testing.Driver(app)."),
    ("avg first last max mean min nunique std sum var", "Use Polars' own: col('amount').sum(), and so on."),
    ("len size", "Use es.count()."),
    ("collectlist implode", "Use es.collect('column')."),
    ("list", "Use es.collect('column') in agg(); a state of a processor is es.list_('seen', str)."),
    (
        "dataframe globaltable kstream ktable topic",
        "Read topics through a service: app = es.Service(name); app.table('topic', ...)",
    ),
    ("hoppingwindow sessionwindow slidingwindow tumblingwindow window", _WINDOW),
    ("coalesce concat datetime expr struct", "Expressions are Polars': import polars as pl"),
    (
        "liststate mapstate state valuestate",
        "A processor's states: es.value('last', float), es.list_('seen', str), es.map_('by_ward', int).",
    ),
    ("udf", "Pass a plain function: map(f), filter(f)."),
    ("schema", "A schema is a dict of types, a dataclass, a TypedDict or an Arrow schema."),
)


def _by_name(*lists: Iterable[tuple[str, str]]) -> Mapping[str, str]:
    return {name: hint for pairs in lists for names, hint in pairs for name in names.split()}


_TABLES: Final[Mapping[str, Mapping[str, str]]] = {
    "Stream": _by_name(_FLOW, _STREAM),
    "Table": _by_name(_FLOW, _TABLE),
    "GlobalTable": _by_name(_GLOBAL),
    "Grouped": _by_name(_GROUPED),
    "WindowedGroup": _by_name(_GROUPED, _WINDOWED),
    "Service": _by_name(_SERVICE),
    "Driver": _by_name(_DRIVER),
    "everstate": _by_name(_MODULE),
}


class Guiding:
    """Lets a class say what to use where a name is not there."""

    def __getattr__(self, name: str) -> Any:
        """Only called for names that are not there.

        Raises:
            AbsentError: With what to use instead; an AttributeError, too, so that `hasattr` says no.
        """
        kind = type(self).__name__
        if name.startswith("_"):
            raise AttributeError(f"{kind!r} object has no attribute {name!r}", name=name, obj=self)
        refuse_name(kind, name, dir(type(self)), self._columns())

    def _columns(self) -> Iterable[str]:
        """The names of columns, which some try as attributes."""
        return ()


def refuse_name(kind: str, name: str, known: Iterable[str], columns: Iterable[str] = ()) -> NoReturn:
    """Say what to use in the place of a name that is not there.

    Raises:
        AbsentError: Always.
    """
    title = f"module {kind!r}" if kind == "everstate" else f"a {kind}"
    raise AbsentError(f"{title} has no attribute {name!r}", location=caller(), hint=_hint(kind, name, known, columns))


def refuse_subscript(kind: str, key: object) -> NoReturn:
    """Say what to use for `flow["column"]`, or for a group's.

    Raises:
        UnsupportedError: Always.
    """
    name = key if isinstance(key, str) else "amount"
    hint = f"Use col({name!r}) in an expression, with_columns({name}=...) to set it, filter(...) to choose rows."
    if "Group" in kind:
        hint = f"Say what becomes of the column: .agg(total=col({name!r}).sum())"
    raise UnsupportedError(f"a {kind} has no [...]", location=caller(), hint=hint)


def _hint(kind: str, name: str, known: Iterable[str], columns: Iterable[str]) -> str:
    public = [other for other in known if not other.startswith("_")]
    plain = _plain(name)
    same = [other for other in public if _plain(other) == plain]
    meant = kind == "everstate" and name.islower() and plain in _TABLES[kind]  # `window` is no other word for `Window`
    if same and not meant:
        return f"It is called {same[0]} here."
    if name in columns:
        return f"Columns are used in expressions: col({name!r})"
    if plain in _TABLES[kind]:
        return _TABLES[kind][plain]
    return f"{suggestion(name, public)}There are: {', '.join(sorted(public))}."


def _plain(name: str) -> str:
    return name.replace("_", "").lower()
