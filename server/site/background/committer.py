"""Commits in the background what requests have written and not committed themselves."""

import logging
from threading import Event

from server.site.background.thread import Background
from server.site.site import Site

log = logging.getLogger("quire")

PAUSE_S = 0.5


def committer(site: Site) -> Background:
    """What commits the writes whose time has come."""
    return Background("committer", lambda stop: _commit(site, stop))


def _commit(site: Site, stop: Event) -> None:
    while not stop.wait(PAUSE_S):
        try:
            site.committer.commit_due()
        except Exception:
            log.exception("what was written could not be committed")
