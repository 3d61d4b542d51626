"""What has changed since a commit, as events: its state compared with the one now, however old it is."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace

from server.documents.document import Document
from server.events.model import Event, Key
from server.events.shapes import schema_events, shapes_of
from server.events.versions import Version, Versions, events_between, key_of, versions_by_key
from server.history.past import PastStates
from server.storage.media import DESCRIPTION, upload_path
from server.storage.store import Entry

Documents = Mapping[str, Document]


def events_since(past: PastStates, commit: str) -> list[Event]:
    """The events that lead from the state at a commit to the one now, without numbers and times.

    Of a file that is broken now nothing is said.
    Raises ConflictError where the configuration at the commit is broken.
    """
    before = past.at(commit)
    _, configuration, committed, entries = past.site.basis()
    old, new = _documents(before.known.entries), _documents(entries)
    touched: dict[Key, set[str]] = defaultdict(set)
    changed = past.changed_between(commit)
    changed |= {path.removesuffix(DESCRIPTION) for path in changed if upload_path(path)}
    changed |= {path for path, entry in entries.items() if entry.beside}  # has a description that may differ
    for path in changed:
        if path in new or path not in entries:  # of a broken file nobody knows what it says
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
    """The versions of some documents."""

    def found() -> Iterator[tuple[Key, str, Version]]:
        for _, document in sorted(documents.items()):
            if (key := key_of(document)) in keys:
                yield key, document.status, document

    return versions_by_key(found())
