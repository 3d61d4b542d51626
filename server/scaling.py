"""Makes the formats of pictures that were dropped into content/uploads/, in the background."""

import logging
import threading
from collections.abc import Mapping
from typing import Any

from server.site import Site

log = logging.getLogger("quire")

PAUSE_S = 1.0


class Scaler:
    """One thread that looks for pictures without formats whenever the site's media changed."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="scaler", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """Stop; returns when no picture is being scaled."""
        self._stop.set()
        self._thread.join(timeout=5)

    def _run(self) -> None:
        seen: Mapping[str, Any] | None = None
        while not self._stop.wait(PAUSE_S if seen is not None else 0):
            media = self.site.state.snapshot.media
            if media is seen:
                continue
            for path in self.site.unscaled():
                if self._stop.is_set():
                    return
                try:
                    self.site.scale(path)
                except Exception:
                    log.exception("%s could not be scaled", path)
            seen = media
            self.site.gallery.save()
