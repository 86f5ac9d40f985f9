"""Arrays and numbers of NumPy's as trees: by type, layout and bytes."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from everstate.fingerprints.outside import origins
from everstate.fingerprints.outside.outsiders import name_of
from everstate.fingerprints.tree import Tree, atom

if TYPE_CHECKING:
    from everstate.fingerprints.reach import Reach


def array(reach: Reach, thing: Any) -> Tree | None:
    """An array, a number or a type of NumPy's; None if it is something else."""
    numpy = sys.modules.get("numpy")
    if numpy is None:
        return None
    if isinstance(thing, numpy.dtype):
        return _dtype(reach, thing)
    if isinstance(thing, numpy.generic):
        return ["number", _kind(thing), _dtype(reach, thing.dtype), _cells(reach, numpy, numpy.asarray(thing))]
    if not isinstance(thing, numpy.ndarray):
        return None
    plain = numpy.ndarray.view(thing, numpy.ndarray)
    # Sums go by the layout in memory, in the last digit.
    layout = [list(plain.shape), list(plain.strides), bool(plain.flags.writeable)]
    return [
        "array",
        _kind(thing),
        _dtype(reach, plain.dtype),
        layout,
        _cells(reach, numpy, plain),
        _state(reach, thing),
    ]


def _kind(thing: Any) -> str | None:
    """The class of NumPy's; one of the user's is told beside it."""
    kind = next(base for base in type(thing).__mro__ if origins.of_class(base).kind != "user")
    return name_of(kind)


def _cells(reach: Reach, numpy: Any, plain: Any) -> Tree:
    if plain.dtype.hasobject:
        return [reach.value(part) for part in plain.ravel().tolist()]
    return atom(numpy.ascontiguousarray(plain).tobytes())


def _state(reach: Reach, thing: Any) -> Tree:
    """What a subclass keeps besides: the mask of a masked array and what it is filled with, the unit of another."""
    mask = getattr(thing, "_mask", None)
    own = getattr(thing, "__dict__", {})
    masked = [] if mask is None else [reach.value(mask), reach.value(thing.fill_value), bool(thing.hardmask)]
    kept = [[name, reach.value(part)] for name, part in sorted(own.items()) if masked == [] or name not in _MASKED]
    return [masked, kept]


#: Attributes of a masked array that are told otherwise, or mean nothing outside of an operation.
_MASKED = frozenset({"_mask", "_fill_value", "_hardmask", "_sharedmask", "_isfield", "_baseclass", "_basedict"})


def _dtype(reach: Reach, dtype: Any) -> Tree:
    """A type of cells by all that it says of itself: names of fields, places, byte order, unit."""
    if dtype.subdtype is not None:
        inner, shape = dtype.subdtype
        return ["dtype", _dtype(reach, inner), list(shape)]
    meta = None if dtype.metadata is None else reach.value(dict(dtype.metadata))
    if dtype.names is None:
        return ["dtype", dtype.str, name_of(type(dtype)), meta]
    fields = [[name, _dtype(reach, dtype.fields[name][0]), *map(str, dtype.fields[name][1:])] for name in dtype.names]
    return ["dtype", fields, dtype.itemsize, bool(dtype.isalignedstruct), name_of(dtype.type), meta]
