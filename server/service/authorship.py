"""Authorship of command-line writes: git's configured user, with full access."""

from server.auth.permissions import Actor
from server.service.opening import OpenSite
from server.service.read import Caller
from server.service.write import Writes
from server.storage.git.commit import local_author

COMMAND = Actor("command", everything=True)  # its name in commit trailers


def writes_of_command(opened: OpenSite) -> Writes:
    """Return the writes of a command, recorded as file edits.

    The author is git's configured user, or `git.committer` without one.
    """

    def sign(_: Actor) -> tuple[str, str]:
        author = local_author(opened.site.root)
        return (author.name, author.email) if author else ("", "")

    return Writes(opened.site, opened.past, sign, source="file")


def caller_of_command(opened: OpenSite) -> Caller:
    """Return the caller of a command, in the site's current state."""
    return Caller(opened.site.state, COMMAND)
