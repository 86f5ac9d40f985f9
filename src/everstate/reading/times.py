"""Times as people give them: a moment, or how long ago."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from everstate.errors import ConfigurationError
from everstate.schema import durations


def milliseconds_since_1970(time: datetime | str, *, now: datetime | None = None) -> int:
    """A moment as records have it; one without a time zone is in UTC, as `everstate consume` prints them.

    Args:
        time: A datetime; or text: an ISO date or time, or how long ago (`90s`, `15m`, `1h30m`, `7d`, `1w`).
        now: What "ago" counts from; by default the present.

    Raises:
        ConfigurationError: If it is neither.

    Example:
        >>> milliseconds_since_1970("1970-01-02")
        86400000
        >>> milliseconds_since_1970("2h", now=datetime(1970, 1, 1, 3, tzinfo=UTC))
        3600000
    """
    moment = time if isinstance(time, datetime) else _parsed(time, now or datetime.now(UTC))
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (aware - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


def _parsed(text: str, now: datetime) -> datetime:
    ago = durations.parsed(text.strip().lower().removesuffix(" ago"))
    try:
        if ago is not None:
            return now - timedelta(milliseconds=ago)
        return datetime.fromisoformat(text.strip())
    except (ValueError, OverflowError):
        raise ConfigurationError(
            f"{text!r} is not a time",
            hint="Write 2024-05-01, 2024-05-01T10:30, 2024-05-01T10:30:00+02:00 (UTC where no zone is given), or how "
            "long ago: 90s, 15m, 2h, 7d.",
        ) from None
