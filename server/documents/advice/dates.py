"""How to write a date or a time that somebody wrote as at home."""

import re
from datetime import datetime, time

from server.documents.timestamps import read_date

# Patterns are compiled when they are first needed: most sites have nothing wrong.
_ISO = r"\d{4}-\d\d?-\d\d?"
_DAYS = (  # how people write days: where a text fits two of them, both are told
    *("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%Y/%m/%d", "%Y.%m.%d", "%d-%m-%Y", "%m-%d-%Y", "%Y%m%d"),
    *("%d %B %Y", "%d. %B %Y", "%B %d %Y", "%B %d, %Y", "%d %b %Y", "%d. %b %Y", "%b %d %Y", "%b %d, %Y"),
)
_WITH_TIME = r"(?i)(.+?)(?:[\sT,]+(\d\d?[:.h]\d\d(?::\d\d)?(?: ?[ap]m)?|\d\d? ?[ap]m))?"
_CLOCK = r"(?i)(\d\d?)(?:[:.h](\d\d))?(?::(\d\d))? ?([ap]m)?"
_LONGEST = 60  # characters of a text that is looked into


def date_advice(text: str) -> str:
    """What to write instead of a text that is no date."""
    if re.match(_ISO, text):
        return "there is no such day; write it as YYYY-MM-DD"
    days = _days(text)
    return f"write it as YYYY-MM-DD: {' or '.join(days)}" if days else "write it as YYYY-MM-DD"


def time_advice(text: str) -> str:
    """What to write instead of a text that is no time of day."""
    clock = _clock(text)
    return f"write it as HH:MM: {clock:%H:%M}" if clock else "write it as HH:MM, from 00:00 to 23:59"


def timestamp_advice(text: str) -> str:
    """What to write instead of a text that is no timestamp."""
    found = re.fullmatch(_WITH_TIME, text.strip()) if len(text) <= _LONGEST else None
    clock = _clock(found[2] or "0:00") if found else None
    days = _days(found[1]) if found else []
    if clock and days:
        return f"write {' or '.join(f'{day}T{clock:%H:%M:%S}Z' for day in days)}"
    return "write it as YYYY-MM-DDTHH:MM:SSZ"


def _days(text: str) -> list[str]:
    """The days that a text may stand for, as YYYY-MM-DD."""
    if re.fullmatch(_ISO, text):
        try:
            return [read_date(text)]
        except ValueError:
            return []
    found = []
    for form in _DAYS:
        try:
            found.append(datetime.strptime(text, form).date().isoformat())
        except ValueError:
            continue
    return list(dict.fromkeys(found))


def _clock(text: str) -> time | None:
    """The time of day that a text stands for."""
    found = re.fullmatch(_CLOCK, text.strip())
    if not found:
        return None
    hour, minute, second = (int(part or 0) for part in found.groups()[:3])
    if found[4]:
        hour = hour % 12 + (12 if found[4].lower() == "pm" else 0)
    try:
        return time(hour, minute, second)
    except ValueError:
        return None
