"""The media files of a commit, in the bytes that they had."""

import os
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import IO

from server.errors import NotFoundError, StorageError
from server.history.past import PastStates
from server.storage.git.tree import Blob, copy_blob


def replaced_file(past: PastStates, commit: str, path: str) -> Blob | None:
    """What a media file of a commit held, if it was replaced or removed since; None if it is as it was."""
    blob = past.at(commit).known.blobs.get(path)
    return None if blob is None or past.is_as_today(path, blob) else blob


def open_blob(root: Path, blob: Blob) -> IO[bytes]:
    """A file without a name that holds what is in a blob.

    Raises NotFoundError where the clone does not have it, StorageError where the disk is full.
    """
    try:
        with ExitStack() as opened:
            file = opened.enter_context(tempfile.TemporaryFile(prefix="quire-"))
            if not copy_blob(root, blob.id, file):
                raise NotFoundError()
            file.seek(0)
            opened.pop_all()
            return file
    except OSError as error:
        raise StorageError(f"The file can't be read: {os.strerror(error.errno or 0)}") from error
