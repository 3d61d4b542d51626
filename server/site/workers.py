"""Keeps a worker's site as fresh as the others': takes over what they said may have changed."""

import logging
from threading import Event

from server.site.background import Background
from server.site.site import Site

log = logging.getLogger("quire")

PAUSE_S = 0.01


def follower(site: Site) -> Background:
    """What looks for news. What was written is taken over by the next request anyhow."""
    return Background("follower", lambda stop: _follow(site, stop))


def _follow(site: Site, stop: Event) -> None:
    while not stop.wait(PAUSE_S):
        try:
            site.follow()
        except Exception:
            log.exception("news of another worker could not be taken over; the last good state is served")
