"""Where a deployment takes place: everything that its steps act on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from everstate.generations.compare.comparison import Comparisons
    from everstate.generations.deploy.executor import Executor
    from everstate.generations.deploy.leases import Leases
    from everstate.generations.deploy.settings import Settings
    from everstate.generations.generation import Generation
    from everstate.generations.registry import Registry
    from everstate.generations.state.folder import StateFolder
    from everstate.log.protocol import Log
    from everstate.topology.unit import Unit


@dataclass(frozen=True, kw_only=True)
class Site:
    """One service on one log.

    Attributes:
        log: The log.
        home: The folder of the service's state.
        registry: The service's generations.
        leases: What this process holds.
        settings: Operational settings.
        comparisons: Of generations with their topics; they are followed, not read again.
        executor: Runs the outputs.
        samples: Keep a sample of the inputs beside each generation, as a second net under the fingerprints.
    """

    log: Log
    home: Path
    registry: Registry
    leases: Leases
    settings: Settings
    comparisons: Comparisons
    executor: Executor
    samples: bool = True

    def folder(self, output: str, generation: Generation) -> StateFolder:
        """What is kept of a generation."""
        return self.executor.folder(output, generation)

    def code(self, output: str, generation: Generation) -> Unit:
        """The code that a generation was deployed with.

        Raises:
            StateError: If it is gone or damaged.
        """
        return self.executor.restored(output, generation)
