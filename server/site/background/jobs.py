"""Jobs of a site: follow the log of other workers, commit what was written, scale pictures and sweep."""

import logging
from collections.abc import Mapping
from typing import Any

from server.auth.owner_session_files import sweep_sessions
from server.jobs.job import Backoff, Job, JobContext, Timing
from server.site.site import Site

log = logging.getLogger("bifolio")


class FollowLog(Job):
    """Applies the records that other workers append to the log. It runs in each worker.

    A record that every request must know of is applied by the next request anyhow.
    """

    name = "follow-log"
    failure = "a change could not be taken over; the last good state is served"

    def __init__(self, site: Site, timing: Timing) -> None:
        self._site, self.first_pause_s = site, timing.follow_log_s
        self.backoff = Backoff(timing.follow_log_retry_s, timing.follow_log_retry_s)

    def run(self, context: JobContext) -> float:
        """Apply new records."""
        self._site.follow()
        return self.first_pause_s


class CommitWrites(Job):
    """Commits the writes that requests have not committed themselves, once it is time."""

    name = "commit"
    failure = "what was written could not be committed"

    def __init__(self, site: Site, timing: Timing) -> None:
        self._site, self.first_pause_s = site, timing.commit_s
        self.backoff = Backoff(timing.commit_s, timing.commit_s)

    def run(self, context: JobContext) -> float:
        """Commit what is due."""
        self._site.committer.commit_due()
        return self.first_pause_s


class SweepState(Job):
    """Removes what nobody needs any more in `.bifolio/`: formats of pictures, and ended sessions."""

    name = "sweep"
    failure = "what nobody needs any more could not be removed from .bifolio/"

    def __init__(self, site: Site, timing: Timing) -> None:
        self._site, self.first_pause_s, self._pause_s = site, timing.first_sweep_s, timing.sweep_s
        self.backoff = Backoff(timing.sweep_s, timing.sweep_s)

    def run(self, context: JobContext) -> float:
        """Remove it."""
        state = self._site.state
        self._site.image_cache.sweep(state.snapshot.media.values())
        sweep_sessions(self._site.root, state.settings.auth.session.total_seconds())
        return self._pause_s


class ScalePictures(Job):
    """Makes the formats of pictures that were dropped into content/uploads/.

    It looks for pictures without formats if the site's media or the folder of formats have changed.
    """

    name = "scale"
    failure = "pictures without formats could not be looked for"

    def __init__(self, site: Site, timing: Timing) -> None:
        self._site, self._pause_s = site, timing.scale_s
        self.backoff = Backoff(timing.scale_s)
        self._seen: Mapping[str, Any] | None = None  # the media whose pictures all have formats
        self._mark = 0

    def run(self, context: JobContext) -> float:
        """Scale the pictures that have no formats."""
        site = self._site
        media = site.state.snapshot.media
        if media is self._seen and site.image_cache.mark() == self._mark:
            return self._pause_s
        for path in site.unscaled():
            if context.stopping.is_set():
                return 0.0
            try:
                site.scale(path)
            except Exception:
                log.exception("%s could not be scaled", path)
        site.image_cache.save()
        self._mark = site.image_cache.mark()
        if not site.unscaled():  # Some have had no turn if an upload was scaled meanwhile.
            self._seen = media
        return self._pause_s
