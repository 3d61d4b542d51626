"""Merging documents: finding the changed documents, and writing the merged files."""

from collections.abc import Callable, Container, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

from server.documents.document import Document
from server.documents.three_way_merge import Conflict, MergeResult, merge
from server.documents.values import components_in, same_values
from server.errors import ConflictError
from server.formats.edits import REMOVE
from server.history.merging.other_keys import changes_other_keys, merge_other_keys
from server.history.merging.sides import FileSides, SideVersion, read_files
from server.schema.model import FILE_FIELDS, Attribute, Schema, Type
from server.storage.changeset import Changeset
from server.storage.files import is_ignored, is_utf_8, size_signature
from server.storage.git.merge_file import merge_text_with_conflicts
from server.storage.git.repository import GitFile
from server.storage.git.tree import merge_text
from server.storage.media import upload_path
from server.storage.store import Store
from server.write.context import Context, Values, values_of
from server.write.write_timestamps import timestamps_of_merge

Changes = dict[str, Any]  # maps a key to its new value, or to REMOVE
Key = tuple[str, str, str, str]  # uid of the content type, documentId, locale, status


@dataclass(frozen=True, slots=True)
class ThreeVersions:
    """A document version on the three sides of a merge. A side is None if it lacks the version."""

    base: SideVersion | None
    ours: SideVersion | None
    theirs: SideVersion | None

    @property
    def some_document(self) -> Document:
        # the first side on which the document exists
        side = self.theirs or self.ours or self.base
        assert side
        return side.document

    @property
    def paths(self) -> set[str]:
        return {side.path for side in (self.base, self.ours, self.theirs) if side}

    @property
    def values(self) -> tuple[Values | None, Values | None, Values | None]:
        sides = (self.base, self.ours, self.theirs)
        base, ours, theirs = (values_of(side.document) if side else None for side in sides)
        return base, ours, theirs

    @property
    def action(self) -> str:
        """The merge's effect on the document: "create", "update", "delete", or "" if nothing changes."""
        if self.theirs is None:
            return "delete" if self.ours else ""
        if self.ours is None:
            return "create"
        same = (self.ours.path, self.ours.data) == (self.theirs.path, self.theirs.data)
        return "" if same else "update"

    def merged(self) -> MergeResult:
        # `merge` resolves conflicts with the values of the last version, which is theirs.
        return merge(self.type, *self.values, merge_text)

    def merged_for_ours(self) -> MergeResult:
        # `merge` resolves conflicts with the values of the last version, which is ours.
        base, ours, theirs = self.values
        return merge(self.type, base, theirs, ours, merge_text)

    @property
    def type(self) -> Type:
        return self.some_document.type


@dataclass(frozen=True, slots=True)
class ConflictDecisions:
    """Decisions about conflicts, used to merge the keys that are not attributes.

    `side_of` returns the side that was chosen for a file, or "". `resolved_attributes` contains the
    attributes whose whole value was in conflict.
    """

    side_of: Callable[[str], str]
    resolved_attributes: Set[str]


def version_name(key: Key, type_: Type) -> str:
    """Return the name of a document version in the API, such as `article/hello/en/draft`."""
    _, document_id, locale, status = key
    return "/".join((type_.singular, document_id, locale, *(["draft"] if status == "draft" else [])))


def read_changed_documents(store: Store, files: Mapping[str, FileSides]) -> dict[Key, ThreeVersions]:
    """Return the document versions in the files that the side `theirs` has changed.

    A file is skipped if it can't be parsed on one of the sides.
    """
    claimed = {p: file for p, file in files.items() if _is_document(store, p)}
    read = read_files(store.root, [s for f in claimed.values() for s in (f.base, f.ours, f.theirs)])
    sides: list[dict[Key, SideVersion]] = [{}, {}, {}]
    for path, file in claimed.items():
        for side, staged in zip(sides, (file.base, file.ours, file.theirs), strict=True):
            if version := _version(store, path, staged, read):
                side.setdefault(_key(version.document), version)
    base, ours, theirs = sides
    _drop_unreadable(claimed, sides)
    changed = {p for p, file in claimed.items() if file.theirs != file.base}
    keys = {key: None for side in (base, theirs) for key, v in side.items() if v.path in changed}
    return {key: ThreeVersions(base.get(key), ours.get(key), theirs.get(key)) for key in keys}


