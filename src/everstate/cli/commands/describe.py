"""`everstate describe`: what a service consists of."""

from __future__ import annotations

import json

import typer

from everstate.cli.service_loading import load_service
from everstate.cli.service_options import AsJson, ServiceFile, ServiceName


def describe(
    file: ServiceFile = None,
    *,
    service: ServiceName = None,
    as_json: AsJson = False,
) -> None:
    """Print the stages, steps, topics and stores of a service, and which steps depend on the order of arrival."""
    description = load_service(file, service=service).describe()
    typer.echo(json.dumps(description.to_json(), indent=2) if as_json else str(description))
