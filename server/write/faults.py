"""What is wrong with a request body, and the one error that says all of it."""

from dataclasses import dataclass
from typing import Any

from server.errors import ValidationError
from server.formats.text_positions import KeyPath

MAX_FAULTS = 100  # Faults of one body.


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing wrong with a body: its path, a sentence without it, the value."""

    path: KeyPath
    sentence: str
    value: Any = None


def error_of(faults: list[Fault]) -> ValidationError:
    """The error that names every fault by its path, the first MAX_FAULTS where there are more."""
    errors = [
        {
            "path": [str(part) for part in fault.path],
            "message": f"{_dotted_path(fault.path)} {fault.sentence}".strip(),
            "name": "ValidationError",
            "value": fault.value,
        }
        for fault in faults[:MAX_FAULTS]
    ]
    message = str(errors[0]["message"]) if len(faults) == 1 else f"{len(faults)} errors occurred"
    if len(faults) > MAX_FAULTS:
        message += f"; these are the first {MAX_FAULTS}"
    return ValidationError(message, {"errors": errors})


def _dotted_path(path: KeyPath) -> str:
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text
