"""Authorship of writes made by commands. Commands have full access, and commit as the user who is configured
in git.
"""

from server.auth.permissions import Actor
from server.service.opening import OpenSite
from server.service.read import Caller
from server.service.write import Writes
from server.storage.git.commit import local_author

COMMAND = Actor("command", everything=True)  # the name that trailers of commit messages contain


def writes_of_command(opened: OpenSite) -> Writes:
    """Return the `Writes` for a command. If no user is configured in git, commits are attributed to the
    setting `git.committer`.
    """

    def sign(_: Actor) -> tuple[str, str]:
        author = local_author(opened.site.root)
        return (author.name, author.email) if author else ("", "")

    return Writes(opened.site, opened.past, sign, source="file")


def caller_of_command(opened: OpenSite) -> Caller:
    return Caller(opened.site.state, COMMAND)
