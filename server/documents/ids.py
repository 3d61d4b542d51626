"""Document ids, which are generated or derived from names and paths."""

import secrets
import threading
import time

from server.formats.normal_form import normalize

_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_IDS_PER_TIME = 36**4

_lock = threading.Lock()
_last = (0, 0)


def to_nfc(text: str) -> str:
    """Normalize to Unicode NFC. File names from macOS may be in NFD."""
    return str(text if text.isascii() else normalize("NFC", text))


def id_of_name(name: str) -> str:
    return name.replace("/", "--")


def id_of_reference(text: str) -> str:
    """Return the document id in a reference, which can be an id or a path such as `/guides/start/`."""
    return to_nfc(id_of_name(text.strip().strip("/")))


def new_document_id() -> str:
    """Generate a document id of 24 characters. Ids sort in the order in which they were generated."""
    global _last
    with _lock:
        at, count = time.time_ns() // 1_000_000, 0
        if at <= _last[0]:  # same millisecond, or the clock was set back
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
