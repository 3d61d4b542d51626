"""Formats (smaller sizes) of pictures, made once per content.

They are kept in .bifolio/formats/ under the picture's hash, and can be deleted at any time. A site scales one
picture at a time, in a separate process (`scale`).
"""

import hashlib
import json
import logging
import os
import posixpath
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Set
from contextlib import suppress
from io import BufferedReader
from pathlib import Path
from typing import IO, Any, cast
from urllib.parse import quote

from server.errors import BusyError
from server.storage.checked_json import encode_checked, read_checked
from server.storage.images.kinds import kilobytes
from server.storage.images.sizes import FORMATS, MAX_DECODED_PIXELS
from server.storage.write_lock import WriteLock

MAX_CPU_S = 20  # Processor time per picture.
TIMEOUT_S = 1.5 * MAX_CPU_S  # Wall time per picture.
LOCK_TIMEOUT_S = TIMEOUT_S
RETENTION_S = 30 * 86_400.0  # How long unused formats are kept.
_RECORD_FILE = "formats.json"
_KEY = re.compile(r"[0-9a-f]{32}")
UNSCALABLE_STATUS = os.EX_DATAERR  # The exit status for a damaged or too large picture.
# Exit statuses caused by the picture.
_UNSCALABLE_STATUSES = (UNSCALABLE_STATUS, -signal.SIGXCPU)
_IMPORT_FOLDER = Path(__file__).resolve().parents[3]  # The process imports this package from here.
# Subtypes of image/ that differ from the ending.
_SUBTYPES: Mapping[str, str] = {".jpg": "jpeg", ".tif": "tiff"}


log = logging.getLogger("bifolio")


class UnscalableError(Exception):
    """A picture is damaged, or too expensive to decode."""


def key_of(file: IO[bytes]) -> str:
    """Return the key of a picture's formats: the hash of its bytes."""
    file.seek(0)
    return hashlib.file_digest(cast(BufferedReader, file), "sha256").hexdigest()[:32]


def cached_formats(folder: Path, key: str, inside: str) -> dict[str, Any] | None:
    """Return the formats of the image at the upload path `inside` with the hash `key`, if made."""
    try:
        return described_formats(read_record(folder, key), inside)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def read_record(folder: Path, key: str) -> dict[str, Any]:
    """Return width, height, bytes and digest of an image's formats, by name.

    Raises OSError if they have not been made yet, ValueError if the record is damaged.
    """
    record = read_checked(folder / key / _RECORD_FILE)
    return {name: entry for name, entry in record.items() if name in FORMATS}


def is_whole(folder: Path, key: str, ending: str) -> bool:
    """Whether an image's formats are made, and undamaged."""
    try:
        record = read_record(folder, key)
        return all(
            digest_of(format_file(folder, key, name, f"x{ending}")) == entry["digest"]
            for name, entry in record.items()
        )
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return False


def digest_of(path: Path) -> str:
    """Return the digest of a format's file. Raises OSError."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:32]


def described_formats(record: Mapping[str, Mapping[str, int]], inside: str) -> dict[str, Any]:
    """Return an image's formats as the API renders them; `inside` is its upload path."""
    return {name: _format_json(name, entry, inside) for name, entry in record.items()}


def make_formats(folder: Path, key: str, file: IO[bytes], ending: str) -> None:
    """Make an image's formats, unless another process just did.

    Raises UnscalableError if the picture can't be scaled, OSError if scaling fails for another reason or the
    file was replaced, and BusyError if other pictures are scaled for too long.
    """
    target = folder / key
    folder.mkdir(exist_ok=True)  # without its parents: the site may have been moved
    target.mkdir(exist_ok=True)
    with (
        WriteLock(folder / "lock", folder).held(LOCK_TIMEOUT_S),
        tempfile.TemporaryDirectory(dir=folder) as temporary,
    ):
        if is_whole(folder, key, ending):
            return
        if (target / _RECORD_FILE).exists():
            log.warning("the formats of a picture in %s are damaged or outdated; creating them again", target)
            discard_record(folder, key)
        record = Path(temporary, _RECORD_FILE)
        try:
            formats = json.loads(_run_scaling(file, temporary, ending.lower()))
            for name, entry in formats.items():
                entry["digest"] = digest_of(Path(temporary, f"{name}{ending.lower()}"))
            record.write_bytes(encode_checked(formats))
        finally:
            if key_of(file) != key:  # The file was replaced since the key was computed.
                raise OSError("the picture was replaced")
        for path in sorted(Path(temporary).iterdir(), key=record.__eq__):  # the record last
            if (target / path.name).is_dir():  # put there by another program
                _remove(target / path.name)
            path.replace(target / path.name)


