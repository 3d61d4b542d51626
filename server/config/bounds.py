"""Bounds on the values of settings that are changed through the API.

They do not apply to values that are edited directly in site.yaml.
"""

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from server.config.setting import SettingKey
from server.config.values import parse_duration, parse_rate, parse_size

# A rate limit must allow this many requests at once, since the studio sends several for one page.
MIN_REQUESTS = 20
MAX_PERIOD = timedelta(hours=1)
_PARSERS: Mapping[str, Callable[[str], Any]] = {"count": int, "size": parse_size, "duration": parse_duration}
# The setting `events.keep` is a number of events or an age.
MIN_KEPT, MAX_KEPT = (timedelta(hours=1), 100), (timedelta(days=3650), 10_000_000)


def violated_bound(key: SettingKey, value: Any) -> str:
    """Return the rule that a value violates, worded to follow "must", such as `be from 1 to 10`.

    Return "" if the value is within its bounds.
    """
    if key.value_type == "rate":
        return _out_of_rate(value)
    if key.value_type == "keep":
        parts = zip(value, MIN_KEPT, MAX_KEPT, strict=True)
        is_within = all(part is None or least <= part <= most for part, least, most in parts)
        return "" if is_within else "be from 100 to 10000000 events, or from 1h to 10y"
    if key.bounds is None:
        return ""
    parse, (least, most) = _PARSERS[key.value_type], key.bounds
    return "" if parse(least) <= value <= parse(most) else f"be from {least} to {most}"


def _out_of_rate(value: str) -> str:
    if not value:
        return ""
    requests, period = parse_rate(value)
    if requests >= MIN_REQUESTS and period <= MAX_PERIOD:
        return ""
    return f"allow at least {MIN_REQUESTS} requests, in a period of at most 1 hour"
