"""Reads, writes and checks the files that commands generate."""

from collections.abc import Mapping
from pathlib import Path

from server.errors import SetupError


def read_file(path: Path) -> bytes | None:
    """Return the content of a file, or None if the file does not exist. Raises SetupError."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SetupError(str(path), None, f"can't be read: {error.strerror}") from error


def refuse_old(path: Path, made: bytes, command: str) -> None:
    """Raise SetupError unless the generated file at `path` contains `made`. `command` is the command that
    generates the file.
    """
    there = read_file(path)
    if there == made:
        return
    fix = f"run `{command}`"
    if there is None:
        raise SetupError(str(path), None, "the file does not exist", fix)
    lines = zip([*there.splitlines(), b""], [*made.splitlines(), b""], strict=False)
    line = next((i for i, (old, new) in enumerate(lines, start=1) if old != new), None)
    raise SetupError(str(path), line, "is out of date", fix)


def write_file(path: Path, made: bytes) -> bool:
    """Write `made` to a generated file, unless the file already contains it. Return whether the file was
    written. Raises SetupError.
    """
    if read_file(path) == made:
        return False
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(made)
    except OSError as error:
        raise SetupError(str(path), None, f"can't be written: {error.strerror}") from error
    return True


def update_file(path: Path, made: bytes, command: str, *, check: bool) -> str:
    """Write a generated file or, if `check` is set, check that it is up to date. Return a message. Raises
    SetupError.
    """
    if check:
        refuse_old(path, made, command)
    wrote = not check and write_file(path, made)
    return f"wrote {path}" if wrote else f"{path} is up to date"


def update_folder(
    files: Mapping[Path, bytes], outdated: list[Path], command: str, *, check: bool
) -> tuple[int, int]:
    """Write generated files and delete outdated files. If `check` is set, only check that neither is
    necessary.

    Return how many files were written and how many were deleted. Raises SetupError.
    """
    if check:
        for path, made in files.items():
            refuse_old(path, made, command)
        for path in outdated:
            raise SetupError(str(path), None, "is no longer generated", f"run `{command}`")
        return 0, 0
    written = sum(write_file(path, made) for path, made in files.items())
    for path in outdated:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise SetupError(str(path), None, f"can't be deleted: {error.strerror}") from error
    return written, len(outdated)
