"""The media files of a commit, in the bytes that they had."""

from server.history.past import PastStates
from server.storage.git.tree import Blob


def replaced_file(past: PastStates, commit: str, path: str) -> Blob | None:
    """What a media file of a commit held, if it was replaced or removed since; None if it is as it was."""
    blob = past.at(commit).known.blobs.get(path)
    return None if blob is None or past.is_as_today(path, blob) else blob
