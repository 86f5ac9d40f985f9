"""How a drawing looks, in light and in dark: whoever shows it says which, as for any other picture of a page."""

from __future__ import annotations

from typing import Final

#: Selector, light colour, dark colour; `fill` unless the selector says otherwise.
_COLOURS: Final = (
    (".sheet", "fill", "#ffffff", "#0e131a"),
    ("text", "fill", "#1b2430", "#e6ebf2"),
    (".soft", "fill", "#5b6675", "#96a2b2"),
    (".code", "fill", "#33404f", "#c3cddb"),
    (".topic", "fill", "#e6f0fc", "#12263b"),
    (".topic", "stroke", "#79a9d6", "#41709e"),
    (".card", "fill", "#ffffff", "#181f28"),
    (".card", "stroke", "#ccd4de", "#37424f"),
    (".step", "fill", "#f3f5f8", "#10161d"),
    (".store", "fill", "none", "none"),
    (".store", "stroke", "#9a6700", "#e3b341"),
    (".stored", "fill", "#8a5c00", "#e3b341"),
    (".moved", "fill", "#3d5fc4", "#8fa8ff"),
    (".moves", "stroke", "#3d5fc4", "#8fa8ff"),
    (".arrow", "stroke", "#79a9d6", "#41709e"),
    (".tip", "fill", "#79a9d6", "#41709e"),
    (".label", "fill", "#ffffff", "#0e131a"),
    (".label", "stroke", "#ccd4de", "#37424f"),
)

_FORM: Final = (
    "text{font:13px system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif;dominant-baseline:central}"
    ".name{font-weight:600}.soft,.stored,.moved{font-size:11.5px}"
    ".code{font:12px ui-monospace,'SF Mono',Menlo,Consolas,'DejaVu Sans Mono',monospace}"
    ".middle{text-anchor:middle}.arrow{fill:none;stroke-width:1.8}"
    ".moves{fill:none;stroke-width:1.2;stroke-dasharray:4 3}.store{stroke-width:1.2}"
)


def style() -> str:
    """The style sheet of a drawing."""
    light = "".join(f"{selector}{{{name}:{colour}}}" for selector, name, colour, _ in _COLOURS)
    dark = "".join(f"{selector}{{{name}:{colour}}}" for selector, name, _, colour in _COLOURS)
    return f"<style>{_FORM}{light}@media (prefers-color-scheme:dark){{{dark}}}</style>"
