"""Fetching from and pushing to git remotes, with timeouts and without password prompts."""

import os
import re
import select
import signal
import subprocess
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import IO

from server.errors import (
    GitError,
    RemoteAccessError,
    RemoteError,
    RemoteMovedError,
    RemoteRefusedError,
    RemoteTimeoutError,
    UnconfirmedPushError,
)
from server.storage.files import file_mark_of
from server.storage.git.command import git, git_or_fail, is_disk_full_error
from server.storage.git.refs import BRANCH_PREFIX, is_ancestor, ref_commit
from server.storage.git.repository import location

FETCH_TIMEOUT_S = 60.0
FETCH_ALL_TIMEOUT_S = 600.0
PUSH_TIMEOUT_S = 30.0
SSH_COMMAND_TTL_S = 5.0  # The setting core.sshCommand is cached for this long.
MAX_REASON_CHARS = 300  # An error message quotes at most this many characters of a remote's output.
_MAX_OUTPUT_BYTES = 64_000  # At most this many bytes of a remote's output are stored.
# After being terminated, a command has this much time to remove its locks before it is killed.
_TERMINATE_TIMEOUT_S = 1.0
_MAX_FETCH_ATTEMPTS = 3  # Number of attempts if another process is fetching the same branch.
# git locks a tracking branch for only milliseconds, so older locks were left by killed commands.
STALE_LOCK_AGE_S = 10.0
_ENVIRONMENT = {
    "GIT_ALLOW_PROTOCOL": "file:git:http:https:ssh",
    "GIT_EDITOR": ":",
    "GIT_TERMINAL_PROMPT": "0",
    "GCM_INTERACTIVE": "never",
    "LC_ALL": "C",
}
# Prefixes of the environment variables that are passed to git. These variables can configure access to a
# remote, but not the repository.
_INHERITED_VARIABLES = ("GIT_ASKPASS", "GIT_CONFIG", "GIT_HTTP", "GIT_PROXY", "GIT_SSH", "GIT_SSL")
_SETTINGS = (
    "core.fsync=objects,reference",
    "core.fsyncMethod=batch",
    "core.quotePath=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "push.gpgSign=if-asked",
    "push.recurseSubmodules=no",
)
_SSH_COMMAND = "ssh -o BatchMode=yes -o ConnectTimeout=10"
# Messages if a push is rejected because the branch has moved, before or during the push.
_BRANCH_MOVED = re.compile(
    r"stale info|fetch first|non-fast-forward|needs force|already exists|cannot lock ref|failed to lock"
    r"|failed to update ref|incorrect old value|reference (already exists|is at)"
)
# Messages if a push fails because of the remote, not because of the pushed commits.
_REMOTE_BROKEN = re.compile(r"\[remote failure\]|unpacker error|abnormal exit|unable to migrate")
_NO_ACCESS = re.compile(
    r"Authentication failed|Permission denied|could not read (Username|Password)|Permission to .+ denied"
    r"|access denied|Access denied|Host key verification failed|error: 40[13]|HTTP 40[13]"
    r"|insufficient permission|terminal prompts disabled|not authorized|Repository not found"
)
# Messages if a command fails before anything is sent.
_UNREACHABLE = re.compile(
    r"does not appear to be a git repository|unable to connect|[Cc]ould(n't| not) (connect|resolve)"
    r"|Connection (refused|timed out)|No route to host|Network is unreachable|repository '.*' not found"
)
_CREDENTIALS = re.compile(r"(\w://)[^\s/]*@")
_UNPRINTABLE = re.compile(r"\x1b\[[0-9;]*[A-Za-z]|[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")


@dataclass(frozen=True, slots=True)
class _CommandResult:
    """Exit status and truncated output of a git command. `status` is None after a timeout."""

    status: int | None
    stdout: str
    stderr: str


def fetch(root: Path, remote: str, branch: str, timeout_s: float = FETCH_TIMEOUT_S) -> str:
    """Fetch a branch. Return its commit, or "" if the remote does not have this branch.

    Raises RemoteAccessError if access is denied, or RemoteTimeoutError for other failures.
    """
    tracking = tracking_ref(remote, branch)
    options = ("--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--refmap=")
    deadline, attempts = time.monotonic() + timeout_s, _MAX_FETCH_ATTEMPTS
    while True:
        refspec = f"+{BRANCH_PREFIX}{branch}:{tracking}"
        done = _run(root, deadline - time.monotonic(), "fetch", *options, "--", remote, refspec)
        if done.status == 0:
            return tracked_commit(root, remote, branch)
        if "couldn't find remote ref" in done.stderr:
            return ""
        attempts -= 1
        if not attempts or "cannot lock ref" not in done.stderr:
            raise _failure("fetch", done, timeout_s)
        _remove_stale_lock(root, tracking)
        time.sleep(0.05)


