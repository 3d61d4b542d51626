"""The folder that an export goes to: whether it may be used, and opening it for one export at a time."""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from server.errors import SetupError
from server.paths import CONTENT, FOLDER, TYPES
from server.site.site import Site
from server.tools.export.folder import Folder
from server.tools.export.manifest import NAME, Manifest, read_manifest

_STAGE = ".quire-export-"  # the beginning of the name of the folder for files that are being written


def check_target(target: Path, site: Site) -> None:
    """Raise SetupError for a folder that holds the site, or is a folder of the site's own files."""
    real = target.resolve()
    if site.root.is_relative_to(real):
        what = "holds the site itself"
        raise SetupError(str(target), None, what, "name a folder of its own, such as public")
    for folder in (*site.roots, CONTENT, TYPES, FOLDER, ".git"):
        inside = (site.root / folder).resolve()
        if real.is_relative_to(inside) or inside.is_relative_to(real):
            what = f"is where the site has its files ({folder or 'content in its own folder'})"
            raise SetupError(str(target), None, what, "name a folder of its own, such as public")


@contextmanager
def opened(root: Path, manifest: Manifest, *, force: bool) -> Iterator[Folder]:
    """The folder to export into, made if it is missing, and locked against other exports.

    Raises SetupError if it holds files that are not of an export, or an export for another role.
    """
    with _errors(root), _locked(root):
        earlier = _earlier(root, manifest, force=force)
        for left in root.glob(f"{_STAGE}*"):  # These are of an export that was killed.
            shutil.rmtree(left, ignore_errors=True)
        with tempfile.TemporaryDirectory(prefix=_STAGE, dir=root) as stage:
            yield Folder(root, Path(stage), manifest, earlier, force=force)


@contextmanager
def _errors(root: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        path = str(error.filename2 or error.filename or root)
        if _STAGE in path:  # A path that only this module knows.
            path = str(root)
        what = f"can't be exported: {error.strerror}"
        raise SetupError(path, None, what, "fix it and export again") from error


@contextmanager
def _locked(root: Path) -> Iterator[None]:
    root.mkdir(parents=True, exist_ok=True)
    lock = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(lock)
        raise SetupError(str(root), None, "another export is at work there", "wait for it") from error
    try:
        yield
    finally:
        os.close(lock)


def _earlier(root: Path, manifest: Manifest, *, force: bool) -> Manifest:
    """The manifest of the last export into a folder. Raises SetupError if no export may go there."""
    try:
        found = read_manifest(root)
    except SetupError:
        if not force:
            raise
        found = None
    nothing = Manifest("", "")
    if force:
        return found or nothing
    if found is None:
        if any(not name.startswith(_STAGE) for name in os.listdir(root)):
            what = f"is not empty and has no {NAME} of an earlier export"
            raise SetupError(str(root), None, what, "name an empty folder, or use --force")
        return nothing
    if found.files and (found.role, found.drafts) != (manifest.role, manifest.drafts):
        drafts = " with drafts" if found.drafts else ""
        what = f"holds an export of what {found.role} may see{drafts}"
        raise SetupError(str(root), None, what, "name another folder, or use --force")
    return found
