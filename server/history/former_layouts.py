"""Path rules at past commits. They determine which document a file contained, according to the schema in the
commit.
"""

from server.documents.path_rules import Layout
from server.errors import ConflictError
from server.history.past import PastStates
from server.paths import SETTINGS, TYPES
from server.storage.git.log import Commit


class FormerLayouts:
    """Cache for the path rules at past commits. Thread-safe.

    Only commits that changed the configuration are read. All other commits have the same rules as their
    parents.
    """

    def __init__(self, past: PastStates) -> None:
        self.past = past
        self._layouts: dict[str, Layout | None] = {}

    def at(self, commit: str) -> Layout | None:
        """Return the path rules at a commit, or None if the configuration has been invalid in all commits up
        to this one.
        """
        commits, waiting = self.past.log.commits, [commit]
        while waiting:
            one = waiting[-1]
            parents = [p for p in commits[one].parents if p in commits] if one in commits else []
            if missing := [p for p in parents if p not in self._layouts]:
                waiting += missing
                continue
            if one not in self._layouts:
                inherited = [self._layouts[p] for p in parents]
                self._layouts[one] = self._find(one, commits.get(one), inherited)
            waiting.pop()
        return self._layouts[commit]

    def _find(self, id_: str, commit: Commit | None, inherited: list[Layout | None]) -> Layout | None:
        first = inherited[0] if inherited else None
        if commit and inherited and all(one is first for one in inherited) and not _configures(commit):
            return first
        try:
            found = self.past.layout(id_)
        except (
            ConflictError
        ):  # The configuration at this commit is invalid, so the earlier rules still apply.
            return first
        same = (one for one in inherited if one is not None and one.rules == found.rules)
        return next(same, found)


def _configures(commit: Commit) -> bool:
    paths = (path for change in commit.changes for path in (change.path, change.before))
    return any(path == SETTINGS or path.startswith(f"{TYPES}/") for path in paths)
