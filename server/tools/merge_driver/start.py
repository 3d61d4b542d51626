"""Entry point of the merge driver, which git runs for each file.

This module imports nothing else from Bifolio, because importing the driver takes 0.2 s. If git merges
several files, a helper process imports the driver once and merges the remaining files. If the helper
fails, a separate process merges the file.
"""

import _socket  # `socket` takes another 5 ms.
import binascii
import os
import sys
import time

RECENT_S = 10.0  # The helper is started if another file was merged this recently.
NO_STATUS = b""


def main(arguments: list[str]) -> None:
    """Merge a file, in the helper if possible, and exit with the driver's status."""
    path = socket_path()
    status = _ask(path, arguments) if path else NO_STATUS
    if status:
        sys.exit(status[0])
    if path and _is_recent(path):
        _start_helper(path)
    command = [sys.executable, "-P", "-m", "server", "merge-driver", "run", *arguments]
    os.execv(sys.executable, command)


def socket_path() -> str:
    """Return the path of the helper's socket in a private folder, or "" if no such folder is available."""
    folder = os.environ.get("XDG_RUNTIME_DIR") or os.environ.get("TMPDIR") or "/tmp"
    folder = os.path.join(folder, f"bifolio-{os.getuid()}")
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        found = os.lstat(folder)
        changed = os.stat(__file__).st_mtime_ns
    except OSError:
        return ""
    # Another user could have created the folder, or a link to one.
    if found.st_uid != os.getuid() or found.st_mode & 0o170077 != 0o040000:
        return ""
    version = "\0".join([sys.executable, __file__, str(changed), os.environ.get("PYTHONPATH", "")])
    return os.path.join(folder, f"merge-{binascii.crc32(os.fsencode(version)):08x}")


def _ask(path: str, arguments: list[str]) -> bytes:
    """Return the exit status from the helper, or NO_STATUS if the helper is not running or has failed."""
    variables = (f"{name}={value}" for name, value in os.environ.items())
    request = "\0".join([os.getcwd(), *arguments, "", *variables])
    try:
        helper = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        helper.connect(path)
        helper.sendall(os.fsencode(request))
        helper.shutdown(_socket.SHUT_WR)
        return helper.recv(1)
    except OSError:
        return NO_STATUS


def _is_recent(path: str) -> bool:
    """Record a merge, and return whether another file was merged in the last RECENT_S seconds."""
    mark = f"{path}.time"
    try:
        before = os.stat(mark).st_mtime
    except OSError:
        before = 0.0
    try:
        with open(mark, "wb"):
            os.utime(mark)
    except OSError:
        return False
    return 0 <= time.time() - before < RECENT_S


def _start_helper(path: str) -> None:
    # git waits until nobody has its pipes open, so the helper must not inherit them.
    nothing = os.open(os.devnull, os.O_RDWR)
    inherited = [(os.POSIX_SPAWN_DUP2, nothing, number) for number in range(3)]
    command = [sys.executable, "-P", "-m", "server.commands.merge_driver_helper", path]
    try:
        os.posix_spawn(sys.executable, command, os.environ, file_actions=inherited, setsid=True)
    except (OSError, NotImplementedError):  # The helper only saves time.
        return


if __name__ == "__main__":
    main(sys.argv[1:])
