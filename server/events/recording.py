"""Has the recorder catch up in the background: once after the start, and after what it could not record."""

import logging
import threading
import time
from contextlib import suppress

from server.auth.database.notices import EVENTS, Notices
from server.errors import StorageError
from server.events.recorder import Recorder
from server.site.background.thread import Background
from server.site.site import Site

log = logging.getLogger("quire")

PAUSE_S = 5.0
LOOK_S = 0.1  # between two looks whether another machine has recorded something


def recording(site: Site, recorder: Recorder, notices: Notices | None = None) -> Background:
    """What calls the recorder where no change of the site does; by `notices`, others tell that they have."""
    told = threading.Event()
    if notices is not None:
        notices.listen(EVENTS, lambda payload: _hear(recorder, payload, told))
    return Background("recording", lambda stop: _record(site, recorder, told, stop))


def _hear(recorder: Recorder, payload: str, told: threading.Event) -> None:
    """Note that there may be events of other machines."""
    if payload.partition(" ")[2] != recorder.database.clone:
        told.set()


def _record(site: Site, recorder: Recorder, told: threading.Event, stop: threading.Event) -> None:
    due, looked, pause = True, 0.0, LOOK_S
    while True:
        try:
            if due or told.is_set() or (recorder.missed and time.monotonic() - looked > PAUSE_S):
                looked = time.monotonic()
                told.clear()
                with suppress(StorageError):  # which the recorder meets again, and tells of
                    recorder.database.bounds()  # A database elsewhere is waited for here, without the lock.
                site.record()
            due, pause = False, LOOK_S
        except Exception:
            log.exception("what has changed could not be recorded")
            pause = min(2 * pause, PAUSE_S)
        if stop.wait(pause):
            return
