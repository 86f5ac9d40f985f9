from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from everstate.errors import ConfigurationError
from everstate.reading.times import milliseconds_since_1970

NOW = datetime(1970, 1, 10, tzinfo=UTC)
DAY = 86_400_000


@pytest.mark.parametrize(
    ("time", "expected"),
    [
        ("1970-01-02", DAY),
        ("1970-01-02T00:00:00.5", DAY + 500),
        ("1970-01-02 01:00+01:00", DAY),
        ("2d", 7 * DAY),
        ("1w", 2 * DAY),
        ("36h ago", 7.5 * DAY),
        ("90s", 9 * DAY - 90_000),
        ("1d12h", 7.5 * DAY),
        ("15m", 9 * DAY - 900_000),
        (datetime(1970, 1, 2), DAY),  # noqa: DTZ001 - one without a zone is in UTC
        (datetime(1970, 1, 2, 2, tzinfo=timezone(timedelta(hours=2))), DAY),
        ("1969-12-31T23:59:59.9999", -1),
    ],
)
def test_time_is_milliseconds_in_utc(time, expected):
    assert milliseconds_since_1970(time, now=NOW) == expected


@pytest.mark.parametrize("text", ["", "soon", "2 fortnights", "2024-13-01", "999999999999999w", "-2h"])
def test_time_that_is_none_is_refused(text):
    with pytest.raises(ConfigurationError, match="is not a time") as refused:
        milliseconds_since_1970(text)
    assert "2h" in (refused.value.hint or "")
