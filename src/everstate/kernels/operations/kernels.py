"""The kernels of all operations, by node class: what leads from a description to what happens to rows and state.

Each module of this package that makes an operation work declares it itself, in a dict `KERNELS`, so that adding one
changes no list.
"""

from __future__ import annotations

import pkgutil
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from everstate.kernels import operations, output
from everstate.kernels.operations.kernel import EndKernel, StateKernel
from everstate.topology.nodes import Output

if TYPE_CHECKING:
    from collections.abc import Iterator

    from everstate.kernels.operations.kernel import Kernel
    from everstate.topology.nodes import Node


def _declared() -> Iterator[tuple[type[Node], Kernel]]:
    """What the modules of this package declare."""
    for module in pkgutil.walk_packages(operations.__path__, f"{operations.__name__}."):
        if module.name != __name__:
            yield from getattr(import_module(module.name), "KERNELS", {}).items()


KERNELS: Final[dict[type[Node], Kernel]] = {**dict(_declared()), Output: EndKernel(output.update)}


def state_kernel(node: Node) -> StateKernel[Any] | None:
    """The kernel of a step that keeps state; None for the others."""
    kernel = KERNELS[type(node)]
    return kernel if isinstance(kernel, StateKernel) else None
