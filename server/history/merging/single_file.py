"""Merge of a single document file for the git merge driver, which has no access to the commits."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from server.config.model import Settings
from server.documents.document import Document
from server.documents.path_rules import MARKDOWN
from server.documents.three_way_merge import TEXT_TYPES, MergeResult
from server.documents.values import empty_value, same_values
from server.errors import ApiError
from server.formats.edits import REMOVE
from server.formats.tree import SyntaxProblem
from server.history.merging.documents import ConflictDecisions, ThreeVersions, resolved_values, write_merged
from server.history.merging.other_keys import merge_other_keys
from server.history.merging.sides import SideVersion
from server.index.snapshot import Snapshot
from server.schema.model import BUILT_IN, Attribute, Schema, Type
from server.storage.changeset import Changeset
from server.storage.files import Signature, size_signature
from server.storage.git.merge_file import merge_text_with_conflicts
from server.storage.store import Store
from server.write.context import Context, Values, values_of

BODY = "body below the front matter"  # No key in a file has this name.


@dataclass(frozen=True, slots=True)
class Texts:
    """The content of a file on the three sides of a merge. `base` is empty if both sides added the file."""

    base: bytes
    ours: bytes
    theirs: bytes

    @property
    def existing(self) -> tuple[bytes, ...]:
        return (self.base, self.ours, self.theirs) if self.base else (self.ours, self.theirs)


@dataclass(frozen=True, slots=True)
class MergedFile:
    """The merged text of a file, and the names of the keys in conflict.

    If there are conflicts, the four texts differ only in the values of these keys: `text`, `theirs` and
    `base` contain the values from ours, theirs and base, and `common` omits everything that is in conflict.
    """

    text: str
    conflicts: tuple[str, ...] = ()
    theirs: str = ""
    base: str = ""
    common: str = ""


class _SingleFile:
    def __init__(self, path: str, data: bytes) -> None:
        self._path, self._data = path, data

    def signature(self, path: str) -> Signature | None:
        return size_signature(len(self._data)) if path == self._path else None

    def read(self, path: str) -> tuple[bytes, Signature]:
        if path != self._path:
            raise FileNotFoundError(path)
        return self._data, size_signature(len(self._data))

    def is_below_file(self, path: str) -> bool:
        return False

    def list_files(self, folders: Iterable[str]) -> Iterable[str]:
        return (self._path,)


def merge_file(store: Store, path: str, texts: Texts, now: str) -> MergedFile | None:
    """Merge the versions of a document file attribute by attribute. `now` is the new value of updatedAt.

    Returns None if the versions can't be merged in this way.
    """
    three = _three_versions(store, path, texts)
    if three is None:
        return None
    try:
        return _Merge(store, three, now).result()
    except (ApiError, SyntaxProblem):
        return None


def _three_versions(store: Store, path: str, texts: Texts) -> ThreeVersions | None:
    base, ours, theirs = (_version(store, path, data) for data in (texts.base, texts.ours, texts.theirs))
    if ours is None or theirs is None or (base is None and texts.base):
        return None
    keys = {
        (v.document.type.uid, v.document.document_id, v.document.locale) for v in (base, ours, theirs) if v
    }
    return ThreeVersions(base, ours, theirs) if len(keys) == 1 else None


def _version(store: Store, path: str, data: bytes) -> SideVersion | None:
    entry = store.parse_file(path, data, size_signature(len(data))) if data else None
    return SideVersion(entry.document, data) if entry and entry.document else None


# --- merge by keys --------------------------------------------------------------------------------


def store_without_attributes(store: Store, path: str) -> Store:
    """Return a store in which the file's content type has no attributes.

    With this store, the file is merged key by key.
    """
    body = {BODY: Attribute(BODY, "richtext")} if path.endswith(MARKDOWN) else {}
    uid = "api::document.document"
    type_ = Type(
        uid,
        "collectionType",
        "document",
        "documents",
        "Document",
        body,
        files=(path,),
        body=next(iter(body), None),
    )
    return Store(store.root, Schema({**BUILT_IN, uid: type_}), Settings(), store.timestamps)


# --- merge ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _ConflictValues:
    ours: Any
    theirs: Any
    base: Any
    common: Any


@dataclass(frozen=True, slots=True)
class _Merge:
    """The merge of one document."""

    store: Store
    versions: ThreeVersions
    now: str
    unresolved_paths: list[str] = field(default_factory=list)

    @property
    def path(self) -> str:
        return self.versions.some_document.path

    def result(self) -> MergedFile | None:
        merged, ours = self.versions.merged(), self.versions.ours
        assert ours
        assert merged.values is not None
        choices = self._choices(merged) if merged.conflicts else {}
        values = {**merged.values, **{name: choice.ours for name, choice in choices.items()}}
        # Attributes whose whole value is in conflict, as in `history.merging.plan`.
        settled = {str(conflict.path[0]) for conflict in merged.conflicts if len(conflict.path) < 2}
        decisions = ConflictDecisions(self._side_of, settled)
        text = write_merged(self._context(ours.data), self.versions, values, decisions)[self.path]
        document = self._document(text)
        if text is None or document is None:
            return None
        if not choices and not self.unresolved_paths:
            return MergedFile(text) if same_values(values_of(document), values) else None
        return self._with_conflicts(text, document, choices)

    def _side_of(self, path: str) -> str:
        self.unresolved_paths.append(path)
        return ""

    def _context(self, data: bytes) -> Context:
        store = self.store
        changeset = Changeset(store.root, _SingleFile(self.path, data))
        return Context(Snapshot(store.schema, {}), store.settings, store, changeset, self.now)

    def _document(self, text: str | None) -> Document | None:
        version = _version(self.store, self.path, text.encode()) if text is not None else None
        return version.document if version else None

    def _choices(self, merged: MergeResult) -> dict[str, _ConflictValues]:
        three = self.versions
        base, ours, theirs = three.values
        names = dict.fromkeys(str(conflict.path[0]) for conflict in merged.conflicts)
        one, two = (resolved_values(three, merged, dict.fromkeys(names, side)) for side in ("ours", "theirs"))
        assert ours is not None
        assert theirs is not None
        assert one is not None
        assert two is not None
        choices = {}
        for name in names:
            attribute = three.type.attributes[name]
            empty = empty_value(attribute)
            before = base[name] if base else empty
            choices[name] = _ConflictValues(one[name], two[name], before, empty)
            if attribute.type in TEXT_TYPES and None not in (before, ours[name], theirs[name]):
                lines = merge_text_with_conflicts(before, ours[name], theirs[name])
                if lines is not None:
                    choices[name] = _ConflictValues(lines.ours, lines.theirs, lines.base, lines.common)
        return choices

    def _with_conflicts(
        self, text: str, document: Document, choices: Mapping[str, _ConflictValues]
    ) -> MergedFile | None:
        three, context = self.versions, self._context(text.encode())
        assert three.ours
        assert three.theirs
        _, both = merge_other_keys(three.base, three.ours, three.theirs)
        old = self._context(three.base.data).tree(three.base.document) if three.base else {}

        def with_values(values: Values, trees: Mapping[str, Any]) -> str:
            changes = {**context.changed_keys(document, {**values_of(document), **values}), **trees}
            return context.text_with_changes(document, changes) if changes else text

        theirs = with_values({name: choice.theirs for name, choice in choices.items()}, both)
        base = with_values(
            {name: choice.base for name, choice in choices.items()},
            {key: old.get(key, REMOVE) for key in both},
        )
        common = with_values(
            {name: choice.common for name, choice in choices.items()}, dict.fromkeys(both, REMOVE)
        )
        names = tuple(dict.fromkeys((*choices, *both)))
        return MergedFile(text, names, theirs, base, common) if theirs != text else None