def _drop_unreadable(files: Mapping[str, FileSides], sides: Sequence[dict[Key, SideVersion]]) -> None:
    # Otherwise, a document would be treated as deleted on the side where its file can't be parsed.
    read = [{version.path for version in side.values()} for side in sides]
    broken = {
        path
        for path, file in files.items()
        for staged, readable_paths in zip((file.base, file.ours, file.theirs), read, strict=True)
        if staged and path not in readable_paths
    }
    for side in sides:
        for key in [key for key, version in side.items() if version.path in broken]:
            del side[key]


def _is_document(store: Store, path: str) -> bool:
    names = path.split("/")
    return (
        is_utf_8(path) and not any(map(is_ignored, names)) and not upload_path(path) and store.claimed(path)
    )


def _version(
    store: Store, path: str, staged: GitFile | None, read: Mapping[str, bytes]
) -> SideVersion | None:
    data = read.get(staged.id) if staged else None
    entry = store.parse_file(path, data, size_signature(len(data))) if data is not None else None
    return SideVersion(entry.document, data) if entry and entry.document and data is not None else None


def _key(document: Document) -> Key:
    return document.type.uid, document.document_id, document.locale, document.status


def resolved_values(
    versions: ThreeVersions, merged: MergeResult, choices: Mapping[str, str]
) -> Values | None:
    """Return the merged values of a document, or None if the merge deletes the document.

    `choices` maps the attributes in conflict to the chosen sides.
    """
    if any(not conflict.path for conflict in merged.conflicts):
        side = versions.ours if choices[""] == "ours" else versions.theirs
        return values_of(side.document) if side else None
    assert merged.values is not None
    values, (_, ours, theirs) = dict(merged.values), versions.values
    assert ours is not None
    assert theirs is not None
    whole = {str(c.path[0]) for c in merged.conflicts if _is_whole(c)}
    for name in whole:
        values[name] = (ours if choices.get(name) == "ours" else theirs)[name]
    inner = {name for name, side in choices.items() if side == "ours"} - whole
    if inner:
        other = versions.merged_for_ours().values or values
        values.update({name: other[name] for name in inner})
    return values


def require_hashed_passwords(
    key: Key, versions: ThreeVersions, values: Values, theirs: Schema, new_values: Container[str] = ()
) -> None:
    """Raise ConflictError if the merge would copy a plain-text password from the branch.

    This can happen if the attribute is not a password in the branch's schema, `theirs`. Attributes in
    `new_values` are not checked.
    """
    before = values_of(versions.ours.document) if versions.ours else {}
    for name, attribute in versions.type.attributes.items():
        value = values[name]
        if name in new_values or same_values(value, before.get(name)):
            continue
        if _has_plain_password(versions.type, attribute, value, theirs):
            raise ConflictError(
                f'"{name}" of {version_name(key, versions.type)} contains a password, which the branch '
                "stores as plain text; remove it there, and set it after the merge"
            )


def _has_plain_password(type_: Type, attribute: Attribute, value: Any, theirs: Schema) -> bool:
    if attribute.holds_components:
        return any(
            _has_plain_password(component.type, inner, value, theirs)
            for component in components_in(value)
            for inner, value in zip(component.type.attributes.values(), component.values, strict=True)
        )
    if attribute.type != "password" or value is None:
        return False
    their_type = theirs.types.get(type_.uid)
    their_attribute = their_type.attributes.get(attribute.name) if their_type else None
    return their_attribute is None or their_attribute.type != "password"


def _is_whole(conflict: Conflict) -> bool:
    # To resolve such a conflict, the attribute's whole value is taken from the chosen side.
    return len(conflict.path) == 1 or isinstance(conflict.path[-1], int)


def write_merged(
    context: Context, versions: ThreeVersions, values: Values | None, decisions: ConflictDecisions
) -> dict[str, str | None]:
    """Return the files to write for a document version, as a mapping from path to new text.

    The text is None if the file must be deleted.
    """
    base, ours, theirs = versions.base, versions.ours, versions.theirs
    if values is None:
        is_kept = not decisions.resolved_attributes and _is_kept(versions, decisions)
        if ours:
            return {} if is_kept else {ours.path: None}
        return {theirs.path: theirs.data.decode()} if is_kept and theirs else {}
    if ours is None:
        assert theirs is not None
        return {theirs.path: theirs.data.decode()}
    moved = theirs is not None and base is not None and base.path == ours.path != theirs.path
    path = theirs.path if moved and theirs else ours.path
    text = _text(context, versions, values, path, decisions)
    return {path: text, **({ours.path: None} if moved else {})}


