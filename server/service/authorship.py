"""Who writes to a site from the command line: the person whose commits git would make."""

from collections.abc import Callable
from typing import Any

from server.site.commits.message import Authorship
from server.site.site import Site
from server.storage.git.commit import local_author

ACTOR = "command"  # in the trailers of commits


def by_command(site: Site, describe: Callable[[Any], str]) -> Authorship:
    """Return the authorship of a command's write, whose commit says what `describe` makes of its result.

    The author is whom `git commit` would name, and git.committer of the settings where git names nobody. In
    the log of events the change comes from a file, as an edit does: the terminal has no account.
    """
    author = local_author(site.root) if site.state.settings.commit is not None else None
    name, email = (author.name, author.email) if author else ("", "")
    return Authorship(ACTOR, name, email, source="file", describe=describe)
