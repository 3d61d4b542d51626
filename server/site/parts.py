"""The parts of a site that packages above this one make: `server.service.opening` hands them over."""

from collections.abc import Callable
from dataclasses import dataclass

from server.errors import QuireError
from server.site.change import Report
from server.site.writing.preparing import Arbiter


class ReadOnlySiteError(QuireError):
    """A write was attempted on a site that was opened for reading: a mistake of the program."""

    def __init__(self) -> None:
        super().__init__("this site was opened for reading only; open it with a mode that writes")


@dataclass(frozen=True, slots=True)
class Parts:
    """Collaborators of a site. Without any it can only be read.

    `make_arbiter` is called at the first write that a git remote must take before it is made, in the process
    that writes; a site without it is read-only. `report` is called after each write of this process.
    `ask_for_next` asks for a process that reads a large site anew and replaces those that share a log.
    """

    make_arbiter: Callable[[], Arbiter] | None = None
    report: Report | None = None
    ask_for_next: Callable[[], None] | None = None
