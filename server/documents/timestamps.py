"""Dates and times in the API's format. Timestamps are in UTC, so they sort as strings."""

import re
from datetime import UTC, date, datetime, time, timedelta, timezone
from functools import lru_cache

_DATE = re.compile(r"(\d{4})-(\d\d?)-(\d\d?)", re.ASCII)
_TIMESTAMP = re.compile(
    r"(\d{4})-(\d\d?)-(\d\d?)"
    r"(?:(?:[Tt]|[ \t]+)(\d\d?):(\d\d)(?::(\d\d)(?:[.,](\d+))?)?"
    r"(?:[ \t]*(?:([Zz])|([-+])(\d\d?)(?::?(\d\d))?))?)?",
    re.ASCII,
)
_CANONICAL = re.compile(r"[1-9]\d{3}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", re.ASCII)
_SHORT_DATE = re.compile(  # 2024, 2024-05, 20240515, 2024-136 (the 136th day), 2024-W20, 2024-W20-3
    r"(\d{4})-?(?:(?P<day>\d{3})|(?P<month>\d\d)(?:-?(?P<mday>\d\d))?|W(?P<week>\d\d)(?:-?(?P<wday>[1-7]))?)?",
    re.ASCII,
)
_SHORT_TIME = re.compile(r"(\d\d)(?::?(\d\d)(?::?(\d\d(?:[.,]\d+)?))?)?(Z|[-+]\d\d(?::?\d\d)?)?", re.ASCII)
_TIME = re.compile(r"(\d\d?):(\d\d)(?::(\d\d)(?:\.(\d{1,6}))?)?", re.ASCII)
_EPOCH_MS = re.compile(r"(-?\d{9,16})(?:\.0+)?", re.ASCII)  # In JSON, an integer can be written as 1.0.


def from_datetime(value: datetime) -> str:
    value = value.astimezone(UTC)
    return f"{value:%Y-%m-%dT%H:%M:%S}.{value.microsecond // 1000:03d}Z".rjust(24, "0")


# Saves 17 of 54 µs per document at a warm start, because many files share a commit's timestamp.
@lru_cache(maxsize=10_000)
def from_seconds(seconds: float) -> str:
    return from_datetime(datetime.fromtimestamp(seconds, UTC))


def now() -> str:
    return from_datetime(datetime.now(UTC))


def read_timestamp(text: str) -> str:
    """Parse an ISO 8601 date or timestamp, or a number of milliseconds since 1970.

    The default time is midnight, and the default time zone is UTC. Raises ValueError.
    """
    text = text.strip()
    if _CANONICAL.fullmatch(text):
        datetime.fromisoformat(text)  # Raises ValueError if the day does not exist.
        return text
    found = _TIMESTAMP.fullmatch(text)
    if not found:
        if epoch := _EPOCH_MS.fullmatch(text):
            return _from_epoch_ms(int(epoch[1]))
        raise ValueError(text)
    year, month, day, hour, minute, second, fraction, _, sign, off_h, off_m = found.groups()
    offset = timedelta(hours=int(off_h or 0), minutes=int(off_m or 0))
    zone = timezone(-offset if sign == "-" else offset)
    micro = int((fraction or "0")[:6].ljust(6, "0"))
    value = datetime(
        int(year), int(month), int(day), int(hour or 0), int(minute or 0), int(second or 0), micro, zone
    )
    try:
        return from_datetime(value)
    except OverflowError as error:
        raise ValueError(text) from error


def read_partial_timestamp(text: str) -> str:
    """Parse a timestamp in a filter, such as `2024` or `2024-W20-3`.

    Missing parts get the lowest possible value. Raises ValueError.
    """
    try:
        return read_timestamp(text)
    except ValueError:
        day, _, clock = text.strip().partition("T")
        date_found, time_found = _SHORT_DATE.fullmatch(day), _SHORT_TIME.fullmatch(clock)
        if date_found and (time_found or "T" not in text):
            try:
                return read_timestamp(f"{_first_day(date_found)}{_full_time(time_found)}")
            except ValueError:
                pass  # The day does not exist, but the text may be epoch milliseconds.
        if re.fullmatch(r"-?[0-9]{1,8}", text.strip()):
            return _from_epoch_ms(int(text))
        raise


def _first_day(match: re.Match[str]) -> str:
    year = int(match[1])
    if match["day"]:
        first = date(year, 1, 1) + timedelta(days=int(match["day"]) - 1)
        if first.year != year:
            raise ValueError(match[0])
        return first.isoformat()
    if match["week"]:
        return date.fromisocalendar(year, int(match["week"]), int(match["wday"] or 1)).isoformat()
    return date(year, int(match["month"] or 1), int(match["mday"] or 1)).isoformat()


def _full_time(match: re.Match[str] | None) -> str:
    if match is None:
        return ""
    hour, minute, second, zone = match.groups()
    return f"T{hour}:{minute or '00'}:{second or '00'}{zone or ''}"


def _from_epoch_ms(value: int) -> str:
    try:
        return from_datetime(datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=value))
    except OverflowError as error:
        raise ValueError(str(value)) from error


def read_date(text: str) -> str:
    """Return the date, such as `2024-02-29`, of a date or timestamp. Raises ValueError."""
    text = text.strip()
    found = _DATE.match(text)
    if not found or (found.end() != len(text) and not _TIMESTAMP.fullmatch(text)):
        raise ValueError(text)
    return date(*map(int, found.groups())).isoformat()


def read_time(text: str) -> str:
    """Convert a time such as `10:20` to the format `10:20:00.000`. Raises ValueError."""
    found = _TIME.fullmatch(text.strip())
    if not found:
        raise ValueError(text)
    hour, minute, second, fraction = found.groups()
    value = time(int(hour), int(minute), int(second or 0), int((fraction or "0").ljust(6, "0")))
    return f"{value:%H:%M:%S}.{value.microsecond // 1000:03d}"
