"""Path rules at past commits, which determine the document that a file contained."""

from server.documents.path_rules import Layout
from server.errors import ConflictError
from server.history.past import PastStates
from server.paths import SETTINGS, TYPES
from server.schema.model import Schema
from server.storage.git.log import Commit


class FormerLayouts:
    """Thread-safe cache of the path rules at past commits."""

    def __init__(self, past: PastStates) -> None:
        self.past = past
        self._layouts: dict[str, Layout | None] = {}
        self._schemas: dict[str, Schema | None] = {}

    def schema(self, commit: str) -> Schema | None:
        self.at(commit)
        return self._schemas[commit]

    def at(self, commit: str) -> Layout | None:
        """Return the path rules at a commit.

        If the configuration at the commit is invalid, the path rules of its parent commit still apply.
        Returns None if there is no earlier valid configuration.
        """
        commits, waiting = self.past.log.commits, [commit]
        while waiting:
            one = waiting[-1]
            parents = [p for p in commits[one].parents if p in commits] if one in commits else []
            if missing := [p for p in parents if p not in self._layouts]:
                waiting += missing
                continue
            if one not in self._layouts:
                self._layouts[one], self._schemas[one] = self._find(one, commits.get(one), parents)
            waiting.pop()
        return self._layouts[commit]

    def _find(
        self, id_: str, commit: Commit | None, parents: list[str]
    ) -> tuple[Layout | None, Schema | None]:
        inherited = [(self._layouts[p], self._schemas[p]) for p in parents]
        first = inherited[0] if inherited else (None, None)
        same = all(layout is first[0] and schema is first[1] for layout, schema in inherited)
        if commit and inherited and same and not _configures(commit):
            return first
        try:
            found = self.past.layout(id_)
        except ConflictError:  # The configuration is invalid, so the earlier rules still apply.
            return first
        known = (layout for layout, _ in inherited if layout is not None and layout.rules == found.rules)
        return next(known, found), found.schema


def _configures(commit: Commit) -> bool:
    paths = (path for change in commit.changes for path in (change.path, change.before))
    return any(path == SETTINGS or path.startswith(f"{TYPES}/") for path in paths)
