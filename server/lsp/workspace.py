"""A site that is open in the editor.

One thread checks the site, and requests use the result of the last check.
"""

import gc
import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from server.errors import BifolioError, SetupError
from server.jobs.job import Timing
from server.jobs.runner import Runner
from server.lsp.diagnostics import diagnostics
from server.lsp.positions import Text, uri_of
from server.lsp.protocol import Json
from server.lsp.titles import Titles
from server.lsp.view import EditorCapabilities, View
from server.problems import Problem
from server.service.opening import Mode, open_site
from server.site.change import Change
from server.site.check.readings import ProseCache
from server.site.check.survey import Survey
from server.site.check.unsaved import (
    SavedSite,
    UnsavedSite,
    configuration_problems,
    fixes_in_text,
    problems_in_text,
    survey_unsaved,
)
from server.site.configure import configuration_signatures, is_configuration
from server.site.site import Site
from server.site.watch import Watcher

log = logging.getLogger("bifolio")

TEXT_DELAY_S = 0.2  # Pause after a keystroke before the text is checked.
SITE_DELAY_S = 0.5  # Pause after a keystroke before the whole site is checked.
REST_FACTOR = 2  # In a large site, pause this many times as long as the last check took.
QUICK_CHECK_S = 0.05  # If a check of the site is faster than this, it replaces the check of a text.
RETRY_INTERVAL_S = 1.0  # interval for checking an invalid configuration for changes
MAX_FILES_WITH_DIAGNOSTICS = 500
JOIN_TIMEOUT_S = 5.0

Publish = Callable[[str, int | None, list[Json]], None]  # (uri, version, diagnostics)


class _CheckAbandonedError(Exception):
    pass


@dataclass(frozen=True, slots=True)
class OpenText:
    """A text that is open in the editor."""

    uri: str
    text: Text
    version: int | None = None


