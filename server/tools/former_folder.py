"""Migration of `.quire/`, the former name of `.bifolio/`. Only this module and its test have that name."""

import os
import socket
from contextlib import suppress
from pathlib import Path

from server.errors import SetupError
from server.paths import STATE_FOLDER
from server.site.configure import check_state_folder

FORMER_FOLDER = ".quire"
MAX_ADDRESS_BYTES = 104  # of a Unix socket on the strictest systems


def adopt_former_folder(root: Path) -> str:
    """Rename `.quire/` to `.bifolio/` and return a line about it; "" if there is nothing to do.

    If both exist, the former one stays unused. Raises SetupError if a server uses it, if it can't be renamed,
    or as `check_state_folder` does.
    """
    former, folder = root / FORMER_FOLDER, root / STATE_FOLDER
    if not former.is_dir() or os.path.lexists(folder):
        return ""
    check_state_folder(root, FORMER_FOLDER)
    if any(_listens(path) for path in former.glob("serve-*.sock")):
        raise SetupError(FORMER_FOLDER, None, "a server still uses it", "stop that server first")
    try:
        former.rename(folder)
    except FileNotFoundError:  # Another process was first.
        return ""
    except OSError as error:
        fix = f"rename it to {STATE_FOLDER} by hand"
        raise SetupError(FORMER_FOLDER, None, f"can't be renamed: {error.strerror}", fix) from error
    return f"{FORMER_FOLDER}/ is {STATE_FOLDER}/ now, with its accounts and keys: Quire is called Bifolio"


def _listens(path: Path) -> bool:
    """Return whether a process accepts connections at a Unix socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client, suppress(OSError):
        client.settimeout(1)
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:  # For longer paths on Linux.
            is_short = len(os.fsencode(path)) < MAX_ADDRESS_BYTES
            client.connect(str(path) if is_short else f"/proc/self/fd/{folder}/{path.name}")
        finally:
            os.close(folder)
        return True
    return False
