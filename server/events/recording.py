"""Has the recorder catch up in the background: once after the start, and after what it could not record."""

import logging
from contextlib import suppress
from threading import Event

from server.errors import StorageError
from server.events.recorder import Recorder
from server.site.background.thread import Background
from server.site.site import Site

log = logging.getLogger("quire")

PAUSE_S = 5.0


def recording(site: Site, recorder: Recorder) -> Background:
    """What calls the recorder where no change of the site does."""
    return Background("recording", lambda stop: _record(site, recorder, stop))


def _record(site: Site, recorder: Recorder, stop: Event) -> None:
    due = True
    while True:
        try:
            if due or recorder.missed:
                with suppress(StorageError):  # which the recorder meets again, and tells of
                    recorder.database.bounds()  # A database elsewhere is waited for here, without the lock.
                site.record()
            due = False
        except Exception:
            log.exception("what has changed could not be recorded")
        if stop.wait(PAUSE_S):
            return
