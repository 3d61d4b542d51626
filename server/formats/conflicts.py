"""Detection of unresolved git merge conflicts in files."""

import re

from server.formats.tree import SyntaxProblem

_BEGINS = "<<<<<<< "
# Markers can be longer than seven characters, because git has the attribute `conflict-marker-size`.
_BEGIN_LINE = re.compile(r"(<{7,}) ")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")


def check_conflict(text: str) -> None:
    """Raise SyntaxProblem if the text of a YAML, JSON or TOML file contains an unresolved git merge
    conflict.
    """
    if _BEGINS in text:
        _refuse(_first(text.split("\n")))


def check_conflict_in_body(text: str, start: int = 0) -> None:
    """Raise SyntaxProblem if the text of a Markdown file contains an unresolved git merge conflict.

    Fenced code blocks from index `start` onward are ignored.
    """
    if _BEGINS in text:
        above, below = text[:start].split("\n")[:-1], text[start:].split("\n")
        _refuse(_first([*above, *_without_fenced(below)]))


def has_conflict(text: str) -> bool:
    return _BEGINS in text and _first(_without_fenced(text.split("\n"))) is not None


def _without_fenced(lines: list[str]) -> list[str]:
    kept = list(lines)
    at = 0
    while at < len(lines):
        opened = _FENCE.match(lines[at])
        end = _closing(lines, at, opened[1]) if opened else None
        if end is not None:
            kept[at : end + 1] = [""] * (end + 1 - at)
            at = end
        at += 1
    return kept


def _closing(lines: list[str], at: int, fence: str) -> int | None:
    for i in range(at + 1, len(lines)):
        found = _FENCE.match(lines[i])
        if found and found[1].startswith(fence) and not lines[i].strip().strip(fence[0]):
            return i
    return None


def _first(lines: list[str]) -> int | None:
    """Return the line index of the first complete conflict, or None if there is no conflict."""
    begins: int | None = None
    parted, size = False, 0
    for i, line in enumerate(lines):
        if found := _BEGIN_LINE.match(line):
            begins, parted, size = i, False, len(found[1])
        elif begins is not None and line.rstrip("\r") == "=" * size:
            parted = True
        elif begins is not None and parted and line.startswith(f"{'>' * size} "):
            return begins
    return None


def _refuse(index: int | None) -> None:
    if index is not None:
        what = "unresolved merge conflict"
        raise SyntaxProblem(
            what, index + 1, "keep the correct version, and remove git's three marker lines", 1
        )
