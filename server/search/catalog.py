"""Which versions of a site's documents are searched, and under which keys the index has them.

A published document whose draft is the same is one version that both statuses show; a draft that
differs is another. Versions that are found by the same permissions form a group.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from server.documents.document import DRAFT, PUBLISHED, Document
from server.schema.model import Type
from server.site.site import State

_PART = "\0"


@dataclass(frozen=True, slots=True)
class Group:
    """What decides who finds a version: its type, its locale, the statuses that show it."""

    uid: str
    locale: str
    statuses: frozenset[str]

    @classmethod
    def parse(cls, text: str) -> "Group":
        """The group that a text of `str(group)` stands for."""
        uid, locale, statuses = text.split(_PART)
        return cls(uid, locale, frozenset(statuses.split()))

    def __str__(self) -> str:
        return _PART.join((self.uid, self.locale, " ".join(sorted(self.statuses))))


@dataclass(frozen=True, slots=True)
class Version:
    """One version to be searched."""

    document: Document
    group: Group


@dataclass(frozen=True, slots=True)
class Shelf:
    """The versions of a type in a locale: what is published, and the drafts that differ from it."""

    lists: tuple[object, object]
    published: dict[str, Document]
    drafts: dict[str, Document]


Catalog = dict[tuple[str, str], Shelf]  # by type and locale


def catalog(state: State, before: Catalog) -> Catalog:
    """Every version that is searched; what has not changed is the same as `before`."""
    found: Catalog = {}
    for type_ in state.schema.content_types:
        locales = state.settings.locales if type_.localized else (state.settings.default_locale,)
        for locale in locales:
            place = (type_.uid, locale)
            lists = (
                state.snapshot.list(type_, locale, PUBLISHED),
                state.snapshot.list(type_, locale, DRAFT),
            )
            same = before.get(place)
            if same and same.lists[0] is lists[0] and same.lists[1] is lists[1]:
                found[place] = same
                continue
            published = {d.document_id: d for d in lists[0]}
            drafts = {}
            for document in lists[1] if type_.draft_publish else ():
                live = published.get(document.document_id)
                if live is None or live.path != document.path:
                    drafts[document.document_id] = document
            found[place] = Shelf(lists, published, drafts)
    return found


def size(found: Catalog) -> int:
    """How many versions there are."""
    return sum(len(shelf.published) + len(shelf.drafts) for shelf in found.values())


_EMPTY = Shelf((None, None), {}, {})


def versions(found: Catalog, types: Mapping[str, Type]) -> Iterator[Version]:
    """All versions, type by type."""
    for version in changes({}, found, types).values():
        assert version is not None
        yield version


def changes(before: Catalog, after: Catalog, types: Mapping[str, Type]) -> dict[str, Version | None]:
    """What came or changed between two catalogs, by key; None for what went."""
    found: dict[str, Version | None] = {}
    for place in before.keys() | after.keys():
        old, new = before.get(place, _EMPTY), after.get(place, _EMPTY)
        if old is not new:
            found.update(_changes(place, old, new, types.get(place[0])))
    return found


def _changes(
    place: tuple[str, str], old: Shelf, new: Shelf, type_: Type | None
) -> Iterator[tuple[str, Version | None]]:
    uid, locale = place
    drafts = type_ is not None and type_.draft_publish
    live, draft, both = (
        Group(uid, locale, frozenset(s)) for s in ((PUBLISHED,), (DRAFT,), (PUBLISHED, DRAFT))
    )
    for held, now, status in ((old.published, new.published, PUBLISHED), (old.drafts, new.drafts, DRAFT)):
        for i in held.keys() - now.keys():
            yield _PART.join((uid, i, locale, status)), None
        for i, document in now.items():
            other = held.get(i)
            beside = i in new.drafts
            if other is None or other.row is not document.row or beside != (i in old.drafts):
                group = draft if status == DRAFT else live if drafts and beside else both
                yield _PART.join((uid, i, locale, status)), Version(document, group)


def document_of(key: str, state: State) -> Document | None:
    """The document of a key, if it is still there."""
    uid, document_id, locale, status = key.split(_PART)
    type_ = state.schema.types.get(uid)
    if type_ is None or uid not in state.snapshot.tables:
        return None
    return state.snapshot.get(type_, document_id, locale, status)