def discard_record(folder: Path, key: str) -> None:
    """Delete the record of damaged formats, so they are made again."""
    record = folder / key / _RECORD_FILE
    if record.exists():
        with suppress(OSError):
            _remove(record)
            os.utime(folder)  # Notifies the jobs; see `ImageCache.mark`.


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def sweep_formats(folder: Path, find_needed: Callable[[], Set[str]]) -> int:
    """Delete formats older than RETENTION_S that are not needed; return for how many pictures.

    `find_needed` returns the needed keys. Past commits don't count: their formats are made again on request.
    Nothing is deleted while a picture is scaled. Raises OSError.
    """
    removed, oldest = 0, time.time() - RETENTION_S
    try:
        with WriteLock(folder / "lock", folder).held(0.0):
            needed = find_needed()
            for path in list(folder.iterdir()):
                is_left = not _KEY.fullmatch(path.name)  # by a killed process
                if path.is_dir() and path.name not in needed and (is_left or path.stat().st_mtime < oldest):
                    shutil.rmtree(path, ignore_errors=True)
                    removed += 1
    except (BusyError, FileNotFoundError):
        pass
    return removed


def _run_scaling(file: IO[bytes], folder: str, ending: str) -> bytes:
    """Run the scaling process; return its output.

    Raises UnscalableError if the picture is the cause of a failure, otherwise OSError.
    """
    arguments = (folder, ending, str(MAX_DECODED_PIXELS))
    command = [sys.executable, "-P", "-m", "server.storage.images.scale", *arguments]
    path = os.pathsep.join(filter(None, (str(_IMPORT_FOLDER), os.environ.get("PYTHONPATH"))))
    file.seek(0)
    try:
        done = subprocess.run(
            command,
            stdin=file,
            capture_output=True,
            timeout=TIMEOUT_S,
            env={**os.environ, "PYTHONPATH": path},
            start_new_session=True,  # so that Ctrl-C does not interrupt it
        )
    except subprocess.TimeoutExpired as error:
        raise OSError(f"scaling took more than {TIMEOUT_S} s") from error
    if done.returncode:
        reason = done.stderr.decode(errors="replace").strip() or f"its process ended: {done.returncode}"
        raise (UnscalableError if done.returncode in _UNSCALABLE_STATUSES else OSError)(reason)
    return done.stdout


def _format_json(name: str, entry: Mapping[str, int], inside: str) -> dict[str, Any]:
    folder, file = posixpath.split(inside)
    stem, ending = posixpath.splitext(file)
    size = entry["bytes"]
    return {
        "name": f"{name}_{file}",
        "hash": f"{name}_{stem}",
        "ext": ending,
        "mime": f"image/{_SUBTYPES.get(ending.lower(), ending[1:].lower())}",
        "path": None,
        "width": entry["width"],
        "height": entry["height"],
        "size": kilobytes(size),
        "sizeInBytes": size,
        "url": "/uploads/" + quote(posixpath.join(folder, f"{name}_{file}")),
    }


def format_of(inside: str) -> tuple[str, str] | None:
    """Split `a/small_b.png` into the format and the image, (`small`, `a/b.png`)."""
    folder, file = posixpath.split(inside)
    name, _, rest = file.partition("_")
    return (name, posixpath.join(folder, rest)) if name in FORMATS and rest else None


def format_file(folder: Path, key: str, name: str, inside: str) -> Path:
    """Return the path of a format's file."""
    return folder / key / f"{name}{posixpath.splitext(inside)[1].lower()}"
