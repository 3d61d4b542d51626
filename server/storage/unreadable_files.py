"""Treatment of unreadable files: their last valid documents are still served (spec.md 1)."""

import logging
import os
import re
from pathlib import Path

from server.documents.document import equal
from server.documents.ids import to_nfc
from server.formats.tree import SyntaxProblem
from server.problems import Problem, Severity
from server.storage.entry import Entry
from server.storage.files import signature

log = logging.getLogger("bifolio")

_OWN_ID = re.compile(rb'^[ \t]*"?documentId"?[ \t]*[:=][ \t]*["\']?([^"\'\s,#/]+)', re.MULTILINE)


def unreadable_entry(root: Path, path: str, problem: Problem) -> Entry:
    try:
        signature_ = signature(os.stat(root / path))
    except OSError:
        signature_ = None
    return Entry(path, signature_, None, (problem,))


def find_own_id(data: bytes) -> str:
    found = _OWN_ID.search(data)
    return to_nfc(found[1].decode(errors="replace")) if found else ""


def last_good_entry(before: Entry | None, after: Entry | None) -> Entry | None:
    """Return `after`, with the document of `before` if the file is invalid or its values are unchanged."""
    if before is None or before.document is None or after is None:
        return after
    if after.broken or (after.document and equal(before.document, after.document)):
        return after._replace(document=before.document)
    return after


def syntax_problem(path: str, error: SyntaxProblem, severity: Severity = "error") -> Problem:
    return Problem(path, error.line, error.message, error.fix, severity, error.column, "syntax")


def problem_of(path: str, error: Exception) -> Problem:
    """Convert an exception raised while reading a file to a problem. Unexpected exceptions are logged."""
    if isinstance(error, SyntaxProblem):
        return syntax_problem(path, error)
    if isinstance(error, OSError):
        return Problem(path, None, f"can't be read: {error.strerror}", "check its permissions")
    log.error("%s can't be read", path, exc_info=error)
    message = f"can't be read: {type(error).__name__}: {error}"
    return Problem(path, None, message, "remove the part of the file that causes this error")