class Workspace:
    """A site that is open in an editor. `publish` sends diagnostics to the editor."""

    def __init__(self, root: Path, client: EditorCapabilities, publish: Publish, timing: Timing) -> None:
        self.root, self._client = root, client
        self._publish, self._timing = publish, timing
        self.opened: dict[str, OpenText] = {}
        self.survey = Survey(())
        self._configuration = Survey(())
        self._shown: dict[str, list[Problem]] = {}  # by path, if they are newer than the survey
        self._readings = ProseCache()
        self._titles = Titles()
        self._site: Site | None = None
        self._runner: Runner | None = None
        self._basis: tuple[int, SavedSite] | None = None
        self._overlay: UnsavedSite | None = None
        self._published: dict[str, list[Json]] = {}
        self._changed = threading.Condition()
        self._text_due: dict[str, float] = {}
        self._site_due: float | None = None
        self._duration_s = QUICK_CHECK_S  # of the last check of the site; a guess before the first one
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lsp-check", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        with self._changed:
            self._stopping.set()
            self._changed.notify_all()
        if self._runner is not None:
            self._runner.stop()

    # --- texts ---------------------------------------------------------------------------------

    def set_text(self, path: str, opened: OpenText) -> None:
        with self._changed:
            is_new = path not in self.opened
            self.opened = {**self.opened, path: opened}
            self._plan(path)
            if is_new:
                self._text_due[path] = 0.0

    def close(self, path: str) -> None:
        with self._changed:
            self.opened = {other: text for other, text in self.opened.items() if other != path}
            self._plan(None)

    def request_check(self) -> None:
        # The watcher will read the saved file, so only a check of the site is needed.
        with self._changed:
            self._plan(None)

    def _plan(self, path: str | None) -> None:
        # The caller must hold the lock.
        now = time.monotonic()
        if path is not None:
            self._text_due[path] = now + TEXT_DELAY_S
        self._site_due = now + max(SITE_DELAY_S, REST_FACTOR * self._duration_s)
        if self._duration_s < QUICK_CHECK_S:
            self._site_due = now + TEXT_DELAY_S
        self._changed.notify_all()

    @property
    def versions(self) -> Mapping[str, int | None]:
        return {path: opened.version for path, opened in self.opened.items()}

    @property
    def view(self) -> View | None:
        """The latest state of the site, including the open texts, or None if the site has not been read."""
        overlay, opened = self._overlay, self.opened
        if overlay is None:
            return None
        texts = {path: one.text for path, one in opened.items()}
        return View(overlay, texts, self._titles, self._client)

    def current_view(self) -> View | None:
        view = self.view
        if view is None or self._site is None:
            return None
        return replace(view, overlay=self._current_overlay())

    def survey_file(self, path: str, overlay: UnsavedSite) -> Survey:
        shown = self._shown.get(path)
        if shown is None:
            return self.survey
        found = fixes_in_text(overlay, path, shown)
        return replace(found, key_fixes=self.survey.key_fixes)

    # --- checks --------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                if self._site is None and not self._try_open():
                    continue
                path, is_site = self._wait_for_check()
                if self._stopping.is_set():
                    return
                if path is not None and not is_site:
                    self._check_text(path)
                if is_site:
                    self._check_site()
            except _CheckAbandonedError:
                continue  # A text has changed, so the next iteration starts another check.
            except Exception:
                log.exception("%s can't be checked", self.root)
                with self._changed:
                    self._changed.wait(RETRY_INTERVAL_S)

    def _try_open(self) -> bool:
        """Read the site, and return True.

        If the site is invalid, publish the problems, wait until a file changes, and return False.
        """
        try:
            site = open_site(self.root, Mode.READ).site
        except (BifolioError, OSError) as error:
            self._publish_broken(error)
            return False
        self._site = site
        self._overlay = self._current_overlay()
        gc.freeze()  # Later garbage collections then skip the site, which saves 50 ms each time.
        with self._changed:
            for path in self.opened:
                self._text_due[path] = 0.0
            self._site_due = time.monotonic() + SITE_DELAY_S
        self._check_texts()
        self._titles.warm(self._overlay.snapshot)  # Read the titles now, to speed up the first completion.
        self._runner = Runner([Watcher(site, self._timing, self._report)])
        self._runner.start()
        return True

    def _publish_broken(self, error: BifolioError | OSError) -> None:
        mark, texts = configuration_signatures(self.root), self._configuration_texts()
        if isinstance(error, SetupError):
            self.survey = self._configuration = configuration_problems(self.root, texts)
            self._publish_all()
        else:
            log.warning("%s can't be read: %s", self.root, error)
        opened = self.opened
        with self._changed:
            while (
                not self._stopping.is_set()
                and self.opened is opened
                and configuration_signatures(self.root) == mark
            ):
                self._changed.wait(RETRY_INTERVAL_S)

    def _configuration_texts(self) -> dict[str, str]:
        return {path: one.text.value for path, one in self.opened.items() if is_configuration(path)}

    def _report(self, change: Change, _: float) -> None:
        with self._changed:
            self._plan(None)
            for path in self.opened:
                self._text_due[path] = time.monotonic() + TEXT_DELAY_S

    def _wait_for_check(self) -> tuple[str | None, bool]:
        """Wait until a check is due.

        Return the path of the text to check (or None), and whether to check the whole site instead.
        """
        with self._changed:
            while not self._stopping.is_set():
                now = time.monotonic()
                is_site_due = self._site_due is not None and self._site_due <= now
                if is_site_due and self._duration_s < QUICK_CHECK_S:
                    self._text_due.clear()
                if (path := self._next_due_text(now)) is not None:
                    return path, False
                if is_site_due:
                    self._site_due = None
                    return None, True
                dues = [*self._text_due.values(), *([self._site_due] if self._site_due is not None else [])]
                self._changed.wait(max(min(dues) - now, 0.0) if dues else None)
        return None, False

    def _next_due_text(self, now: float) -> str | None:
        # The caller must hold the lock.
        path = min(self._text_due, key=self._text_due.__getitem__, default=None)
        if path is None or self._text_due[path] > now:
            return None
        del self._text_due[path]
        return path

    def _current_overlay(self) -> UnsavedSite:
        site = self._site
        if site is None:
            raise SetupError(str(self.root), None, "the site has not been read yet")
        known, applied = self._basis, site.applied
        if known is None or known[0] != applied:
            self._basis = known = applied, SavedSite.from_site(site)
        texts = {path: one.text.value for path, one in self.opened.items()}
        last = self._overlay
        if last is not None and last.saved is known[1] and last.texts == texts:
            return last
        return known[1].with_texts(texts)

    def _check_texts(self) -> None:
        for path in list(self.opened):
            self._text_due.pop(path, None)
            self._check_text(path)

    def _check_text(self, path: str) -> None:
        # Problems that involve other files are kept from the last check of the site.
        opened = self.opened.get(path)
        if opened is not None and is_configuration(path):
            self._check_configuration()
            return
        if opened is None:
            return
        overlay = self._overlay = self._current_overlay()
        found = problems_in_text(overlay, path)
        if self.opened.get(path) is opened:
            known = [problem for problem in self.survey.problems if problem.path == path]
            self._shown[path] = _merge_problems(found, known)
            self._publish_file(path, self._shown[path], opened)

    def _check_configuration(self) -> None:
        opened = self.opened
        self._configuration = configuration_problems(self.root, self._configuration_texts())
        self.survey = self._with_configuration(self.survey)
        if self.opened is opened:
            paths = {path for path in (*opened, *self._published) if is_configuration(path)}
            self._publish_paths(paths | {problem.path for problem in self._configuration.problems})

    def _with_configuration(self, survey: Survey) -> Survey:
        others = (problem for problem in survey.problems if not is_configuration(problem.path))
        problems = (*self._configuration.problems, *others)
        return replace(survey, problems=problems, key_fixes=self._configuration.key_fixes)

    def _checkpoint(self, opened: Mapping[str, OpenText]) -> None:
        """Check a text if one is due. Called repeatedly while the whole site is being checked.

        Raises _CheckAbandonedError if the open texts have changed or the workspace is being closed.
        """
        with self._changed:
            if self._stopping.is_set() or self.opened is not opened:
                raise _CheckAbandonedError
            path = self._next_due_text(time.monotonic())
        if path is not None:
            self._check_text(path)

    def _check_site(self) -> None:
        began, opened = time.perf_counter(), self.opened
        overlay = self._overlay = self._current_overlay()
        self._titles.warm(overlay.snapshot)
        found = survey_unsaved(overlay, self._readings, lambda: self._checkpoint(opened))
        texts = self._configuration_texts()
        if texts or overlay.saved.other_problems:
            self._configuration = configuration_problems(self.root, texts)
            found = self._with_configuration(found)
        self._duration_s = time.perf_counter() - began
        # Automatic garbage collection is off. Nearly all objects of a check are freed without it.
        gc.collect(1)
        self.survey = found
        # If a text has changed, another check will follow, so do not publish these problems.
        if self.opened is opened:
            self._publish_all()

    def _publish_all(self) -> None:
        by_path: dict[str, list[Problem]] = {path: [] for path in (*self.opened, *self._published)}
        for problem in self.survey.problems:
            if problem.path in by_path or len(by_path) < MAX_FILES_WITH_DIAGNOSTICS:
                by_path.setdefault(problem.path, []).append(problem)
        self._shown = {}
        for path, problems in by_path.items():
            self._publish_file(path, problems, self.opened.get(path))

    def _publish_paths(self, paths: Iterable[str]) -> None:
        for path in paths:
            problems = [problem for problem in self.survey.problems if problem.path == path]
            self._publish_file(path, problems, self.opened.get(path))

    def _publish_file(self, path: str, problems: Iterable[Problem], opened: OpenText | None) -> None:
        text = opened.text if opened else self._text_on_disk(path)
        shown = diagnostics(problems, path, text)
        if self._published.get(path) == shown and not opened:
            return
        if shown or opened:
            self._published[path] = shown
        else:
            self._published.pop(path, None)
        uri = opened.uri if opened else uri_of(self.root / path)
        self._publish(uri, opened.version if opened else None, shown)

    def _text_on_disk(self, path: str) -> Text:
        view = self.view
        found = view.text(path) if view else None
        return found or Text("")


# rules that `problems_in_text` checks
_TEXT_RULES = frozenset(
    {"syntax", "value", "option", "unknown-key", "dangling", "repeated-key", "draft", "unreadable"}
)


def _merge_problems(found: Iterable[Problem], known: Iterable[Problem]) -> list[Problem]:
    known = list(known)
    messages = {(problem.rule, problem.at): problem for problem in known}
    merged = []
    for problem in found:
        before = messages.get((problem.rule, problem.at))
        same = before is not None and before.message == problem.message
        merged.append(replace(problem, fix=before.fix) if before is not None and same else problem)
    return [*merged, *(problem for problem in known if problem.rule not in _TEXT_RULES)]
