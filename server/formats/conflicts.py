"""Detection of unresolved merge conflicts."""

import re

from server.formats.tree import SyntaxProblem

_START_MARKER = "<<<<<<< "
# Markers can be longer than seven characters, because git has the attribute `conflict-marker-size`.
_START_LINE = re.compile(r"(<{7,}) ")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")


def check_conflict(text: str) -> None:
    """Raise SyntaxProblem if a YAML, JSON or TOML text contains a merge conflict."""
    if _START_MARKER in text:
        _refuse(_first_conflict(text.split("\n")))


def check_conflict_in_body(text: str, body_start: int = 0) -> None:
    """Raise SyntaxProblem if a Markdown text contains a merge conflict.

    Code blocks after the index `body_start` are ignored.
    """
    if _START_MARKER in text:
        above, below = text[:body_start].split("\n")[:-1], text[body_start:].split("\n")
        _refuse(_first_conflict([*above, *_without_code_blocks(below)]))


def has_conflict(text: str) -> bool:
    return _START_MARKER in text and _first_conflict(_without_code_blocks(text.split("\n"))) is not None


def _without_code_blocks(lines: list[str]) -> list[str]:
    kept = list(lines)
    at = 0
    while at < len(lines):
        opened = _FENCE.match(lines[at])
        end = _closing_fence(lines, at, opened[1]) if opened else None
        if end is not None:
            kept[at : end + 1] = [""] * (end + 1 - at)
            at = end
        at += 1
    return kept


def _closing_fence(lines: list[str], index: int, fence: str) -> int | None:
    for i in range(index + 1, len(lines)):
        found = _FENCE.match(lines[i])
        if found and found[1].startswith(fence) and not lines[i].strip().strip(fence[0]):
            return i
    return None


def _first_conflict(lines: list[str]) -> int | None:
    begins: int | None = None
    parted, size = False, 0
    for i, line in enumerate(lines):
        if found := _START_LINE.match(line):
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
