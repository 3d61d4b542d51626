"""The client for the configured bucket, created once per process."""

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


def open_bucket(settings: Settings, *, patient: bool = False, brief: bool = False) -> "Bucket":
    """Return this process's client for the configured bucket, or create one.

    If `patient` is set, a new client gets longer timeouts. If `brief` is set, the client has shorter ones.
    Raises BucketError if obstore is not installed.
    """
    place = (os.getpid(), settings.media.store, settings.media.endpoint, settings.media.region)
    key = (*place, brief)
    with _lock:
        bucket = _opened.get(key)
        if bucket is None:
            try:
                # imported lazily (docs/packages.py, LAZY)
                bucket_class = import_module("server.storage.bucket.bucket").Bucket
            except ModuleNotFoundError as error:
                raise BucketError(MISSING_LIBRARY) from error
            bucket = cast("Bucket", bucket_class(*place[1:], patient=patient, brief=brief))
            for other in [other for other in _opened if other[:-1] != place]:
                del _opened[other]
            _opened[key] = bucket
        return bucket
