"""Folders of media files. Their names must differ in more than case and Unicode normalization."""

from collections.abc import Iterable
from posixpath import dirname

from server.documents.document import Document
from server.documents.ids import to_nfc
from server.errors import ConflictError
from server.storage.media import upload_path


def folders_of(files: Iterable[Document]) -> dict[str, str]:
    """Return the folders of media files. The keys are their paths in lower case and Unicode NFC."""
    found: dict[str, str] = {}
    for path in {dirname(file.path) for file in files}:
        folder = upload_path(path) or ""
        while folder and found.get(_folded(folder)) != folder:
            found[_folded(folder)] = folder
            folder = dirname(folder)
    return found


def existing_folder(requested: str, folders: dict[str, str]) -> str:
    """Return the existing folder that matches `requested`, or add `requested` to `folders` and return it.

    Unicode normalization is ignored. Raises ConflictError if an existing folder differs only in case.
    """
    # Some file systems ignore case, and some store names in Unicode NFD.
    folder = ""
    for part in filter(None, requested.split("/")):
        wanted = f"{folder}/{part}".lstrip("/")
        folder = folders.setdefault(_folded(wanted), wanted)
        if to_nfc(folder) != to_nfc(wanted):
            raise ConflictError(f'The folder "{wanted}" differs from "{folder}" only in case; use "{folder}"')
    return folder


def _folded(name: str) -> str:
    return to_nfc(to_nfc(name).casefold())
