"""Renaming of the state folder from `.quire/` to `.bifolio/`."""

import os
import socket
from contextlib import suppress
from pathlib import Path

from server.errors import SetupError
from server.paths import STATE_FOLDER
from server.site.configure import check_state_folder

FORMER_FOLDER = ".quire"
MAX_ADDRESS_BYTES = 104  # maximum length of a Unix socket's path on the strictest systems


def rename_former_folder(root: Path) -> str:
    """Rename `.quire/` to `.bifolio/` if only `.quire/` exists.

    Return a message for the user, or "" if nothing was renamed. Raises SetupError if a server is still using
    the folder, or if the folder can't be renamed.
    """
    former, folder = root / FORMER_FOLDER, root / STATE_FOLDER
    if not former.is_dir() or os.path.lexists(folder):
        return ""
    check_state_folder(root, FORMER_FOLDER)
    if any(_is_in_use(path) for path in former.glob("serve-*.sock")):
        raise SetupError(
            FORMER_FOLDER,
            None,
            "can't be renamed, because a running server is still using this folder",
            "stop that server first",
        )
    try:
        former.rename(folder)
    except FileNotFoundError:  # Another process has already renamed it.
        return ""
    except OSError as error:
        fix = f"rename the folder to {STATE_FOLDER} by hand"
        raise SetupError(FORMER_FOLDER, None, f"can't be renamed: {error.strerror}", fix) from error
    return (
        f"{FORMER_FOLDER}/ was renamed to {STATE_FOLDER}/, including the accounts and keys in it, "
        "because Quire is now called Bifolio"
    )


def _is_in_use(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client, suppress(OSError):
        client.settimeout(1)
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        # If the path is too long, a shorter path to the same socket is used, which exists only on Linux.
        try:
            is_short = len(os.fsencode(path)) < MAX_ADDRESS_BYTES
            client.connect(str(path) if is_short else f"/proc/self/fd/{folder}/{path.name}")
        finally:
            os.close(folder)
        return True
    return False
