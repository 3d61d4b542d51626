"""Background jobs of a site."""

import logging
from collections.abc import Mapping
from typing import Any

from server.auth.owner_session_files import sweep_sessions
from server.jobs.job import Backoff, Job, JobContext, Timing
from server.site.site import Site
from server.storage.temporary import sweep_temporary

log = logging.getLogger("bifolio")


class FollowLog(Job):
    """Job that applies changes made by other workers."""

    name = "follow-log"
    failure = "a change can't be applied; serving the last good state"

    def __init__(self, site: Site, timing: Timing) -> None:
        self._site, self.initial_delay_s = site, timing.follow_log_s
        self.backoff = Backoff(timing.follow_log_retry_s, timing.follow_log_retry_s)

    def run(self, context: JobContext) -> float:
        self._site.follow()
        return self.initial_delay_s


class CommitWrites(Job):
    """Job that commits queued writes."""

    name = "commit"
    failure = "writes can't be committed"

    def __init__(self, site: Site, timing: Timing) -> None:
        self._site, self.initial_delay_s = site, timing.commit_s
        self.backoff = Backoff(timing.commit_s, timing.commit_s)

    def run(self, context: JobContext) -> float:
        self._site.committer.commit_due()
        return self.initial_delay_s


class DeleteStaleFiles(Job):
    """Job that deletes expired sessions, unused variants and temporary files."""

    name = "sweep"
    failure = "unused files can't be deleted from .bifolio/"

    def __init__(self, site: Site, timing: Timing) -> None:
        self._site, self.initial_delay_s, self._pause_s = site, timing.first_sweep_s, timing.sweep_s
        self.backoff = Backoff(timing.sweep_s, timing.sweep_s)

    def run(self, context: JobContext) -> float:
        state = self._site.state
        self._site.image_cache.sweep(state.snapshot.media.values())
        sweep_temporary(self._site.root)
        sweep_sessions(self._site.root, state.settings.auth.session.total_seconds())
        return self._pause_s


class ResizeImages(Job):
    """Job that creates missing image variants."""

    name = "scale"
    failure = "images without resized variants can't be listed"

    def __init__(self, site: Site, timing: Timing) -> None:
        self._site, self._pause_s = site, timing.scale_s
        self.backoff = Backoff(timing.scale_s)
        # The site's media files at the last check in which no image lacked variants.
        self._complete_media: Mapping[str, Any] | None = None
        self._mark = 0

    def run(self, context: JobContext) -> float:
        site = self._site
        media = site.state.snapshot.media
        if media is self._complete_media and site.image_cache.change_counter() == self._mark:
            return self._pause_s
        for path in site.incomplete_images():
            if context.stopping.is_set():
                return 0.0
            try:
                site.scale(path)
            except Exception:
                log.exception("the image %s can't be scaled", path)
        site.image_cache.save()
        self._mark = site.image_cache.change_counter()
        # An image can still lack variants, for example if it is still being uploaded.
        if not site.incomplete_images():
            self._complete_media = media
        return self._pause_s
