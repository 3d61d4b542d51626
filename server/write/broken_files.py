"""Error messages about invalid files, and checks of what these files contain."""

from collections.abc import Container

from server.documents.path_rules import Layout
from server.errors import ConflictError
from server.problems import Problem
from server.schema.model import Type
from server.storage.entry import Entry


def error_in_file(path: str, line: int | None, message: str) -> ConflictError:
    where = f", line {line}" if line else ""
    return ConflictError(f"{path}{where}: {message}; fix the file first")


def conflict_error(problem: Problem, layout: Layout) -> ConflictError:
    return error_in_file(problem.path, problem.line, describe(problem, layout))


def describe(problem: Problem, layout: Layout) -> str:
    """Return a problem's message, without invalid values or the names of private attributes."""
    if problem.rule != "value":
        return problem.message
    claim, name = layout.claim(problem.path), str(problem.at[0])
    attribute = claim.type.attributes.get(name) if claim else None
    hidden = attribute is not None and not attribute.visible
    return "a value is invalid" if hidden else f"the value of {name} is invalid"


def invalid_attributes(entry: Entry) -> frozenset[str]:
    wrong = (p for p in entry.problems if p.severity == "error" and p.rule == "value")
    return frozenset(str(problem.at[0]) for problem in wrong)


def contains_version(
    entry: Entry, layout: Layout, type_: Type, document_id: str | None, locales: Container[str]
) -> bool:
    """Return True if the file of `entry` contains a version of the document in one of `locales`.

    If `document_id` is None, any document of the content type counts.
    """
    claim = layout.claim(entry.path)
    if claim is None or claim.type.uid != type_.uid or claim.locale not in locales:
        return False
    return document_id is None or (entry.document_id or claim.document_id) == document_id
