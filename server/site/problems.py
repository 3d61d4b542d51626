"""All problems in a site's files: problems in a single file, and problems that involve several files.

A problem that involves several files is either two files for the same document, or a relation to a missing
document.
"""

import pickle
from collections.abc import Iterable, Iterator
from functools import partial

from server.documents.ids import compose
from server.index.dangling import Parsed, dangling
from server.index.snapshot import Snapshot
from server.problems import Problem, in_order
from server.schema.model import UPLOAD
from server.site.change import Change, difference
from server.site.contents import Contents
from server.storage.media import media_key
from server.storage.read import parsed

_SAME_NAME = "the two names differ only in how their accents are encoded"


def all_problems(contents: Contents, snapshot: Snapshot) -> tuple[Problem, ...]:
    """Return all problems in a site's files, sorted by path and line."""
    between = problems_between(partial(parsed, contents.root), snapshot)
    return in_order({*problems_in_files(contents), *between})


def problems_between(read: Parsed, snapshot: Snapshot) -> Iterator[Problem]:
    """Yield the problems that involve several files: several files for the same document, and relations to
    missing documents. `read` has the same meaning as the parameter `parsed` of `dangling`.
    """
    yield from find_contested(snapshot)
    yield from dangling(snapshot, read)


def problems_in_files(contents: Contents) -> Iterator[Problem]:
    """Yield the problems that were found while reading site.yaml, schemas, folders and content files."""
    yield from contents.configuration.problems
    yield from contents.folders
    for entry in list(contents.entries.values()):
        yield from entry.problems


def find_contested(snapshot: Snapshot) -> Iterable[Problem]:
    """Yield a problem for each file with the same documentId and locale as another file, and for each media
    file with the same URL as another media file.
    """
    for key in snapshot.contested:
        first, *others = snapshot.claims.get(key, ())
        for other in others:
            message = f'the document "{key[1]}" in the locale "{key[2]}" is already stored in {first.path}'
            fix = "change this file's documentId or name, or remove the file"
            if other.path != first.path and compose(other.path) == compose(first.path):
                message += f": {_SAME_NAME}"
            yield Problem(other.path, None, message, fix, rule="duplicate-id")
    files = snapshot.tables[UPLOAD].versions
    if len(files) > len(snapshot.media):  # Several media files with different documentIds have the same URL.
        for other in files.values():
            first = snapshot.media[media_key(other.path) or ""]
            if first.path != other.path:
                message = f"is not served, because {first.path} has the same URL: {_SAME_NAME}"
                yield Problem(
                    other.path, None, message, "rename or remove one of the two files", rule="duplicate-id"
                )


# --- reported problems ----------------------------------------------------------------------------


def note_of(contents: Contents) -> bytes:
    """Serialize the note for the workers that will replace this worker.

    The note contains the roles and the problems in the contents that are being served. The problems have
    already been reported.
    """
    return pickle.dumps((contents.configuration.settings.roles, tuple(problems_in_files(contents))))


def read_note(note: bytes, contents: Contents) -> tuple[Change, bool]:
    """Compare newly read contents with the note that an old worker has left (see `note_of`).

    Return the change, for reports, and whether the roles have stayed the same.
    """
    try:
        roles, problems = pickle.loads(note)
    except (pickle.UnpicklingError, EOFError, ValueError, TypeError, LookupError, AttributeError):
        # If the note is incomplete, it is unknown what was served.
        return Change(reloaded=True), False
    new, fixed = difference(problems, problems_in_files(contents))
    return Change(problems=new, fixed=fixed, reloaded=True), roles == contents.configuration.settings.roles
