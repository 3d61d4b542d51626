"""Makes the formats of pictures that were dropped into content/uploads/, in the background."""

import logging
from collections.abc import Mapping
from threading import Event
from typing import Any

from server.site.background.thread import Background
from server.site.site import Site

log = logging.getLogger("quire")

PAUSE_S = 1.0


def scaler(site: Site) -> Background:
    """What looks for pictures without formats whenever the site's media or the folder of formats changed."""
    return Background("scaler", lambda stop: _scale(site, stop))


def _scale(site: Site, stop: Event) -> None:
    seen: Mapping[str, Any] | None = None
    mark, pause = 0, 0.0
    while not stop.wait(pause):
        pause = PAUSE_S
        media = site.state.snapshot.media
        if media is seen and site.image_cache.mark() == mark:
            continue
        for path in site.unscaled():
            if stop.is_set():
                return
            try:
                site.scale(path)
            except Exception:
                log.exception("%s could not be scaled", path)
        site.image_cache.save()
        mark = site.image_cache.mark()
        if not site.unscaled():  # Where an upload was scaled meanwhile, some have had no turn.
            seen = media
