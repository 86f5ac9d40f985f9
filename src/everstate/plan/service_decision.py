"""From the prints of a service and the facts to the list of actions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everstate.errors import ConfigurationError
from everstate.plan.actions import Action, Plan, Retire
from everstate.plan.differences import differences
from everstate.plan.facts import OnChange, Options, OutputFacts, SourceFacts
from everstate.plan.matching import source_topics
from everstate.plan.output_decision import OutputDecision

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from everstate.fingerprints.prints import UnitPrint


def decide(
    service: str,
    prints: Sequence[UnitPrint],
    outputs: Mapping[str, OutputFacts],
    sources: Mapping[str, SourceFacts],
    *,
    on_change: Mapping[str, OnChange] | None = None,
    options: Options | None = None,
) -> Plan:
    """What happens if a service is started now.

    Args:
        service: Its name.
        prints: The outputs that it declares.
        outputs: What is known of outputs that it has or had, by topic.
        sources: What is known of the topics that it reads; one that is not named does not exist.
        on_change: What a user declared for an output that changes; "recalculate" where nothing is.
        options: What is asked for with this run.

    Raises:
        ConfigurationError: If an option names an output or topic that the service does not have.
    """
    options = options or Options()
    _check(prints, options)
    ordered = _topological(prints)
    made: dict[str, Action] = {}
    writers = _writers(prints)
    for described in ordered:
        decision = OutputDecision(
            new=described,
            facts=outputs.get(described.output, OutputFacts()),
            sources={topic: sources[topic] for topic in source_topics(described) if topic in sources},
            upstream={
                topic: made[writers[topic].output]
                for topic in source_topics(described)
                if topic in writers and writers[topic].output in made
            },
            on_change=(on_change or {}).get(described.output, "recalculate"),
            options=options,
        )
        made[described.output] = decision.action()
    return Plan(service, (*made.values(), *_retired(ordered, outputs, options)), options)


def _check(prints: Sequence[UnitPrint], options: Options) -> None:
    declared = sorted(described.output for described in prints)
    read = sorted({topic for described in prints for topic in source_topics(described)})
    for word, asked, known in (
        ("--recalculate", options.recalculate, declared),
        ("--accept-truncated", options.accept_truncated, read),
    ):
        for name in asked:
            if name not in known:
                what = "output" if known is declared else "source topic"
                raise ConfigurationError(
                    f"{word} {name}: the service has no such {what}", hint=f"It has: {', '.join(known) or 'none'}."
                )


def _writers(prints: Sequence[UnitPrint]) -> dict[str, UnitPrint]:
    """Who writes a topic."""
    return {topic: described for described in prints for topic in (described.output, *described.sides)}


def _topological(prints: Sequence[UnitPrint]) -> list[UnitPrint]:
    """Outputs in the order of their declaration, but each after those that it reads."""
    declared = _writers(prints)
    ordered: dict[str, UnitPrint] = {}
    entered: set[str] = set()

    def visit(described: UnitPrint) -> None:
        if described.output in entered:
            return
        entered.add(described.output)
        for topic in source_topics(described):
            if topic in declared:
                visit(declared[topic])
        ordered[described.output] = described

    for described in prints:
        visit(described)
    return list(ordered.values())


def _retired(declared: list[UnitPrint], outputs: Mapping[str, OutputFacts], options: Options) -> Iterator[Retire]:
    """Outputs that are no longer declared; those that read others go first."""
    names = {described.output for described in declared}
    gone = [facts.active or facts.pending for output, facts in outputs.items() if output not in names]
    for old in reversed(_topological([deployed.print for deployed in gone if deployed is not None])):
        facts = outputs[old.output]
        yield Retire(
            output=old.output,
            fingerprint=old.fingerprint,
            active=facts.active.generation if facts.active else None,
            differences=differences(old, None),
            discards=facts.pending.generation if facts.pending else None,
            keys=facts.keys if old.kind == "table" else 0,
            keep_topic=options.keep_topic,
            readers=tuple(
                described.output
                for described in declared
                if not {old.output, *old.sides}.isdisjoint(source_topics(described))
            ),
        )
