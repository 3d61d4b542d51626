"""What is wrong with a request body, and the one error that says all of it."""

from dataclasses import dataclass
from typing import Any

from server.errors import ValidationError
from server.formats.positions import KeyPath


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing wrong with a body: its path, a sentence without it, the value."""

    path: KeyPath
    sentence: str
    value: Any = None


def error_of(faults: list[Fault]) -> ValidationError:
    """The error that names every fault by its path."""
    errors = [
        {
            "path": [str(part) for part in fault.path],
            "message": f"{_dotted(fault.path)} {fault.sentence}".strip(),
            "name": "ValidationError",
            "value": fault.value,
        }
        for fault in faults
    ]
    message = str(errors[0]["message"]) if len(errors) == 1 else f"{len(errors)} errors occurred"
    return ValidationError(message, {"errors": errors})


def _dotted(path: KeyPath) -> str:
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text
