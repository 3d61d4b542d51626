"""Problems that involve several files of a site."""

import pickle
from collections.abc import Iterable, Iterator
from functools import partial
from posixpath import splitext

from server.documents.ids import to_nfc
from server.index.dangling import Parsed, find_dangling
from server.index.snapshot import Snapshot
from server.problems import Problem, in_order
from server.schema.model import UPLOAD
from server.site.change import Change, compare_problem_lists
from server.site.contents import Contents
from server.storage.media import media_key
from server.storage.read import parsed

_SAME_NAME = "the two names differ only in how their accents are encoded"


def all_problems(contents: Contents, snapshot: Snapshot) -> tuple[Problem, ...]:
    between = find_cross_file_problems(partial(parsed, contents.root), snapshot)
    return in_order({*problems_in_files(contents), *between})


def find_cross_file_problems(parsed: Parsed, snapshot: Snapshot) -> Iterator[Problem]:
    yield from find_duplicate_files(snapshot)
    yield from find_dangling(snapshot, parsed)


def problems_in_files(contents: Contents) -> Iterator[Problem]:
    yield from contents.configuration.problems
    yield from contents.folder_problems
    for entry in list(contents.entries.values()):
        yield from entry.problems


def find_duplicate_files(snapshot: Snapshot) -> Iterable[Problem]:
    """Yield a problem for each file whose document or URL already belongs to another file."""
    for key in snapshot.claims.duplicate_keys:
        first, *others = snapshot.claims.get(key, ())
        for other in others:
            message = f'the document "{key[1]}" in the locale "{key[2]}" is already stored in {first.path}'
            fix = "change this file's documentId or name, or remove the file"
            if _differ_in_locale(first.path, other.path, key[2]):
                command = f"`bifolio migrate set-locale {key[2]}`"
                fix += f"; if locales.default was edited, restore the old value and run {command} instead"
            if other.path != first.path and to_nfc(other.path) == to_nfc(first.path):
                message += f": {_SAME_NAME}"
            yield Problem(other.path, None, message, fix, rule="duplicate-id")
    files = snapshot.tables[UPLOAD].versions
    if len(files) > len(snapshot.media):  # Several documents have the same URL.
        for other in files.values():
            first = snapshot.media[media_key(other.path) or ""]
            if first.path != other.path:
                message = f"is not served, because {first.path} has the same URL: {_SAME_NAME}"
                yield Problem(
                    other.path, None, message, "rename or remove one of the two files", rule="duplicate-id"
                )


def _differ_in_locale(path: str, other: str, locale: str) -> bool:
    # If locales.default becomes fr, both fog.md and fog.fr.md are French.
    stems = {splitext(path)[0], splitext(other)[0]}
    return len(stems) == 2 and len({stem.removesuffix(f".{locale}") for stem in stems}) == 1


# --- reported problems ----------------------------------------------------------------------------


def make_handover_note(contents: Contents) -> bytes:
    return pickle.dumps((contents.configuration.settings.roles, tuple(problems_in_files(contents))))


def compare_handover_note(note: bytes, contents: Contents) -> tuple[Change, bool]:
    """Return the change since the handover note was written, and True if the roles are unchanged.

    The note contains the problems and roles that the previous workers knew. If it is damaged, the change
    contains no problems, and the second value is False.
    """
    try:
        roles, problems = pickle.loads(note)
    except (pickle.UnpicklingError, EOFError, ValueError, TypeError, LookupError, AttributeError):
        # The note is incomplete, so it is unknown what has changed.
        return Change(reloaded=True), False
    new, fixed = compare_problem_lists(problems, problems_in_files(contents))
    return Change(problems=new, fixed=fixed, reloaded=True), roles == contents.configuration.settings.roles
