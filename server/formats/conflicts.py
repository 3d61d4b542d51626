"""Detection of the conflict markers that git writes to files when a merge fails."""

import re

from server.formats.tree import SyntaxProblem

_BEGINS = "<<<<<<< "
# The attribute `conflict-marker-size` of git makes markers longer.
_BEGIN_LINE = re.compile(r"(<{7,}) ")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")


def check_conflict(text: str) -> None:
    """Raise SyntaxProblem if a YAML, JSON or TOML text contains git conflict markers.

    The error contains the position of the first conflict.
    """
    if _BEGINS in text:
        _refuse(_first(text.split("\n")))


def check_conflict_in_body(text: str, start: int = 0) -> None:
    """Raise SyntaxProblem if a Markdown text contains git conflict markers outside of fenced code blocks.

    Code blocks are ignored because a page about git may show a conflict. The text before index `start` is
    front matter, which has no code blocks.
    """
    if _BEGINS in text:
        above, below = text[:start].split("\n")[:-1], text[start:].split("\n")
        _refuse(_first([*above, *_without_fenced(below)]))


def has_conflict(text: str) -> bool:
    """Whether the body of a Markdown file contains git conflict markers."""
    return _BEGINS in text and _first(_without_fenced(text.split("\n"))) is not None


def _without_fenced(lines: list[str]) -> list[str]:
    """Return the lines of a Markdown text, with "" in place of each line in a fenced code block."""
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
    """Return the index of the line that closes the code block that begins on line `at`, or None if the code
    block is not closed. `fence` is the string of backticks or tildes that opened it.
    """
    for i in range(at + 1, len(lines)):
        found = _FENCE.match(lines[i])
        if found and found[1].startswith(fence) and not lines[i].strip().strip(fence[0]):
            return i
    return None


def _first(lines: list[str]) -> int | None:
    """Return the index of the first line of a git conflict, or None if there is no conflict.

    A conflict is recognized by its three markers, which must occur in the right order.
    """
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
