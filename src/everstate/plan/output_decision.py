"""What happens to one output that a service declares."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypedDict

from everstate.plan.actions import (
    Action,
    Begin,
    Continue,
    Estimate,
    Keep,
    Migrate,
    Reading,
    Recalculate,
    Refuse,
    Restore,
)
from everstate.plan.conversion import conversion
from everstate.plan.differences import Category, Difference, differences
from everstate.plan.facts import SourceFacts
from everstate.plan.matching import source_topic, source_topics
from everstate.plan.needs import gap, needs, order_sensitive
from everstate.plan.reuse import obstacle
from everstate.plan.topics import recreated, topic_differences
from everstate.schema.topic_names import dead_letter_topic
from everstate.topology.traits import Need

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from everstate.fingerprints.prints import UnitPrint
    from everstate.plan.facts import Deployed, Mismatch, Offsets, OnChange, Options, OutputFacts


class _Base(TypedDict):
    output: str
    fingerprint: str
    active: int | None
    differences: tuple[Difference, ...]
    ordered: tuple[str, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class OutputDecision:
    """One output that the service declares.

    Attributes:
        sources: Facts about the topics that it reads, as far as they exist.
        upstream: What happens to those of them that are outputs of the same service.
    """

    new: UnitPrint
    facts: OutputFacts
    sources: Mapping[str, SourceFacts]
    upstream: Mapping[str, Action]
    on_change: OnChange
    options: Options

    def action(self) -> Action:
        """What happens to it."""
        if problems := list(self._unreadable()):
            return self._refuse(problems, truncated=False)
        if self.facts.active is None:
            return self._begin()
        if self.new.output in self.options.recalculate:
            return self._recalculate(asked=True)
        if self._differences and all(found.category is Category.OUTPUT_TOPIC for found in self._differences):
            return self._republish(self.facts.active)
        if not self._differences:
            return Keep(
                **self._base,
                sources=self._readings(replay=False),
                discards=self._given_up,
                consumes=tuple(topic for topic, action in self.upstream.items() if action.publishes),
            )
        if (retained := self._retained()) is not None:
            return Restore(
                **self._base,
                sources=self._rest(retained),
                discards=self._given_up,
                generation=retained.generation,
                estimate=self._estimate(self._rest(retained)),
            )
        if self.on_change != "recalculate":
            return self._carry_on(self.facts.active)
        return self._recalculate()

    @cached_property
    def _differences(self) -> tuple[Difference, ...]:
        active, wanted = self.facts.active, self.options.shards
        found = list(differences(active.print if active else None, self.new))
        if active and wanted not in {None, active.shards}:
            cause = "The number of shards changed, which changes no result."
            found.append(Difference(Category.SHARDS, "", cause, old=str(active.shards), new=str(wanted)))
        if active:
            found += topic_differences(active, self.new, self.facts, self.sources)
        if active and active.mismatch:
            found.append(self._mismatched(active, active.mismatch))
        return tuple(found)

    def _mismatched(self, active: Deployed, mismatch: Mismatch) -> Difference:
        if mismatch.libraries:
            cause = f"The installed libraries give a different result: {mismatch.what}."
            return Difference(Category.LIBRARY, "", cause, old=_versions(active.print), new=_versions(self.new))
        cause = (
            f"The step {mismatch.step} gives a different result although its fingerprint is the same: "
            f"{mismatch.what}. Everstate should have noticed this change: please report it, with the code of the step."
        )
        return Difference(Category.MISSED, mismatch.step, cause, mismatch.location)

    @property
    def _base(self) -> _Base:
        return {
            "output": self.new.output,
            "fingerprint": self.new.fingerprint,
            "active": self.facts.active.generation if self.facts.active else None,
            "differences": self._differences,
            "ordered": order_sensitive(self.new),
            "warnings": self.facts.warnings,
        }

    @cached_property
    def _pending(self) -> Deployed | None:
        """A generation of this very version that is half built or prepared, and can be resumed."""
        pending = self.facts.pending
        # Where nothing ever was on the topic, it is begun once more: a first generation publishes from its first batch.
        return pending if pending is not None and self._has_published and self._is_this(pending) else None

    @property
    def _keys(self) -> int:
        """Keys on the topic of a table."""
        return self.facts.keys if self.new.kind == "table" else 0

    @property
    def _has_published(self) -> bool:
        """Whether there is something that a new generation has to be compared with."""
        return self.facts.active is not None or self._keys > 0 or self.facts.published

    @property
    def _given_up(self) -> int | None:
        """The generation that is being built, unless it is the one to resume."""
        return self.facts.pending.generation if self.facts.pending else None

    def _is_this(self, deployed: Deployed) -> bool:
        if deployed.mismatch is not None or recreated(deployed, self.new, self.sources):
            return False  # its results come from other code, other libraries or other records
        shards = self.options.shards or (self.facts.active.shards if self.facts.active else deployed.shards)
        return deployed.resumable and deployed.print.fingerprint == self.new.fingerprint and deployed.shards == shards

    def _retained(self) -> Deployed | None:
        return next((deployed for deployed in self.facts.retained if self._is_this(deployed)), None)

    def _begin(self) -> Action:
        readings = self._readings(first=True)
        problems = list(self._gaps())
        if problems and self._keys:
            return self._refuse(problems)
        return Begin(
            **self._base,
            sources=readings,
            discards=None if self._pending else self._given_up,
            keys=self._keys,
            estimate=self._estimate(readings),
            resumes=self._pending.generation if self._pending else None,
            closed=self._has_published,
            stream=self.new.kind == "stream",
        )

    def _recalculate(self, *, asked: bool = False, instead: str = "", again: bool = False) -> Action:
        if problems := list(self._gaps()):
            return self._refuse(problems)
        readings = self._readings()
        return Recalculate(
            **self._base,
            sources=readings,
            discards=None if self._pending else self._given_up,
            estimate=self._estimate(readings),
            stream=self.new.kind == "stream",
            asked=asked,
            instead=instead,
            again=again,
            resumes=self._pending.generation if self._pending else None,
        )

    def _carry_on(self, active: Deployed) -> Action:
        """What `on_change` declares, where the state of the active generation allows it."""
        migrates = self.on_change == "migrate"
        reason = obstacle(active.print, self.new, converts=migrates)
        if any(difference.category is Category.SHARDS for difference in self._differences):
            reason = reason or "the number of shards changed"
        if any(difference.category is Category.RECREATED_SOURCE for difference in self._differences):
            reason = reason or "a source topic was created again"
        if active.mismatch is not None and (migrates or not active.mismatch.libraries):
            word = "the installed libraries give" if active.mismatch.libraries else "the code gives"
            reason = reason or f"{word} a different result"
        if reason:
            word = "migrated" if migrates else "carried over"
            return self._recalculate(instead=f"State cannot be {word}: {reason}.")
        if not migrates:
            return Continue(**self._base, sources=self._readings(replay=False), discards=self._given_up)
        if self._pending is not None and not self._pending.migrated:
            return self._recalculate(instead="It is already being recalculated.")
        if problems := list(self._gaps()):
            return self._refuse(problems)  # the sample that proves the conversion is recalculated from history
        checked = conversion(active.print, self.new).checked
        return Migrate(
            **self._base,
            sources=self._readings(replay=checked),
            discards=None if self._pending else self._given_up,
            estimate=self._estimate(self._readings()),
            checked=checked,
            stream=self.new.kind == "stream",
            resumes=self._pending.generation if self._pending else None,
        )

    def _republish(self, active: Deployed) -> Action:
        """What is missing on the output's topics, from state where that is enough."""
        letters = dead_letter_topic(self.new.output)
        own = [topic for topic in (self.new.output, letters, *self.new.sides) if topic in active.topics]
        gone = [topic for topic in own if self.facts.topics.get(topic) != active.topics[topic]]
        if self.new.kind == "stream":
            return self._recalculate(again=self.new.output in gone)
        if (
            set(gone) - {self.new.output}
            or obstacle(active.print, self.new, converts=True)
            or self._pending is not None
        ):
            return self._recalculate()
        return Migrate(
            **self._base,
            sources=self._readings(replay=False),
            discards=self._given_up,
            estimate=self._estimate(self._readings()),
            checked=False,
        )

    def _refuse(self, problems: list[tuple[str, str]], *, truncated: bool = True) -> Refuse:
        return Refuse(
            **self._base,
            sources=self._readings(replay=False),
            problem="; ".join(problem for problem, _ in problems),
            hint=" ".join(dict.fromkeys(hint for _, hint in problems if hint)),
            truncated=truncated,
            missing=next(iter(self._missing()), ""),
        )

    def _missing(self) -> dict[str, str]:
        """The topics that do not exist, each with the command that creates it."""
        tables = {source_topic(node) for node in self.new.nodes if node.kind == "table"}
        return {
            topic: f"everstate topic create {topic}{' --compact' if topic in tables else ''}"
            for topic in source_topics(self.new)
            if self._is_missing(topic)
        }

    def _is_missing(self, topic: str) -> bool:
        """Whether a topic does not exist, and no output of the service makes it."""
        return topic not in self.upstream and not (topic in self.sources and self.sources[topic].exists)

    def _unreadable(self) -> Iterator[tuple[str, str]]:
        """Sources that cannot be read, each with what to do; those that the service makes itself come into being."""
        missing = self._missing()
        for topic in source_topics(self.new):
            facts = self.sources.get(topic, SourceFacts(topic=topic, exists=False))
            upstream = self.upstream.get(topic)
            if isinstance(upstream, Refuse) and not facts.exists:
                yield (
                    f"topic {topic} does not exist yet, and the output that writes it is refused",
                    "Fix that output first.",
                )
            elif topic in missing:
                # Said once for all of them: whoever has created one would only be told of the next.
                what = "Create it" if len(missing) == 1 else "Create them"
                yield f"topic {topic} does not exist", f"{what}: {'; '.join(missing.values())}"
            elif facts.problem:
                yield facts.problem, facts.cure or f"Look at it: everstate topic describe {topic}"

    def _gaps(self) -> Iterator[tuple[str, str]]:
        """What is gone of the history that the output needs, each with what to do."""
        if self._pending is not None and not self._pending.migrated:
            return  # it has read the past already
        for topic, need in needs(self.new).items():
            lost = gap(self.sources[topic], need) if topic in self.sources else ""
            if lost and topic not in self.options.accept_truncated:
                command = f"everstate run {self.options.file} --accept-truncated {topic}"
                future = ""
                if need is Need.ALL:
                    future = " A source declared with keep_history=True is archived before its records go."
                yield f"topic {topic} {lost}", f"Continue with what is left: {command}.{future}"

    def _readings(self, *, replay: bool = True, first: bool = False) -> tuple[Reading, ...]:
        """What is read of each source: all that is needed of its past, or nothing but what comes.

        Args:
            replay: The past is read.
            first: Nothing was published from it yet, so that all that is there is read.
        """
        if replay and self._pending is not None:
            return self._rest(self._pending)
        return tuple(
            Reading(
                topic,
                records=facts.records + _kept(facts, need) if replay and (first or need is not Need.NOTHING) else 0,
                archived=facts.archived + _kept(facts, need) if replay and need is not Need.NOTHING else 0,
                start=facts.start,
                end=facts.end,
                truncated=gap(facts, need) if replay else "",
            )
            for topic, need, facts in self._needed()
        )

    def _rest(self, deployed: Deployed) -> tuple[Reading, ...]:
        """What a generation that stopped has not read yet."""
        return tuple(
            Reading(topic, records=_unread(facts, deployed.end.get(topic, {})), start=facts.start, end=facts.end)
            for topic, _, facts in self._needed()
        )

    def _needed(self) -> Iterator[tuple[str, Need, SourceFacts]]:
        for topic, need in sorted(needs(self.new).items()):
            yield topic, need, self.sources.get(topic, SourceFacts(topic=topic, exists=False))

    def _estimate(self, readings: tuple[Reading, ...]) -> Estimate:
        known = [self.facts.active, self.facts.pending, *self.facts.retained]
        rate = next((deployed.rate for deployed in known if deployed is not None and deployed.rate), None)
        return Estimate(sum(reading.records for reading in readings), rate)


def _kept(facts: SourceFacts, need: Need) -> int:
    """Records that only the archive of a compacted topic has, where they are needed."""
    return facts.kept if need is Need.ALL else 0


def _unread(facts: SourceFacts, stands: Offsets) -> int:
    """Records between where a generation stands and the end."""
    first = {partition: max(facts.start.get(partition, 0), stands.get(partition, 0)) for partition in facts.end}
    return sum(max(end - first[partition], 0) for partition, end in facts.end.items())


def _versions(described: UnitPrint) -> str:
    return ", ".join(f"{name} {version}" for name, version in sorted(described.libraries.items()))
