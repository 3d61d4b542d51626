"""Relations and media that point to nothing: they read as absent, and are problems of their files."""

from collections.abc import Callable, Iterator
from typing import Any

from server.documents import PUBLISHED, Document
from server.index import Snapshot
from server.problems import Problem
from server.schema import Attribute, Type
from server.spelling import suggestion
from server.values import Component, Path

LineOf = Callable[[str, Path], int | None]


def dangling(snapshot: Snapshot, line_of: LineOf) -> Iterator[Problem]:
    """A warning for each target, in any file, that no document or media file has.

    `line_of` tells the line of a path of keys in a file.
    """
    known = {uid: {key[0] for key in table.versions} for uid, table in snapshot.tables.items()}
    for table in snapshot.tables.values():
        for document in table.versions.values():
            if document.status != PUBLISHED and _is_copy(snapshot, document):
                continue
            for attribute, path, target in _targets(document.type, document.row[2:-4], ()):
                if not _exists(snapshot, known, attribute, target):
                    what, mend = _sentences(snapshot, known, attribute, path, target)
                    line = line_of(document.path, path)
                    yield Problem(document.path, line, what, mend, "warning")


def _is_copy(snapshot: Snapshot, draft: Document) -> bool:
    """Whether a draft is the published file seen as a draft, which is looked at once."""
    live = snapshot.get(draft.type, draft.document_id, draft.locale, PUBLISHED)
    return live is not None and live.path == draft.path


def _targets(type_: Type, values: Any, path: Path) -> Iterator[tuple[Attribute, Path, Any]]:
    for attribute, value in zip(type_.attributes.values(), values, strict=True):
        if not value:
            continue
        at = (*path, attribute.name)
        if attribute.type in ("relation", "media"):
            for target in value:
                yield attribute, at, target
        elif isinstance(value, Component):
            yield from _targets(value.type, value.row[1:], at)
        elif attribute.type in ("component", "dynamiczone"):
            for i, component in enumerate(value):
                yield from _targets(component.type, component.row[1:], (*at, i))


def _exists(snapshot: Snapshot, known: dict[str, set[str]], attribute: Attribute, target: Any) -> bool:
    if attribute.type == "media":
        return target in snapshot.media
    uid, document_id = target if isinstance(target, tuple) else (attribute.target or "", target)
    # A type that is not in the index (users, other plugins) can't be looked into.
    return uid not in known or uid.startswith("plugin::users") or document_id in known[uid]


def _sentences(
    snapshot: Snapshot, known: dict[str, set[str]], attribute: Attribute, path: Path, target: Any
) -> tuple[str, str]:
    """What is wrong with a target, and how to mend it."""
    name = ".".join(map(str, path))
    if attribute.type == "media":
        mend = suggestion(target, snapshot.media) or "add the file, or remove the path"
        return f"{name}: there is no content/uploads/{target}", mend
    uid, document_id = target if isinstance(target, tuple) else (attribute.target or "", target)
    mend = suggestion(document_id, known.get(uid, ())) or "mend the id, or remove it"
    return f'{name}: there is no document "{document_id}" of {uid}', mend
