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
    """Raised if code writes to a site that was opened read-only, which is a bug."""

    def __init__(self) -> None:
        super().__init__("this site was opened read-only; open it in a mode that allows writes")


class Arbiter(Protocol):
    """Interface to the arbiter, which applies each write only after the git remote has accepted it."""

    def write(
        self, by: Authorship, prepare: Prepare[Request, Result], request: Request
    ) -> tuple[State, Result, str]:
        """Write files like `Site.write`, after the git remote has accepted the write."""

    def commit(
        self,
        contents: Callable[[], Mapping[str, bytes | Path | None]],
        message: str,
        documents: list[str],
        by: Authorship,
    ) -> str:
        """Commit the current contents of some files, after the git remote has accepted the commit.

        `contents` is called to get the contents. `documents` are the names to list at the end of the commit
        message.
        """

    def agreeing(self, base: str, commit: str) -> AbstractContextManager[bool]:
        """Context manager around the checkout of a commit. See the function `agreeing`."""


@dataclass(frozen=True, slots=True)
class Parts:
    """A site's connections to the rest of the server. A site without `make_arbiter` is read-only.

    - `make_arbiter`: called to create the arbiter before the first write that needs the git remote
    - `report`: called after each write by this process
    - `request_reload`: called to ask the supervisor for new workers after a schema change in a large site
    """

    make_arbiter: Callable[[], Arbiter] | None = None
    report: Report | None = None
    request_reload: Callable[[], None] | None = None


def agreeing(arbiter: Arbiter | None, base: str, commit: str) -> AbstractContextManager[bool]:
    """Context manager around the checkout of `commit`, which is based on `base`. Yields whether to check it
    out.

    If there is an arbiter, it first asks the git remote to accept the commit. Raises RemoteError.
    """
    if arbiter:
        return arbiter.agreeing(base, commit)
    return nullcontext(True)
