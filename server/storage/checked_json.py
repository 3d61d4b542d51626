"""JSON cache files with a checksum."""

import hashlib
import json
from pathlib import Path
from typing import Any

from server.storage.durable import replace_file

_SUM, _VALUE = "sha256", "value"
_DIGITS = 32


def write_checked(path: Path, value: object) -> None:
    replace_file(path, encode_checked(value))


def encode_checked(value: object) -> bytes:
    return json.dumps({_SUM: _checksum(value), _VALUE: value}).encode()


def read_checked(path: Path) -> Any:
    """Return the value in a JSON file.

    Raises OSError if the file is missing, or ValueError if it is damaged.
    """
    data = json.loads(path.read_bytes())
    if not isinstance(data, dict) or data.get(_SUM) != _checksum(data.get(_VALUE)):
        raise ValueError(f"{path.name} is damaged")
    return data[_VALUE]


def _checksum(value: object) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]
