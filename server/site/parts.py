"""Connections of a site to the rest of the server: functions that `server.service.opening` passes to it."""

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
    """Raised if `write` is called for a site that was opened read-only, which is a programming error."""

    def __init__(self) -> None:
        super().__init__("this site was opened read-only; open it in a mode that allows writes")


class Arbiter(Protocol):
    """Interface to the arbiter, which asks a git remote to accept each write and then applies the write."""

    def write(
        self, by: Authorship, prepare: Prepare[Request, Result], request: Request
    ) -> tuple[State, Result, str]:
        """Write files as `Site.write` does, but only after the git remote has accepted the write."""

    def commit(
        self,
        contents: Callable[[], Mapping[str, bytes | Path | None]],
        message: str,
        documents: list[str],
        by: Authorship,
    ) -> str:
        """Commit the current contents of some files, after the git remote has accepted the commit.

        `contents` returns these contents. `documents` contains the names that are listed at the end of the
        commit message.
        """

    def agreeing(self, base: str, commit: str) -> AbstractContextManager[bool]:
        """Context manager: surrounds the checkout of an existing commit. See the function `agreeing`."""


@dataclass(frozen=True, slots=True)
class Parts:
    """Functions that connect a site to the rest of the server. A site without `make_arbiter` is read-only.

    - `make_arbiter` creates the arbiter, which asks the git remote to accept each write. It is called in the
      process that writes, before the first write that needs the remote.
    - `report` is called after each write by this process.
    - `request_reload` asks the supervisor to start new workers after a schema change in a large site.
    """

    make_arbiter: Callable[[], Arbiter] | None = None
    report: Report | None = None
    request_reload: Callable[[], None] | None = None


def agreeing(arbiter: Arbiter | None, base: str, commit: str) -> AbstractContextManager[bool]:
    """Context manager: surrounds the checkout of an existing commit, which is based on the commit `base`.

    If the settings require that a git remote accepts each write, the remote has accepted the commit when the
    block begins. If other people have pushed commits first, their commits are checked out instead of this
    commit, and the context manager yields False. Raises RemoteError.
    """
    if arbiter:
        return arbiter.agreeing(base, commit)
    return nullcontext(True)
