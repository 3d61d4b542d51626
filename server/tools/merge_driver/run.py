"""Merge of one file for the merge driver."""

import os
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from server.config.model import Settings
from server.config.reader import survey_settings
from server.documents.path_rules import ENDINGS, MARKDOWN
from server.documents.timestamps import now
from server.formats.conflict_markers import Labels, mark_conflicts
from server.formats.frontmatter import split_front_matter
from server.history.merging.single_file import MergedFile, Texts, merge_file, store_without_attributes
from server.paths import SETTINGS, TYPES
from server.schema.load import read_all_content_types
from server.storage.files import is_ignored, is_utf_8
from server.storage.git.merge_file import conflict_style, merge_in_place
from server.storage.media import upload_path
from server.storage.read import BOM, MAX_FILE_BYTES
from server.storage.store import Store

_COMMENT = re.compile(r"(?:^|[ \t])#(.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class MergeFiles:
    """The arguments that git passes to the driver.

    `is_ancestor` is set if the result will be used as the base of another merge.
    """

    base: Path
    ours: Path
    theirs: Path
    marker_size: int
    path: str
    labels: Labels
    is_ancestor: bool = False


def run_driver(files: MergeFiles, top: Path) -> bool:
    """Merge a file and write the result to `files.ours`. Return True if there were no conflicts."""
    try:
        merged = _merge_document(files, top)
    except Exception:
        # Merge by line instead, because git stops in the middle of a merge if the driver fails.
        merged = None
    if merged is None or not _replace(files.ours, merged[0]):
        labels = files.labels
        named = (labels.ours, labels.base, labels.theirs)
        return merge_in_place(files.ours, files.base, files.theirs, files.marker_size, named)
    return merged[1]


def _merge_document(files: MergeFiles, top: Path) -> tuple[bytes, bool] | None:
    """Return the merged document, and True if it contains no conflict markers.

    Return None if the file must be merged line by line.
    """
    if not is_utf_8(files.path) or any(map(is_ignored, files.path.split("/"))):
        return None
    sides = (files.base, files.ours, files.theirs)
    if any(os.path.getsize(side) > MAX_FILE_BYTES for side in sides):
        return None
    merged = _merge(top, files.path, Texts(*(side.read_bytes() for side in sides)))
    if merged is None:
        return None
    if not merged.conflicts or files.is_ancestor:
        text = merged.common if merged.conflicts else merged.text
        return text.encode(), True
    base = merged.base if conflict_style() in ("diff3", "zdiff3") else None
    return mark_conflicts(merged.text, merged.theirs, base, files.labels, files.marker_size).encode(), False


def _merge(top: Path, path: str, texts: Texts) -> MergedFile | None:
    # A branch may have changed the schema. If versions do not fit the schema, merge key by key.
    site = _site_folder(top, path)
    if site is None:
        return None
    path = path[len(site) :]
    store = _store(top / site)
    if not path.endswith(ENDINGS) or upload_path(path) or not store.claimed(path):
        return None
    if path.endswith(MARKDOWN) and len({_has_front_matter(data) for data in texts.existing}) > 1:
        return None  # One version has no front matter, for example because there is a line above it.
    stores = (store, store_without_attributes(store, path))
    merged = next(filter(None, (merge_file(each, path, texts, now()) for each in stores)), None)
    return None if merged and _lost_comments(path, texts, merged) else merged


def _has_front_matter(data: bytes) -> bool:
    return split_front_matter(data.decode().removeprefix(BOM)).handler is not None


def _lost_comments(path: str, texts: Texts, merged: MergedFile) -> set[str]:
    if path.endswith(".json"):
        return set()
    base, ours, theirs = (_comments(path, data.decode()) for data in (texts.base, texts.ours, texts.theirs))
    result = merged.text + merged.theirs
    return {comment for comment in (ours | theirs) - base if comment not in result}


def _comments(path: str, text: str) -> set[str]:
    # A "#" in a string can be mistaken for a comment.
    if path.endswith(MARKDOWN):
        parts = split_front_matter(text.removeprefix(BOM))
        text = parts.opening + parts.front_matter
    return {found[1].strip(" \t\r\"'") for found in _COMMENT.finditer(text)}


def _site_folder(top: Path, path: str) -> str | None:
    """Return the folder of the site that contains a file, or None if the file is not in a site.

    The folder is relative to `top`. It is "" or ends in "/".
    """
    folder = path
    while folder:
        folder = folder.rstrip("/").rpartition("/")[0]
        folder = f"{folder}/" if folder else ""
        if (top / folder / TYPES).is_dir() or (top / folder / SETTINGS).is_file():
            return folder
    return None


def _store(root: Path) -> Store:
    # Invalid settings and schemas are ignored.
    settings, wrong_settings = survey_settings(root)
    schema, _ = read_all_content_types(root)
    return Store(root, schema, Settings() if wrong_settings else settings, _no_timestamps)


def _no_timestamps(path: str, modified: float) -> tuple[str, str]:
    return "", ""


def _replace(path: Path, data: bytes) -> bool:
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    try:
        with temporary.open("xb") as file:  # Create a new file, so that a symbolic link is never followed.
            file.write(data)
        os.replace(temporary, path)
    except OSError:
        temporary.unlink(missing_ok=True)
        return False
    return True


def parse_labels(words: Sequence[str]) -> Labels:
    known = [word if word and not word.startswith("%") else "" for word in words]
    base, ours, theirs = (*known, "", "", "")[:3]
    default = Labels()
    return Labels(base or default.base, ours or default.ours, theirs or default.theirs)
