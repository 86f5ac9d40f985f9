"""A site for tests that act on a service's generations without a run of it."""

from __future__ import annotations

import contextlib

from everstate.engine.executor import SparkExecutor
from everstate.generations.compare.comparison import Comparisons
from everstate.generations.deploy.leases import Leases
from everstate.generations.deploy.settings import Settings
from everstate.generations.deploy.site import Site
from everstate.generations.registry import Registry
from everstate.generations.state.folder import service_folder


@contextlib.contextmanager
def site_of(app, log, home=None, **settings):
    """The service on a log that stays open; Spark is not started unless something is run."""
    home = home or service_folder(app.state_dir, log, app.name)
    chosen = Settings(**settings)
    leases = Leases(log, app.name, 60, lambda error: None, [])
    try:
        yield Site(
            log=log,
            home=home,
            registry=Registry(log, app.name),
            leases=leases,
            settings=chosen,
            comparisons=Comparisons(log),
            executor=SparkExecutor(log, home, chosen, name=app.name),
        )
    finally:
        leases.release()
