"""Keeps a worker's site as fresh as the others': applies the records that they append to the log."""

import logging
from threading import Event

from server.site.background.thread import Background
from server.site.site import Site

log = logging.getLogger("quire")

PAUSE_S = 0.01
RETRY_S = 1.0


def follower(site: Site) -> Background:
    """What looks for records. Those that every request must know of are applied by the next one anyhow."""
    return Background("follower", lambda stop: _follow(site, stop))


def _follow(site: Site, stop: Event) -> None:
    while not stop.wait(PAUSE_S):
        try:
            site.follow()
        except Exception:
            log.exception("a change could not be taken over; the last good state is served")
            stop.wait(RETRY_S)
