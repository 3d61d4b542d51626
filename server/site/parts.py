"""Interfaces and callbacks that connect a site to the rest of the server."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from server.errors import BifolioError
from server.site.change import Report
from server.site.commits.message import Authorship
from server.site.replica import State
from server.site.writing.preparing import Prepare, Request, Result


class ReadOnlySiteError(BifolioError):
    """Raised when something tries to write to a site that was opened read-only, which is a bug."""

    def __init__(self) -> None:
        super().__init__("this site was opened read-only; open it in a mode that allows writes")


class Arbiter(Protocol):
    """Interface to the arbiter, which changes files only after the git remote has accepted the change."""

    def write(
        self, authorship: Authorship, prepare: Prepare[Request, Result], request: Request
    ) -> tuple[State, Result, str]:
        """Write files like `Site.write`, after the git remote has accepted the write."""

    def commit(
        self,
        contents: Callable[[], Mapping[str, bytes | Path | None]],
        message: str,
        documents: list[str],
        authorship: Authorship,
    ) -> str:
        """Commit the files returned by `contents`, after the git remote has accepted the commit.

        `documents` are listed at the end of the commit message.
        """

    def checkout_permission(self, base: str, commit: str) -> AbstractContextManager[bool]:
        """Context manager around the checkout of a commit. See the function `checkout_permission` below."""


@dataclass(frozen=True, slots=True)
class SiteConnections:
    """A site's connections to the rest of the server.

    - `make_arbiter`: called to create the arbiter before the first write that must be pushed to the git
      remote. If it is None, the site is read-only.
    - `report`: called after each write by this process
    - `request_reload`: called to request new workers after a schema change in a large site
    """

    make_arbiter: Callable[[], Arbiter] | None = None
    report: Report | None = None
    request_reload: Callable[[], None] | None = None


def checkout_permission(arbiter: Arbiter | None, base: str, commit: str) -> AbstractContextManager[bool]:
    """Context manager around the checkout of `commit`, which is based on `base`.

    Yields whether the checkout is allowed. An arbiter asks the git remote; without an arbiter, the checkout
    is always allowed. Raises RemoteError.
    """
    if arbiter:
        return arbiter.checkout_permission(base, commit)
    return nullcontext(True)
