"""Checks of a site that is served: made when somebody asks, beside the requests, and kept for a while.

A check of a large site takes seconds of computing. It is made in a process of its own, so that requests
are answered meanwhile; there is one at a time, and they take a small part of a processor's time.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from server.config.model import Settings
from server.documents.document import DRAFT, PUBLISHED
from server.documents.timestamps import now
from server.errors import BusyError
from server.index.packed_snapshot import PackedSnapshot, pack_snapshot, unpack_snapshot
from server.index.snapshot import Snapshot
from server.problems import Problem, in_order
from server.schema.model import UPLOAD, title_of
from server.site.background.process import run_in_process
from server.site.check.audit import Audit, is_upload
from server.site.check.fixes import Fix
from server.site.check.survey import look_at
from server.site.problems import problems_between
from server.site.site import Site

log = logging.getLogger("bifolio")

MAX_LOCAL_DOCUMENTS = 300  # This process checks a site of so many itself.
MAX_PROBLEMS = 20_000  # Problems that are kept.
PROCESS_TIMEOUT_S = 60.0
# Without a known change, such as of a file of no type, a site is checked so often.
RECHECK_INTERVAL_S = 2.0
QUICK_CHECK_S = 0.5  # So short a check is repeated after each change of the site. Others rest in between.
REST_FACTOR = 20  # A site without a known change rests so many times as long as its check took.
BACKOFF_S = 15.0  # After a check that failed.


@dataclass(frozen=True, slots=True)
class Change:
    """One value that a fix writes, as `bifolio check --format json` names it."""

    path: str
    key: str
    before: str | None
    after: str | None

    @classmethod
    def of(cls, fix: Fix) -> "Change":
        """What a fix changes."""
        return cls(fix.path, ".".join(map(str, fix.at)), fix.old or None, fix.new)


@dataclass(frozen=True, slots=True)
class Found:
    """A problem, the document that its file holds or should hold, and what fixes it, where that is safe.

    Of a file that belongs to no type, `uid` is "".
    """

    problem: Problem
    uid: str = ""
    document_id: str = ""
    locale: str = ""
    status: str = ""
    title: str = ""
    fix: Change | None = None


@dataclass(frozen=True, slots=True)
class Check:
    """What a check found; `applied` is that of the site which was checked, `more` how many are not kept."""

    found: tuple[Found, ...]
    at: str
    applied: int
    more: int = 0


class Checks:
    """The checks of a served site; the last one is kept. Safe to use from many threads.

    `join` gives the snapshot of the site with its users, for relations to them.
    """

    def __init__(self, site: Site, join: Callable[[], Snapshot]) -> None:
        self.site, self._join = site, join
        self._kept: Check | None = None
        self._running = False
        self._began = self._ended = self._took = 0.0
        self._failed_at: float | None = None
        self._changed = threading.Condition()

    def current(self, seconds: float) -> tuple[Check, bool]:
        """The last check, and whether it is of the site as it is now; one that is due is waited for.

        It is waited for so many seconds. Raises BusyError where there is none by then.
        """
        deadline = time.monotonic() + seconds
        with self._changed:
            began = self._begin_if_due()
            while self._running and (left := deadline - time.monotonic()) > 0 and (began or not self._kept):
                self._changed.wait(left)
            kept = self._kept
        if kept is None:
            raise BusyError("The site is being checked for the first time; ask again")
        return kept, kept.applied == self.site.applied

    def _begin_if_due(self) -> bool:
        """Whether a check has begun that whoever asks now should wait for; call it with the lock."""
        if self._running:
            return True
        at = time.monotonic()
        if self._failed_at is not None and at - self._failed_at < BACKOFF_S:
            return False
        if self._kept is not None:
            same = self._kept.applied == self.site.applied
            rest = max(RECHECK_INTERVAL_S, REST_FACTOR * self._took) if same else self._took
            if at - self._ended < rest and (same or self._took > QUICK_CHECK_S):
                return False
        self._running, self._began = True, at
        threading.Thread(target=self._run, name="check", daemon=True).start()
        return True

    def _run(self) -> None:
        """Make a check, and keep it."""
        kept, failed = None, True
        try:
            applied, at = self.site.applied, now()
            state, joined, known = self.site.state, self._join(), self.site.problems_in_files
            root, settings = self.site.root, state.settings
            if sum(len(table.versions) for table in state.snapshot.tables.values()) <= MAX_LOCAL_DOCUMENTS:
                found, more = check(root, settings, (state.snapshot, joined), known)
            else:
                found, more = run_in_process(
                    check_packed, root, settings, pack_snapshot(joined), known, timeout_s=PROCESS_TIMEOUT_S
                )
            kept, failed = Check(found, at, applied, more), False
        except Exception:
            log.exception("the site could not be checked")
        with self._changed:
            self._kept, self._running = kept or self._kept, False
            self._ended = time.monotonic()
            self._took = self._ended - self._began
            self._failed_at = self._ended if failed else None
            self._changed.notify_all()


def check_packed(
    root: Path, settings: Settings, packed: PackedSnapshot, known: Iterable[Problem]
) -> tuple[tuple[Found, ...], int]:
    """As `check`, in another process."""
    return check(root, settings, unpack_snapshot(packed), known)


def check(
    root: Path, settings: Settings, snapshots: tuple[Snapshot, Snapshot], known: Iterable[Problem]
) -> tuple[tuple[Found, ...], int]:
    """The problems of a site, and how many more there are than are told.

    `snapshots` are that of its content and that with its users, `known` the problems of single files.
    """
    snapshot, joined = snapshots
    audit = Audit(root, settings, snapshot)
    survey = look_at(audit, in_order({*known, *problems_between(root, snapshot)}), joined)
    told = survey.problems[:MAX_PROBLEMS]
    fixes = survey.fixes
    found = tuple(_with_document(audit, problem, fixes.get(problem)) for problem in told)
    return found, len(survey.problems) - len(told)


def _with_document(audit: Audit, problem: Problem, fix: Fix | None) -> Found:
    """A problem with the document that it is of."""
    change = Change.of(fix) if fix else None
    if is_upload(problem.path):
        return Found(problem, UPLOAD, fix=change)
    document = audit.documents.get(problem.path)
    if document is not None:
        type_ = document.type
        title = document.get(name) if (name := title_of(type_)) else None
        key = (type_.uid, document.document_id, document.locale, document.status)
        return Found(problem, *key, str(title or ""), change)
    claim = audit.claims.get(problem.path) or audit.layout.claim(problem.path)
    if claim is None:
        return Found(problem, fix=change)
    status = DRAFT if claim.draft else PUBLISHED
    return Found(problem, claim.type.uid, claim.document_id, claim.locale, status, fix=change)
