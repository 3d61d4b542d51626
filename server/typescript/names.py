"""Names in TypeScript: of the type of a content type, and of properties; texts of comments."""

import json
import re
from collections.abc import Iterable

from server.schema import BUILT_IN, ROLE, UPLOAD, USER, Schema, Type

_BUILT_IN = {UPLOAD: "UploadFile", USER: "UsersPermissionsUser", ROLE: "UsersPermissionsRole"}
_WORD = re.compile(r"[A-Za-z0-9]+")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# What the generated text itself needs of the language.
_GLOBALS = frozenset(
    {"Array", "Date", "Exclude", "Extract", "NonNullable", "Omit", "Partial", "Pick", "Promise"}
    | {"Any", "Boolean", "Never", "Number", "Object", "String", "Symbol", "Undefined", "Unknown"}
)
SUFFIXES = ("", "Links", "Input")


def key_of(type_: Type) -> str:
    """The name by which a type is asked for: `article`, `shared.seo`, `plugin::upload.file`."""
    return type_.uid if type_.kind == "component" or type_.uid in BUILT_IN else type_.singular


def type_names(schema: Schema, taken: Iterable[str]) -> dict[str, str]:
    """The TypeScript name of every type by uid: `Article`, `SharedSeo`; another where that is taken.

    Content types choose first, each in the order of uids, so that a name changes only when it must.
    """
    used = {*taken, *_GLOBALS, *(n + s for n in _BUILT_IN.values() for s in SUFFIXES)}
    names = dict(_BUILT_IN)
    for type_ in sorted(schema.types.values(), key=lambda t: (t.kind == "component", t.uid)):
        if type_.uid not in names:
            names[type_.uid] = _free(_pascal(key_of(type_)), used)
            used.update(names[type_.uid] + suffix for suffix in SUFFIXES)
    return names


def _pascal(text: str) -> str:
    words = "".join(word[0].upper() + word[1:] for word in _WORD.findall(text))
    return words if words[:1].isalpha() else f"Type{words}"


def _free(name: str, used: set[str]) -> str:
    candidates = (name, f"{name}Type", *(f"{name}Type{i}" for i in range(2, 1000)))
    return next(c for c in candidates if not any(c + suffix in used for suffix in SUFFIXES))


def text(value: str) -> str:
    """A string literal."""
    return json.dumps(value, ensure_ascii=False).replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def union(values: Iterable[str]) -> str:
    """A union of string literals; `never` of none."""
    return " | ".join(text(value) for value in values) or "never"


def prop(name: str) -> str:
    """A property's name, in quotes where it needs them."""
    return name if _IDENTIFIER.fullmatch(name) else text(name)


def comment(sentences: Iterable[str], indent: str = "") -> str:
    """A doc comment of one line, or nothing."""
    line = " ".join(" ".join(sentence.split()) for sentence in sentences if sentence.strip())
    closed = line.replace("*/", "*\\/")
    return f"{indent}/** {closed} */\n" if line else ""