def _is_kept(three: ThreeVersions, decisions: ConflictDecisions) -> bool:
    # True if one side deleted the version, the other changed keys that are not attributes, and the request
    # chose the changed side.
    remaining, side = (three.ours, "ours") if three.ours else (three.theirs, "theirs")
    if not remaining or not three.base or not changes_other_keys(three.base, remaining):
        return False
    return decisions.side_of(remaining.path) == side


def _text(
    context: Context, three: ThreeVersions, values: Values, path: str, decisions: ConflictDecisions
) -> str:
    base, ours, theirs = three.base, three.ours, three.theirs
    assert ours is not None
    if theirs and base and base.data == ours.data and same_values(values, values_of(theirs.document)):
        return theirs.data.decode()
    current = context.changeset.text(ours.path)
    if theirs and base:
        lines = merge_text(base.data.decode(), current, theirs.data.decode())
        if lines is not None and _has_values(context, path, lines, three, values):
            return lines
    if theirs and _suffix(path) != _suffix(ours.path):
        raise ConflictError(
            f"{ours.path} was renamed to {path} on one side, and its content was changed on both sides"
        )
    if (
        theirs
        and base
        and (text := _edit_merged_lines(context, three, values, current, decisions)) is not None
    ):
        return text
    changes = context.changed_keys(ours.document, values)
    if theirs:
        changes = _add_other_keys(changes, values, (base, ours, theirs), decisions)
    if not changes:
        return current
    changes = {**changes, **timestamps_of_merge(context.now, context.tree(ours.document))}
    return context.text_with_changes(ours.document, changes)


def _edit_merged_lines(
    context: Context, versions: ThreeVersions, values: Values, current: str, decisions: ConflictDecisions
) -> str | None:
    base, ours, theirs = versions.base, versions.ours, versions.theirs
    assert base
    assert ours
    assert theirs
    merged = merge_text_with_conflicts(base.data.decode(), current, theirs.data.decode())
    text = merged.ours if merged else current
    entry = context.store.parse_file(ours.path, text.encode(), size_signature(len(text)))
    document = entry.document if entry else None
    if text == current or document is None or _key(document)[:3] != _key(ours.document)[:3]:
        return None
    changeset = Changeset(context.store.root)
    changeset.put(ours.path, text)
    lines = replace(context, changeset=changeset)
    if merge_other_keys(base, ours, theirs)[1]:  # The lines could mix the two values of a key in conflict.
        return None
    changes = _add_other_keys(lines.changed_keys(document, values), values, (base, ours, theirs), decisions)
    changes = {**changes, **timestamps_of_merge(context.now, lines.tree(document))}
    try:
        made = lines.text_with_changes(document, changes)
    except ConflictError:
        return None
    if not _has_values(context, ours.path, made, versions, values):
        return None
    return made if _has_other_keys(context, made, (base, ours, theirs)) else None


def _has_other_keys(context: Context, text: str, sides: tuple[SideVersion, SideVersion, SideVersion]) -> bool:
    # The merged lines can lack a key that is not an attribute, for example if one side has a line above the
    # front matter.
    base, ours, theirs = sides
    entry = context.store.parse_file(ours.path, text.encode(), size_signature(len(text)))
    if entry is None or entry.document is None:
        return False
    made = SideVersion(entry.document, text.encode())
    missing = {key for side in (ours, theirs) for keys in merge_other_keys(base, made, side) for key in keys}
    return missing <= set(FILE_FIELDS)


def _add_other_keys(
    changes: Changes,
    values: Values,
    sides: tuple[SideVersion | None, SideVersion, SideVersion],
    decisions: ConflictDecisions,
) -> Changes:
    base, ours, theirs = sides
    others, both = merge_other_keys(base, ours, theirs)
    their_values, undecided = values_of(theirs.document), both.keys() - decisions.resolved_attributes
    accepted = {name for name in both.keys() - undecided if same_values(values[name], their_values[name])}
    if undecided and decisions.side_of(ours.path) == "theirs":
        accepted |= undecided
    own_changes = {key: tree for key, tree in changes.items() if key not in undecided}
    others |= {key: both[key] for key in accepted}
    removed = {key: REMOVE for key, tree in others.items() if tree is REMOVE}
    kept = {key: tree for key, tree in others.items() if tree is not REMOVE}
    return {**removed, **own_changes, **kept}


def _has_values(context: Context, path: str, text: str, three: ThreeVersions, values: Values) -> bool:
    entry = context.store.parse_file(path, text.encode(), size_signature(len(text)))
    document = entry.document if entry else None
    same = document is not None and _key(document) == _key(three.some_document)
    return same and document is not None and same_values(values_of(document), values)


def _suffix(path: str) -> str:
    return path.rpartition(".")[2]
