"""Merge conflicts: reporting and resolving them."""

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from server.auth.draft_visibility import may_read_drafts
from server.auth.permissions import may_find
from server.documents.document import DRAFT
from server.documents.three_way_merge import Conflict, MergeResult
from server.documents.values import empty_value, same_values
from server.errors import MergeConflictError, ValidationError
from server.history.differences import value_json
from server.history.merging.documents import Key, ThreeVersions
from server.history.titles import title_for
from server.history.viewer import Viewer
from server.schema.spelling import suggestion
from server.write.readable import ReadAccess

MAX_REPORTED = 100  # limit for documents, and separately for files
MAX_VALUE_CHARS = 2000  # Longer values are truncated.
SIDES = ("ours", "theirs")
_EXAMPLE = '{"documents": {"article/night-ferry/en": {"title": "ours"}}, "files": {"site.yaml": "theirs"}}'


@dataclass(frozen=True, slots=True)
class Resolution:
    """A request's choices for resolving conflicts, by document name and by file path.

    A choice is a side ("ours" or "theirs"). For a document, it can also map each attribute to a side or to
    `{"value": …}`.
    """

    documents: Mapping[str, str | Mapping[str, Any]] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)


def read_resolution(body: Any) -> Resolution:
    """Parse the `resolve` field of a request body. Raises ValidationError if it is malformed."""
    if body is None:
        return Resolution()
    if not isinstance(body, dict) or not body.keys() <= {"documents", "files"}:
        raise ValidationError(f'"resolve" must look like {_EXAMPLE}')
    documents, files = body.get("documents", {}), body.get("files", {})
    if not isinstance(documents, dict) or not isinstance(files, dict):
        raise ValidationError(f'"resolve" must look like {_EXAMPLE}')
    for name, choice in documents.items():
        if isinstance(choice, dict):
            for attribute, attribute_choice in choice.items():
                if not _is_value(attribute_choice):
                    _require_side(attribute_choice, f"{name}, {attribute}", ' or {"value": …}')
        else:
            _require_side(choice, name, " or an object with a choice for each attribute")
    for path, side in files.items():
        _require_side(side, path)
    return Resolution(documents, files)


def _is_value(choice: Any) -> bool:
    return isinstance(choice, dict) and choice.keys() == {"value"}


def _require_side(side: Any, subject: str, otherwise: str = "") -> None:
    if side not in SIDES:
        raise ValidationError(
            f'The choice for {subject[:100]} in "resolve" must be "ours" or "theirs"{otherwise}'
        )


def add_hidden_conflicts(merged: MergeResult, versions: ThreeVersions, access: ReadAccess) -> MergeResult:
    """Add a conflict for each attribute that both sides have changed and that the actor may not read.

    Without the conflict, the actor could guess a hidden value and learn from the merge whether the guess is
    correct.
    """
    base, ours, theirs = versions.values
    if ours is None or theirs is None:
        return merged
    attributes = versions.type.attributes
    before = base or {name: empty_value(attribute) for name, attribute in attributes.items()}
    added = [
        Conflict((name,), before[name], ours[name], theirs[name])
        for name in attributes
        if not attributes[name].derived
        and not any(same_values(before[name], side[name]) for side in (ours, theirs))
        and not access.covers(versions.type, [name])
    ]
    names = {conflict.path[0] for conflict in added}
    kept = (conflict for conflict in merged.conflicts if conflict.path[0] not in names)
    return replace(merged, conflicts=(*kept, *added))


