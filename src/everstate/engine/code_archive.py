"""The code of a generation, by value, beside its state.

An older version goes on publishing while a newer one is built, also after a restart, when its source file says
something else by then. Settings that are named like secrets are written by name: whoever loads the code was given them,
or is told to pass them.
"""

from __future__ import annotations

import hashlib
import io
from typing import TYPE_CHECKING, Any, Final

from everstate.engine.query.by_value import Pickler, Unpickler, pickled
from everstate.errors import CheckpointDamagedError, CheckpointMissingError, DefinitionError, secrets
from everstate.errors.exhaustion import exhausted, exhaustion
from everstate.generations.state.folder import OutputFolder, write_file
from everstate.topology.unit import Unit

if TYPE_CHECKING:
    from everstate.generations.generation import Generation


class _AbsentSecretError(Exception):
    """A secret that the code refers to and nobody has given."""


class _Pickler(Pickler):
    """Writes secrets by their names."""

    def persistent_id(self, part: Any) -> str | None:
        return secrets.name_of(part) if type(part) is str else None


#: Modules that archived code names, and where their classes are today.
_MOVED: Final = {
    "everstate.topology.errors": "everstate.errors",
    "everstate.topology.location": "everstate.location",
    "everstate.topology.types": "everstate.schema.types",
    "everstate.topology.schema": "everstate.schema.schema",
    "everstate.topology.keys": "everstate.schema.keys",
    "everstate.topology.declarations": "everstate.fingerprints.declarations",
    "everstate.kernels.state": "everstate.kernels.operations.user_state",
}


class _Unpickler(Unpickler):
    """Puts secrets in the place of their names, and finds classes that have moved since."""

    def find_class(self, module: str, name: str) -> Any:
        return super().find_class(_MOVED.get(module, module), name)

    def persistent_load(self, name: Any) -> str:
        value = secrets.value_of(name) if isinstance(name, str) else None
        if value is None:
            raise _AbsentSecretError(name)
        return value


def archive(folder: OutputFolder, unit: Unit) -> str:
    """Store a unit with its user's modules; returns the digest.

    Raises:
        DefinitionError: If something that its functions need cannot be written, or not be loaded again.
    """
    payload = pickled(unit, _Pickler)
    try:
        _Unpickler(io.BytesIO(payload)).unit()
    except Exception as error:
        raise DefinitionError(
            f"the output {unit.output.topic} needs something that workers cannot load: {error}",
            location=unit.output.location,
            hint="A class whose objects cannot be copied with copy.copy() needs __getnewargs__ or __reduce__.",
        ) from error
    write_file(folder.code_file, payload)
    return hashlib.sha256(payload).hexdigest()


def restored(folder: OutputFolder, generation: Generation) -> Unit:
    """The unit of a generation as it was archived.

    Raises:
        CheckpointMissingError: If it is not there.
        CheckpointDamagedError: If it is not what was written, or this Python cannot load it.
    """
    hint = f"Generation {generation.number} can no longer be run; the version that is deployed does not need it."
    try:
        payload = folder.code_file.read_bytes()
    except OSError as error:
        lacking = exhaustion(error)
        if lacking is not None:
            raise exhausted(lacking, f"{folder.code_file} cannot be read") from error
        raise CheckpointMissingError(f"{folder.code_file} cannot be read: {error}", hint=hint) from error
    # What is loaded here is run: nothing but what this service wrote may be.
    if hashlib.sha256(payload).hexdigest() != generation.code:
        raise CheckpointDamagedError(f"{folder.code_file} does not match its checksum", hint=hint)
    try:
        unit = _Unpickler(io.BytesIO(payload)).unit()
    except _AbsentSecretError as error:
        name = str(error)
        raise CheckpointMissingError(
            f"{folder.code_file} needs the setting {name!r}, which is not stored with it",
            hint=f"Pass the value that it was deployed with: --set {name}=..., or {secrets.variable(name)}.",
        ) from None
    except Exception as error:
        raise CheckpointDamagedError(f"{folder.code_file} cannot be loaded: {error}", hint=hint) from error
    if not isinstance(unit, Unit):
        raise CheckpointDamagedError(f"{folder.code_file} holds no output", hint=hint)
    return unit
