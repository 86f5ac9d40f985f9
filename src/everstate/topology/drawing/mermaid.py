"""The cards of a drawing as Mermaid text, which many pages and editors draw."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everstate.topology.drawing.cards import Sheet

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from everstate.topology.drawing.cards import Card, Wording
    from everstate.topology.unit import Unit


def mermaid(units: Sequence[Unit], wording: Wording | None = None, partitions: Mapping[str, int] | None = None) -> str:
    """A service as Mermaid text: topics are round, an output is a box with its steps, cylinders keep state.

    Example:
        >>> import everstate as es
        >>> app = es.Service("docs")
        >>> _ = app.stream("words", schema=str).group_by("value").agg(n=es.count()).to("counts")
        >>> print(mermaid(app.units()))
        flowchart LR
          t0(["words"])
          subgraph c0 ["counts (table, by value)"]
            c0s0["group_by 'value'"]
            c0s1[("aggregate n")]
            c0s0 --> c0s1
          end
          t0 -->|"by key"| c0
    """
    sheet = Sheet.of(units, wording, partitions)
    ids = {topic: f"t{place}" for place, topic in enumerate(sheet.topics)}
    ids |= {topic: f"c{place}" for place, topic in enumerate(sheet.cards)}
    lines = ["flowchart LR", *(f'  {ids[topic]}(["{_quoted(topic)}"])' for topic in sheet.topics)]
    for card in sheet.cards.values():
        lines += _card(card, ids[card.topic])
    for arrow in sheet.arrows:
        label = f'|"{_quoted(arrow.label)}"|' if arrow.label else ""
        lines.append(f"  {ids[arrow.source]} -->{label} {ids[arrow.target]}")
    return "\n".join(lines)


def _card(card: Card, name: str) -> Iterator[str]:
    yield f'  subgraph {name} ["{_quoted(f"{card.topic} ({card.about})")}"]'
    for place, step in enumerate(card.steps):
        text = _quoted(" ".join([step.phrase.verb, ", ".join(step.phrase.arguments)]).strip())
        opening, closing = ("[(", ")]") if step.store else ("[", "]")
        yield f'    {name}s{place}{opening}"{text}"{closing}'
    yield from (f"    {name}s{place} --> {name}s{place + 1}" for place in range(len(card.steps) - 1))
    if not card.steps:
        yield f'    {name}s0["as it is"]'
    yield "  end"


def _quoted(text: str) -> str:
    """Text that Mermaid takes for nothing else."""
    return text.replace("&", "#amp;").replace('"', "#quot;").replace("<", "#lt;").replace(">", "#gt;")
