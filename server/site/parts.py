"""Collaborators of a site that higher packages provide through `server.service.opening`."""

from collections.abc import Callable
from dataclasses import dataclass

from server.errors import QuireError
from server.site.change import Report
from server.site.writing.preparing import Arbiter


class ReadOnlySiteError(QuireError):
    """A write to a site that was opened for reading. It is a mistake of the program."""

    def __init__(self) -> None:
        super().__init__("this site was opened for reading only; open it with a mode that writes")


@dataclass(frozen=True, slots=True)
class Parts:
    """Collaborators of a site. A site without `make_arbiter` is read-only.

    - `make_arbiter` creates the object that pushes a write to the git remote before the write is applied. It
      is called at the first such write, in the process that writes.
    - `report` is called after each write of this process.
    - `request_reload` asks the supervisor for new workers after a schema change of a large site.
    """

    make_arbiter: Callable[[], Arbiter] | None = None
    report: Report | None = None
    request_reload: Callable[[], None] | None = None
