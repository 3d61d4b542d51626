"""Safe execution of git commands in untrusted repositories.

Only `git_as_owner` runs the repository's hooks, filters and signing program.
"""

import logging
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from itertools import takewhile
from pathlib import Path
from typing import IO

from server.errors import CommitError, GitError, GitTimeoutError
from server.storage.git.trouble import DISK_FULL, AffectedTask, trouble_log

log = logging.getLogger("bifolio")

# If there are more paths than this, the git command is run without paths, so it covers all files.
MAX_PATH_ARGUMENTS = 1000

# These override the repository's configuration. git's ownership check (`safe.directory`) stays active,
# because a future version of git may run programs in other ways.
_SETTINGS = (
    "core.quotePath=false",
    "core.fsync=objects,reference",  # Objects are synced to disk before a branch points to them.
    "core.fsyncMethod=batch",
    "core.fsmonitor=false",
    f"core.hooksPath={os.devnull}",
    "core.pager=cat",
    "core.sshCommand=false",
    "core.askPass=false",
    "credential.helper=",
    "diff.external=",
    "gpg.program=false",
    "gpg.ssh.program=false",
    "gpg.x509.program=false",
    "i18n.logOutputEncoding=UTF-8",
    "log.showSignature=false",
    "safe.bareRepository=explicit",
)
# These also prevent a partial clone from fetching missing objects.
_ENVIRONMENT = {
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}
_OWNER_SETTINGS = ("core.quotePath=false", "core.fsync=objects,index", "core.fsyncMethod=batch")
OWNER_TIMEOUT_S = 120.0  # This includes the time that hooks take.
# Timeouts for commands whose duration depends on the size of the repository.
TIMEOUTS_S: Mapping[str, float] = {
    "cat-file": 300.0,
    "checkout-index": 600.0,
    "diff": 300.0,
    "fast-import": 300.0,
    "hash-object": 300.0,
    "log": 600.0,  # The first call reads the whole history.
    "ls-tree": 120.0,
    "read-tree": 120.0,
}
DEFAULT_TIMEOUT_S = 30.0
_NOT_FOUND_STATUS = 1  # Exit status of a command that found nothing.
_DISK_FULL = re.compile(DISK_FULL)
# Messages if another command is moving the branch, or was killed while moving it.
_REF_LOCKED = re.compile(
    r"[Uu]nable to create '[^']*\.lock': File exists|cannot lock ref '[^']*': .*File exists"
)
MAX_REASON_CHARS = 300  # An error message quotes at most this many characters of a failed command's output.
# Messages that git prints if the folder has no readable repository.
_NO_REPOSITORY = re.compile(
    rb"not a git repository|must be run in a work tree|cannot use bare repository|dubious ownership"
    rb"|cannot change to '.*': No such file"
)
# Hint that git prints if the repository belongs to another user.
_SAFE_DIRECTORY_HINT = re.compile(rb"git config --global --add safe\.directory .+")
NOT_INSTALLED = "git is not installed, or not in PATH"
_NOISE = re.compile(
    r"error: (inflate|unable to unpack|external filter)|hint:|fast-import: dumping crash report"
)


class _CommandStatistics(threading.local):
    seconds = 0.0  # how long the thread has waited for git commands
    last_process_id = 0
    was_killed = False  # whether the thread's last git command was killed


_commands = _CommandStatistics()


def last_git_process_id() -> int:
    return _commands.last_process_id


def was_git_killed() -> bool:
    """Return True if this thread's last git command was ended by a signal."""
    return _commands.was_killed


def seconds_in_git() -> float:
    return _commands.seconds


def git(
    root: Path,
    *arguments: str,
    stdin: str = "",
    index: Path | None = None,
    filters: Iterable[str] = (),
    seconds: float | None = None,
    objects: Path | None = None,
) -> str | None:
    """Run a git command, and return its output as text, or None in the same cases as `git_bytes`.

    If `objects` is set, new objects are stored in this folder.
    """
    output, _ = _find(root, arguments, stdin, index, filters, seconds, objects=objects)
    return None if output is None else output.decode(errors="surrogateescape")


