"""The media files of an export: all if the role may list files, else those that responses name."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from io import BufferedReader
from pathlib import Path
from urllib.parse import unquote

from server.documents.document import Document
from server.documents.ids import composed
from server.index.snapshot import apply
from server.site.site import Site, State
from server.storage.bucket.site_bucket import SiteBucket
from server.storage.bucket.stored import StoredObject
from server.storage.images.formats import FORMATS, format_of
from server.storage.links import open_ordinary
from server.storage.media import stored_object, upload_path

_NAMED = re.compile(rb"""/uploads/([^"'\\\s()<>?#]+)""")
Source = str | StoredObject  # a path in the site, or an object of its bucket
_BATCH = 100  # images whose formats are made before the site takes them over


def make_formats(site: Site, progress: Callable[[int, int], None]) -> int:
    """Make missing formats of images, as a running server does in the background.

    Returns the number of images for which that failed.
    """
    missing, failed = site.unscaled(), 0
    for start in range(0, len(missing), _BATCH):
        batch = missing[start : start + _BATCH]
        for done, path in enumerate(batch, start + 1):
            failed += not site.image_cache.make(upload_path(path) or "")
            progress(done, len(missing))
        site.refresh(batch)
    return failed


def with_base_url(state: State, base: str) -> State:
    """The state with absolute addresses as the `url` of all media files and their formats."""
    files = list(state.snapshot.media.values())
    moved = [_with_base(file, base) for file in files]
    return replace(state, snapshot=apply(state.snapshot, files, moved))


def _with_base(file: Document, base: str) -> Document:
    formats = file.get("formats") or {}
    moved = {key: {**entry, "url": base + entry["url"]} for key, entry in formats.items()}
    return file.with_values({"url": base + file.get("url"), "formats": moved or None})


def named_in(body: bytes) -> Iterator[str]:
    """The upload paths that a response may name: in the `url` of media, or in a text."""
    for found in _NAMED.finditer(body):
        text = found[1].decode()
        for path in (text, text.rstrip(".,;:!*_`]")):
            yield path
            yield unquote(path)


def sources(site: Site, paths: Iterable[str]) -> Mapping[str, Source]:
    """What upload paths have, by their paths in the site: a media file with its formats, or one alone."""
    media = site.state.snapshot.media
    found: dict[str, Source] = {}
    for path in paths:
        key = composed(path)
        if stored := stored_object(media, key):
            found[path] = stored
            found.update(_stored_formats(key, media))
        elif key in media:
            found[path] = media[key].path
            found.update(_formats(site, key, media))
        elif format_of(path) and (file := site.image_cache.file_of(key, media)):
            found[path] = _inside(site, file)
    return dict(sorted(found.items()))


def opener(site: Site) -> Callable[[Source], BufferedReader]:
    """What opens a file of the site or an object of its bucket. Raises OSError and BucketError."""
    bucket = SiteBucket(site.root, site.image_cache.folder)

    def opened(source: Source) -> BufferedReader:
        if isinstance(source, StoredObject):
            return bucket.open(site.state.settings, source)
        return open_ordinary(site.root, source)

    return opened


def _stored_formats(path: str, media: Mapping[str, Document]) -> Iterator[tuple[str, StoredObject]]:
    folder, slash, name = path.rpartition("/")
    for key in FORMATS:
        inside = f"{folder}{slash}{key}_{name}"
        if inside not in media and (stored := stored_object(media, inside)):
            yield inside, stored


def _formats(site: Site, path: str, media: Mapping[str, Document]) -> Iterator[tuple[str, str]]:
    folder, slash, name = path.rpartition("/")
    for key in FORMATS:
        inside = f"{folder}{slash}{key}_{name}"
        if inside not in media and (file := site.image_cache.file_of(inside, media)):
            yield inside, _inside(site, file)


def _inside(site: Site, file: Path) -> str:
    return file.relative_to(site.root).as_posix()
