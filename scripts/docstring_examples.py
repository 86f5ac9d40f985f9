"""Lets the documentation's site show examples in docstrings as code: the reader of docstrings knows only the plural."""

from __future__ import annotations

import re
from typing import Any

import griffe


class Examples(griffe.Extension):
    """Calls an `Example:` of a docstring `Examples:`."""

    def on_object(self, *, obj: griffe.Object, **_context: Any) -> None:
        """Looks at one object as it is loaded."""
        if obj.docstring is not None:
            obj.docstring.value = re.sub(r"^Example:$", "Examples:", obj.docstring.value, flags=re.MULTILINE)