def fetch_all(root: Path, remote: str, timeout_s: float = FETCH_ALL_TIMEOUT_S) -> None:
    """Fetch all branches and all tags. The tags are stored in refs/bifolio/tags/.

    Raises RemoteAccessError if access is denied, or RemoteTimeoutError for other failures.
    """
    options = ("--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--refmap=")
    refspecs = (
        f"+{BRANCH_PREFIX}*:{tracking_ref(remote, '*')}",
        f"+refs/tags/*:refs/bifolio/tags/{remote}/*",
    )
    done = _run(root, timeout_s, "fetch", *options, "--", remote, *refspecs)
    if done.status != 0:
        raise _failure("fetch", done, timeout_s)


def push(
    root: Path,
    remote: str,
    branch: str,
    commit: str,
    expected: str,
    timeout_s: float = PUSH_TIMEOUT_S,
    *,
    is_descendant: bool = False,
) -> None:
    """Push a commit if the remote branch is still at the commit `expected`.

    If `expected` is "", create the branch.

    Raises RemoteMovedError if the branch has moved or would lose commits. Raises RemoteRefusedError if the
    remote or a hook rejects the commit. Raises UnconfirmedPushError if the commit may have been pushed
    despite the failure, and otherwise RemoteAccessError or RemoteTimeoutError.
    """
    if expected and not is_descendant and not is_ancestor(root, expected, commit):
        raise RemoteMovedError()
    name = BRANCH_PREFIX + branch
    options = ("--porcelain", "--no-follow-tags", "--no-recurse-submodules", "--no-progress")
    lease = f"--force-with-lease={name}:{expected}"
    done = _run(root, timeout_s, "push", *options, lease, "--", remote, f"{commit}:{name}")
    if done.status == 0:
        # git has updated the tracking branch only if the repository is configured to fetch that branch.
        if tracked_commit(root, remote, branch) != commit:
            with suppress(GitError):  # Ignore failures, because the push has succeeded.
                git_or_fail(root, "update-ref", tracking_ref(remote, branch), commit)
        return
    refusal = next((line for line in done.stdout.splitlines() if line.startswith("!")), "")
    reason = refusal.rpartition("\t")[2]
    if not refusal or _REMOTE_BROKEN.search(reason):
        error = _push_failed(done, timeout_s)
        if isinstance(error, RemoteTimeoutError) and not _UNREACHABLE.search(done.stderr):
            raise UnconfirmedPushError(error.message)
        raise error
    if _BRANCH_MOVED.search(reason) and "hook declined" not in reason:
        raise RemoteMovedError()
    raise RemoteRefusedError(f"The git remote rejected this change: {_refusal(done.stderr, reason)}")


def tracking_ref(remote: str, branch: str) -> str:
    return f"refs/remotes/{remote}/{branch}"


def tracked_commit(root: Path, remote: str, branch: str) -> str:
    return ref_commit(root, tracking_ref(remote, branch))


def printable(text: str) -> str:
    """Return the output of a remote as one line of printable characters, with credentials removed."""
    line = " ".join(_UNPRINTABLE.sub(" ", _CREDENTIALS.sub(r"\1", text)).split())
    return line if len(line) <= MAX_REASON_CHARS else line[: MAX_REASON_CHARS - 1] + "…"


# --- failures ----------------------------------------------------------------------------------------


def _failure(command: str, result: _CommandResult, timeout_s: float) -> RemoteError:
    if result.status is None:
        return RemoteTimeoutError(f"The git remote did not respond within {timeout_s:.0f} s; try again later")
    reason = printable(_without_hints(result.stderr)) or f"git {command} exited with status {result.status}"
    if _NO_ACCESS.search(result.stderr):
        return RemoteAccessError(f"The git remote denies access to this server: {reason}")
    if is_disk_full_error(result.stderr):
        return RemoteTimeoutError(f"The git remote is unavailable because the disk is full: {reason}")
    # Call this error temporary: a lock that a killed command has left is removed after STALE_LOCK_AGE_S.
    if "cannot lock ref" in result.stderr:
        return RemoteTimeoutError(f"The commits from the git remote can't be stored yet: {reason}")
    return RemoteTimeoutError(f"The git remote did not respond: {reason}")


