"""Tests of durations in the notation of settings."""

import re
from datetime import timedelta

import pytest

from server.config.values import parse_duration


@pytest.mark.parametrize(
    ("text", "duration"),
    [
        ("30d", timedelta(days=30)),
        ("12h", timedelta(hours=12)),
        ("90m", timedelta(minutes=90)),
        ("2s", timedelta(seconds=2)),
        ("2w", timedelta(weeks=2)),
        ("1y", timedelta(days=365)),
        (" 1d ", timedelta(days=1)),
    ],
)
def test_lengths_of_time(text: str, duration: timedelta) -> None:
    assert parse_duration(text) == duration


@pytest.mark.parametrize(
    "text",
    [
        "",
        "d",
        "1",
        "0d",
        "-1d",
        "1.5d",
        "1 d",
        "1ms",
        "1D",
        "d1",
        "9999y",
        "999999y",
        "999999999w",
        "9" * 20 + "w",
        "9" * 5000 + "m",
    ],
)
def test_what_is_no_length_of_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=re.escape(text) or "^$"):
        parse_duration(text)
