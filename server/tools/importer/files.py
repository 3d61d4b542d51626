"""Writer of imported documents."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from slugify import slugify

from server.documents.document import DRAFT, Document
from server.documents.encode import Reading, read_attributes
from server.documents.file_keys import collect_other_keys
from server.documents.timestamps import now
from server.errors import ConflictError
from server.formats.tree import SyntaxProblem
from server.index.snapshot import empty
from server.paths import UPLOADS
from server.storage.document_text import new_text
from server.storage.files import walk
from server.storage.git.times import CommitTimes
from server.storage.read import MAX_FILE_BYTES, parse
from server.storage.store import Store
from server.tools.importer.documents import TargetVersion, target_versions
from server.tools.importer.merge import Merge
from server.tools.importer.record import digest_of
from server.tools.importer.schemas import SiteModel
from server.tools.importer.source import ImportNotes, ReportProgress, Source
from server.write.context import Context, values_of
from server.write.new_file import unused_path
from server.write.request import Address

_TITLE_NAMES = ("title", "name", "label", "headline")  # attributes that can provide a file name
_MAX_NAME_CHARS = 80  # maximum length of a file name that comes from these attributes

Existing = Mapping[tuple[str, str], Mapping[tuple[str, bool], Document]]


def merge_documents(
    merge: Merge, source: Source, site_model: SiteModel, report_progress: ReportProgress
) -> None:
    """Merge the imported documents into the site.

    Files of document versions that the source no longer contains are removed.
    """
    store = Store(merge.root, site_model.schema, site_model.settings, CommitTimes().timestamps)
    existing = _existing_versions(store)
    context = Context(empty(site_model.schema), site_model.settings, store, merge.changeset, now())
    documents = _DocumentMerge(merge, context, site_model, source.notes)
    groups = list(target_versions(source, site_model.schema, site_model.settings, source.notes))
    for done, group in enumerate(groups):
        report_progress("Documents", done, len(groups))
        key = (group[0].type.uid, group[0].document_id)
        documents.document(group, existing.get(key, {}))


def _existing_versions(store: Store) -> Existing:
    found: dict[tuple[str, str], dict[tuple[str, bool], Document]] = {}
    for path in sorted(walk(store.root, store.layout.roots).files):
        if path.startswith(f"{UPLOADS}/") or not store.claimed(path):
            continue
        entry = store.read(path)
        document = entry.document if entry else None
        if document:
            versions = found.setdefault((document.type.uid, document.document_id), {})
            versions.setdefault((document.locale, document.status == DRAFT), document)
    return found


@dataclass(frozen=True, slots=True)
class _DocumentMerge:
    merge: Merge
    context: Context
    site_model: SiteModel
    notes: ImportNotes
    new_texts: dict[str, str] = field(default_factory=dict)  # the new texts of files, by path

    def document(self, group: list[TargetVersion], existing: Mapping[tuple[str, bool], Document]) -> None:
        self.merge.outcome_counts(group[0].type.uid).document_count += 1
        base = next(iter(existing.values())).path if existing else None
        merged = set()
        for version in group:
            found = existing.get((version.locale, version.draft))
            path = found.path if found else self._new_path(version, base)
            base = base or path
            merged.add(path)
            self._merge(version, path, found)
        for document in existing.values():
            if document.path not in merged:
                self.merge.remove(document.path)

    def _new_path(self, version: TargetVersion, base: str | None) -> str:
        # If the file's format can't represent a value, such as a control character, use a JSON file instead.
        if base:
            path = self.context.sibling(base, draft=version.draft, locale=version.locale)
        else:
            address = Address(version.type, version.document_id, version.locale, version.draft)
            values = dict(version.values)
            path = unused_path(self.context, address, version.document_id, values, _title_of(values))
        claim = self.context.layout.claim(path)
        text = self.new_texts[path] = self._text(version, path)
        has_values = self._has_values(path, text, version)
        if claim and not version.type.files and not has_values:
            path = self.context.layout.path_of(claim, ".json")
            text = self.new_texts[path] = self._text(version, path)
            has_values = self._has_values(path, text, version)
        if not has_values:
            self.notes.add(
                version.type.uid, f"the file format of {path} can't represent all values of the document"
            )
        return path

    def _merge(self, version: TargetVersion, path: str, document: Document | None) -> None:
        provided = {name: tree for name, tree in version.trees().items() if name in version.provided}

        def new() -> str:
            return self.new_texts.pop(path)

        def changed(old: str) -> str:
            if document is None:
                raise ConflictError("contains a different document")
            return self._change_file(version, document, old)

        self.merge.merge_text(
            version.type.uid, path, digest_of({**provided, **version.timestamps}), new, changed
        )

    def _text(self, version: TargetVersion, path: str) -> str:
        claim = self.context.layout.claim(path)
        named = claim is not None and claim.document_id == version.document_id
        own = {} if named else {"documentId": version.document_id}
        type_, trees = version.type, {**version.trees(), **own, **version.timestamps}
        return new_text(path, type_.body, trees, type_.front_matter)

    def _change_file(self, version: TargetVersion, document: Document, old: str) -> str:
        values = values_of(document)
        provided = {name: value for name, value in version.values.items() if name in version.provided}
        changes = self.context.changed_keys(document, {**values, **provided})
        changes |= {name: at for name, at in version.timestamps.items() if document.get(name) != at}
        return self.context.text_with_changes(document, changes) if changes else old

    def _has_values(self, path: str, text: str, version: TargetVersion) -> bool:
        if "\0" in text or len(text.encode()) > MAX_FILE_BYTES:
            return False  # The store would reject such a file.
        try:
            tree = collect_other_keys(version.type, parse(path, text, version.type.body))
        except SyntaxProblem:
            return False
        read = read_attributes(version.type, tree, (), Reading(self.site_model.schema.types, ""))
        pairs = zip(version.type.attributes.values(), read, strict=True)
        return all(a.derived or value == version.values[a.name] for a, value in pairs)


def _title_of(values: Mapping[str, Any]) -> str:
    # Used for content types without a uid attribute.
    title = next((values[name] for name in _TITLE_NAMES if isinstance(values.get(name), str)), "")
    return slugify(title, max_length=_MAX_NAME_CHARS, word_boundary=True)
