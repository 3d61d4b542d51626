"""Authorship of writes by commands. A command has full access, and the author of its commits is the user who
is configured in git.
"""

from server.auth.permissions import Actor
from server.service.opening import OpenSite
from server.service.read import Caller
from server.service.write import Writes
from server.storage.git.commit import local_author

COMMAND = Actor("command", everything=True)  # The trailers of commit messages contain this name.


def writes_of_command(opened: OpenSite) -> Writes:
    """Return the `Writes` object for a command. The event log records a command's writes as edits to files.

    The author of the command's commits is the user who is configured in git. If no user is configured there,
    the author is the setting `git.committer`.
    """

    def sign(_: Actor) -> tuple[str, str]:
        author = local_author(opened.site.root)
        return (author.name, author.email) if author else ("", "")

    return Writes(opened.site, opened.past, sign, source="file")


def caller_of_command(opened: OpenSite) -> Caller:
    """Return the caller for a command. This caller has full access to the site's current state."""
    return Caller(opened.site.state, COMMAND)
