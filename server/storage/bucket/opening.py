"""Creation and caching of this process's bucket clients."""

import os
import threading
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, cast

from server.config.model import FILE, Settings
from server.errors import BucketError, SetupError

if TYPE_CHECKING:
    from server.storage.bucket.bucket import Bucket

MISSING_LIBRARY = (
    "media.store in site.yaml requires the library obstore; to install it: pip install 'bifolio[s3]'"
)
_Key = tuple[int, str, str, str, bool]
_opened: dict[_Key, "Bucket"] = {}
_lock = threading.Lock()


def require_library(settings: Settings) -> None:
    """Raise SetupError if a bucket is configured but obstore is not installed."""
    if settings.media.store and find_spec("obstore") is None:
        raise SetupError(
            FILE, None, "media.store requires the Python library obstore", "run `pip install 'bifolio[s3]'`"
        )


def open_bucket(settings: Settings, *, long_timeouts: bool = False, short_timeouts: bool = False) -> "Bucket":
    """Return this process's client for the bucket. The first call creates it.

    If `short_timeouts` is set, return a separate client with short timeouts. `long_timeouts` has an effect
    only in the call that creates the client. Raises BucketError if obstore is not installed.
    """
    place = (os.getpid(), settings.media.store, settings.media.endpoint, settings.media.region)
    key = (*place, short_timeouts)
    with _lock:
        bucket = _opened.get(key)
        if bucket is None:
            try:
                # imported lazily (docs/packages.py, LAZY)
                bucket_class = import_module("server.storage.bucket.bucket").Bucket
            except ModuleNotFoundError as error:
                raise BucketError(MISSING_LIBRARY) from error
            bucket = cast(
                "Bucket", bucket_class(*place[1:], long_timeouts=long_timeouts, short_timeouts=short_timeouts)
            )
            for other in [other for other in _opened if other[:-1] != place]:
                del _opened[other]
            _opened[key] = bucket
        return bucket