def git_bytes(
    root: Path,
    *arguments: str,
    stdin: str | bytes = "",
    index: Path | None = None,
    filters: Iterable[str] = (),
    into: IO[bytes] | None = None,
    seconds: float | None = None,
) -> bytes | None:
    """Run a git command, and return its output. If `into` is set, the output is written to that file.

    `filters` are the names of the git filters to disable. Return None if the command finds nothing (exit
    status 1), if git is not installed, or if there is no readable repository. Raises GitTimeoutError after a
    timeout, or GitError for other failures.
    """
    return _find(root, arguments, stdin, index, filters, seconds, into)[0]


def git_or_fail(
    root: Path,
    *arguments: str,
    stdin: str = "",
    index: Path | None = None,
    filters: Iterable[str] = (),
    seconds: float | None = None,
) -> str:
    """Run a git command, and return its output as text. Raises GitError if it fails or finds nothing."""
    data = git_bytes_or_fail(root, *arguments, stdin=stdin, index=index, filters=filters, seconds=seconds)
    return data.decode(errors="surrogateescape")


def git_bytes_or_fail(
    root: Path,
    *arguments: str,
    stdin: str | bytes = "",
    index: Path | None = None,
    filters: Iterable[str] = (),
    seconds: float | None = None,
) -> bytes:
    """Run a git command, and return its output. Raises GitError if it fails or finds nothing."""
    output, reason = _find(root, arguments, stdin, index, filters, seconds)
    if output is None:
        raise GitError(f"git {arguments[0]} failed: {reason}")
    return output


def _find(
    root: Path,
    arguments: tuple[str, ...],
    stdin: str | bytes,
    index: Path | None,
    filters: Iterable[str],
    seconds: float | None,
    into: IO[bytes] | None = None,
    objects: Path | None = None,
) -> tuple[bytes | None, str]:
    command, environment = _harmless_command(root, *arguments, filters=filters)
    if objects:
        environment |= object_environment(objects)
    if index:
        environment["GIT_INDEX_FILE"] = str(index)
    data = stdin if isinstance(stdin, bytes) else stdin.encode(errors="surrogateescape")
    limit = TIMEOUTS_S.get(arguments[0], DEFAULT_TIMEOUT_S) if seconds is None else seconds
    try:
        status, output, stderr = _run(command, data, environment, limit, into)
    except FileNotFoundError:
        return None, NOT_INSTALLED
    except OSError as error:
        raise GitError(f"git can't be run: {error.strerror}") from error
    except subprocess.TimeoutExpired as error:
        raise GitTimeoutError(f"git {arguments[0]} took longer than {limit:g} s; try again") from error
    if status == 0:
        return output, ""
    if trust := _SAFE_DIRECTORY_HINT.search(stderr):
        _log_foreign_owner(root, trust[0].decode(errors="replace"))
    reason = _reason(stderr, status)
    if status == _NOT_FOUND_STATUS or trust or _NO_REPOSITORY.search(stderr):
        return None, reason
    raise GitError(f"git {arguments[0]} failed: {reason}")


def _quote_path(path: str) -> str:
    escaped = path.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def git_if_possible(root: Path, *arguments: str, seconds: float) -> str | None:
    try:
        return git(root, *arguments, seconds=seconds)
    except GitError:
        return None


