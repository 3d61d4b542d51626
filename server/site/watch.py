"""Watches a site's folders and refreshes the site when files changed.

What the operating system reports is a hint, never a fact: reports come twice, out of order or not
at all. So a hint only says where to look; a git command at work is waited for; a look that took
place while one began is repeated; and now and then everything is looked at without a hint.
"""

import logging
import os
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from watchfiles import Change as FileChange
from watchfiles import watch

from server.site.configure import TYPES
from server.site.site import Change, Site
from server.storage.git import wait_for_git

log = logging.getLogger("quire")

STEP_MS = 10  # quiet time after which a burst of reports is over
BURST_MS = 1000  # the longest burst
SETTLE_S = 0.02  # how long a file that became empty may stay so before it is believed
PATROL_S = 30.0  # how often everything is looked at without a report

Report = Callable[[Change, float], None]  # what changed, and in how many seconds it was taken over


class Watcher:
    """Keeps a site fresh from background threads until it is stopped."""

    def __init__(self, site: Site, report: Report | None = None) -> None:
        self.site, self.report = site, report
        self._stop = threading.Event()
        self._restart = threading.Event()
        self._lock = threading.Lock()
        self._threads = [
            threading.Thread(target=self._watch_tree, name="watch-tree", daemon=True),
            threading.Thread(target=self._watch_top, name="watch-top", daemon=True),
            threading.Thread(target=self._patrol, name="watch-patrol", daemon=True),
        ]

    def start(self) -> None:
        """Begin to watch."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Stop watching; returns when no refresh is at work."""
        self._stop.set()
        self._restart.set()
        for thread in self._threads:
            thread.join(timeout=5)

    def _watch_tree(self) -> None:
        """Watch the content folders and content-types/, with everything below them."""
        while not self._stop.is_set():
            self._restart.clear()
            roots = [self.site.root / r for r in (*self.site.roots, TYPES) if (self.site.root / r).is_dir()]
            if not roots:
                self._restart.wait(0.2)
                continue
            for changes in self._changes(roots, recursive=True):
                self._refresh(path for _, path in changes)
                if self._roots_moved(roots):
                    break

    def _watch_top(self) -> None:
        """Watch the site's own folder (site.yaml, folders that appear) and git's."""
        folders = [self.site.root, *([self.site.git] if self.site.git else [])]
        for changes in self._changes(folders, recursive=False):
            names = {os.path.basename(path) for _, path in changes}
            if names - {"index.lock"}:
                self._refresh([] if self._only_git(changes) else [path for _, path in changes])
                self._restart.set()

    def _only_git(self, changes: Iterable[tuple[FileChange, str]]) -> bool:
        return self.site.git is not None and all(Path(path).parent == self.site.git for _, path in changes)

    def _changes(self, folders: Iterable[Path], *, recursive: bool) -> Iterable[set[tuple[FileChange, str]]]:
        stop = _Either(self._stop, self._restart) if recursive else self._stop
        try:
            yield from watch(
                *folders,
                watch_filter=None,
                debounce=BURST_MS,
                step=STEP_MS,
                stop_event=stop,
                rust_timeout=200,
                yield_on_timeout=False,
                recursive=recursive,
                raise_interrupt=False,
                ignore_permission_denied=True,
            )
        except FileNotFoundError:
            time.sleep(0.05)  # a watched folder went away: look again which there are

    def _roots_moved(self, roots: list[Path]) -> bool:
        now = [self.site.root / r for r in (*self.site.roots, TYPES) if (self.site.root / r).is_dir()]
        return now != roots

    def _patrol(self) -> None:
        while not self._stop.wait(PATROL_S):
            self._refresh(None)

    def _refresh(self, paths: Iterable[str] | None) -> None:
        try:
            with self._lock:
                self._take_over(None if paths is None else self._relative(paths))
        except Exception:
            log.exception("the site could not be refreshed; the last good state is served")

    def _take_over(self, hints: set[str] | None) -> None:
        wait_for_git(self.site.git)
        if hints is not None and any(self._just_emptied(path) for path in hints):
            time.sleep(SETTLE_S)
        self.site.current()  # what other workers wrote is no news of the disk
        began = time.perf_counter()
        change = self.site.refresh(hints, announce=True)
        if change and self.report:
            self.report(change, time.perf_counter() - began)

    def _relative(self, paths: Iterable[str]) -> set[str]:
        top = f"{self.site.root}{os.sep}"
        return {path.removeprefix(top) for path in paths if path.startswith(top)}

    def _just_emptied(self, path: str) -> bool:
        """Whether a file is empty: an editor that writes in place empties it a moment before."""
        try:
            return os.stat(self.site.root / path).st_size == 0
        except OSError:
            return False


class _Either:
    """What watchfiles asks of a stop event, for two of them."""

    def __init__(self, *events: threading.Event) -> None:
        self.events = events

    def is_set(self) -> bool:
        """Whether one of them is set."""
        return any(event.is_set() for event in self.events)
