"""Authorship of writes by commands. The author is the user who is configured in git, and has full access."""

from server.auth.permissions import Actor
from server.service.opening import OpenSite
from server.service.read import Caller
from server.service.write import Writes
from server.storage.git.commit import local_author

COMMAND = Actor("command", everything=True)  # this name appears in the trailers of commit messages


def writes_of_command(opened: OpenSite) -> Writes:
    """Return the `Writes` object with which a command writes. In the event log, its writes are recorded as
    edits to files.

    The author of its commits is the user who is configured in git. If there is none, the author is the
    setting `git.committer`.
    """

    def sign(_: Actor) -> tuple[str, str]:
        author = local_author(opened.site.root)
        return (author.name, author.email) if author else ("", "")

    return Writes(opened.site, opened.past, sign, source="file")


def caller_of_command(opened: OpenSite) -> Caller:
    """Return the caller for a command, who has full access to the site's current state."""
    return Caller(opened.site.state, COMMAND)
