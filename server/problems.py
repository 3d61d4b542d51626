"""A problem: something wrong in a site's files that must not take anything else down."""

from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning"]


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One thing wrong with one file.

    An `error` keeps the file from being served (its last good version stays); a `warning` does
    not. `path` is relative to the site; `line` counts from 1, None where no line can be named.
    """

    path: str
    line: int | None
    message: str
    mend: str = ""
    severity: Severity = "error"

    def __str__(self) -> str:
        where = f"{self.path}:{self.line}" if self.line else self.path
        return f"{where}: {self.message}" + (f" ({self.mend})" if self.mend else "")
