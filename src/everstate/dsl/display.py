"""How services, streams and tables show themselves: as text, and in notebooks with their columns and a drawing."""

from __future__ import annotations

import base64
from abc import ABC, abstractmethod
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, Final

from everstate.errors import secrets
from everstate.topology.drawing import svg
from everstate.topology.nodes import Output
from everstate.topology.unit import Unit

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from everstate.dsl.flow import Flow
    from everstate.dsl.service import Service
    from everstate.schema.types import Field

#: What a drawing says where rows go on to no topic yet.
_ON: Final = "..."
_CELL: Final = "text-align:left;padding:2px 12px 2px 0"


@dataclass(frozen=True)
class Display:
    """What is shown of something.

    Attributes:
        text: In one line.
        header: The titles of the columns.
        rows: What stands below them.
        drawing: An SVG picture.
    """

    text: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    drawing: str

    def html(self) -> str:
        """As a piece of a page; nothing of it is taken for markup."""
        lines = "\n".join([_row("th", self.header), *(_row("td", row) for row in self.rows)])
        # As a picture of its own, since a style inside of a page would hold for all of it.
        picture = base64.b64encode(self.drawing.encode()).decode()
        return (
            f"<p><code>{escape(self.text)}</code></p>\n<table>\n{lines}\n</table>\n"
            f'<img alt="{escape(self.text)}" src="data:image/svg+xml;base64,{picture}">'
        )


class Displayed(ABC):
    """Shows itself by what `_display` says."""

    @abstractmethod
    def _display(self) -> Display:
        """What is to be shown."""

    def __repr__(self) -> str:
        return self._display().text

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """What notebooks ask for."""
        del include, exclude
        shown = self._display()
        return {"text/plain": shown.text, "text/html": shown.html()}


def of_service(service: Service) -> Display:
    """A service: its outputs with their keys and columns."""
    units = service.units()
    outputs = ", ".join(unit.output.topic for unit in units)
    rows = tuple(
        (
            unit.output.topic,
            str(unit.output.kind),
            ", ".join(unit.output.key.names),
            _listed(unit.output.record.fields),
            ", ".join(unit.topics),
        )
        for unit in units
    )
    text = f"Service({service.name!r}) with {f'outputs {outputs}' if units else 'no outputs'}"
    return Display(text, ("output", "kind", "key", "columns", "from"), rows, drawn(units, service))


def of_flow(flow: Flow) -> Display:
    """A stream or a table: its columns, and the steps that give it."""
    node = flow.node
    kind, key = type(flow).__name__, ", ".join(node.key.names)
    rows = tuple(
        (
            field.name,
            str(field.type),
            "key" if field.name in node.key.names else "nullable" if field.nullable else "",
        )
        for field in node.schema.fields
    )
    end = Output(
        inputs=(node,),
        kind=node.kind,
        key=node.key,
        schema=node.schema,
        key_in_value=node.key_in_value,
        location=node.location,
        topic=_ON,
        format="json",
        partitions=None,
    )
    values = tuple(field for field in node.schema.fields if field.name not in node.key.names)
    text = f"{kind} of service {flow.service.name}, key {key}: {_listed(values)}"
    return Display(text, ("column", "type", ""), rows, drawn([Unit.of(flow.service.name, end)], flow.service))


def drawn(units: Sequence[Unit], service: Service, partitions: Mapping[str, int] | None = None) -> str:
    """Outputs of a service as an SVG picture, with the user's own words and without secrets.

    Args:
        units: The outputs.
        service: Whose they are.
        partitions: Of topics that exist.
    """
    from everstate.fingerprints.noted.phrases import wording  # noqa: PLC0415 - only who looks reads sources

    settings = service.configuration
    picture = svg(units, wording(units, settings), partitions)
    return secrets.hidden(picture, tuple(secrets.named(settings).values()))


def _listed(fields: tuple[Field, ...]) -> str:
    return ", ".join(f"{field.name} {field.type}{' or null' if field.nullable else ''}" for field in fields)


def _row(tag: str, cells: tuple[str, ...]) -> str:
    inner = "".join(f'<{tag} style="{_CELL}">{escape(cell)}</{tag}>' for cell in cells)
    return f"<tr>{inner}</tr>"
