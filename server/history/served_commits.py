"""The commits in the history that have been served."""

from collections.abc import Iterator
from itertools import islice

from server.history.past import PastStates
from server.storage.git.log import Commit, read_merges
from server.write.renaming.renames import MAX_COMMITS


class ServedCommits:
    """The commits of a site that have been served. This class is not thread-safe."""

    def __init__(self, past: PastStates) -> None:
        self.past = past
        self._merges: dict[str, Commit] = {}  # by id, each with the changes since its first parent

    def history_of(self, head: str) -> Iterator[Commit]:
        """Yield the commits that have been served, newest first.

        Commits on merged branches are omitted, because they were never served themselves.
        """
        commits = list(islice(self.past.log.main_line(head), MAX_COMMITS))
        merges = [one.id for one in commits if len(one.parents) > 1 and one.id not in self._merges]
        self._merges.update((one.id, one) for one in read_merges(self.past.site.root, merges))
        return (self._merges.get(one.id, one) for one in commits)
