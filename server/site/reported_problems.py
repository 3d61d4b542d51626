"""What processes that are replaced leave to those that take their place: what they have shown so far."""

import pickle
from collections.abc import Iterator

from server.problems import Problem
from server.site.change import Change, difference
from server.site.contents import Contents


def note_of(contents: Contents) -> bytes:
    """What matters of the contents that are shown: who may do what, and the problems that are known."""
    return pickle.dumps((contents.configuration.settings.roles, tuple(_problems(contents))))


def read_note(note: bytes, contents: Contents) -> tuple[Change, bool]:
    """What contents that were read anew change, and whether everybody may do what they could do before."""
    try:
        roles, problems = pickle.loads(note)
    except (pickle.UnpicklingError, EOFError, ValueError, TypeError, LookupError, AttributeError):
        # There is none, or not yet all of it: nothing is known of what was shown.
        return Change(reloaded=True), False
    new, fixed = difference(problems, _problems(contents))
    return Change(problems=new, fixed=fixed, reloaded=True), roles == contents.configuration.settings.roles


def _problems(contents: Contents) -> Iterator[Problem]:
    yield from contents.configuration.problems
    yield from contents.folders
    for entry in list(contents.entries.values()):
        yield from entry.problems
