"""Authorship of writes by command-line tools. The author is the configured git user, with full access."""

from server.auth.permissions import Actor
from server.service.opening import OpenSite
from server.service.read import Caller
from server.service.write import Writes
from server.storage.git.commit import local_author

COMMAND = Actor("command", everything=True)  # the name appears in commit trailers


def writes_of_command(opened: OpenSite) -> Writes:
    """Return the `Writes` object that a command uses. The event log records the command's writes as file
    edits.

    The commit author is the configured git user. If git has no user, the author is `git.committer`.
    """

    def sign(_: Actor) -> tuple[str, str]:
        author = local_author(opened.site.root)
        return (author.name, author.email) if author else ("", "")

    return Writes(opened.site, opened.past, sign, source="file")


def caller_of_command(opened: OpenSite) -> Caller:
    """Return the caller for a command. The caller has full access to the site's current state."""
    return Caller(opened.site.state, COMMAND)
