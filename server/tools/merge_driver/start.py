"""Entry point of the merge driver.

It imports nothing else from Bifolio, because that would take 0.2 s for each file. If there are several files,
a helper process imports the driver once for all of them.
"""

import _socket  # Importing `socket` takes 5 ms more.
import binascii
import os
import sys
import time

RECENT_S = 10.0  # The helper is started if another file was merged this recently.
WAIT_S = 10.0  # A helper that has not answered by then was probably stopped.
MAX_HELPED_BYTES = 16 * 1024 * 1024  # Larger files are not merged as documents.
NO_STATUS = b""


def main(arguments: list[str]) -> None:
    """Merge a file, in the helper process if possible, and exit with the driver's status."""
    path = socket_path()
    status = _merge_in_helper(path, arguments) if path else NO_STATUS
    if status:
        sys.exit(status[0])
    if path and _record_merge(path):
        _start_helper(path)
    command = [sys.executable, "-P", "-m", "server", "merge-driver", "run", *arguments]
    os.execv(sys.executable, command)


def socket_path() -> str:
    """Return the path of the helper's socket, or "" if no private folder can be created for it."""
    folder = os.environ.get("XDG_RUNTIME_DIR") or os.environ.get("TMPDIR") or "/tmp"
    folder = os.path.join(folder, f"bifolio-{os.getuid()}")
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        found = os.lstat(folder)
        changed = os.stat(__file__).st_mtime_ns
    except OSError:
        return ""
    # Reject the path if another user has created the folder, or a link to one.
    if found.st_uid != os.getuid() or found.st_mode & 0o170077 != 0o040000:
        return ""
    version = "\0".join([sys.executable, __file__, str(changed), os.environ.get("PYTHONPATH", "")])
    return os.path.join(folder, f"merge-{binascii.crc32(os.fsencode(version)):08x}")


def _merge_in_helper(path: str, arguments: list[str]) -> bytes:
    """Let the helper merge a copy of the file, copy the result back, and return the exit status.

    If this fails, return NO_STATUS and leave the file unchanged.
    """
    folder = f"{path}.{os.getpid()}.{time.time_ns()}"
    copy = os.path.join(folder, "ours")
    try:
        at = arguments.index("--") + 2
        ours = arguments[at]
        os.mkdir(folder, 0o700)
    except (ValueError, IndexError, OSError):
        return NO_STATUS
    try:
        _copy(ours, copy)
        status = _send(path, [*arguments[:at], copy, *arguments[at + 1 :]])
        if status:
            written = f"{ours}.{os.getpid()}"
            _copy(copy, written)
            os.replace(written, ours)
        return status
    except OSError:
        return NO_STATUS
    finally:
        _remove(folder)


def _send(path: str, arguments: list[str]) -> bytes:
    variables = (f"{name}={value}" for name, value in os.environ.items())
    request = "\0".join([os.getcwd(), *arguments, "", *variables])
    helper = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    helper.settimeout(WAIT_S)
    try:
        helper.connect(path)
        helper.sendall(os.fsencode(request))
        helper.shutdown(_socket.SHUT_WR)
        return helper.recv(1)
    except TimeoutError:
        os.unlink(path)  # Remove the socket, so that the next files do not wait for the helper.
        raise


def _copy(source: str, target: str) -> None:
    """Copy a file. Raises OSError if it is too large for the helper."""
    with open(source, "rb") as file:
        data = file.read(MAX_HELPED_BYTES + 1)
    if len(data) > MAX_HELPED_BYTES:
        raise OSError(f"{source} is too large")
    with open(target, "wb") as file:
        file.write(data)


def _remove(folder: str) -> None:
    try:
        for name in os.listdir(folder):
            os.unlink(os.path.join(folder, name))
        os.rmdir(folder)
    except OSError:
        return


def _record_merge(path: str) -> bool:
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
    except (OSError, NotImplementedError):  # Ignore failures, because the helper only saves time.
        return


if __name__ == "__main__":
    main(sys.argv[1:])
