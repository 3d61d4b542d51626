"""Authorship of writes from the command line: git's configured user."""

from collections.abc import Callable
from typing import Any

from server.site.commits.message import Authorship
from server.site.site import Site
from server.storage.git.commit import local_author

ACTOR = "command"  # in the trailers of commits


def command_authorship(site: Site, describe: Callable[[Any], str]) -> Authorship:
    """Return the authorship of a command's write: git's configured user, else `git.committer`.

    `describe` builds the commit message from the result of the write. The event log records source `file`.
    """
    author = local_author(site.root) if site.state.settings.git.commit is not None else None
    name, email = (author.name, author.email) if author else ("", "")
    return Authorship(ACTOR, name, email, source="file", describe=describe)
