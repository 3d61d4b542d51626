"""Who writes from the command line: git's configured user, with full access."""

from server.auth.permissions import Actor
from server.service.opening import OpenSite
from server.service.read import Caller
from server.service.write import Writes
from server.storage.git.commit import local_author

COMMAND = Actor("command", everything=True)  # as it is named in the trailers of commits


def writes_of_command(opened: OpenSite) -> Writes:
    """Return the writes of a command: by git's configured user, else `git.committer`, as edits of files."""

    def sign(_: Actor) -> tuple[str, str]:
        author = local_author(opened.site.root)
        return (author.name, author.email) if author else ("", "")

    return Writes(opened.site, opened.past, sign, source="file")


def caller_of_command(opened: OpenSite) -> Caller:
    """Return the caller that a command is, in the state that the site is in now."""
    return Caller(opened.site.state, COMMAND)
