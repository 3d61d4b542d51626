"""Images in custom formats. They are rendered for the export, because a static host can't render them."""

import posixpath
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from io import BufferedReader
from typing import cast
from urllib.parse import quote

from server.config.model import with_values
from server.config.transformation import PRESET
from server.documents.document import Document
from server.errors import ApiError
from server.history.past import PastStates
from server.index.snapshot import apply
from server.paths import UPLOADS_URL
from server.service.images.by_url import ClientRequest, Images
from server.service.images.custom_formats import custom_formats
from server.service.media.files import MediaFile, MediaFiles
from server.site.loading import cores
from server.site.site import Site, State
from server.storage.bucket.site_bucket import SiteBucket
from server.storage.media import media_key

DOWNLOAD_TIMEOUT_S = 120.0  # for each original in a bucket
Progress = Callable[[int, int], None]  # (done, total)


@dataclass(frozen=True, slots=True)
class CustomFormatImage:
    """An image in a custom format. `key` identifies the media file."""

    key: str
    name: str

    @property
    def request(self) -> str:
        return f"{UPLOADS_URL}{quote(self.key)}?{PRESET}={self.name}"


def with_image_paths(state: State) -> tuple[State, Mapping[str, CustomFormatImage]]:
    """Replace the URLs of all images in custom formats with the URLs of files that will be exported.

    Return the new state, and a mapping from the paths of these files to the images.
    """
    formats = custom_formats(state.settings.media)
    if formats is None:
        return state, {}
    images: dict[str, CustomFormatImage] = {}
    media, before, after = state.snapshot.media, [], []
    for file in media.values():
        key = media_key(file.path) or ""
        described = dict(formats.add(file).get("formats") or {})
        for name in state.settings.media.formats.keys() & described.keys():
            path = _free_path(key, name, described[name]["ext"], media)
            images[path] = CustomFormatImage(key, name)
            described[name] = {**described[name], "url": f"{UPLOADS_URL}{quote(path)}"}
        if described:
            before.append(file)
            after.append(file.with_values({"formats": described}))
    settings = with_values(state.settings, {"media.formats": {}})
    return replace(state, settings=settings, snapshot=apply(state.snapshot, before, after)), images


def _free_path(key: str, name: str, ext: str, media: Mapping[str, Document]) -> str:
    # The whole name of the file is kept, because `a.png` and `a.jpg` can both become WebPs.
    folder, file = posixpath.split(key)
    path = posixpath.join(folder, f"{name}_{file}" if file.endswith(ext) else f"{name}_{file}{ext}")
    while path in media:
        path = posixpath.join(folder, f"_{posixpath.basename(path)}")
    return path


class CustomFormatRenderer:
    """Renderer of images in custom formats. It uses the server's image cache."""

    def __init__(self, site: Site) -> None:
        files = MediaFiles(site, PastStates(site), SiteBucket(site.root, site.image_cache.folder))
        self._site, self._images = site, Images(files, cores(), DOWNLOAD_TIMEOUT_S)
        self._caller = ClientRequest((), lambda: None)

    def render(self, images: Iterable[CustomFormatImage], progress: Progress) -> set[CustomFormatImage]:
        requested, rendered = list(images), set[CustomFormatImage]()
        with ThreadPoolExecutor(cores()) as executor:
            for done, (image, is_rendered) in enumerate(
                zip(requested, executor.map(self._try, requested), strict=True), 1
            ):
                if is_rendered:
                    rendered.add(image)
                progress(done, len(requested))
        return rendered

    def open(self, image: CustomFormatImage) -> BufferedReader:
        """Open an image, rendering it first if it is not in the cache. Raises ApiError if that fails."""
        found = self._images.find(
            self._site.state.snapshot, "", image.key, {PRESET: image.name}, self._caller
        )
        assert isinstance(found, MediaFile)
        return cast(BufferedReader, found.file)

    def _try(self, image: CustomFormatImage) -> bool:
        try:
            self.open(image).close()
        except (ApiError, OSError):
            return False
        return True
