"""Lengths of time as people write them: `30d`, `12h`, `2s`."""

import re
from datetime import timedelta

_DURATION = re.compile(r"([0-9]{1,6})([smhdwy])")
_UNITS = {
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
    "y": timedelta(days=365),
}
_LONGEST = 2000 * _UNITS["y"]  # Dates end with the year 9999.


def read_duration(text: str) -> timedelta:
    """`2s`, `90m`, `12h`, `30d`, `2w` or `1y` → its length. ValueError for anything else, or for none."""
    matched = _DURATION.fullmatch(text.strip())
    duration = int(matched[1]) * _UNITS[matched[2]] if matched else timedelta()
    if not timedelta() < duration <= _LONGEST:
        raise ValueError(text)
    return duration
