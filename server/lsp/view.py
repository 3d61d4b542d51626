"""Immutable view of a site and of the texts that are open in the editor."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from server.config.model import Settings
from server.documents.document import DRAFT, PUBLISHED, Document
from server.documents.path_rules import Layout, PathClaim
from server.documents.readers import InvalidValue, read_target
from server.formats.regular_files import read_regular_file
from server.formats.text_positions import KeyPath
from server.formats.tree import Plain, is_null
from server.index.dangling import MEDIA, Key, key_of
from server.index.snapshot import Snapshot
from server.lsp.flow import Node
from server.lsp.keys import scan_nodes
from server.lsp.positions import Text, uri_of
from server.lsp.titles import Titles
from server.schema.model import Attribute, Schema, Type
from server.site.check.unsaved import UnsavedSite, decode_lossy
from server.storage.read import MAX_FILE_BYTES


@dataclass(frozen=True, slots=True)
class EditorCapabilities:
    """Optional features that the editor supports."""

    snippets: bool = False
    creates_files: bool = False
    renames_files: bool = False
    shows_documents: bool = False
    nests_symbols: bool = True


@dataclass(frozen=True, eq=False)
class View:
    """A site, and the texts that are open in the editor, by path."""

    overlay: UnsavedSite
    texts: Mapping[str, Text]
    titles: Titles = field(default_factory=Titles)
    client: EditorCapabilities = EditorCapabilities()

    @property
    def root(self) -> Path:
        return self.overlay.saved.root

    @property
    def snapshot(self) -> Snapshot:
        return self.overlay.snapshot

    @property
    def schema(self) -> Schema:
        return self.overlay.saved.schema

    @property
    def settings(self) -> Settings:
        return self.overlay.saved.settings

    @cached_property
    def layout(self) -> Layout:
        return Layout(self.schema, self.settings)

    def text(self, path: str) -> Text | None:
        """Return the text of a file, including unsaved edits, or None if it can't be read."""
        if path in self.texts:
            return self.texts[path]
        try:
            return Text(decode_lossy(read_regular_file(self.root / path, MAX_FILE_BYTES)))
        except OSError:
            return None

    def uri(self, path: str) -> str:
        return uri_of(self.root / path)

    def source(self, path: str) -> "Source | None":
        claim, text = self.layout.claim(path), self.text(path)
        if claim is None or text is None:
            return None
        return Source(self.schema, path, claim, text)

    def find(self, key: Key, locale: str = "") -> Document | None:
        """Return the media file or document with a key, or None if it does not exist.

        For a document, return the version in `locale` if there is one.
        """
        uid, document_id = key
        if uid == MEDIA:
            return self.snapshot.media.get(document_id)
        table = self.snapshot.tables.get(uid)
        if table is None:
            return None
        locales = dict.fromkeys((locale, *self.settings.locales.available, *(at for at, _ in table.order)))
        found = (
            table.versions.get((document_id, at, status)) for at in locales for status in (PUBLISHED, DRAFT)
        )
        return next((document for document in found if document is not None), None)


@dataclass(frozen=True, eq=False)
class Source:
    """A document file: its content type, text and keys."""

    schema: Schema
    path: str
    claim: PathClaim
    text: Text

    @cached_property
    def nodes(self) -> list[Node]:
        return scan_nodes(self.path, self.text.value)

    @cached_property
    def by_path(self) -> Mapping[KeyPath, Node]:
        return {node.path: node for node in self.nodes}

    def value(self, path: KeyPath) -> str:
        node = self.by_path.get(path)
        return self.text.value[slice(*node.value)] if node and node.value else ""

    def type_at(self, path: KeyPath) -> Type | None:
        type_: Type | None = self.claim.type
        attribute: Attribute | None = None
        for end, key in enumerate(path, start=1):
            if isinstance(key, str):
                attribute = type_.attributes.get(key) if type_ else None
                type_ = self.schema.types.get(attribute.component or "") if attribute else None
            elif attribute is not None and attribute.type == "dynamiczone":
                type_ = self.schema.types.get(self.value((*path[:end], "__component")))
        return type_

    def attribute_at(self, path: KeyPath) -> Attribute | None:
        while path and isinstance(path[-1], int):
            path = path[:-1]
        type_ = self.type_at(path[:-1]) if path else None
        return type_.attributes.get(str(path[-1])) if type_ else None

    def target_at(self, path: KeyPath) -> tuple[Attribute, Key] | None:
        """Return the attribute at a path, and the key of the document or media file that its value refers to.

        Return None if there is no reference at the path.
        """
        attribute, text = self.attribute_at(path), self.value(path)
        tree: object = Plain(text)
        if attribute is None and path and path[-1] == "documentId":  # {__type: …, documentId: …}
            attribute = self.attribute_at(path[:-1])
            tree = {"documentId": Plain(text), "__type": Plain(self.value((*path[:-1], "__type")))}
        if attribute is None or not attribute.has_targets or attribute.derived or is_null(Plain(text)):
            return None
        try:
            return attribute, key_of(attribute, read_target(tree, attribute))
        except InvalidValue:
            return None

    def node_at(self, index: int) -> Node | None:
        found = None
        for node in self.nodes:
            begin, end = node.key
            if (node.value and node.value[0] <= index <= node.value[1]) or begin <= index <= end:
                found = node
        return found

    @property
    def document_id(self) -> str:
        return self.value(("documentId",)) or self.claim.document_id
