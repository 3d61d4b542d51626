"""Interfaces between a site and the server that opens it."""

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
    """Error raised if code tries to write to a site that was opened read-only, which is a bug."""

    def __init__(self) -> None:
        super().__init__("this site was opened read-only; open it in a mode that allows writes")


class Arbiter(Protocol):
    """Writer that changes files only after the git remote has accepted the changes."""

    def write(
        self, authorship: Authorship, prepare: Prepare[Request, Result], request: Request
    ) -> tuple[State, Result, str]: ...

    def commit(
        self,
        contents: Callable[[], Mapping[str, bytes | Path | None]],
        message: str,
        documents: list[str],
        authorship: Authorship,
    ) -> str: ...

    def checkout_permission(self, base: str, commit: str) -> AbstractContextManager[bool]: ...


@dataclass(frozen=True, slots=True)
class SiteConnections:
    """The connections of a site to the server that opened it.

    If `make_arbiter` is None, the site is read-only. `report` is called after each write by this process.
    `request_reload` is called if a large site needs new workers. `is_next_generation` is set if
    `Site.start_new_generation` will be called.
    """

    make_arbiter: Callable[[], Arbiter] | None = None
    report: Report | None = None
    request_reload: Callable[[], None] | None = None
    is_next_generation: bool = False


def checkout_permission(arbiter: Arbiter | None, base: str, commit: str) -> AbstractContextManager[bool]:
    """Return a context manager whose value is True if `commit`, a child of `base`, may be checked out.

    An arbiter first pushes the commit to the git remote, which can reject it. Without an arbiter, the value
    is always True. Raises RemoteError if the git remote is unavailable.
    """
    if arbiter:
        return arbiter.checkout_permission(base, commit)
    return nullcontext(True)
