"""A service as a drawing: one card per output with its steps inside, topics around them, arrows between columns.

`cards.py` says what is drawn, `layout.py` where it stands, `svg.py` and `theme.py` how it looks; `mermaid.py` writes
the same cards as text for others to draw.
"""

from everstate.topology.drawing.cards import Phrase, Sheet
from everstate.topology.drawing.mermaid import mermaid
from everstate.topology.drawing.svg import svg

__all__ = ["Phrase", "Sheet", "mermaid", "svg"]