@dataclass(slots=True)
class ConflictCollector:
    """Collector of the conflicts in a merge.

    `documents` and `files` contain the unresolved conflicts. `known` and `known_files` contain all conflicts,
    including those that the request resolves.
    """

    resolution: Resolution
    documents: dict[Key, tuple[str, ThreeVersions, tuple[Conflict, ...]]] = field(default_factory=dict)
    files: set[str] = field(default_factory=set)
    known: set[tuple[str, str]] = field(default_factory=set)
    known_files: set[str] = field(default_factory=set)

    def side_of_file(self, path: str) -> str:
        # If the request makes no choice, record the conflict.
        self.known_files.add(path)
        side = self.resolution.files.get(path, "")
        if not side:
            self.files.add(path)
        return side

    def choices(
        self, key: Key, name: str, versions: ThreeVersions, conflicts: Iterable[Conflict]
    ) -> tuple[dict[str, str], dict[str, Any]] | None:
        """Return, by attribute, the sides and the new values that the request chooses for a document.

        If a conflict is unresolved, record it and return None.
        """
        conflicts = tuple(conflicts)
        names = dict.fromkeys(str(c.path[0]) if c.path else "" for c in conflicts)
        self.known |= {(name, attribute) for attribute in names}
        choice = self.resolution.documents.get(name, {})
        if isinstance(choice, str):
            return dict.fromkeys(names, choice), {}
        unresolved = tuple(c for c in conflicts if not c.path or c.path[0] not in choice)
        if unresolved:
            self.documents[key] = name, versions, unresolved
            return None
        sides = {n: choice[n] for n in names if not _is_value(choice[n])}
        return sides, {n: choice[n]["value"] for n in names if _is_value(choice[n])}

    def require_known(self) -> None:
        """Raise ValidationError if the request resolves a conflict that does not exist."""
        known = {name for name, _ in self.known}
        for name, choice in self.resolution.documents.items():
            if name not in known:
                raise _unknown(name, known)
            for attribute in choice if isinstance(choice, Mapping) else ():
                if (name, attribute) not in self.known:
                    raise _unknown(attribute, {a for n, a in self.known if n == name and a}, f" of {name}")
        for path in self.resolution.files.keys() - self.known_files:
            raise _unknown(path, self.known_files)

    def require_none(self, viewer: Viewer) -> None:
        """Raise MergeConflictError if there are unresolved conflicts.

        The error lists the conflicts, but only with values that the viewer may see.
        """
        if not self.documents and not self.files:
            return
        reported = [
            _conflict_json(*conflict, viewer) for conflict in list(self.documents.values())[:MAX_REPORTED]
        ]
        details = {
            "conflicts": reported,
            "files": sorted(self.files)[:MAX_REPORTED],
            "total": len(self.documents) + len(self.files),
        }
        raise MergeConflictError(details=details)


def _unknown(name: str, known: Collection[str], kind: str = "") -> ValidationError:
    hint = suggestion(name[:100], sorted(known))
    return ValidationError(
        f'"resolve" contains "{name[:100]}"{kind}, which has no conflict' + (f"; {hint}" if hint else "")
    )


def _conflict_json(
    name: str, three: ThreeVersions, conflicts: Iterable[Conflict], viewer: Viewer
) -> dict[str, Any]:
    document, row = three.some_document, dict[str, Any]()
    row = {
        "document": name,
        "type": document.type.singular,
        "documentId": document.document_id,
        "title": title_for(viewer, document),
        "locale": document.locale,
        "status": document.status,
        "files": sorted(three.paths),
    }
    if three.ours is None or three.theirs is None:
        return {**row, "deleted": "ours" if three.ours is None else "theirs"}
    paths: dict[str, list[list[str]]] = {}
    for conflict in conflicts:
        paths.setdefault(str(conflict.path[0]), []).append([str(part) for part in conflict.path])
    show = _value_reader(three, viewer)
    return {
        **row,
        "attributes": {name: {"paths": paths_inside, **show(name)} for name, paths_inside in paths.items()},
    }


def _value_reader(versions: ThreeVersions, viewer: Viewer) -> Callable[[str], dict[str, Any]]:
    type_, sides = versions.type, versions.values
    is_readable = may_find(viewer.actor, type_.uid)
    if versions.some_document.status == DRAFT:
        is_readable = is_readable and may_read_drafts(viewer.actor, type_)

    def show(name: str) -> dict[str, Any]:
        attribute = type_.attributes[name]
        if not is_readable or not viewer.sees(type_, attribute):
            return {}
        values = {
            side: value_json(attribute, values[name], viewer) if values else None
            for side, values in zip(("base", *SIDES), sides, strict=True)
        }
        short = {side: _short(value) for side, value in values.items()}
        return short if short == values else {**short, "cut": True}

    return show


def _short(value: Any) -> Any:
    if isinstance(value, str):
        return value if len(value) <= MAX_VALUE_CHARS else f"{value[:MAX_VALUE_CHARS]}…"
    return value if len(json.dumps(value, default=str)) <= MAX_VALUE_CHARS else None
