"""What lets code see how it is written, so that no other way to write it is the same."""

from __future__ import annotations

from typing import Final

#: Functions through which code sees its own local names.
LOOKING: Final = frozenset({"locals", "vars", "dir", "eval", "exec"})
#: Those of them that show another thing if they are given one.
ASKING: Final = frozenset({"vars", "dir"})
#: Attributes that show code, frames and closures, or when an object is gone.
REVEALING: Final = frozenset(
    {
        "__builtins__", "__closure__", "__code__", "__defaults__", "__del__", "__func__", "__globals__",
        "__kwdefaults__", "__traceback__", "__weakref__", "__wrapped__", "ag_frame", "cr_frame", "f_back", "f_code",
        "f_globals", "f_lineno", "f_locals", "gi_code", "gi_frame", "tb_frame", "tb_lineno", "tb_next",
        "with_traceback",
    }
)  # fmt: skip
#: Attributes through which any other can be set.
SETTING: Final = frozenset({"__setattr__", "__delattr__", "__dict__"})
#: Functions through which any attribute can be set.
SETTERS: Final = frozenset({"builtins.setattr", "builtins.delattr", "builtins.vars"})
_NAMES: Final = (
    "weakref", "gc", "traceback", "dis", "tracemalloc", "sys._getframe", "sys._current_frames", "sys.getrefcount",
    "sys.exc_info", "sys.settrace", "sys.setprofile", "inspect.currentframe", "inspect.stack", "inspect.trace",
    "inspect.getouterframes", "inspect.getinnerframes", "inspect.getframeinfo", "inspect.getsource",
    "inspect.getsourcelines",
)  # fmt: skip


def reveals(name: str) -> bool:
    """Whether something outside shows how functions are written, by its dotted name."""
    return any(name == known or name.startswith(f"{known}.") for known in _NAMES)


def is_private(name: str) -> bool:
    """Whether a name means something else in another class."""
    return name.startswith("__") and not name.endswith("__")
