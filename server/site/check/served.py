"""Cached checks of a site that is being served."""

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
from server.site.check.survey import survey_audit
from server.site.problems import find_cross_file_problems
from server.site.site import Site

log = logging.getLogger("bifolio")

MAX_LOCAL_DOCUMENTS = 300  # up to this number of documents, a site is checked in this process
MAX_PROBLEMS = 20_000  # limit on the problems in one result
PROCESS_TIMEOUT_S = 60.0
# Checks are repeated even without known changes: files that belong to no content type can change unnoticed.
RECHECK_INTERVAL_S = 2.0
# If a check is quicker than this, it is repeated after each change. Otherwise, it is repeated after a pause.
QUICK_CHECK_S = 0.5
# Without known changes, the pause is this many times as long as the check.
REST_FACTOR = 20
BACKOFF_S = 15.0  # pause after a failed check


@dataclass(frozen=True, slots=True)
class ValueChange:
    """A fix that changes one value, in the form that `bifolio check --format json` prints."""

    path: str
    key: str
    before: str | None
    after: str | None

    @classmethod
    def from_fix(cls, fix: Fix) -> "ValueChange":
        return cls(fix.path, ".".join(map(str, fix.key_path)), fix.old or None, fix.new)


@dataclass(frozen=True, slots=True)
class DocumentProblem:
    """A problem, together with its document and its fix.

    `uid` is "" if the problem is not in a document. `fix` is None if no fix is certain to be correct.
    """

    problem: Problem
    uid: str = ""
    document_id: str = ""
    locale: str = ""
    status: str = ""
    title: str = ""
    fix: ValueChange | None = None


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of a check. It contains at most MAX_PROBLEMS problems.

    `applied` is the value of `Site.applied` when the check began. `omitted_count` is the number of problems
    that were left out.
    """

    problems: tuple[DocumentProblem, ...]
    checked_at: str
    applied: int
    omitted_count: int = 0


class BackgroundChecks:
    """Background checks of a site that is being served. This class is thread-safe.

    `load_snapshot` returns a snapshot that includes users.
    """

    def __init__(self, site: Site, load_snapshot: Callable[[], Snapshot]) -> None:
        self.site, self._join = site, load_snapshot
        self._result: CheckResult | None = None
        self._running = False
        self._began = self._ended = self._duration = 0.0
        self._failed_at: float | None = None
        self._changed = threading.Condition()

    def current(self, timeout_s: float) -> tuple[CheckResult, bool]:
        """Return the last result, and True if the site has not changed since that check.

        If a new check is due, it is started first, and the method waits for it up to `timeout_s` seconds.
        Raises BusyError if no check has finished yet.
        """
        deadline = time.monotonic() + timeout_s
        with self._changed:
            began = self._begin_if_due()
            while (
                self._running
                and (remaining_s := deadline - time.monotonic()) > 0
                and (began or not self._result)
            ):
                self._changed.wait(remaining_s)
            result = self._result
        if result is None:
            raise BusyError("The first check of the site is still running; try again")
        return result, result.applied == self.site.applied

    def _begin_if_due(self) -> bool:
        """Start a check if it is due. Return True if a check is running.

        The caller must hold the lock.
        """
        if self._running:
            return True
        at = time.monotonic()
        if self._failed_at is not None and at - self._failed_at < BACKOFF_S:
            return False
        if self._result is not None:
            is_current = self._result.applied == self.site.applied
            pause = max(RECHECK_INTERVAL_S, REST_FACTOR * self._duration) if is_current else self._duration
            if at - self._ended < pause and (is_current or self._duration > QUICK_CHECK_S):
                return False
        self._running, self._began = True, at
        threading.Thread(target=self._run, name="check", daemon=True).start()
        return True

    def _run(self) -> None:
        result, has_failed = None, True
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
            result, has_failed = CheckResult(found, at, applied, more), False
        except Exception:
            log.exception("the site can't be checked")
        with self._changed:
            self._result, self._running = result or self._result, False
            self._ended = time.monotonic()
            self._duration = self._ended - self._began
            self._failed_at = self._ended if has_failed else None
            self._changed.notify_all()


def check_packed(
    root: Path, settings: Settings, packed: PackedSnapshot, file_problems: Iterable[Problem]
) -> tuple[tuple[DocumentProblem, ...], int]:
    return check(root, settings, unpack_snapshot(packed), file_problems)


def check(
    root: Path, settings: Settings, snapshots: tuple[Snapshot, Snapshot], file_problems: Iterable[Problem]
) -> tuple[tuple[DocumentProblem, ...], int]:
    """Return at most MAX_PROBLEMS problems, and the number of problems that were left out.

    The first of the `snapshots` does not contain user accounts, and the second does. `file_problems` are
    problems that were already found in individual files.
    """
    snapshot, with_users = snapshots
    audit = Audit(root, settings, snapshot)
    survey = survey_audit(
        audit, in_order({*file_problems, *find_cross_file_problems(audit.parse_file, snapshot)}), with_users
    )
    kept = survey.problems[:MAX_PROBLEMS]
    fixes = survey.fixes
    found = tuple(to_document_problem(audit, problem, fixes.get(problem)) for problem in kept)
    return found, len(survey.problems) - len(kept)


def to_document_problem(audit: Audit, problem: Problem, fix: Fix | None) -> DocumentProblem:
    """Return a problem together with its document and fix."""
    change = ValueChange.from_fix(fix) if fix else None
    if is_upload(problem.path):
        return DocumentProblem(problem, UPLOAD, fix=change)
    document = audit.documents.get(problem.path)
    if document is not None:
        type_ = document.type
        title = document.get(name) if (name := title_of(type_)) else None
        key = (type_.uid, document.document_id, document.locale, document.status)
        return DocumentProblem(problem, *key, str(title or ""), change)
    claim = audit.claims.get(problem.path) or audit.layout.claim(problem.path)
    if claim is None:
        return DocumentProblem(problem, fix=change)
    status = DRAFT if claim.draft else PUBLISHED
    return DocumentProblem(problem, claim.type.uid, claim.document_id, claim.locale, status, fix=change)
