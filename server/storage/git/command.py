"""Runs git, so that nothing runs which a repository configures: its owner need not be who runs Bifolio.

Only git's own code is at work: no hook, monitor, filter, pager or signature program, no submodule, no fetch.
Whose repository may be read at all is for git to say (`safe.directory`), and is not said here: what keeps
a repository's programs from running is a list, which the next version of git may leave incomplete. It is
otherwise where commits are made that the settings of a site ask for (`git_as_owner`).
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

from server.errors import CommitError, GitError, GitSlowError
from server.storage.git.trouble import DISK_FULL, Concern, trouble_log

log = logging.getLogger("bifolio")

MAX_PATH_ARGUMENTS = 1000  # Paths on a command line.

# What a repository's own configuration says otherwise is overruled by these.
_SETTINGS = (
    "core.quotePath=false",
    "core.fsync=objects,reference",  # What a branch leads to is on disk before it does.
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
# A clone without all objects would fetch those that are missing, over whatever its remote is.
_ENVIRONMENT = {
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}
# What counts for commits, where the repository's own hooks, filters and signatures are to work.
_OWNER_SETTINGS = ("core.quotePath=false", "core.fsync=objects,index", "core.fsyncMethod=batch")
OWNER_TIMEOUT_S = 120.0  # For a command that makes a commit, including its hooks.
# How many seconds a command may take that is for a repository of any size, by its name; and all others.
TIMEOUTS_S: Mapping[str, float] = {
    "cat-file": 300.0,
    "checkout-index": 600.0,
    "diff": 300.0,
    "fast-import": 300.0,
    "hash-object": 300.0,
    "log": 600.0,  # Of all commits there are, the first time.
    "ls-tree": 120.0,
    "read-tree": 120.0,
}
DEFAULT_TIMEOUT_S = 30.0
_NOT_FOUND_STATUS = 1  # The exit status of a command that searched in vain.
_DISK_FULL = re.compile(DISK_FULL)
# Another command is about to move the branch, or was killed over it.
_REF_LOCKED = re.compile(
    r"[Uu]nable to create '[^']*\.lock': File exists|cannot lock ref '[^']*': .*File exists"
)
MAX_REASON_CHARS = 300  # Characters that an error quotes of a failed command.
# What git says in a folder that has no history for us.
_NO_REPOSITORY = re.compile(
    rb"not a git repository|must be run in a work tree|cannot use bare repository|dubious ownership"
    rb"|cannot change to '.*': No such file"
)
# In what git says of a repository of somebody else: how to have it read all the same.
_SAFE_DIRECTORY_HINT = re.compile(rb"git config --global --add safe\.directory .+")
NOT_INSTALLED = "git is not installed, or not in PATH"
# What git says beside what is wrong.
_NOISE = re.compile(
    r"error: (inflate|unable to unpack|external filter)|hint:|fast-import: dumping crash report"
)


class _Spent(threading.local):
    """The seconds that a thread has waited for git commands."""

    seconds = 0.0


_spent = _Spent()


def seconds_in_git() -> float:
    """Return how many seconds this thread has waited for git commands so far."""
    return _spent.seconds


def git(
    root: Path,
    *arguments: str,
    given: str = "",
    index: Path | None = None,
    filters: Iterable[str] = (),
    seconds: float | None = None,
) -> str | None:
    """Return what a git command prints; None if there is nothing. Raises GitError. See `git_bytes`."""
    printed = git_bytes(root, *arguments, given=given, index=index, filters=filters, seconds=seconds)
    return None if printed is None else printed.decode(errors="surrogateescape")


def git_bytes(
    root: Path,
    *arguments: str,
    given: str | bytes = "",
    index: Path | None = None,
    filters: Iterable[str] = (),
    into: IO[bytes] | None = None,
    seconds: float | None = None,
) -> bytes | None:
    """Return what a git command prints in the folder `root`; None if there is nothing.

    There is nothing if the command says so by its status, such as for a key that is not set; and if git knows
    no repository here, does not read it, or is not installed. If it fails otherwise, nobody knows what there
    is: that raises GitError, and GitSlowError if it takes more than `seconds`, or those of TIMEOUTS_S. The
    command is ended then, with all that it has started.

    `given` is its standard input, `index` stands for the repository's own. `filters` are the names of
    filters (`filter.NAME.clean`) that are not to be run. What is printed `into` a file is not returned.
    """
    return _find(root, arguments, given, index, filters, seconds, into)[0]


def git_or_fail(
    root: Path,
    *arguments: str,
    given: str = "",
    index: Path | None = None,
    filters: Iterable[str] = (),
    seconds: float | None = None,
) -> str:
    """Return what a git command prints that always has something to say. Raises GitError if it fails."""
    data = git_bytes_or_fail(root, *arguments, given=given, index=index, filters=filters, seconds=seconds)
    return data.decode(errors="surrogateescape")


def git_bytes_or_fail(
    root: Path,
    *arguments: str,
    given: str | bytes = "",
    index: Path | None = None,
    filters: Iterable[str] = (),
    seconds: float | None = None,
) -> bytes:
    """Return what a git command prints, as bytes. Raises GitError if it fails."""
    printed, reason = _find(root, arguments, given, index, filters, seconds)
    if printed is None:
        raise GitError(f"git {arguments[0]} has failed: {reason}")
    return printed


def _find(
    root: Path,
    arguments: tuple[str, ...],
    given: str | bytes,
    index: Path | None,
    filters: Iterable[str],
    seconds: float | None,
    into: IO[bytes] | None = None,
) -> tuple[bytes | None, str]:
    """Return what a git command prints, or None and why there is nothing. Raises GitError."""
    command, environment = _harmless(root, *arguments, filters=filters)
    if index:
        environment["GIT_INDEX_FILE"] = str(index)
    data = given if isinstance(given, bytes) else given.encode(errors="surrogateescape")
    limit = TIMEOUTS_S.get(arguments[0], DEFAULT_TIMEOUT_S) if seconds is None else seconds
    try:
        status, printed, said = _run(command, data, environment, limit, into)
    except FileNotFoundError:
        return None, NOT_INSTALLED
    except OSError as error:
        raise GitError(f"git can't be run: {error.strerror}") from error
    except subprocess.TimeoutExpired as error:
        raise GitSlowError(f"git {arguments[0]} takes more than {limit:g} s; try again") from error
    if status == 0:
        return printed, ""
    if trust := _SAFE_DIRECTORY_HINT.search(said):
        _tell_of_owner(root, trust[0].decode(errors="replace"))
    reason = _reason(said, status)
    if status == _NOT_FOUND_STATUS or trust or _NO_REPOSITORY.search(said):
        return None, reason
    raise GitError(f"git {arguments[0]} has failed: {reason}")


def git_if_possible(root: Path, *arguments: str, seconds: float) -> str | None:
    """Return what a git command prints; None whatever keeps it from that, for what can do without it."""
    try:
        return git(root, *arguments, seconds=seconds)
    except GitError:
        return None


def how_to_trust(root: Path) -> str:
    """The command that has git read a repository that it refuses as somebody else's; "" for any other."""
    command, environment = _harmless(root, "rev-parse")
    try:
        _, _, said = _run(command, b"", environment, DEFAULT_TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    found = _SAFE_DIRECTORY_HINT.search(said)
    return found[0].decode(errors="replace") if found else ""


def _harmless(root: Path, *arguments: str, filters: Iterable[str] = ()) -> tuple[list[str], dict[str, str]]:
    """A git command that runs nothing of the repository's, and its environment."""
    settings = [*_SETTINGS, *(setting for name in filters for setting in _without_filter(name))]
    options = [word for setting in settings for word in ("-c", setting)]
    command = ["git", "--no-pager", *options, "--literal-pathspecs", "-C", str(root), *arguments]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return command, environment | _ENVIRONMENT


def _run(
    command: list[str],
    given: bytes,
    environment: Mapping[str, str],
    seconds: float,
    into: IO[bytes] | None = None,
) -> tuple[int, bytes, bytes]:
    """The status of a command, what it prints, and its errors. Raises OSError and TimeoutExpired.

    It is in a session of its own: what ends the server does not end it half way, and when it takes too long,
    all that it has started is ended with it.
    """
    pipe, began = subprocess.PIPE, time.monotonic()
    process = subprocess.Popen(
        command, stdin=pipe, stdout=into or pipe, stderr=pipe, env=environment, start_new_session=True
    )
    try:
        printed, said = process.communicate(given, timeout=seconds)
    except BaseException:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise
    finally:
        _spent.seconds += time.monotonic() - began
    return process.returncode, printed or b"", said


def git_as_owner(
    root: Path, *arguments: str, given: bytes = b"", environment: Mapping[str, str] | None = None
) -> bytes:
    """What a git command prints that makes a commit for the owner of the repository.

    The repository's hooks, filters and signatures work as they do when its owner commits. Raises CommitError
    with what git or a hook says where it fails, or takes too long.
    """
    options = [word for setting in _OWNER_SETTINGS for word in ("-c", setting)]
    command = ["git", "--no-pager", *options, "--literal-pathspecs", "-C", str(root), *arguments]
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    full = {**inherited, **_ENVIRONMENT, "GIT_EDITOR": ":", **(environment or {})}
    try:
        status, printed, said = _run(command, given, full, OWNER_TIMEOUT_S)
    except FileNotFoundError as error:
        raise CommitError(NOT_INSTALLED) from error
    except OSError as error:
        raise CommitError(f"git can't be run: {error.strerror}") from error
    except subprocess.TimeoutExpired as error:
        raise CommitError(
            f"git {arguments[0]} takes more than {OWNER_TIMEOUT_S:.0f} s", refused=True
        ) from error
    if status:
        reason = _reason(said, status)
        passing = is_full(reason) or _REF_LOCKED.search(reason)
        raise CommitError(f"git {arguments[0]}: {reason}", refused=not passing)
    return printed


def _reason(said: bytes, status: int) -> str:
    """Return why a git command has failed, in one line of what it has said."""
    lines = said.decode(errors="replace").splitlines()
    kept = [line for line in takewhile(_is_no_usage, lines) if not _NOISE.match(line)] or lines
    reason = " ".join(" ".join(kept).split()) or f"it ends with status {status} and says nothing"
    return reason[:MAX_REASON_CHARS]


def _is_no_usage(line: str) -> bool:
    return not line.startswith("usage:")


def is_full(said: str) -> bool:
    """Whether a git command that failed has found no room on the disk, by what it has said."""
    return _DISK_FULL.search(said) is not None


def filter_names(root: Path) -> tuple[str, ...] | None:
    """The names of the filters that are configured; None where one has a name that can't be overruled.

    Raises GitError where git does not say which there are.
    """
    found = git(root, "config", "--null", "--name-only", "--get-regexp", r"^filter\..")
    keys = (found or "").split("\0")
    names = tuple(sorted({key.removeprefix("filter.").rpartition(".")[0] for key in keys if key}))
    return None if any("=" in name for name in names) else names


def _without_filter(name: str) -> tuple[str, ...]:
    return (
        f"filter.{name}.clean=",
        f"filter.{name}.smudge=",
        f"filter.{name}.process=",
        f"filter.{name}.required=false",
    )


def _tell_of_owner(root: Path, trust: str) -> None:
    """Log once why a site has no history."""
    reason = (
        "the repository belongs to somebody else, so that git does not read it; "
        f"timestamps come from the file system ({trust}, if you trust it)"
    )
    trouble_log(root).tell(Concern.REPOSITORY, reason)
