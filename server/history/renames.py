"""The renames in the commits of a site that is served, as far as anybody asks for them."""

import threading
from collections.abc import Mapping
from itertools import islice

from server.documents.path_rules import Layout
from server.index.dangling import Key
from server.schema.model import Schema
from server.site.site import Site, State
from server.storage.git.log import CommitLog
from server.write.renaming.renames import MOST_COMMITS, Rename, find_renames

Asked = tuple[str, Schema, tuple[str, ...], str]  # a commit, and what says whose document a path is


class Renames:
    """The renames in the commits of a site that is served. Safe to use from many threads."""

    def __init__(self, site: Site, log: CommitLog) -> None:
        self.site, self.log = site, log
        self._known: tuple[Asked | None, Mapping[Key, Rename]] = None, {}
        self._lock = threading.Lock()

    def are_known(self, state: State) -> bool:
        """Whether they can be told without asking git, as in a site without commits."""
        return not self.site.git.committed.commit or self._known[0] == self._asked(state)

    def of(self, state: State) -> Mapping[Key, Rename]:
        """The renames up to the last commit that the site has seen."""
        with self._lock:
            commit, *_ = asked = self._asked(state)
            if not commit:
                return {}
            if self._known[0] != asked:
                self.log.update(commit)
                commits = islice(self.log.before(commit), MOST_COMMITS)
                layout = Layout(state.schema, state.settings)
                self._known = asked, find_renames(((one.id, one.changes) for one in commits), layout)
            return self._known[1]

    def _asked(self, state: State) -> Asked:
        settings = state.settings
        return self.site.git.committed.commit, state.schema, settings.locales, settings.default_locale
