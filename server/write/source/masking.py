"""The text of a document's file with its passwords masked: their hashes are shown to nobody.

The number in a mask says which password of the file it stands for, in their order. So a text that is sent
back can leave each one as it is, and two texts of one file differ where one of its passwords does.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from server.formats.edits import REMOVE
from server.formats.scalars import is_null
from server.formats.tree import Plain, Tree
from server.schema.model import Schema, Type
from server.storage.document_text import changed_text
from server.storage.read import parse
from server.write.context import unreadable

# A hash that stands where the schema knows no password: in a comment, or in an attribute that is gone.
_HASH = re.compile(r"\$(?:argon2(?:i|d|id)|2[abxy])\$[A-Za-z0-9+/=,.$]+")
_STRAY = "(hidden)"
_NEW = Plain("(hidden anew)")
_SHORTEST = 8  # characters of a password that is masked wherever it stands


@dataclass(frozen=True, slots=True)
class Masked:
    """A text as it may be shown, and the passwords that its masks stand for, in their order."""

    text: str
    passwords: tuple[str, ...] = ()
    strays: bool = False  # whether there are hashes where the schema knows no password

    @property
    def version(self) -> str:
        """What changes whenever the text does: the first part of its entity tag."""
        return blake2b(self.text.encode(errors="surrogatepass"), digest_size=16).hexdigest()


def mask_of(number: int) -> Plain:
    """What stands for a password of a file, counted from 0."""
    return Plain(f"(hidden {number + 1})")


def masked(schema: Schema, type_: Type, path: str, text: str, earlier: Sequence[str] = ()) -> Masked:
    """The text of a file of a type with masks in place of passwords; of a later one, those `earlier` had.

    Raises ConflictError for a text that can't be read and may hold a password.
    """
    if not has_passwords(schema, type_):
        return _without_strays(text, ())
    found: list[str] = []

    def mask(tree: Tree) -> Plain:
        found.append(str(tree))
        if not earlier:
            return mask_of(len(found) - 1)
        return mask_of(earlier.index(str(tree))) if tree in earlier else _NEW

    with unreadable(path):
        tree = parse(path, text, type_.body)
    shown = changed_text(path, text, type_.body, masked_values(schema, type_, tree, mask))
    return _without_strays(shown, tuple(found))


def _without_strays(text: str, passwords: tuple[str, ...]) -> Masked:
    """A text that has masks already, without hashes and known passwords in other places."""
    shown = text
    for password in passwords:
        if len(password) >= _SHORTEST:
            shown = shown.replace(password, _STRAY)
    shown = without_hashes(shown)
    return Masked(shown, passwords, strays=shown != text)


def without_hashes(text: str) -> str:
    """A text of which nothing else is known, with a mask in place of each hash of a password."""
    return _HASH.sub(_STRAY, text)


def has_passwords(schema: Schema, type_: Type) -> bool:
    """Whether documents of a type have passwords, be it in components."""
    waiting, seen = [type_], {type_.uid}
    while waiting:
        for attribute in waiting.pop().attributes.values():
            if attribute.type == "password":
                return True
            inner = {uid for uid in (attribute.component, *attribute.components) if uid} - seen
            seen |= inner
            waiting += [schema.types[uid] for uid in sorted(inner)]
    return False


def masked_values(
    schema: Schema, type_: Type, tree: Mapping[str, Tree], mask: Callable[[Tree], Any]
) -> dict[str, Any]:
    """The attributes of a file that hold passwords, by name, with what `mask` makes of each password.

    They come in the order of the schema. A password for which it gives REMOVE is left out of its component.
    """
    found = {}
    for name, attribute in type_.attributes.items():
        value = tree.get(name)
        if is_null(value):
            continue
        if attribute.type == "password":
            found[name] = mask(value)
        elif attribute.holds_components:
            items = value if isinstance(value, list) else [value]
            made = [_component(schema, attribute.component, item, mask) for item in items]
            if made != items:
                found[name] = made if isinstance(value, list) else made[0]
    return found


def _component(schema: Schema, uid: str | None, tree: Tree, mask: Callable[[Tree], Any]) -> Any:
    """A component with its passwords masked; what is none stays."""
    if not isinstance(tree, dict):
        return tree
    type_ = schema.types.get(str(uid or tree.get("__component")))
    if type_ is None:
        return tree
    values = {**tree, **masked_values(schema, type_, tree, mask)}
    return {key: value for key, value in values.items() if value is not REMOVE}
