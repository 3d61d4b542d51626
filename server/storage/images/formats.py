"""The smaller formats of pictures that clients ask for, made once for each content.

They are kept in .bifolio/formats/ under the hash of the picture, and can be deleted at any time. One
picture of a site is scaled at a time, by a process of its own (`scale`).
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

MAX_CPU_S = 20  # Processor time for a picture.
TIMEOUT_S = 1.5 * MAX_CPU_S  # Wall time for a picture while other processes compute.
LOCK_TIMEOUT_S = TIMEOUT_S
RETENTION_S = 30 * 86_400.0  # How long unused formats are kept.
_RECORD_FILE = "formats.json"
_KEY = re.compile(r"[0-9a-f]{32}")
UNSCALABLE_STATUS = os.EX_DATAERR  # The process exits with this if the picture is damaged or too large.
# The exit statuses for which the picture is at fault.
_UNSCALABLE_STATUSES = (UNSCALABLE_STATUS, -signal.SIGXCPU)
_IMPORT_FOLDER = Path(__file__).resolve().parents[3]  # The process imports this package from here.
# Of media types, where the ending is not that.
_SUBTYPES: Mapping[str, str] = {".jpg": "jpeg", ".tif": "tiff"}


log = logging.getLogger("bifolio")


class UnscalableError(Exception):
    """A picture that is damaged, or costs too much to decode."""


def key_of(file: IO[bytes]) -> str:
    """Return the hash of a picture's bytes that its formats are kept under."""
    file.seek(0)
    return hashlib.file_digest(cast(BufferedReader, file), "sha256").hexdigest()[:32]


def cached_formats(folder: Path, key: str, inside: str) -> dict[str, Any] | None:
    """The formats of the image at the upload path `inside`, whose content has the hash `key`, if made."""
    try:
        return described_formats(read_record(folder, key), inside)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def read_record(folder: Path, key: str) -> dict[str, Any]:
    """Return the width, height, bytes and digest of the formats that were made of an image, by name.

    Raises OSError if they are not made, and ValueError if the record is damaged.
    """
    record = read_checked(folder / key / _RECORD_FILE)
    return {name: entry for name, entry in record.items() if name in FORMATS}


def is_whole(folder: Path, key: str, ending: str) -> bool:
    """Return whether the formats of an image are made, and their files are as they were made."""
    try:
        record = read_record(folder, key)
        return all(
            digest_of(format_file(folder, key, name, f"x{ending}")) == entry["digest"]
            for name, entry in record.items()
        )
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return False


def digest_of(path: Path) -> str:
    """Return the digest of a format's file, as its record has it. Raises OSError."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:32]


def described_formats(record: Mapping[str, Mapping[str, int]], inside: str) -> dict[str, Any]:
    """The formats of the image at the upload path `inside`, as the API shows them."""
    return {name: _format_json(name, entry, inside) for name, entry in record.items()}


def make_formats(folder: Path, key: str, file: IO[bytes], ending: str) -> None:
    """Make the formats of an image, unless somebody just did.

    Raises UnscalableError for a picture of which none can be made, OSError if the system does not let it be
    made now or the file no longer has the bytes of the key, and BusyError if others are scaled for long.
    """
    target = folder / key
    folder.mkdir(exist_ok=True)  # never those above it: the site may have been moved
    target.mkdir(exist_ok=True)
    with (
        WriteLock(folder / "lock", folder).held(LOCK_TIMEOUT_S),
        tempfile.TemporaryDirectory(dir=folder) as made,
    ):
        if is_whole(folder, key, ending):
            return
        if (target / _RECORD_FILE).exists():
            log.warning(
                "the formats of a picture in %s are damaged or of an older version; made again", target
            )
            discard_record(folder, key)
        record = Path(made, _RECORD_FILE)
        try:
            formats = json.loads(_run_scaling(file, made, ending.lower()))
            for name, entry in formats.items():
                entry["digest"] = digest_of(Path(made, f"{name}{ending.lower()}"))
            record.write_bytes(encode_checked(formats))
        finally:
            if key_of(file) != key:  # Somebody has saved another picture since the key was computed.
                raise OSError("the picture was replaced")
        for path in sorted(Path(made).iterdir(), key=record.__eq__):  # the record last
            if (target / path.name).is_dir():  # somebody put it there
                _remove(target / path.name)
            path.replace(target / path.name)


def discard_record(folder: Path, key: str) -> None:
    """Remove the record of damaged formats, so that they are made again."""
    record = folder / key / _RECORD_FILE
    if record.exists():
        with suppress(OSError):
            _remove(record)
            os.utime(folder)  # which jobs look at; see `ImageCache.mark`


def _remove(path: Path) -> None:
    """Remove a file, or a folder in its place."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def sweep_formats(folder: Path, find_needed: Callable[[], Set[str]]) -> int:
    """Remove the formats that were made RETENTION_S ago and that nobody needs; return of how many pictures.

    `find_needed` returns the keys that are needed. Those of past commits are not, and are made again once
    somebody asks for them. Nothing is removed while a picture is scaled. Raises OSError.
    """
    removed, oldest = 0, time.time() - RETENTION_S
    try:
        with WriteLock(folder / "lock", folder).held(0.0):
            needed = find_needed()
            for path in list(folder.iterdir()):
                is_left = not _KEY.fullmatch(path.name)  # of a process that was killed
                if path.is_dir() and path.name not in needed and (is_left or path.stat().st_mtime < oldest):
                    shutil.rmtree(path, ignore_errors=True)
                    removed += 1
    except (BusyError, FileNotFoundError):
        pass
    return removed


def _run_scaling(file: IO[bytes], folder: str, ending: str) -> bytes:
    """What the process says of the formats that it wrote into a folder.

    Raises UnscalableError where it is the picture that can't be scaled, OSError where it was something else.
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
            start_new_session=True,  # Ctrl-C in a terminal ends the server, not this.
        )
    except subprocess.TimeoutExpired as error:
        raise OSError(f"it took more than {TIMEOUT_S} seconds") from error
    if done.returncode:
        reason = done.stderr.decode(errors="replace").strip() or f"its process ended: {done.returncode}"
        raise (UnscalableError if done.returncode in _UNSCALABLE_STATUSES else OSError)(reason)
    return done.stdout


def _format_json(name: str, entry: Mapping[str, int], inside: str) -> dict[str, Any]:
    """One format as the API shows it."""
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
    """`a/small_b.png` → (`small`, `a/b.png`): the format and the image that a path may mean."""
    folder, file = posixpath.split(inside)
    name, _, rest = file.partition("_")
    return (name, posixpath.join(folder, rest)) if name in FORMATS and rest else None


def format_file(folder: Path, key: str, name: str, inside: str) -> Path:
    """The file in which a format of an image is kept."""
    return folder / key / f"{name}{posixpath.splitext(inside)[1].lower()}"
