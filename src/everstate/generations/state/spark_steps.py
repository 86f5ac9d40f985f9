"""Steps of Spark's own as the log knows them: which function was at work, and what follows if it is a different one."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from everstate.errors import DeploymentError
from everstate.fingerprints.spark_steps import step_digest
from everstate.log.descriptions import TopicConfig
from everstate.topology.nodes import Kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from everstate.dsl.sources import SparkSteps
    from everstate.log.descriptions import Lease
    from everstate.log.protocol import Log
    from everstate.topology.spark_steps import Feed, SparkStep
    from everstate.topology.unit import Unit


@dataclass(frozen=True)
class StepState:
    """What is known of a step that has been started.

    Attributes:
        function: The digest of its function.
        topic: The id of its topic.
        run: How often it has begun from the start before: the number of its checkpoint.
    """

    function: str
    topic: str
    run: int = 0


def document(step: SparkStep) -> str:
    """The name of the document that keeps the state of a step."""
    return step.name.replace(":", "/")


def read_state(log: Log, service: str, step: SparkStep) -> StepState | None:
    """What is known of a step; None if it has never been started."""
    text = log.get_meta(service, document(step))
    return None if text is None else StepState(**json.loads(text))


def write_state(log: Log, service: str, step: SparkStep, state: StepState, lease: Lease) -> None:
    """Keep what is known of a step, if its lease is held.

    Raises:
        FencedError: If it is not.
    """
    log.set_meta(service, document(step), json.dumps(asdict(state)), leases=[lease])


def lease_name(service: str, step: SparkStep) -> str:
    """The lease under which one process at a time carries a step out."""
    return f"{service}:{step.name}"


def create_fed_topics(steps: SparkSteps, log: Log) -> None:
    """Create the topics that are fed and are not there."""
    for feed in steps.feeds.values():
        config = TopicConfig(partitions=feed.partitions, compact=feed.kind is Kind.TABLE)
        log.create_topic(feed.topic, config, exist_ok=True)


def require_same_feeds(service: str, steps: SparkSteps, log: Log) -> None:
    """Refuse to go on feeding a topic with a changed function, unless that was said to be right.

    Raises:
        DeploymentError: If a function has changed.
    """
    for feed in steps.feeds.values():
        if feed.on_change != "continue" and _changed(log, service, feed):
            raise DeploymentError(_told(feed), location=feed.location, hint=_CURE.format(feed.call.rstrip(")")))


#: What can be done about a changed feed.
_CURE = (
    "Give the source a new topic, and everything is read again and compared with what is there; or continue with the "
    'new function from the next row on: {}, on_change="continue")'
)


def warnings(service: str, unit: Unit, steps: SparkSteps, log: Log) -> Sequence[str]:
    """What a plan says of changed steps beside an output."""
    found = [
        f"{_told(steps.feeds[topic])}; "
        + ("rows from now on go through the new one" if steps.feeds[topic].on_change == "continue" else "not started")
        for topic in unit.topics
        if topic in steps.feeds and _changed(log, service, steps.feeds[topic])
    ]
    delivery = steps.deliveries.get(unit.output.topic)
    if delivery is not None and _changed(log, service, delivery):
        what = "it gets what has not been delivered yet" if delivery.on_change == "continue" else "it gets all records"
        found.append(f"{delivery.call} has changed: {what}")
    return found


def _told(feed: Feed) -> str:
    return f"{feed.call} has changed, and what is on topic {feed.topic!r} came from the earlier function"


def _changed(log: Log, service: str, step: SparkStep) -> bool:
    known = read_state(log, service, step)
    return known is not None and known.function != step_digest(step)
