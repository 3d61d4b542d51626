"""Which commits somebody asks for: since a time or a commit, of an author."""

from collections.abc import Callable

from server.history.past import PastStates
from server.storage.git.log import Commit
from server.storage.git.refs import read_time


def selection(past: PastStates, since: str = "", author: str = "") -> Callable[[Commit], bool]:
    """Whether a commit is one of those asked for; "" asks for all.

    `since` is a time, of a date its beginning, or a commit, which is left out with all before it; `author` is
    part of a name, or an e-mail address. Raises ValidationError where `since` means nothing.
    """
    time, word = read_time(since, end=False), author.casefold()
    before: frozenset[str] = frozenset()
    if since and time is None:
        commit = past.resolve(since)
        past.log.update(commit)
        before = frozenset(one.id for one in past.log.before(commit))

    def wanted(commit: Commit) -> bool:
        if commit.id in before or (time is not None and commit.authored < time):
            return False
        return not word or word in commit.author.casefold() or word == commit.email.casefold()

    return wanted
