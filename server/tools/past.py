"""What the commands share that have `--at`: the commit that it names, and the states of a site at commits."""

from pathlib import Path

from server.errors import ApiError, SetupError
from server.history.names import find_named
from server.history.past import PastStates
from server.paths import cache_folder
from server.site.site import Site
from server.storage.git.log import CommitLog
from server.tools.terminal import printable


def find_commit(root: Path, name: str) -> str:
    """The id of the commit that `--at` names. Raises SetupError where it names none."""
    try:
        return find_named(root, CommitLog(root, cache_folder(root)), name)
    except ApiError as error:
        raise SetupError("--at", None, printable(error.message)) from error


def past_states(site: Site, commit: str) -> PastStates:
    """The states of a loaded site, of which that at `commit` is held; none is held for "".

    Raises SetupError where the configuration at that commit is broken.
    """
    past = PastStates(site)
    try:
        if commit:
            past.hold(commit)
    except ApiError as error:
        raise SetupError("--at", None, printable(error.message)) from error
    return past
