"""The author of changes made by commands: the user configured in git."""

from server.auth.permissions import Actor
from server.service.opening import OpenSite
from server.service.read import Caller
from server.service.write import Writes
from server.storage.git.commit import local_author

COMMAND = Actor("command", everything=True)  # Trailers of commit messages contain this name.


def writes_of_command(opened: OpenSite) -> Writes:
    """Return the `Writes` object through which a command changes the site.

    The author of its changes is the user configured in git or, if there is none, the setting `git.committer`.
    """

    def sign(_: Actor) -> tuple[str, str]:
        author = local_author(opened.site.root)
        return (author.name, author.email) if author else ("", "")

    return Writes(opened.site, opened.past, sign, source="file")


def caller_of_command(opened: OpenSite) -> Caller:
    return Caller(opened.site.state, COMMAND)
