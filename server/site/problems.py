"""Tells what is wrong with a site: in its files, and of files that want to be the same (one documentId)."""

import pickle
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

from server.documents.ids import compose
from server.index.dangling import dangling
from server.index.snapshot import Snapshot
from server.problems import Problem, in_order
from server.schema.model import UPLOAD
from server.site.change import Change, difference
from server.site.contents import Contents
from server.storage.media import media_key
from server.storage.read import parsed

_SAME_NAME = "the two names differ only in how their accents are encoded"


def all_problems(contents: Contents, snapshot: Snapshot) -> tuple[Problem, ...]:
    """Everything that is wrong with a site's files, by path and line."""
    return in_order({*problems_in_files(contents), *problems_between(contents.root, snapshot)})


def problems_between(root: Path, snapshot: Snapshot) -> Iterator[Problem]:
    """The problems that no single file has: of two that claim one document, and of what points to nothing."""
    yield from find_contested(snapshot)
    yield from dangling(snapshot, partial(parsed, root))


def problems_in_files(contents: Contents) -> Iterator[Problem]:
    """The problems of site.yaml, schemas, folders and each file by itself, as they were found in reading."""
    yield from contents.configuration.problems
    yield from contents.folders
    for entry in list(contents.entries.values()):
        yield from entry.problems


def find_contested(snapshot: Snapshot) -> Iterable[Problem]:
    """The problems of files that claim a document which another file has."""
    for key in snapshot.contested:
        first, *others = snapshot.claims.get(key, ())
        for other in others:
            what = f'claims the document "{key[1]}" ({key[2]}), which {first.path} has'
            fix = "give it another documentId or name, or remove it"
            if other.path != first.path and compose(other.path) == compose(first.path):
                what += f": {_SAME_NAME}"
            yield Problem(other.path, None, what, fix, rule="duplicate-id")
    files = snapshot.tables[UPLOAD].versions
    if len(files) > len(snapshot.media):  # Several files have one key, though their documentIds differ.
        for other in files.values():
            first = snapshot.media[media_key(other.path) or ""]
            if first.path != other.path:
                what = f"has the URL of {first.path}, which is served: {_SAME_NAME}"
                yield Problem(other.path, None, what, "rename or remove one of the two", rule="duplicate-id")


# --- reported problems ----------------------------------------------------------------------------


def note_of(contents: Contents) -> bytes:
    """What matters of the contents that are shown: who may do what, and the problems that are known."""
    return pickle.dumps((contents.configuration.settings.roles, tuple(problems_in_files(contents))))


def read_note(note: bytes, contents: Contents) -> tuple[Change, bool]:
    """What contents that were read anew change, and whether everybody may do what they could do before."""
    try:
        roles, problems = pickle.loads(note)
    except (pickle.UnpicklingError, EOFError, ValueError, TypeError, LookupError, AttributeError):
        # There is none, or not yet all of it: nothing is known of what was shown.
        return Change(reloaded=True), False
    new, fixed = difference(problems, problems_in_files(contents))
    return Change(problems=new, fixed=fixed, reloaded=True), roles == contents.configuration.settings.roles
