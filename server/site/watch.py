"""Watches a site's folders and refreshes the site when files changed.

What the operating system reports is a hint, never a fact: reports come twice, out of order or not
at all. So a hint only says where to look. Whenever a watch begins, everything is looked at, since
what changed before it is in no report; and now and then everything is looked at without a hint.
"""

import logging
import os
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from watchfiles import watch

from server.paths import TYPES
from server.site.change import Change, Report
from server.site.site import Site
from server.storage.files import is_utf_8

log = logging.getLogger("quire")

STEP_MS = 10  # quiet time after which a burst of reports is over
BURST_MS = 1000  # the longest burst
LOOK_MS = 200  # how often to look whether the folders to watch are still the same
RETRY_S = 1.0  # after a failure
NOT_UTF_8 = "Unable to decode path"  # what watchfiles says of a name, which it can't report
PATROL_S = 30.0  # how often everything is looked at without a report
POLL_S = 2.0  # how often everything is looked at where the system can't watch: inotify may be used up
POLLS = 15  # so often, before it is asked again
DOUBT_S = 2.0  # how long a report may still be on its way of what is found so

Folders = tuple[tuple[Path, int], ...]  # with the inode of each


class Watcher:
    """Keeps a site fresh from background threads until it is stopped."""

    def __init__(self, site: Site, report: Report | None = None) -> None:
        self.site, self.report = site, report
        self._hints = _Hints()
        self._stop = threading.Event()
        self._polling = False  # since a time when the system could not watch
        self._told = threading.Lock()
        self._threads = [
            threading.Thread(target=self._watch, args=(self._content, True), name="watch-tree", daemon=True),
            threading.Thread(target=self._watch, args=(self._top, False), name="watch-top", daemon=True),
            threading.Thread(target=self._refresh, name="watch-refresh", daemon=True),
        ]

    def start(self) -> None:
        """Begin to watch, with a look at everything."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Stop watching; returns when no refresh is at work."""
        self._stop.set()
        self._hints.add(())
        for thread in self._threads:
            thread.join(timeout=5)

    # --- what is watched -----------------------------------------------------------------------

    def _content(self) -> Folders:
        """The content folders and content-types/, which are watched with everything below them."""
        return _existing(self.site.root / folder for folder in (*self.site.roots, TYPES))

    def _top(self) -> Folders:
        """The site's own folder (site.yaml, folders that appear) and git's."""
        return _existing([self.site.root, self.site.git.folder or self.site.root / ".git"])

    def _watch(self, folders: Callable[[], Folders], recursive: bool) -> None:
        while not self._stop.is_set():
            watched = folders()
            if not watched:
                if self.site.folder.is_gone():
                    self._hints.add(())
                self._stop.wait(LOOK_MS / 1000)
                continue
            try:
                self._watch_folders(watched, folders, recursive)
            except FileNotFoundError:
                self._stop.wait(0.05)  # one of them went away: look again which there are
            except (OSError, RuntimeError) as error:  # watchfiles raises either
                if NOT_UTF_8 not in str(error):
                    self._poll(error)
                    continue
                self._stop.wait(LOOK_MS / 1000)  # The next watch begins with a look, which finds the name.

    def _poll(self, error: Exception) -> None:
        """Look at everything now and then for a while, since the system can't watch the files."""
        with self._told:  # by two threads at once, mostly
            known, self._polling = self._polling, True
        if not known:
            log.warning("the system can't watch files (%s); looking every %.0f s until it can", error, POLL_S)
        for _ in range(POLLS):
            self._hints.add(None)
            if self._stop.wait(POLL_S):
                return

    def _watch_folders(self, watched: Folders, folders: Callable[[], Folders], recursive: bool) -> None:
        """Watch some folders for as long as they are the ones to watch."""
        paths = {str(path) for path, _ in watched}
        separate = _separate_folders(paths) if recursive else set()
        begun = False
        for changes in watch(
            *(separate or paths),
            watch_filter=None,
            debounce=BURST_MS,
            step=STEP_MS,
            stop_event=self._stop,
            rust_timeout=LOOK_MS,
            yield_on_timeout=True,
            recursive=recursive and not separate,
            raise_interrupt=False,
            ignore_permission_denied=True,
        ):
            changed = {path for _, path in changes}
            if not begun:
                self._hints.add(None)
                begun = True
                self._polling = self._polling and not recursive
            elif {os.path.basename(path) for path in changed} - {"index.lock"}:
                self._hints.add(self._relative(changed))
            if folders() != watched or changed & paths:
                return  # the watch on a folder ends with it, even where another takes its place
            if separate and any(map(os.path.isdir, changed)):
                return  # of which one may be new

    def _relative(self, paths: Iterable[str]) -> set[str]:
        top = f"{self.site.root}{os.sep}"
        return {path.removeprefix(top) for path in paths if path.startswith(top)}

    # --- what is done about it -----------------------------------------------------------------

    def _refresh(self) -> None:
        patrol = time.monotonic() + PATROL_S
        while not self._stop.is_set():
            hinted, paths = self._hints.take(patrol - time.monotonic())
            if self.site.folder.is_gone():
                self._wait_for_folder()
                continue
            try:
                if hinted:
                    self._take_over(paths)
                else:
                    patrol = time.monotonic() + PATROL_S
                    self._patrol()
            except Exception:
                if self.site.folder.is_gone():
                    self._hints.add(())
                    continue
                log.exception("the site could not be refreshed; the last good state is served")
                self._hints.add(None)
                self._stop.wait(RETRY_S)

    def _wait_for_folder(self) -> None:
        """Wait until the site's folder is back, then have everything looked at."""
        log.error("the site's folder %s is gone; its last good state is served", self.site.root)
        while self.site.folder.is_gone():
            if self._stop.wait(LOOK_MS / 1000):
                return
        log.warning("the site's folder %s is back", self.site.root)
        self._hints.add(None)

    def _take_over(self, hints: set[str] | None) -> Change:
        began = time.perf_counter()
        change = self.site.refresh(hints)
        if change and self.report:
            self.report(change, time.perf_counter() - began)
        return change

    def _patrol(self) -> None:
        """Look at everything: what no report was about is taken over all the same."""
        if not self.site.seems_changed():
            return
        hinted, paths = self._hints.take(DOUBT_S)
        if hinted:
            self._take_over(paths)
        if change := self._take_over(None):
            what = ", ".join((*change.read, *change.removed)[:3]) or "site.yaml or a content type"
            log.warning("the system reported no change of %s; changes may show late here", what)


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


