"""The commit that an answer is of: the header that names it, and what is answered from a past one."""

from dataclasses import dataclass, replace

from server.api.response import NOBODY, Representation, without
from server.site.site import State

COMMIT_HEADER = "Quire-Commit"
CHANGED = "; changed"  # What is served differs from the commit, by files that are in none.
# What a full commit id names never changes; who may see it is asked of the server, not of a shared cache.
IMMUTABLE = ("Cache-Control", "private, max-age=31536000, immutable")
OF_FILES = ("200", "206", "304")  # of an answer that has an entity tag of its own, to a read of a file


@dataclass(frozen=True, slots=True)
class AnsweredCommit:
    """The commit that a request is answered from; `lasting`, where it will always be answered the same.

    It is not `complete` while formats of pictures are still to be made.
    """

    id: str
    lasting: bool
    complete: bool = True


def as_of(commit: AnsweredCommit, shown: Representation) -> Representation:
    """A representation of what is the same whenever it is asked for again, if it is."""
    if not (commit.lasting and commit.complete) or not (shown.etag or shown.status.startswith(OF_FILES)):
        return shown
    if ("Cache-Control", NOBODY) in shown.headers:
        return shown
    return replace(shown, headers=(*without(shown.headers, "Cache-Control"), IMMUTABLE))


def commit_of(state: State) -> str:
    """What the header says of a state with a commit."""
    return state.commit + CHANGED if state.changed else state.commit
