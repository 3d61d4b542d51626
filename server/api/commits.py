"""The headers `Bifolio-After` and `Bifolio-Commit`, which contain commit ids."""

import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from server.api.environ import GONE, IN_PLACE
from server.api.response import NO_STORE, Environ, Representation, without
from server.bounded import Cache
from server.errors import ClientGone, CommitNotServedError, NeedsThreadPool, ValidationError
from server.site.site import Site, State
from server.storage.git.command import git
from server.storage.git.refs import is_ancestor

# --- waiting --------------------------------------------------------------------------------------

AFTER_KEY = "HTTP_BIFOLIO_AFTER"
COMMIT_TIMEOUT_S = 2.0  # Maximum wait for a commit.
MAX_WAITING_REQUESTS = 8  # Maximum per process.
WAKE_INTERVAL_S = 0.5  # Minimum time between two checks of the remote.
_POLL_INTERVAL_S = 0.02
# Size limit of the cache of served commits, and the size of one item, in bytes.
_MAX_BYTES, _ENTRY_BYTES = 256 * 1024, 300
PATTERN = "^[0-9a-fA-F]{7,64}(; changed)?$"  # Matches the value of both headers.
_ID = re.compile(r"([0-9a-f]{7,64})(?: *; *changed)?", re.IGNORECASE | re.ASCII)


class CommitWaiter:
    """Service that makes requests wait until the commit in `Bifolio-After` is served. Thread-safe."""

    def __init__(self, site: Site, wake: Callable[[], None]) -> None:
        self.site, self._ask = site, wake
        self._waiting = threading.BoundedSemaphore(MAX_WAITING_REQUESTS)
        # The cache saves 2.7 of the 4.3 ms that a read with the header Bifolio-After takes.
        self._there: Cache[tuple[str, str], bool] = Cache(_MAX_BYTES, lambda *_: _ENTRY_BYTES)
        self._woken = 0.0

    def wait_for_commit(self, environ: Environ, state: State) -> State:
        """Wait until the site serves the requested commit, and return the site's state.

        Raises ValidationError if the header is invalid, and CommitNotServedError after a timeout or if too
        many requests are already waiting.
        """
        wanted = _read(environ[AFTER_KEY])
        if self._is_known(wanted, state.commit):
            return state
        if IN_PLACE in environ:
            raise NeedsThreadPool(costly=False)
        if not self._waiting.acquire(blocking=False):
            raise CommitNotServedError("Too many requests are waiting for commits to be served; try again")
        try:
            return self._wait(wanted, environ)
        finally:
            self._waiting.release()

    def _wait(self, commit_id: str, environ: Environ) -> State:
        deadline, looked_at = time.monotonic() + COMMIT_TIMEOUT_S, ""
        while True:
            self.site.catch_up()
            state = self.site.state
            if state.commit and state.commit != looked_at:
                if self._is_there(commit_id, state.commit):
                    return state
                looked_at = state.commit
            self._wake()
            if time.monotonic() > deadline:
                raise CommitNotServedError()
            gone = environ.get(GONE)
            if gone is not None and gone():
                raise ClientGone()
            time.sleep(_POLL_INTERVAL_S)

    def _is_known(self, commit_id: str, commit: str) -> bool:
        return bool(commit) and (commit.startswith(commit_id) or bool(self._there.get((commit, commit_id))))

    def _is_there(self, commit_id: str, commit: str) -> bool:
        found = self._is_known(commit_id, commit) or _is_in(self.site.root, commit_id, commit)
        if found:
            self._there.put((commit, commit_id), True)
        return found

    def _wake(self) -> None:
        if time.monotonic() - self._woken > WAKE_INTERVAL_S:
            self._woken = time.monotonic()
            self._ask()


def _is_in(root: Path, commit_id: str, commit: str) -> bool:
    full = (git(root, "rev-parse", "--verify", "--quiet", f"{commit_id}^{{commit}}") or "").strip()
    # If `wanted` happens to be the name of a branch, `full` does not start with it.
    return full.startswith(commit_id) and is_ancestor(root, full, commit)


def _read(text: str) -> str:
    found = _ID.fullmatch(text.strip())
    if found is None:
        raise ValidationError(
            "The Bifolio-After header must contain a commit id of at least 7 hexadecimal digits"
        )
    return found[1].lower()


# --- header ---------------------------------------------------------------------------------------

COMMIT_HEADER = "Bifolio-Commit"
CHANGED_SUFFIX = "; changed"  # Follows the commit id if there are uncommitted changes.
# The response for a full commit id never changes, but permissions can, so shared caches must not store it.
IMMUTABLE = ("Cache-Control", "private, max-age=31536000, immutable")
# Responses to file reads contain an entity tag if they have one of these statuses.
FILE_STATUSES = ("200", "206", "304")


@dataclass(frozen=True, slots=True)
class RequestedCommit:
    """The past commit that a request reads from.

    - `is_permanent`: whether the URL contains the full commit id and the response does not depend on current
      settings.
    - `has_all_images`: whether all resized variants of the commit's images exist.
    """

    id: str
    is_permanent: bool
    has_all_images: bool = True


def with_commit_caching(commit: RequestedCommit, representation: Representation) -> Representation:
    """Return the response, marked as immutable if it can never change."""
    if not (commit.is_permanent and commit.has_all_images) or not (
        representation.etag or representation.status.startswith(FILE_STATUSES)
    ):
        return representation
    if ("Cache-Control", NO_STORE) in representation.headers:
        return representation
    return representation._replace(headers=(*without(representation.headers, "Cache-Control"), IMMUTABLE))


def commit_of(state: State) -> str:
    return state.commit + CHANGED_SUFFIX if state.has_uncommitted_changes else state.commit
