"""Giving up a generation: one that was prepared and is not wanted, or one that is no longer worth its space."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Unpack

from everstate.engine.spark_run import SparkRun
from everstate.errors import GenerationError
from everstate.generations.deploy import transitions
from everstate.generations.generation import BUILDING, Status

if TYPE_CHECKING:
    from everstate.dsl.service import Service
    from everstate.generations.deploy.options import RunOptions
    from everstate.generations.deploy.site import Site
    from everstate.generations.generation import Generation

_WHY: Final = "requested with everstate discard"


def discard(
    service: Service, output: str, number: int | None = None, *, dry_run: bool = False, **given: Unpack[RunOptions]
) -> Generation:
    """Give up a generation and delete its state.

    One that was active before and is being brought back is left as it was, and its state kept.

    Args:
        service: The service.
        output: The output's topic.
        number: Which generation; by default the one that is being built or was prepared.
        dry_run: Only say which one it would be.
        given: As for `SparkRun`.

    Returns:
        The generation as it was.

    Raises:
        GenerationError: If there is no such generation, or it is the active one.
        LeaseHeldError: If another process is building a generation of the service.
    """
    with SparkRun(service, **given) as run:
        site = run.site
        if dry_run:
            return _found(site, output, number, run.wishes.file)
        site.leases.take_building()
        generation = _found(site, output, number, run.wishes.file)
        if generation.status in BUILDING:
            transitions.discard(output, generation.number, site, _WHY)
        else:
            transitions.write(site, site.registry.read(output), generation, Status.DISCARDED, _WHY)
            transitions.tidy(output, site)
        return generation


def _found(site: Site, output: str, number: int | None, file: str) -> Generation:
    generations = site.registry.generations()
    if output not in generations:
        raise GenerationError(f"there is no output {output!r}", hint=f"There are: {', '.join(generations) or 'none'}.")
    versions = generations[output]
    generation = versions.building if number is None else versions.numbered(number)
    if generation is None:
        what = "no generation is being built" if number is None else f"there is no generation {number}"
        raise GenerationError(f"{what} for output {output!r}", hint=f"See them: everstate generations {file}")
    if generation.status is Status.ACTIVE:
        raise GenerationError(
            f"generation {generation.number} of output {output!r} is the active one",
            hint=f"Deploy another version first, or go back: everstate rollback {file} {output}",
        )
    return generation
