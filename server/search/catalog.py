"""Catalog of the searchable document versions, by content type and locale."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from server.documents.document import DRAFT, PUBLISHED, Document
from server.schema.model import Type
from server.site.site import State

_SEPARATOR = "\0"


@dataclass(frozen=True, slots=True)
class VersionGroup:
    """Group of versions of one content type, in one locale, that are found by requests for the same statuses.

    A published version without a separate draft is found by requests for either status.
    """

    uid: str
    locale: str
    statuses: frozenset[str]

    @classmethod
    def parse(cls, text: str) -> "VersionGroup":
        uid, locale, statuses = text.split(_SEPARATOR)
        return cls(uid, locale, frozenset(statuses.split()))

    def __str__(self) -> str:
        return _SEPARATOR.join((self.uid, self.locale, " ".join(sorted(self.statuses))))


@dataclass(frozen=True, slots=True)
class IndexedVersion:
    """A searchable version of a document, with its group."""

    document: Document
    group: VersionGroup


@dataclass(frozen=True, slots=True)
class LocaleVersions:
    """The searchable versions of one content type in one locale, by documentId.

    `drafts` contains only drafts that are stored separately from the published version. `lists` contains the
    snapshot's lists of published versions and drafts, which are compared to detect changes.
    """

    lists: tuple[object, object]
    published: dict[str, Document]
    drafts: dict[str, Document]


Catalog = dict[tuple[str, str], LocaleVersions]  # by content type and locale


def catalog(state: State, previous: Catalog) -> Catalog:
    """Return all searchable versions. Unchanged entries of `previous` are reused."""
    found: Catalog = {}
    for type_ in state.schema.content_types:
        locales = state.settings.locales.available if type_.localized else (state.settings.locales.default,)
        for locale in locales:
            key = (type_.uid, locale)
            lists = (
                state.snapshot.list(type_, locale, PUBLISHED),
                state.snapshot.list(type_, locale, DRAFT),
            )
            same = previous.get(key)
            if same and same.lists[0] is lists[0] and same.lists[1] is lists[1]:
                found[key] = same
                continue
            published = {d.document_id: d for d in lists[0]}
            drafts = {}
            for document in lists[1] if type_.draft_publish else ():
                live = published.get(document.document_id)
                if live is None or live.path != document.path:
                    drafts[document.document_id] = document
            found[key] = LocaleVersions(lists, published, drafts)
    return found


def size(catalog: Catalog) -> int:
    return sum(len(some.published) + len(some.drafts) for some in catalog.values())


_NO_VERSIONS = LocaleVersions((None, None), {}, {})


def versions(catalog: Catalog, types: Mapping[str, Type]) -> Iterator[IndexedVersion]:
    for version in changes({}, catalog, types).values():
        assert version is not None
        yield version


def changes(previous: Catalog, after: Catalog, types: Mapping[str, Type]) -> dict[str, IndexedVersion | None]:
    """Return the versions that differ between two catalogs, by index key. Removed versions are None."""
    found: dict[str, IndexedVersion | None] = {}
    for key in previous.keys() | after.keys():
        old, new = previous.get(key, _NO_VERSIONS), after.get(key, _NO_VERSIONS)
        if old is not new:
            found.update(_changes(key, old, new, types.get(key[0])))
    return found


def _changes(
    key: tuple[str, str], old: LocaleVersions, new: LocaleVersions, type_: Type | None
) -> Iterator[tuple[str, IndexedVersion | None]]:
    # When a draft is created or deleted, the published version moves to a different group.
    uid, locale = key
    drafts = type_ is not None and type_.draft_publish
    live, draft, both = (
        VersionGroup(uid, locale, frozenset(s)) for s in ((PUBLISHED,), (DRAFT,), (PUBLISHED, DRAFT))
    )
    for earlier, later, status in (
        (old.published, new.published, PUBLISHED),
        (old.drafts, new.drafts, DRAFT),
    ):
        for i in earlier.keys() - later.keys():
            yield _SEPARATOR.join((uid, i, locale, status)), None
        for i, document in later.items():
            other = earlier.get(i)
            beside = i in new.drafts
            if other is None or not other.has_row_of(document) or beside != (i in old.drafts):
                group = draft if status == DRAFT else live if drafts and beside else both
                yield _SEPARATOR.join((uid, i, locale, status)), IndexedVersion(document, group)


def document_of(key: str, state: State) -> Document | None:
    uid, document_id, locale, status = key.split(_SEPARATOR)
    type_ = state.schema.types.get(uid)
    if type_ is None or uid not in state.snapshot.tables:
        return None
    return state.snapshot.get(type_, document_id, locale, status)
