"""Merges two changes of a text by line, as `git merge-file` does."""

import tempfile
from pathlib import Path

from server.storage.git.command import git_if_possible

LONGEST_S = 3.0  # that git may compare lines; it takes minutes for megabytes of lines that are alike


def merge_text(base: str, ours: str, theirs: str) -> str | None:
    """The text with the lines that either side has changed.

    None where changes of both touch, where that takes too long to tell, and where there is no git. Endings of
    lines, and whether the last one has one, are no part of the lines: there as well, it counts who has
    changed it.
    """
    texts = (base, ours, theirs)
    windows = _changed(*("\r\n" in text for text in texts))
    base, ours, theirs = (text.replace("\r\n", "\n") for text in texts)
    if ours == base or theirs in (ours, base):
        merged: str | None = theirs if ours == base else ours
    else:
        merged = _merge_lines(base, ours, theirs)
    return merged.replace("\n", "\r\n") if merged is not None and windows else merged


def _changed(base: bool, ours: bool, theirs: bool) -> bool:
    """What both sides come to of something that is so or not."""
    return theirs if ours == base else ours


def _merge_lines(base: str, ours: str, theirs: str) -> str | None:
    ended = _changed(*(text.endswith("\n") for text in (base, ours, theirs)))
    with tempfile.TemporaryDirectory(prefix="quire-") as folder:
        try:
            for name, text in (("base", base), ("ours", ours), ("theirs", theirs)):
                body = text.removesuffix("\n")
                (Path(folder) / name).write_bytes(f"{body}\n".encode() if body else b"")
        except UnicodeEncodeError:  # half of a surrogate pair, which a file of JSON can say
            return None
        # Its status is the number of conflicts. Where it fails, that is one for a person as well.
        command = ("merge-file", "--stdout", "--quiet", "ours", "base", "theirs")
        merged = git_if_possible(Path(folder), *command, seconds=LONGEST_S)
    if merged is None:
        return None
    return merged.removesuffix("\n") + "\n" * ended
