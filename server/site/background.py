"""What goes on in the background: threads that work until they are stopped.

One keeps a worker's site as fresh as the others': it applies the records that they append to the log.
"""

import logging
import threading
from collections.abc import Callable

from server.site.site import Site

log = logging.getLogger("quire")

PAUSE_S = 0.01
RETRY_S = 1.0


class Background:
    """One thread; `work` is given an event that is set when it is to end."""

    def __init__(self, name: str, work: Callable[[threading.Event], None]) -> None:
        self._stop = threading.Event()
        self._thread = threading.Thread(target=work, args=(self._stop,), name=name, daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """Stop; returns when nothing is at work."""
        self._stop.set()
        self._thread.join(timeout=5)


def follower(site: Site) -> Background:
    """What looks for records. Those that every request must know of are applied by the next one anyhow."""
    return Background("follower", lambda stop: _follow(site, stop))


def _follow(site: Site, stop: threading.Event) -> None:
    while not stop.wait(PAUSE_S):
        try:
            site.catch_up()
        except Exception:
            log.exception("a change could not be taken over; the last good state is served")
            stop.wait(RETRY_S)
