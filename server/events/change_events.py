"""Events for changes to documents, media files and content types."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from hashlib import blake2b

from server.documents.document import DRAFT, PUBLISHED, Document
from server.documents.values import Component, components_in, is_empty, same_values
from server.events.model import Event, Key
from server.history.past import PastStates
from server.schema.model import PLACEHOLDER, UPLOAD, Attribute, Schema
from server.storage.entry import Entry
from server.storage.media import SIDECAR_SUFFIX, upload_path

# --- versions -------------------------------------------------------------------------------------

# Fields of media files that are computed after the upload. Changes to them are ignored.
DERIVED_FIELDS = ("formats", PLACEHOLDER)


class UnknownVersion(Enum):
    """Marker for a document version whose values are unknown."""

    VERSION = "unknown"


Version = Document | UnknownVersion | None


@dataclass(frozen=True, slots=True)
class Versions:
    """The draft and published version of a document in one locale. A version that does not exist is None."""

    published: Version = None
    draft: Version = None

    @property
    def latest(self) -> Version:
        return self.published if self.draft is None else self.draft


def key_of(document: Document) -> Key:
    return Key(document.type.uid, document.document_id, document.locale)


def versions_by_key(file_versions: Iterable[tuple[Key, str, Version]]) -> dict[Key, Versions]:
    """Group (key, status, version) triples by key.

    If a key has more than one version with the same status, the first one is used.
    """
    by_key: dict[Key, Versions] = {}
    for key, status, version in file_versions:
        versions = by_key.get(key, Versions())
        if status == DRAFT and versions.draft is None:
            by_key[key] = replace(versions, draft=version)
        elif status == PUBLISHED and versions.published is None:
            by_key[key] = replace(versions, published=version)
    return by_key


def events_between(key: Key, before: Versions, after: Versions) -> Iterator[Event]:
    """Yield, in order, the events for a document that changed from `before` to `after`."""
    if key.uid == UPLOAD:
        yield from _media_events(key, before, after)
        return
    published = _difference(before.published, after.published)
    # True if neither `before` nor `after` contains a draft.
    same = before.latest is before.published and after.latest is after.published
    edited = published if same else _difference(before.latest, after.latest)
    if after.latest is None:
        if before.latest is not None:
            if _may_have_drafts(before.published):
                yield _event(key, "public.unpublish", PUBLISHED, _Difference(()))
            yield _event(key, "entry.delete", _status(before), _Difference(()))
        return
    if before.latest is None and after.published is not None and published:
        yield _event(key, "entry.create", PUBLISHED, published)
    elif edited:
        visible = after.published is not None and published and _is_within(edited, published)
        kind = "entry.update" if before.latest is not None else "entry.create"
        yield _event(key, kind, PUBLISHED if visible else DRAFT, edited)
    if published:
        yield from _publication_events(key, before, after, published)


def _publication_events(
    key: Key, before: Versions, after: Versions, published: "_Difference"
) -> Iterator[Event]:
    if after.published is None:
        yield _event(key, "entry.unpublish", PUBLISHED, published)
        yield _event(key, "public.delete", PUBLISHED, published)
    elif _has_drafts(after.published):
        if before.published is None and before.latest is not None:
            yield _event(key, "public.create", PUBLISHED, published)
        yield _event(key, "entry.publish", PUBLISHED, published)


def _media_events(key: Key, before: Versions, after: Versions) -> Iterator[Event]:
    difference = _difference(before.published, after.published)
    if difference:
        verb = "delete" if after.published is None else "update" if before.published else "create"
        yield Event(f"media.{verb}", key.uid, key.document_id, changed=difference.changed)


@dataclass(frozen=True, slots=True)
class _Difference:
    """The visible attributes that differ between two versions.

    - `changed`: the names of these attributes, or None if they are unknown
    - `hidden`: whether only private attributes differ
    - `links`: the attributes in which only relations differ, each with the uids of its target types
    """

    changed: tuple[str, ...] | None
    hidden: bool = False
    links: tuple[tuple[str, tuple[str, ...]], ...] = ()


def _is_within(edited: _Difference, published: _Difference) -> bool:
    if edited.changed is None or published.changed is None:
        return edited.changed == published.changed
    return set(edited.changed) <= set(published.changed)


def _difference(before: Version, after: Version) -> _Difference | None:
    if before is after:
        return None
    if after is None:
        return _Difference(())
    if before is UnknownVersion.VERSION or after is UnknownVersion.VERSION:
        return _Difference(None)
    assert isinstance(after, Document)
    old = _values(before) if isinstance(before, Document) else {}
    new = _values(after)
    former = before.type.attributes if isinstance(before, Document) else {}
    attributes = {**former, **after.type.attributes}  # removed attributes are only in the old schema
    changed = [name for name in attributes if not same_values(old.get(name), new.get(name))]
    if before is not None and not changed:
        return None
    shown = tuple(
        name
        for name in changed
        if _is_shown(former.get(name, attributes[name]))
        and _differs_visibly(attributes[name], old.get(name), new.get(name))
    )
    links = ((n, _changed_links(attributes[n], old.get(n), new.get(n))) for n in shown)
    return _Difference(
        shown, hidden=before is not None and not shown, links=tuple((n, uids) for n, uids in links if uids)
    )


def _values(document: Document) -> dict[str, object]:
    pairs = zip(document.type.attributes, document.values, strict=True)
    derived = DERIVED_FIELDS if document.type.uid == UPLOAD else ()
    return {name: value for name, value in pairs if not is_empty(value) and name not in derived}


def _is_shown(attribute: Attribute) -> bool:
    return not attribute.private and attribute.type != "password"


def _differs_visibly(attribute: Attribute, old: object, new: object) -> bool:
    if not _is_shown(attribute) or not attribute.holds_components:
        return _is_shown(attribute)
    return not same_values(_shown_components(old), _shown_components(new))


def _shown_components(value: object) -> tuple[object, ...]:
    return tuple((one.type.uid, *_shown_values(one)) for one in components_in(value))


def _shown_values(component: Component) -> Iterator[object]:
    for attribute, value in _shown_pairs(component):
        yield _shown_components(value) if attribute.holds_components else value


def _shown_pairs(component: Component) -> Iterator[tuple[Attribute, object]]:
    for attribute, value in zip(component.type.attributes.values(), component.values, strict=True):
        if _is_shown(attribute):
            yield attribute, value


def _changed_links(attribute: Attribute, old: object, new: object) -> tuple[str, ...]:
    # The result is () unless the values differ only in relations.
    if attribute.holds_components and not same_values(_without_links(old), _without_links(new)):
        return ()
    before, after = (dict(_links(attribute, value)) for value in (old, new))
    return tuple(sorted(uid for uid in before.keys() | after.keys() if before.get(uid) != after.get(uid)))


def _without_links(value: object) -> tuple[object, ...]:
    return tuple(
        (
            one.type.uid,
            *(
                _without_links(inner) if attribute.holds_components else inner
                for attribute, inner in _shown_pairs(one)
                if attribute.type != "relation"
            ),
        )
        for one in components_in(value)
    )


def _links(attribute: Attribute, value: object) -> dict[str, list[object]]:
    found: dict[str, list[object]] = {}
    if attribute.type == "relation" and isinstance(value, tuple):
        for target in value:
            uid = target[0] if isinstance(target, tuple) else attribute.target or ""
            found.setdefault(uid, []).append(target)
    elif attribute.holds_components:
        for place, one in enumerate(components_in(value)):
            for inner, held in _shown_pairs(one):
                for uid, targets in _links(inner, held).items():
                    found.setdefault(uid, []).append((place, inner.name, targets))
    return found


def _has_drafts(version: Version) -> bool:
    return isinstance(version, Document) and version.type.draft_publish


def _may_have_drafts(version: Version) -> bool:
    return version is UnknownVersion.VERSION or _has_drafts(version)


def _status(versions: Versions) -> str:
    return DRAFT if versions.published is None else PUBLISHED


def _event(key: Key, kind: str, status: str, difference: _Difference) -> Event:
    hidden = difference.hidden
    return Event(
        kind,
        key.uid,
        key.document_id,
        key.locale,
        status,
        difference.changed,
        hidden=hidden,
        links=difference.links,
    )


# --- shapes ---------------------------------------------------------------------------------------


def shapes_of(schema: Schema) -> dict[str, str]:
    types = ((uid, type_) for uid, type_ in schema.types.items() if type_.path and uid != UPLOAD)
    return {uid: digest(repr(type_.raw)).hex() for uid, type_ in types}


def schema_events(before: Mapping[str, str], after: Mapping[str, str], schema: Schema) -> Iterator[Event]:
    for uid in sorted(before.keys() | after.keys()):
        if before.get(uid) != after.get(uid):
            type_ = schema.types.get(uid)
            yield Event("schema.update", uid, paths=(type_.path,) if type_ else ())


def digest(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


# --- comparison -----------------------------------------------------------------------------------

Documents = Mapping[str, Document]


def events_since(past_states: PastStates, commit: str) -> list[Event]:
    """Return events for all changes since a commit. These events have no numbers and no times.

    Raises ConflictError if the configuration in the commit is invalid.
    """
    before = past_states.at(commit)
    _, configuration, committed, entries = past_states.site.basis()
    old, new = _documents(before.known.entries), _documents(entries)
    touched: dict[Key, set[str]] = defaultdict(set)
    changed = past_states.changed_between(commit)
    changed |= {path.removesuffix(SIDECAR_SUFFIX) for path in changed if upload_path(path)}
    # the description files beside these media files may have changed
    changed |= {path for path, entry in entries.items() if entry.beside}
    for path in changed:
        if path in new or path not in entries:  # the values of invalid files are unknown
            for document in filter(None, (old.get(path), new.get(path))):
                touched[key_of(document)].add(path)
    then, now = _versions(old, touched), _versions(new, touched)
    shapes = shapes_of(before.configuration.schema), shapes_of(configuration.schema)
    events = list(schema_events(*shapes, configuration.schema))
    for key in sorted(touched):
        paths = tuple(sorted(touched[key]))
        source = "file" if any(path in committed.changed for path in paths) else "git"
        found = events_between(key, then.get(key, Versions()), now.get(key, Versions()))
        events.extend(replace(event, paths=paths, source=source) for event in found)
    return events


def _documents(entries: Mapping[str, Entry]) -> dict[str, Document]:
    return {path: entry.document for path, entry in entries.items() if entry.document}


def _versions(documents: Documents, keys: Mapping[Key, object]) -> dict[Key, Versions]:
    def found() -> Iterator[tuple[Key, str, Version]]:
        for _, document in sorted(documents.items()):
            if (key := key_of(document)) in keys:
                yield key, document.status, document

    return versions_by_key(found())
