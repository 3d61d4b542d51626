"""What the commands share that have `--at`: the commit that it names, and the states of a site at commits."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from server.errors import ApiError, SetupError
from server.history.past import PastStates
from server.history.resolve_commit import find_named
from server.paths import SETTINGS, TYPES, cache_folder, state_folder
from server.storage.git.checkout import checked_out
from server.storage.git.log import CommitLog
from server.storage.images.cache import ImageCache
from server.tools.terminal import printable


def find_commit(root: Path, name: str) -> str:
    """The id of the commit that `--at` names. Raises SetupError where it names none."""
    try:
        return find_named(root, CommitLog(root, cache_folder(root)), name)
    except ApiError as error:
        raise SetupError("--at", None, printable(error.message)) from error


def hold_commit(past: PastStates, commit: str) -> None:
    """Have all requests responded to from the state at `commit`; "" is for the current one.

    Raises SetupError where the configuration at that commit is broken.
    """
    try:
        if commit:
            past.hold(commit)
    except ApiError as error:
        raise SetupError("--at", None, printable(error.message)) from error


@contextmanager
def past_site(root: Path, commit: str) -> Iterator[Path]:
    """The folder of a site as it was at a commit, in a temporary clone. Raises StorageError, SetupError.

    Formats of pictures that the site has already are not made again.
    """
    with checked_out(root, commit) as folder:
        if not (folder / SETTINGS).exists() and not (folder / TYPES).is_dir():
            raise SetupError("--at", None, f"there was no site yet at commit {commit[:10]}")
        with suppress(OSError):
            formats = ImageCache(root).folder
            shutil.copytree(formats, state_folder(folder) / formats.name, copy_function=_link)
        yield folder


def _link(source: str, target: str) -> None:
    """Have a file at a second path, as a copy where that is on another disk."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
