"""Watcher for changes to a site's files."""

import logging
import os
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from watchfiles import watch

from server.jobs.job import Backoff, Job, JobContext, Timing
from server.paths import TYPES
from server.site.change import Change, Report
from server.site.site import Site
from server.storage.files import is_utf_8

log = logging.getLogger("bifolio")

# Notifications are processed together once none has arrived for this long.
QUIET_MS = 10
MAX_BURST_MS = 1000
POLL_INTERVAL_MS = 200  # interval between checks of the list of watched folders
# message from watchfiles if a file name is not UTF-8
DECODE_ERROR = "Unable to decode path"

Folders = tuple[tuple[Path, int], ...]  # (path, inode)


class Watcher(Job):
    """Job that refreshes a site when its files change."""

    name = "refresh"
    failure = "the site can't be refreshed; serving the last good state"

    def __init__(self, site: Site, timing: Timing, report: Report | None = None) -> None:
        self.site, self.report, self._timing = site, report, timing
        self.backoff = Backoff(timing.refresh_retry_s, timing.refresh_retry_s)
        self._hints = _Hints()
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []
        self._polling = False  # whether the operating system can't watch the files
        self._polling_lock = threading.Lock()
        self._is_gone = False  # whether the site's folder is missing
        # Folders for documents and content types: those found at the last check, and those that disappeared.
        self._there: set[str] = set()
        self._missing: set[str] = set()
        self._patrol_at = 0.0  # when to check all files next, in time.monotonic()
        # After a check of all files has found a change: the time by which a notification must report it.
        # Otherwise 0.
        self._doubt_until = 0.0

    def start(self, context: JobContext) -> None:
        self._stop = context.stopping
        self._hints.wake = context.wake
        self._patrol_at = context.clock.monotonic() + self._timing.patrol_s
        self._threads = [
            threading.Thread(target=self._watch, args=(self._content, True), name="watch-tree", daemon=True),
            threading.Thread(target=self._watch, args=(self._top, False), name="watch-top", daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def run(self, context: JobContext) -> float:
        """Refresh the site if its files may have changed. Return the number of seconds until the next run."""
        if self.site.folder.is_gone():
            if not self._is_gone:
                log.error(
                    "the site's folder %s is missing; still serving the last good state", self.site.root
                )
            self._is_gone = True
            return POLL_INTERVAL_MS / 1000
        if self._is_gone:
            log.warning("the site's folder %s exists again", self.site.root)
            self._is_gone = False
            self._hints.add(None)
        self._note_missing_folders()
        try:
            self._refresh(context.clock.monotonic())
        except Exception:
            self._hints.add(None)
            if self.site.folder.is_gone():
                return 0.0
            raise
        return max((self._doubt_until or self._patrol_at) - context.clock.monotonic(), 0.0)

    def _note_missing_folders(self) -> None:
        # A folder could be missing because its disk has been unmounted.
        folders = {*self.site.roots, TYPES}
        there = {folder for folder in folders if (self.site.root / folder).is_dir()}
        for folder in sorted(self._there - there):
            log.error("the folder %s is missing, so nothing in it is served", self.site.root / folder)
        for folder in sorted(self._missing & there):
            log.warning("the folder %s exists again", self.site.root / folder)
        self._missing = (self._missing | self._there) - there
        self._there = there

    def close(self) -> None:
        for thread in self._threads:
            thread.join(timeout=5)

    # --- watching ------------------------------------------------------------------------------

    def _content(self) -> Folders:
        return _existing(self.site.root / folder for folder in (*self.site.roots, TYPES))

    def _top(self) -> Folders:
        return _existing([self.site.root, self.site.git.folder or self.site.root / ".git"])

    def _watch(self, folders: Callable[[], Folders], recursive: bool) -> None:
        while not self._stop.is_set():
            watched = folders()
            if not watched:
                if self.site.folder.is_gone():
                    self._hints.add(())
                self._stop.wait(POLL_INTERVAL_MS / 1000)
                continue
            try:
                self._watch_folders(watched, folders, recursive)
            except FileNotFoundError:
                self._stop.wait(0.05)  # A folder was probably deleted.
            except (OSError, RuntimeError) as error:  # watchfiles raises both
                if DECODE_ERROR not in str(error):
                    self._poll(error)
                    continue
                # List the folders again, because one contains a name that is not UTF-8.
                self._stop.wait(POLL_INTERVAL_MS / 1000)

    def _poll(self, error: Exception) -> None:
        poll_s = self._timing.poll_s
        with self._polling_lock:  # Both threads usually fail at the same time, but only one logs the error.
            was_polling, self._polling = self._polling, True
        if not was_polling:
            log.warning(
                "the operating system can't watch files (%s); rescanning every %.0f s instead", error, poll_s
            )
        for _ in range(max(round(self._timing.watch_retry_s / poll_s), 1)):
            self._hints.add(None)
            if self._stop.wait(poll_s):
                return

    def _watch_folders(self, watched: Folders, folders: Callable[[], Folders], recursive: bool) -> None:
        paths = {str(path) for path, _ in watched}
        separate = _separate_folders(paths) if recursive else set()
        begun, unread = False, self.site.folder_problems
        for changes in watch(
            *(separate or paths),
            watch_filter=None,
            debounce=MAX_BURST_MS,
            step=QUIET_MS,
            stop_event=self._stop,
            rust_timeout=POLL_INTERVAL_MS,
            yield_on_timeout=True,
            recursive=recursive and not separate,
            raise_interrupt=False,
            ignore_permission_denied=True,
        ):
            changed = {path for _, path in changes}
            if not begun:
                self._hints.add(
                    None if recursive else ()
                )  # Only one of the two threads needs to check all files.
                begun = True
                self._polling = self._polling and not recursive
            elif {os.path.basename(path) for path in changed} - {"index.lock"}:
                self._hints.add(self._relative(changed))
            if folders() != watched or changed & paths:
                # Start again: a deleted folder is no longer watched, even if a new one takes its place.
                return
            if separate and any(map(os.path.isdir, changed)):
                return  # A new folder must be watched, too.
            if recursive and self.site.folder_problems != unread:
                return  # A folder may have become readable, so start again.

    def _relative(self, paths: Iterable[str]) -> set[str]:
        top = f"{self.site.root}{os.sep}"
        return {path.removeprefix(top) for path in paths if path.startswith(top)}

    # --- refreshing ----------------------------------------------------------------------------

    def _refresh(self, now: float) -> None:
        hinted, paths = self._hints.take()
        if hinted:
            self._refresh_site(paths)
        if self._doubt_until and (hinted or now >= self._doubt_until):
            self._doubt_until = 0.0
            self._log_unreported_change()
        elif now >= self._patrol_at and not hinted:
            self._patrol_at = now + self._timing.patrol_s
            if self.site.seems_changed():
                self._doubt_until = now + self._timing.max_notification_delay_s

    def _refresh_site(self, hints: set[str] | None) -> Change:
        began = time.perf_counter()
        change = self.site.refresh(hints)
        if change and self.report:
            self.report(change, time.perf_counter() - began)
        return change

    def _log_unreported_change(self) -> None:
        if change := self._refresh_site(None):
            paths = ", ".join((*change.changed, *change.removed)[:3]) or "site.yaml or a content type"
            log.warning("the operating system did not report a change to %s; changes may appear late", paths)


def _existing(folders: Iterable[Path]) -> Folders:
    found = []
    for folder in folders:
        try:
            status = os.stat(folder)
        except OSError:
            continue
        if os.path.isdir(folder):
            found.append((folder, status.st_ino))
    return tuple(found)


def _separate_folders(top_folders: Iterable[str]) -> set[str]:
    """Return the folders that must be watched one by one, or an empty set if they can be watched recursively.

    watchfiles can't watch a folder recursively if it contains a name that is not UTF-8.
    """
    folders: dict[tuple[int, int], str] = {}
    skipped = False
    for folder, names, _ in (step for top in top_folders for step in os.walk(top, followlinks=True)):
        status = os.stat(folder)
        if folders.setdefault((status.st_dev, status.st_ino), folder) != folder:
            names.clear()  # The folder has already been visited through a link.
        readable = [name for name in names if is_utf_8(name)]
        skipped |= len(readable) < len(names)
        names[:] = readable
    return set(folders.values()) if skipped else set()


class _Hints:
    """Thread-safe collection of paths that might have changed."""

    def __init__(self) -> None:
        self.wake: Callable[[], None] = _do_nothing
        self._lock = threading.Lock()
        self._paths: set[str] = set()
        self._everything = self._waiting = False

    def add(self, paths: Iterable[str] | None) -> None:
        """Add paths that might have changed. None stands for all paths.

        An empty collection means that something else might have changed, such as HEAD.
        """
        with self._lock:
            self._everything |= paths is None
            self._paths.update(paths or ())
            self._waiting = True
        self.wake()

    def take(self) -> tuple[bool, set[str] | None]:
        with self._lock:
            waiting = self._waiting
            paths = None if self._everything else self._paths
            self._paths, self._everything, self._waiting = set(), False, False
        return waiting, paths


def _do_nothing() -> None:
    pass
