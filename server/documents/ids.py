"""Document ids: derived from names and paths, or new."""

import secrets
import threading
import time
import unicodedata

_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_IDS_PER_TIME = 36**4

_lock = threading.Lock()
_last = (0, 0)


def compose(text: str) -> str:
    """Return a name in NFC, as a plain `str`; macOS keeps some names in NFD."""
    return str(text if text.isascii() else unicodedata.normalize("NFC", text))


def id_of_name(name: str) -> str:
    """Return the default id of a document: its name with `/` replaced by `--`."""
    return name.replace("/", "--")


def id_of_reference(text: str) -> str:
    """Return the id that a relation in a file refers to, which may be a path: `/guides/start/`."""
    return compose(id_of_name(text.strip().strip("/")))


def new_document_id() -> str:
    """Return a new id: 24 characters of `[a-z0-9]` that sort by creation time.

    A letter, nine base-36 digits of the millisecond, four of a counter within it, and ten at random. Each id
    sorts after all ids that this process made before.
    """
    global _last
    with _lock:
        at, count = time.time_ns() // 1_000_000, 0
        if at <= _last[0]:  # Same millisecond, or the clock went back.
            at, count = _last[0], _last[1] + 1
        if count == _IDS_PER_TIME:
            at, count = at + 1, 0
        _last = (at, count)
    return f"q{_base36(at, 9)}{_base36(count, 4)}{_base36(secrets.randbelow(36**10), 10)}"


def _base36(number: int, width: int) -> str:
    digits = ""
    while number:
        number, rest = divmod(number, 36)
        digits = _DIGITS[rest] + digits
    return digits.rjust(width, "0")
