"""Titles of all documents, for the completion of relations."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from threading import Lock

from server.documents.document import PUBLISHED, Document, column_of
from server.index.snapshot import Snapshot
from server.index.type_table import Table, difference
from server.schema.model import ACCOUNT_UIDS, UPLOAD, Type, title_of

MAX_TITLE_CHARS = 120


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """A document's id, and its titles by locale. `folded` is the case-folded text that is searched."""

    document_id: str
    titles: Mapping[str, str]
    folded: str

    def title_in(self, locale: str) -> str:
        return self.titles.get(locale) or next(filter(None, self.titles.values()), "")


class Titles:
    """Thread-safe cache of document titles by content type.

    After a change, only the titles of the changed documents are read again.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._known: dict[str, tuple[Table, dict[str, Entry]]] = {}

    def titles_of(self, snapshot: Snapshot, uid: str) -> Mapping[str, Entry]:
        table, type_ = snapshot.tables.get(uid), snapshot.schema.types.get(uid)
        if table is None or type_ is None or uid in (*ACCOUNT_UIDS, UPLOAD):
            return {}
        with self._lock:
            known = self._known.get(uid)
            if known is None or known[0] is not table:
                self._known[uid] = known = table, _updated(type_, table, known)
            return known[1]

    def warm(self, snapshot: Snapshot) -> None:
        for type_ in snapshot.schema.content_types:
            self.titles_of(snapshot, type_.uid)


def _updated(type_: Type, table: Table, known: tuple[Table, dict[str, Entry]] | None) -> dict[str, Entry]:
    if known is None or not _is_same_type(known[0], type_):
        return dict(sorted(_read(type_, table.versions.values()).items()))
    removed, added = difference(known[0], table)
    touched = {document.document_id for document in (*removed, *added)}
    versions = (table.versions.get((i, *at)) for i in touched for at in table.order)
    found = _read(type_, (document for document in versions if document is not None))
    is_sorted = found.keys() <= known[1].keys()
    entries = {**known[1], **found}
    for document_id in touched - found.keys():
        entries.pop(document_id, None)
    return entries if is_sorted else dict(sorted(entries.items()))


def _is_same_type(table: Table, type_: Type) -> bool:
    return next((document.type is type_ for document in table.versions.values()), True)


def _read(type_: Type, documents: Iterable[Document]) -> dict[str, Entry]:
    # Sorted, because the order of a table's documents depends on the order in which they were read.
    found = sorted(documents, key=lambda document: (document.locale, document.status != PUBLISHED))
    name = title_of(type_)
    values = column_of(found, type_.position[name]) if name else [None] * len(found)
    titles: dict[str, dict[str, str]] = {}
    for document, value in zip(found, values, strict=True):
        title = " ".join(str(value or "").split())[:MAX_TITLE_CHARS]
        titles.setdefault(document.document_id, {}).setdefault(document.locale, title)
    return {document_id: _entry(document_id, by_locale) for document_id, by_locale in titles.items()}


def _entry(document_id: str, titles: Mapping[str, str]) -> Entry:
    return Entry(document_id, titles, " ".join(dict.fromkeys((document_id, *titles.values()))).casefold())
