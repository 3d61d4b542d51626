"""What a form says of the files that it uploads: its `fileInfo`."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from server.errors import ValidationError
from server.formats.json import read_json
from server.formats.text_positions import KeyPath
from server.formats.tree import Plain, SyntaxProblem
from server.write.faults import Fault, error_of

CONTROL_CHARS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
MAX_NAME_CHARS = 255


def _text(value: Any, path: KeyPath, faults: list[Fault]) -> str | None:
    """A text that a client said; what else JSON has for one value is text as JSON writes it."""
    text = str(value).lower() if isinstance(value, bool) else str(value)
    if isinstance(value, str | int) and not CONTROL_CHARS.search(text):
        return text
    faults.append(Fault(path, "must be text without control characters"))
    return None


def _point(value: Any, path: KeyPath, faults: list[Fault]) -> dict[str, Any] | None:
    """The point of a picture that matters most, in percent of its width and height."""
    if not isinstance(value, dict):
        faults.append(Fault(path, "must be an object with x and y"))
        return None
    wrong = [side for side in ("x", "y") if not _is_percent(value.get(side))]
    faults.extend(Fault((*path, side), "must be a number from 0 to 100") for side in wrong)
    return {side: value[side] for side in ("x", "y") if side not in wrong}


def _is_percent(value: Any) -> bool:
    number = float(value) if type(value) is Plain else value
    return isinstance(number, int | float) and not isinstance(number, bool) and 0 <= number <= 100


def _name(value: Any, path: KeyPath, faults: list[Fault]) -> str | None:
    text = _text(value, path, faults)
    if text is not None and len(text) > MAX_NAME_CHARS:
        faults.append(Fault(path, f"must be at most {MAX_NAME_CHARS} characters"))
    return text


# What a client may say of a file, and how that is read; what is wrong with it goes to the faults.
INFO_READERS: Mapping[str, Callable[[Any, KeyPath, list[Fault]], Any]] = {
    "name": _name,
    "alternativeText": _text,
    "caption": _text,
    "focalPoint": _point,
}


def read_info(texts: Sequence[str], count: int) -> list[dict[str, Any]]:
    """The `fileInfo` fields of an upload's form, as one description for each of `count` files.

    A description may be a field of its own, or one of a list; what none may say is ignored. Raises
    ValidationError.
    """
    if not texts:
        return [{} for _ in range(count)]
    found = [_parse(text) for text in texts]
    if len(found) == 1 and isinstance(found[0], list):
        found = found[0]
    if (len(found) == 1) != (count == 1):
        expected = "one description" if count == 1 else "a list with a description for each file"
        raise error_of([Fault(("fileInfo",), f"must be {expected}")])
    found += [{} for _ in range(count - len(found))]
    faults: list[Fault] = []
    paths: list[KeyPath] = [("fileInfo",) if count == 1 else ("fileInfo", i) for i in range(count)]
    infos = [_info(item, path, faults) for item, path in zip(found, paths, strict=False)]
    if faults:
        raise error_of(faults)
    return infos


def _parse(text: str) -> Any:
    try:
        return read_json(text)
    except SyntaxProblem as error:
        raise ValidationError(f"fileInfo can't be read: {error.message}") from error


def _info(item: Any, path: KeyPath, faults: list[Fault]) -> dict[str, Any]:
    """What a description says, with what is wrong with it added to the faults."""
    if not isinstance(item, dict):
        faults.append(Fault(path, "must be an object"))
        return {}
    known = {key: (read, item[key]) for key, read in INFO_READERS.items() if key in item}
    return {
        key: None if value is None else read(value, (*path, key), faults)
        for key, (read, value) in known.items()
    }