def _separate_folders(tops: Iterable[str]) -> set[str]:
    """Some folders and all below them, where the name of one is not UTF-8; nothing where all are.

    watchfiles opens the folders below one that it watches, hears of that, and fails at such a name. So there
    each other folder is watched by itself.
    """
    found: dict[tuple[int, int], str] = {}
    skipped = False
    for folder, names, _ in (step for top in tops for step in os.walk(top, followlinks=True)):
        status = os.stat(folder)
        if found.setdefault((status.st_dev, status.st_ino), folder) != folder:
            names.clear()  # A link led here.
        readable = [name for name in names if is_utf_8(name)]
        skipped |= len(readable) < len(names)
        names[:] = readable
    return set(found.values()) if skipped else set()


class _Hints:
    """Paths that may have changed, gathered from several threads until one takes them all.

    None among what is added stands for everything.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._paths: set[str] = set()
        self._everything = False
        self._waiting = False

    def add(self, paths: Iterable[str] | None) -> None:
        """Hint at some paths; at none, that something beside the files has changed."""
        with self._changed:
            self._everything |= paths is None
            self._paths.update(paths or ())
            self._waiting = True
            self._changed.notify()

    def take(self, seconds: float) -> tuple[bool, set[str] | None]:
        """Wait for hints; returns whether there were any within so many seconds, and which."""
        with self._changed:
            waiting = self._changed.wait_for(lambda: self._waiting, max(seconds, 0))
            paths = None if self._everything else self._paths
            self._paths, self._everything, self._waiting = set(), False, False
        return waiting, paths