def trust_command(root: Path) -> str:
    """Return the command with which a user makes git trust the repository, or "" if git already trusts it."""
    command, environment = _harmless_command(root, "rev-parse")
    try:
        _, _, stderr = _run(command, b"", environment, DEFAULT_TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    hint = _SAFE_DIRECTORY_HINT.search(stderr)
    return hint[0].decode(errors="replace") if hint else ""


def _harmless_command(
    root: Path, *arguments: str, filters: Iterable[str] = ()
) -> tuple[list[str], dict[str, str]]:
    settings = [*_SETTINGS, *(setting for name in filters for setting in _without_filter(name))]
    options = [word for setting in settings for word in ("-c", setting)]
    command = ["git", "--no-pager", *options, "--literal-pathspecs", "-C", str(root), *arguments]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return command, environment | _ENVIRONMENT


def _run(
    command: list[str],
    stdin: bytes,
    environment: Mapping[str, str],
    seconds: float,
    into: IO[bytes] | None = None,
) -> tuple[int, bytes, bytes]:
    """Run a command, and return its exit status, output and error output.

    After a timeout, kill the command and its child processes, and raise TimeoutExpired. Raises OSError if the
    command can't be started.
    """
    pipe, began = subprocess.PIPE, time.monotonic()
    _commands.was_killed = False
    # Run in its own session, so that signals such as Ctrl-C reach only the server.
    process = subprocess.Popen(
        command, stdin=pipe, stdout=into or pipe, stderr=pipe, env=environment, start_new_session=True
    )
    _commands.last_process_id = process.pid
    try:
        output, errors = process.communicate(stdin, timeout=seconds)
    except BaseException:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise
    finally:
        _commands.seconds += time.monotonic() - began
        _commands.was_killed = (process.returncode or 0) < 0
    return process.returncode, output or b"", errors


def git_as_owner(
    root: Path, *arguments: str, stdin: bytes = b"", environment: Mapping[str, str] | None = None
) -> bytes:
    """Run a git command, allowing it to run the repository's hooks, filters and signing program.

    Return its output. Raises CommitError with the message from git or a hook.
    """
    options = [word for setting in _OWNER_SETTINGS for word in ("-c", setting)]
    command = ["git", "--no-pager", *options, "--literal-pathspecs", "-C", str(root), *arguments]
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    full = {**inherited, **_ENVIRONMENT, "GIT_EDITOR": ":", **(environment or {})}
    try:
        status, output, stderr = _run(command, stdin, full, OWNER_TIMEOUT_S)
    except FileNotFoundError as error:
        raise CommitError(NOT_INSTALLED) from error
    except OSError as error:
        raise CommitError(f"git can't be run: {error.strerror}") from error
    except subprocess.TimeoutExpired as error:
        raise CommitError(
            f"git {arguments[0]} took longer than {OWNER_TIMEOUT_S:.0f} s", refused=True
        ) from error
    if status:
        reason = _reason(stderr, status)
        passing = is_disk_full_error(reason) or _REF_LOCKED.search(reason)
        raise CommitError(f"git {arguments[0]}: {reason}", refused=not passing)
    return output


def object_environment(objects: Path) -> dict[str, str]:
    parent = _quote_path(str(objects.parent))
    return {"GIT_OBJECT_DIRECTORY": str(objects), "GIT_ALTERNATE_OBJECT_DIRECTORIES": parent}


def _reason(stderr: bytes, status: int) -> str:
    lines = stderr.decode(errors="replace").splitlines()
    kept = [line for line in takewhile(_is_no_usage, lines) if not _NOISE.match(line)] or lines
    ending = (
        f"exit status {status} without an error message" if status >= 0 else f"killed by signal {-status}"
    )
    reason = " ".join(" ".join(kept).split()) or ending
    return reason[:MAX_REASON_CHARS]


def _is_no_usage(line: str) -> bool:
    return not line.startswith("usage:")


def is_disk_full_error(stderr: str) -> bool:
    return _DISK_FULL.search(stderr) is not None


def filter_names(root: Path) -> tuple[str, ...] | None:
    """Return the names of all configured git filters, or None if one can't be disabled. Raises GitError."""
    output = git(root, "config", "--null", "--name-only", "--get-regexp", r"^filter\..")
    keys = (output or "").split("\0")
    names = tuple(sorted({key.removeprefix("filter.").rpartition(".")[0] for key in keys if key}))
    return None if any("=" in name for name in names) else names


def _without_filter(name: str) -> tuple[str, ...]:
    return (
        f"filter.{name}.clean=",
        f"filter.{name}.smudge=",
        f"filter.{name}.process=",
        f"filter.{name}.required=false",
    )


def _log_foreign_owner(root: Path, trust: str) -> None:
    reason = (
        "the repository belongs to another user, so git does not read it; "
        f"timestamps come from the file system ({trust}, if you trust it)"
    )
    trouble_log(root).report(AffectedTask.REPOSITORY, reason)
