"""Edits that clients make to a document between reading it and sending it back."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

# A path (such as `parts.0.label`), a verb and a value. The verbs are `set`, `append`, `drop` (the first item)
# and `reverse`.
Edit = Sequence[Any]


def edited(value: Any, edit: Mapping[str, Any]) -> Any:
    """Return a copy of a part of a response, with the changes in `edit`.

    - `without` lists keys to remove.
    - `plain` removes the ids of components.
    - `edits` lists changes. Changes in places that do not exist are ignored.
    """
    made = deepcopy(value)
    if edit.get("plain"):
        made = _without_numbers(made)
    if isinstance(made, dict):
        made = {key: value for key, value in made.items() if key not in edit.get("without", ())}
    for path, verb, value in edit.get("edits", ()):
        _edit(made, path.split("."), verb, value)
    return made


def _without_numbers(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_numbers(item) for item in value]
    if not isinstance(value, dict):
        return value
    own = "documentId" in value
    return {key: _without_numbers(item) for key, item in value.items() if own or key != "id"}


def _edit(made: Any, path: Sequence[str], verb: str, value: Any) -> None:
    *above, last = path
    for part in above:
        made = _inside(made, part)
    if verb == "set":
        if isinstance(made, dict) and last in made:
            made[last] = value
        return
    items = _inside(made, last)
    if not isinstance(items, list):
        return
    if verb == "append":
        items.append(value)
    elif verb == "drop":
        del items[:1]
    else:
        items.reverse()


def _inside(value: Any, part: str) -> Any:
    if isinstance(value, dict):
        return value.get(part)
    return value[int(part)] if isinstance(value, list) and part.isdigit() and int(part) < len(value) else None
