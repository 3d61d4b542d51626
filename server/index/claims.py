"""Files' claims to contain a document version. Several files can claim the same version."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from immutables import Map

from server.documents.document import DRAFT, PUBLISHED, Document
from server.index.type_table import Table, VersionKey
from server.schema.model import Type


def is_indexed(type_: Type, status: str) -> bool:
    """Return True if a content type's table contains versions with this status.

    It contains drafts only if the content type has the option `draftAndPublish`.
    """
    return status == PUBLISHED or type_.draft_publish


@dataclass(frozen=True, slots=True)
class Claims(Mapping[VersionKey, tuple[Document, ...]]):
    """For each version, the documents whose files claim to contain it. The one with the first path is served.

    Nearly every version is claimed by a single file, and is read from `tables`. `others` contains the rest:
    versions that several files claim, and drafts of content types without `draftAndPublish`.
    """

    # Storing all versions would need 28 MB of memory for 150,000 documents.

    tables: Mapping[str, Table] = field(default_factory=dict)
    others: Map[VersionKey, tuple[Document, ...]] = field(default_factory=Map)

    def __getitem__(self, key: VersionKey) -> tuple[Document, ...]:
        documents = self.others.get(key)
        if documents is not None:
            return documents
        uid, *version = key
        table = self.tables.get(uid)
        document = table and table.versions.get((version[0], version[1], version[2]))
        if not (table and document) or _is_published_version(table, document):
            raise KeyError(key)
        return (document,)

    def __iter__(self) -> Iterator[VersionKey]:
        yield from self.others
        for uid, table in self.tables.items():
            for (document_id, locale, status), document in table.versions.items():
                key = (uid, document_id, locale, status)
                if key not in self.others and not _is_published_version(table, document):
                    yield key

    def __len__(self) -> int:
        return sum(1 for _ in self)

    @property
    def duplicate_keys(self) -> tuple[VersionKey, ...]:
        return tuple(key for key, documents in self.others.items() if len(documents) > 1)

    def with_changes(
        self, tables: Mapping[str, Table], changed: Mapping[VersionKey, tuple[Document, ...]]
    ) -> "Claims":
        """Return a copy with new tables. `changed` contains the documents that now claim each changed
        version.
        """
        others = self.others.mutate()
        for key, documents in changed.items():
            if len(documents) > 1 or (documents and not is_indexed(documents[0].type, key[3])):
                others[key] = documents
            else:
                others.pop(key, None)
        return Claims(tables, others.finish())


def _is_published_version(table: Table, document: Document) -> bool:
    """Return True if a draft has no file of its own, and is only a copy of the published version."""
    if document.status != DRAFT:
        return False
    published = table.versions.get((document.document_id, document.locale, PUBLISHED))
    return published is not None and published.path == document.path
