"""Media files whose content is not in the bucket, though their descriptions say so."""

from collections.abc import Iterator

from server.problems import Problem
from server.site.site import Site
from server.storage.bucket.opening import open_bucket
from server.storage.bucket.stored import objects_of
from server.storage.media import SIDECAR_SUFFIX


def missing_objects(site: Site) -> Iterator[Problem]:
    """A problem for each description that names an object which is not there, or has another size.

    All objects are listed, by one request for each thousand. Raises BucketError.
    """
    settings, media = site.state.settings, site.state.snapshot.media
    named = {file.path: tuple(objects_of(file.get("provider_metadata"))) for file in media.values()}
    if not any(named.values()):
        return
    if not settings.media.store:
        what, fix = "media are in a bucket, and nothing says in which", "set media.store"
        yield Problem("site.yaml", None, what, fix, "error", None, "dangling")
        return
    there = {one.key: one.size for one in open_bucket(settings, patient=True).listed()}
    for path, objects in sorted(named.items()):
        missing = [one for one in objects if there.get(one.key) != one.size]
        if missing:
            what = f"names {missing[0].key}, which is not in {settings.media.store}"
            fix = "upload the file again, or restore the object"
            yield Problem(path + SIDECAR_SUFFIX, None, what, fix, "error", None, "dangling")
