"""Check for media files missing from the bucket."""

from collections.abc import Iterator

from server.problems import Problem
from server.site.site import Site
from server.storage.bucket.opening import open_bucket
from server.storage.bucket.stored import objects_of
from server.storage.media import SIDECAR_SUFFIX


def find_missing_objects(site: Site) -> Iterator[Problem]:
    """Yield a problem for each media file that is missing from the bucket or has a different size there.

    Raises BucketError if the files in the bucket can't be listed.
    """
    settings, media = site.state.settings, site.state.snapshot.media
    named = {file.path: tuple(objects_of(file.get("provider_metadata"))) for file in media.values()}
    if not any(named.values()):
        return
    if not settings.media.store:
        message, fix = (
            "media files are in a bucket, but media.store is not set",
            "set media.store to the URL of the bucket",
        )
        yield Problem("site.yaml", None, message, fix, "error", None, "dangling")
        return
    sizes = {one.key: one.size for one in open_bucket(settings, long_timeouts=True).list_objects()}
    for path, objects in sorted(named.items()):
        missing = [one for one in objects if sizes.get(one.key) != one.size]
        if missing:
            key = missing[0].key
            message = f"refers to the object {key}, which is missing from the bucket {settings.media.store}"
            fix = "upload the file again, or restore the object in the bucket"
            yield Problem(path + SIDECAR_SUFFIX, None, message, fix, "error", None, "dangling")
