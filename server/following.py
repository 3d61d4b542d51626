"""Keeps a worker's site as fresh as the others': takes over what they said may have changed."""

import logging
import threading

from server.site import Site

log = logging.getLogger("quire")

PAUSE_S = 0.01


class Follower:
    """One thread that looks for news. What was written is taken over by the next request anyhow."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="follower", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """Stop; returns when nothing is being taken over."""
        self._stop.set()
        self._thread.join(timeout=5)

    def _run(self) -> None:
        while not self._stop.wait(PAUSE_S):
            try:
                self.site.follow()
            except Exception:
                log.exception("news of another worker could not be taken over; the last good state is served")
