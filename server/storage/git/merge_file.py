"""Three-way merge with `git merge-file`."""

import os
import re
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from server.storage.git.tree import MERGE_TIMEOUT_S, merge_flag

_MARKER_RUN = re.compile(r"^([<|=>])\1*", re.MULTILINE)
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_MIN_MARKER_CHARS = 40  # Longer than git's usual markers, so that markers in the text are left alone.
MAX_CONFLICTS = 127  # The exit status of `git merge-file` is the number of conflicts, up to this limit.
IN_PLACE_TIMEOUT_S = 120.0


@dataclass(frozen=True, slots=True)
class ConflictRegion:
    """Lines of one conflict, in each of the three versions of a file."""

    ours: str
    base: str
    theirs: str


@dataclass(frozen=True, slots=True)
class MergedText:
    """Merged text in four variants, which differ only in the conflicts.

    For each conflict, `ours`, `base` and `theirs` contain the lines of the version with that name, and
    `common` contains no lines.
    """

    ours: str
    base: str
    theirs: str
    common: str


def merge_text_with_conflicts(base: str, ours: str, theirs: str) -> MergedText | None:
    """Merge `ours` and `theirs` line by line. `base` is their common ancestor.

    Return None if git can't merge them.
    """
    texts = (base, ours, theirs)
    newline = "\r\n" if merge_flag(*("\r\n" in text for text in texts)) else "\n"
    end = "\n" if merge_flag(*(text.endswith("\n") for text in texts)) else ""
    parts = _merge_parts(*(text.replace("\r\n", "\n").removesuffix("\n") + "\n" for text in texts))
    if parts is None:
        return None

    def text_of(side: str) -> str:
        found = "".join(part if isinstance(part, str) else getattr(part, side, "") for part in parts)
        return (found.removesuffix("\n") + end).replace("\n", newline)

    return MergedText(text_of("ours"), text_of("base"), text_of("theirs"), text_of("none"))


def _merge_parts(base: str, ours: str, theirs: str) -> list[str | ConflictRegion] | None:
    runs = (found[0] for text in (base, ours, theirs) for found in _MARKER_RUN.finditer(text))
    size = max(_MIN_MARKER_CHARS, *(len(run) + 1 for run in runs), 0)
    labels = (word for name in ("ours", "base", "theirs") for word in ("-L", name))
    options = ("--stdout", "--quiet", "--diff3", f"--marker-size={size}", *labels)
    # Remove GIT_DIR, so that the repository's settings have no effect.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    with tempfile.TemporaryDirectory(prefix="bifolio-") as folder:
        try:
            for name, text in (("base", base), ("ours", ours), ("theirs", theirs)):
                (Path(folder) / name).write_bytes(text.encode())
            done = subprocess.run(
                ["git", "merge-file", *options, "ours", "base", "theirs"],
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=MERGE_TIMEOUT_S,
                check=False,
            )
        except (OSError, UnicodeEncodeError, subprocess.TimeoutExpired):
            return None
    if not 0 <= done.returncode <= MAX_CONFLICTS:
        return None
    return list(_parts(done.stdout.decode(), size))


def _parts(output: str, size: int) -> Iterator[str | ConflictRegion]:
    markers = {f"{'<' * size} ours\n", f"{'|' * size} base\n", f"{'=' * size}\n", f"{'>' * size} theirs\n"}
    collected: list[str] = [""]  # merged lines; after a conflict, also its lines in ours, base, theirs
    for line in _LINE.findall(output):
        if line not in markers:
            collected[-1] += line
        elif line.startswith(">"):
            yield collected[0]
            yield ConflictRegion(*collected[1:])
            collected = [""]
        else:
            collected.append("")
    yield collected[0]


def merge_in_place(ours: Path, base: Path, theirs: Path, size: int, labels: Sequence[str]) -> bool:
    """Merge `theirs` into the file `ours`, as git would. Return True if there were no conflicts.

    If git can't merge the files, return False and leave `ours` unchanged. `size` is the number of characters
    of a conflict marker, and `labels` are the names in the markers.
    """
    named = [word for label in labels for word in ("-L", label)]
    command = ["git", "merge-file", "--quiet", f"--marker-size={size}", *named]
    try:
        done = subprocess.run(
            [*command, "--", str(ours), str(base), str(theirs)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=IN_PLACE_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def conflict_style() -> str:
    """Return git's `merge.conflictStyle` setting, or "" if it is not set."""
    try:
        done = subprocess.run(
            ["git", "config", "merge.conflictStyle"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=MERGE_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode(errors="replace").strip()