def _push_failed(result: _CommandResult, timeout_s: float) -> RemoteError:
    if result.status is not None and re.search(
        r"^error: failed to push some refs", result.stderr, re.MULTILINE
    ):
        reason = printable(_without_hints(result.stderr.split("error: failed to push some refs")[0]))
        if not re.search(r"fatal:|disconnect|hung up|^remote:", result.stderr, re.MULTILINE):
            return RemoteRefusedError(f"The pre-push hook rejected this change: {reason}")
    return _failure("push", result, timeout_s)


def _refusal(stderr: str, reason: str) -> str:
    lines = (
        line.removeprefix("remote:").strip() for line in stderr.splitlines() if line.startswith("remote:")
    )
    words = " ".join(line for line in lines if line)
    return printable(words or reason)


def _without_hints(stderr: str) -> str:
    return "\n".join(line for line in stderr.splitlines() if not line.startswith(("hint:", "warning:")))


# --- commands ----------------------------------------------------------------------------------------


def _run(root: Path, timeout_s: float, *arguments: str) -> _CommandResult:
    options = [word for setting in _SETTINGS for word in ("-c", setting)]
    command = ["git", "--no-pager", *options, "-C", str(root), *arguments]
    pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
    try:
        process = subprocess.Popen(
            command, stdin=nothing, stdout=pipe, stderr=pipe, env=_environment(root), start_new_session=True
        )
    except OSError as error:
        raise RemoteTimeoutError(f"git can't be run: {error.strerror}") from error
    readers = [_Reader(stream) for stream in (process.stdout, process.stderr) if stream]
    try:
        status: int | None = _wait(process, max(timeout_s, 0.0))
    except subprocess.TimeoutExpired:
        status = None
        _end(process)
    except BaseException:
        _end(process)
        raise
    stdout, stderr = (reader.text() for reader in readers)
    return _CommandResult(status, stdout, stderr)


def _wait(process: "subprocess.Popen[bytes]", timeout_s: float) -> int:
    if hasattr(os, "pidfd_open"):  # Avoid `Popen.wait`, which polls and returns up to 50 ms late.
        with suppress(OSError):
            ended = os.pidfd_open(process.pid)
            try:
                waiting = select.poll()
                waiting.register(ended, select.POLLIN)
                waiting.poll(timeout_s * 1000)
                timeout_s = 0.0
            finally:
                os.close(ended)
    return process.wait(timeout_s)


class _Reader:
    """Thread that reads all output of a command, but keeps only the first _MAX_OUTPUT_BYTES."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream, self._data = stream, b""
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        with self._stream:
            while data := os.read(self._stream.fileno(), 8192):
                self._data += data[: _MAX_OUTPUT_BYTES - len(self._data)]

    def text(self) -> str:
        # Do not wait forever, because another process may still have the output open.
        self._thread.join(_TERMINATE_TIMEOUT_S)
        return self._data.decode(errors="replace")


def _end(process: "subprocess.Popen[bytes]") -> None:
    for signal_number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal_number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_TERMINATE_TIMEOUT_S)


def _environment(root: Path) -> Mapping[str, str]:
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name != "SSH_ASKPASS" and (not name.startswith("GIT_") or name.startswith(_INHERITED_VARIABLES))
    }
    environment = {**inherited, **_ENVIRONMENT}
    if not (
        "GIT_SSH_COMMAND" in environment
        or "GIT_SSH" in environment
        or _has_own_ssh(root, _git_settings_cache_key(root))
    ):
        environment["GIT_SSH_COMMAND"] = _SSH_COMMAND
    return environment


def _git_settings_cache_key(root: Path) -> object:
    place = location(root)
    return file_mark_of(place.common / "config") if place else None, int(time.monotonic() / SSH_COMMAND_TTL_S)


# The cache saves 1.7 ms for each command that contacts a remote.
@lru_cache(maxsize=16)
def _has_own_ssh(root: Path, mark: object) -> bool:
    output = git(root, "config", "--show-scope", "--get-all", "core.sshCommand") or ""
    # Lines with the scope `command` come from Bifolio itself, which passes a value on the command line.
    return any(not line.startswith("command\t") for line in output.splitlines())


def _remove_stale_lock(root: Path, ref: str) -> None:
    folder = git(root, "rev-parse", "--git-path", f"{ref}.lock")
    if folder:
        lock = root / folder.strip()
        with suppress(OSError):
            # If the age is negative, the clock was set back. Such a lock is also removed, or it could remain
            # for hours.
            if not 0 <= time.time() - lock.stat().st_mtime <= STALE_LOCK_AGE_S:
                lock.unlink()
