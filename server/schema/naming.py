"""Names of types and documents: what generated descriptions call a type, and which attribute is a title."""

import re
from collections.abc import Iterable
from functools import lru_cache
from urllib.parse import quote

from server.schema.model import BUILT_IN, ROLE, UPLOAD, USER, Schema, Type

_BUILT_IN = {UPLOAD: "UploadFile", USER: "UsersPermissionsUser", ROLE: "UsersPermissionsRole"}
_WORD = re.compile(r"[A-Za-z0-9]+")

_TITLES = ("title", "name", "headline", "heading", "label")


@lru_cache(maxsize=1000)
def title_of(type_: Type) -> str | None:
    """The attribute that names a document: the one its uid is made from, or one that is called a title."""
    shown = {name: a for name, a in type_.attributes.items() if a.visible and a.type in ("string", "text")}
    targets = (a.target_field for a in type_.attributes.values() if a.type == "uid" and a.target_field)
    return next((name for name in (*targets, *_TITLES, *shown) if name in shown), None)


def key_of(type_: Type) -> str:
    """The name by which a type is asked for: `article`, `shared.seo`, `plugin::upload.file`."""
    return type_.uid if type_.kind == "component" or type_.uid in BUILT_IN else type_.singular


def type_names(schema: Schema, taken: Iterable[str], suffixes: Iterable[str]) -> dict[str, str]:
    """The name of every type by uid: `Article`, `SharedSeo`; another where that or, with one of the
    suffixes, a name made from it is taken.

    Content types choose first, each in the order of uids, so that a name changes only when it must.
    """
    suffixes = ("", *suffixes)
    used = {*taken, *(name + suffix for name in _BUILT_IN.values() for suffix in suffixes)}
    names = dict(_BUILT_IN)
    for type_ in sorted(schema.types.values(), key=lambda t: (t.kind == "component", t.uid)):
        if type_.uid not in names:
            names[type_.uid] = _free(_pascal(key_of(type_)), used, suffixes)
            used.update(names[type_.uid] + suffix for suffix in suffixes)
    return names


def _pascal(text: str) -> str:
    words = "".join(word[0].upper() + word[1:] for word in _WORD.findall(text))
    return words if words[:1].isalpha() else f"Type{words}"


def _free(name: str, used: set[str], suffixes: tuple[str, ...]) -> str:
    candidates = (name, f"{name}Type", *(f"{name}Type{i}" for i in range(2, 1000)))
    return next(c for c in candidates if not any(c + suffix in used for suffix in suffixes))


# --- cache tags -----------------------------------------------------------------------------------

SITE = "_site"  # the tag of every answer; no API id has an underscore
MOST_BYTES = 4096  # of the header, which may not be much larger for proxies to take it


def type_tag(uid: str) -> str:
    """The tag of everything of a content type: its singular API id, `upload` for media files."""
    return "upload" if uid == UPLOAD else uid.rpartition(".")[2]


def document_tag(uid: str, document_id: str) -> str:
    """The tag of one document in all its locales, as draft and published: `article:ID`.

    The id is as in a URL, since a header can't have every character, and commas and spaces separate tags.
    """
    return f"{type_tag(uid)}:{quote(document_id, safe='')}"


def header_value(tags: Iterable[str]) -> str:
    """The tags of an answer and SITE, with commas between; those of types alone where all are above 4 kB.

    A document whose type is there as well is left out, since each change of it has the tag of its type.
    """
    known = {*tags, SITE}
    value = _joined({tag for tag in known if ":" not in tag or _type_of(tag) not in known})
    return value if len(value) <= MOST_BYTES else _joined({_type_of(tag) for tag in known})


def _type_of(tag: str) -> str:
    return tag.partition(":")[0]


def _joined(tags: Iterable[str]) -> str:
    return ", ".join(sorted(tags))
