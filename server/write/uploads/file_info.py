"""Parser of `fileInfo`, which contains the descriptions of the files in an upload form."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from server.documents.ids import to_nfc
from server.errors import ValidationError
from server.formats.json import read_json
from server.formats.text_positions import KeyPath
from server.formats.tree import Plain, SyntaxProblem
from server.storage.media import is_media_name
from server.write.faults import Fault, error_of

CONTROL_CHARS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")  # without tabs and line breaks
# Names can't contain any of these characters, because programs put them into headers and lines of text.
NAME_CONTROL_CHARS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
MAX_NAME_CHARS = 255
_ID = re.compile(r"[a-z0-9]{24}")


def _text(value: Any, path: KeyPath, faults: list[Fault]) -> str | None:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    if isinstance(value, str | int) and not CONTROL_CHARS.search(text):
        return text
    faults.append(Fault(path, "must be a string without control characters"))
    return None


def _point(value: Any, path: KeyPath, faults: list[Fault]) -> dict[str, Any] | None:
    # `x` and `y` are percentages of the image's width and height.
    if not isinstance(value, dict):
        faults.append(Fault(path, "must be an object with x and y"))
        return None
    invalid = [side for side in ("x", "y") if not _is_percent(value.get(side))]
    faults.extend(Fault((*path, side), "must be a number from 0 to 100") for side in invalid)
    return {side: value[side] for side in ("x", "y") if side not in invalid}


def _is_percent(value: Any) -> bool:
    number = float(value) if type(value) is Plain else value
    return isinstance(number, int | float) and not isinstance(number, bool) and 0 <= number <= 100


def _name(value: Any, path: KeyPath, faults: list[Fault]) -> str | None:
    text = _text(value, path, faults)
    if text is not None and len(text) > MAX_NAME_CHARS:
        faults.append(Fault(path, f"must be at most {MAX_NAME_CHARS} characters"))
    if text is not None and NAME_CONTROL_CHARS.search(text):
        faults.append(Fault(path, "must not contain line breaks or other control characters"))
    return text


def _folder(value: Any, path: KeyPath, faults: list[Fault]) -> str | None:
    # In Strapi, a folder has a number. Strapi's REST API ignores it, too.
    if not isinstance(value, str):
        return None
    folder = to_nfc(value.strip("/"))
    if folder and (len(folder) > MAX_NAME_CHARS or not is_media_name(folder)):
        faults.append(Fault(path, "must be the path of a folder, such as ships/2024"))
    return folder


def _document_id(value: Any, path: KeyPath, faults: list[Fault]) -> str | None:
    if isinstance(value, str) and _ID.fullmatch(value):
        return value
    faults.append(Fault(path, "must have 24 lower-case letters and digits"))
    return None


# Each function returns the parsed value, and appends faults to the list.
Reader = Callable[[Any, KeyPath, list[Fault]], Any]
INFO_READERS: Mapping[str, Reader] = {
    "name": _name,
    "alternativeText": _text,
    "caption": _text,
    "focalPoint": _point,
}
# Former values can be from a description file, which may contain any name.
_PREVIOUS_READERS = {**INFO_READERS, "name": _text}
NEW_FILE_READERS = {**INFO_READERS, "folder": _folder, "documentId": _document_id}


def read_previous(texts: Sequence[str]) -> dict[str, Any]:
    """Parse the form field `previous`, which contains a file's description before the client's edit.

    Raises ValidationError if the field is invalid.
    """
    if not texts:
        return {}
    faults: list[Fault] = []
    values = _info(_parse(texts[0], "previous"), _PREVIOUS_READERS, ("previous",), faults)
    if len(texts) > 1:
        faults.append(Fault(("previous",), "must be a single object"))
    if faults:
        raise error_of(faults)
    return values


def read_info(texts: Sequence[str], count: int, *, new: bool = False) -> list[dict[str, Any]]:
    """Parse the `fileInfo` form fields into a description for each of `count` files.

    If `new` is set, a description can also contain the file's folder and documentId. Raises ValidationError.
    """
    known = NEW_FILE_READERS if new else INFO_READERS
    if not texts:
        return [{} for _ in range(count)]
    descriptions = [_parse(text) for text in texts]
    if len(descriptions) == 1 and isinstance(descriptions[0], list):
        descriptions = descriptions[0]
    if (len(descriptions) == 1) != (count == 1):
        expected = "one description" if count == 1 else "a list with a description for each file"
        raise error_of([Fault(("fileInfo",), f"must be {expected}")])
    descriptions += [{} for _ in range(count - len(descriptions))]
    faults: list[Fault] = []
    paths: list[KeyPath] = [("fileInfo",) if count == 1 else ("fileInfo", i) for i in range(count)]
    infos = [_info(item, known, path, faults) for item, path in zip(descriptions, paths, strict=False)]
    if faults:
        raise error_of(faults)
    return infos


def _parse(text: str, name: str = "fileInfo") -> Any:
    try:
        return read_json(text)
    except SyntaxProblem as error:
        raise ValidationError(f'"{name}" can\'t be parsed: {error.message}') from error


def _info(item: Any, known: Mapping[str, Reader], path: KeyPath, faults: list[Fault]) -> dict[str, Any]:
    if not isinstance(item, dict):
        faults.append(Fault(path, "must be an object"))
        return {}
    if "folder" not in known and isinstance(item.get("folder"), str):
        faults.append(Fault((*path, "folder"), "can't be changed here; use POST /api/upload/files/ID/move"))
    readers = {key: (read, item[key]) for key, read in known.items() if key in item}
    return {
        key: None if value is None else read(value, (*path, key), faults)
        for key, (read, value) in readers.items()
    }
