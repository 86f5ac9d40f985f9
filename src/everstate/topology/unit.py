"""One output as it is run: its nodes, cut into stages at each re-keying.

Stage 0 runs where records are read. Every later stage runs on the shard of the rows' keys, so its nodes can keep state.
A node joins the stage of its inputs unless its rows must move: because it re-keys them, or because they are not yet on
the shard of their key. An edge between two stages is an *exchange*.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, cast

from everstate.schema.durations import milliseconds
from everstate.schema.topic_names import dead_letter_topic
from everstate.topology.nodes.node import Kind, feeders_first
from everstate.topology.nodes.processor import Routed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from everstate.topology.nodes import Node, Output, Side, Source


@dataclass(frozen=True)
class Edge:
    """Rows go from one node to a port of another.

    Attributes:
        source: Number of the node that gives the rows.
        target: Number of the node that takes them.
        port: Which input of the target.
        exchange: The rows move to the shard of their key on the way.
        everywhere: They go to every shard.
    """

    source: int
    target: int
    port: int
    exchange: bool
    everywhere: bool = False


@dataclass(frozen=True, eq=False)
class Unit:
    """One output with everything that feeds it, up to its source topics.

    Attributes:
        service: Name of the service.
        nodes: In topological order; a node's number is its place here.
        stages: The stage of each node, by number.
        edges: All edges.
        building: It runs for a generation that is being built, so nothing is held back.
        caused: Its records say which input has caused them, since keys of the output have been removed: what was caused
            before that must not bring them back.
    """

    service: str
    nodes: tuple[Node, ...]
    stages: tuple[int, ...]
    edges: tuple[Edge, ...]
    building: bool = False
    caused: bool = False

    @classmethod
    def of(cls, service: str, output: Output) -> Unit:
        """Number the nodes that feed an output and give each its stage."""
        nodes = feeders_first(output)
        number = {id(node): place for place, node in enumerate(nodes)}
        stages: list[int] = []
        settled: list[bool] = []  # whether the rows a node gives lie on the shard of their key
        edges: list[Edge] = []
        for node in nodes:
            feeders = [number[id(feeder)] for feeder in node.inputs]
            stage = _stage(node, [(stages[f], settled[f]) for f in feeders])
            for port, feeder in enumerate(feeders):
                moves = node.traits.on_shard and (node.rekeys_input(port) or not settled[feeder])
                copied = port in node.traits.everywhere
                edges.append(Edge(feeder, len(stages), port, moves or stages[feeder] < stage, copied))
            stages.append(stage)
            settled.append(_settled(node, [settled[f] for f in feeders]))
        return cls(service, tuple(nodes), tuple(stages), tuple(edges))

    @property
    def output(self) -> Output:
        """The last node."""
        return cast("Output", self.nodes[-1])

    @cached_property
    def depth(self) -> int:
        """The last stage."""
        return max(self.stages)

    @cached_property
    def stores(self) -> tuple[int, ...]:
        """By node, the number under which it keeps state.

        Only nodes that keep state are counted: a side effect that is put in or taken out must not move their state.
        """
        counts = accumulate(node.traits.on_shard for node in self.nodes)
        return tuple(count - 1 for count in counts)

    @cached_property
    def sources(self) -> tuple[Source, ...]:
        """The source nodes."""
        return tuple(cast("Source", node) for node in self.nodes if not node.inputs)

    @cached_property
    def topics(self) -> tuple[str, ...]:
        """The source topics, sorted; rows name their topic by its place here."""
        return tuple(sorted({source.topic for source in self.sources}))

    @cached_property
    def sides(self) -> tuple[Side, ...]:
        """The further topics that it writes to, by name."""
        return tuple(sorted({side for node in self.nodes for side in node.sides}, key=lambda side: side.topic))

    @cached_property
    def own_sources(self) -> tuple[str, ...]:
        """The topics that it reads as well as writes: what it says of a record there must not bury a later one."""
        return tuple(side.topic for side in self.sides if side.topic in self.topics)

    @cached_property
    def routed(self) -> dict[str, Routed]:
        """The sides of processors, by topic."""
        exits = {side.name: (node.key, side.schema) for node in self.nodes for side in node.exits}
        return {
            topic: Routed(key, schema.without(key.names))
            for name, topic in self.output.routes
            for key, schema in [exits[name]]
        }

    @property
    def written(self) -> tuple[str, ...]:
        """All topics that it writes to: its own, its dead letters', further ones."""
        return (self.output.topic, dead_letter_topic(self.output.topic), *(side.topic for side in self.sides))

    @cached_property
    def order_sensitive(self) -> tuple[Node, ...]:
        """The nodes whose result depends on the order of arrival."""
        return tuple(node for node in self.nodes if node.order_sensitive)

    @cached_property
    def looked_up(self) -> frozenset[int]:
        """The topics whose rows are looked up."""
        return self._reaching(looked_up=True)

    @cached_property
    def looking_up(self) -> frozenset[int]:
        """The topics whose rows look something up when they arrive."""
        return self._reaching(looked_up=False)

    @cached_property
    def loaded_first(self) -> tuple[str, ...]:
        """The topics that are read to their end before the others: what looks something up shall find it."""
        return tuple(self.topics[number] for number in sorted(self.looked_up - self.looking_up))

    @cached_property
    def looked_up_by_time(self) -> bool:
        """Whether time alone can change what is looked up."""
        return any(node.timed or node.clocked for node in self._behind_ports(looked_up=True))

    @cached_property
    def looking_up_by_time(self) -> bool:
        """Whether time alone can give rows that look something up."""
        return any(node.timed or node.clocked for node in self._behind_ports(looked_up=False))

    @property
    def ages(self) -> bool:
        """Whether its rows are windows of a stream, which change no more once they are final."""
        return self.output.inputs[0].when_final({}) is not None

    @cached_property
    def goes_one_by_one(self) -> bool:
        """Whether a step that depends on the order of arrival gets rows later than in the micro-batch that read them.

        Their positions then do not say when they arrived, so recorded micro-batches are gone through one by one.
        What looks something up meets what there is, and knows no order beside.
        """
        steps = [node for node in self.order_sensitive if not node.traits.looked_up]
        return any(before.gives_later for node in steps for before in feeders_first(node) if before is not node)

    def _reaching(self, *, looked_up: bool) -> frozenset[int]:
        """The topics behind those ports of the steps that look something up."""
        sources = [node for node in self._behind_ports(looked_up=looked_up) if not node.inputs]
        return frozenset(self.topics.index(node.endpoint) for node in sources)

    def _behind_ports(self, *, looked_up: bool) -> list[Node]:
        edges = [edge for edge in self.edges if self.nodes[edge.target].traits.looked_up]
        ports = [e for e in edges if (e.port in self.nodes[e.target].traits.looked_up) == looked_up]
        return [node for edge in ports for node in feeders_first(self.nodes[edge.source])]

    @cached_property
    def followed_by_order(self) -> tuple[bool, ...]:
        """By node, whether a step downstream orders rows by time and position, so that it must hear of moves."""
        follows = [False] * len(self.nodes)
        for number in reversed(range(len(self.nodes))):
            follows[number] = any(
                self.nodes[edge.target].orders_rows or follows[edge.target] for edge in self.out_of(number)
            )
        return tuple(follows)

    @cached_property
    def timed(self) -> bool:
        """Whether stream time alone can change a result."""
        return any(node.timed for node in self.nodes)

    @cached_property
    def tells_time(self) -> bool:
        """Whether it writes a stream, whose records tell readers what time it was."""
        return self.output.kind is Kind.STREAM or bool(self.output.routes)

    @property
    def hears_all(self) -> bool:
        """Whether it has to hear of all partitions of its sources, also of those without records."""
        return self.timed or self.tells_time

    @cached_property
    def dated(self) -> bool:
        """Whether stream time is that of rows; elsewhere it only orders them, and is that of all records.

        What the order of arrival decides keeps the order that it always had, unless rows have a time of their own.
        """
        given = any(source.time is not None for source in self.sources)
        return self.timed or (self.tells_time and (given or not self.order_sensitive))

    @cached_property
    def clocked(self) -> bool:
        """Whether the wall clock alone can change a result: its micro-batches record it."""
        return any(node.clocked for node in self.nodes)

    @cached_property
    def tick_ms(self) -> int:
        """How often the wall clock moves without records."""
        return min((node.tick_ms for node in self.nodes if node.clocked), default=1000)

    @cached_property
    def recorded(self) -> bool:
        """Whether results depend on where its micro-batches end, so that the order log has to know of each."""
        return self.clocked or bool(self.order_sensitive)

    @cached_property
    def waits(self) -> tuple[tuple[str, ...], ...]:
        """For each step that goes by stream time, the topics whose partitions it waits for; each once.

        Who reads a stream that it writes waits for the same partitions.
        """
        timed = (clocks for node, clocks in zip(self.nodes, self.clocks, strict=True) if node.timed and clocks)
        told = [self.clocks[-1]] if self.tells_time else []
        return tuple(sorted({tuple(sorted(self.topics[number] for number in clocks)) for clocks in (*timed, *told)}))

    @cached_property
    def idle_ms(self) -> dict[str, int]:
        """By topic, after how long a quiet partition is passed over; others are waited for."""
        return {
            source.topic: milliseconds(source.idle_after) for source in self.sources if source.idle_after is not None
        }

    @cached_property
    def holds_back(self) -> bool:
        """Whether a step keeps changes back for a time."""
        return any(node.traits.holds_back for node in self.nodes)

    @cached_property
    def clocks(self) -> tuple[frozenset[int], ...]:
        """By node, the topics whose stream time it goes by: those of the streams that feed it, not of the tables.

        A table may be untouched for a week, and would stop every window. Only where there is nothing but tables do some
        steps go by theirs.
        """
        found: list[frozenset[int]] = []
        for number, node in enumerate(self.nodes):
            feeds = [found[edge.source] for edge in self.into(number) if self.nodes[edge.source].kind is Kind.STREAM]
            own = [frozenset([self.topics.index(node.endpoint)])] if not node.inputs else []
            whole = [self._behind(number)] if node.traits.clocked_by_tables else []
            found.append(frozenset().union(*feeds, *own, *whole))
        return tuple(found)

    def _behind(self, number: int) -> frozenset[int]:
        """The topics of all streams from which rows reach a node, or of all tables if there is none."""
        sources = [cast("Source", node) for node in feeders_first(self.nodes[number]) if not node.inputs]
        streams = [source for source in sources if source.kind is Kind.STREAM]
        return frozenset(self.topics.index(source.topic) for source in streams or sources)

    @cached_property
    def watched(self) -> frozenset[int]:
        """The topics whose partitions all count for a step that goes by time."""
        timed = (clocks for node, clocks in zip(self.nodes, self.clocks, strict=True) if node.timed)
        return frozenset().union(*timed)

    def into(self, number: int) -> tuple[Edge, ...]:
        """The edges into a node, by port."""
        return self._into[number]

    def out_of(self, number: int) -> tuple[Edge, ...]:
        """The edges out of a node."""
        return self._out_of[number]

    def members(self, stage: int) -> Iterator[tuple[int, Node]]:
        """The nodes of a stage with their numbers, in order."""
        return ((n, node) for n, node in enumerate(self.nodes) if self.stages[n] == stage)

    @cached_property
    def _into(self) -> tuple[tuple[Edge, ...], ...]:
        return tuple(
            tuple(sorted((e for e in self.edges if e.target == n), key=lambda e: e.port))
            for n in range(len(self.nodes))
        )

    @cached_property
    def _out_of(self) -> tuple[tuple[Edge, ...], ...]:
        return tuple(tuple(e for e in self.edges if e.source == n) for n in range(len(self.nodes)))


def built(unit: Unit, *, caused: bool = False) -> Unit:
    """The same unit while its generation is being built: a cutover must find the whole table."""
    return replace(unit, building=True, caused=caused)


def silenced(unit: Unit) -> Unit:
    """The same unit without side effects: a recalculation must not repeat what `peek` has done."""
    return replace(unit, nodes=tuple(node.silenced() for node in unit.nodes))


def _stage(node: Node, feeders: list[tuple[int, bool]]) -> int:
    if not feeders:
        return 0
    if not node.traits.on_shard:
        return max(stage for stage, _ in feeders)
    return max(stage + (node.rekeys_input(port) or not on_shard) for port, (stage, on_shard) in enumerate(feeders))


def _settled(node: Node, feeders: list[bool]) -> bool:
    """Whether the rows that a node gives lie on the shard of their key."""
    return not node.traits.scatters and (node.traits.on_shard or all(feeders))
