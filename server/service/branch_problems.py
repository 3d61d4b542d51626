"""Problems in the files that a branch changed, and problems that the changes cause in other files.

The more text and links a check reads, the more of the request's budget it uses.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from server.auth.permissions import PROBLEMS, require_of_site
from server.bounded import Cache
from server.documents.document import PUBLISHED, Document
from server.errors import LimitError
from server.formats.tree import SyntaxProblem
from server.history.past import PastState, PastStates
from server.index.budget import Budget
from server.index.dangling import MEDIA, Key, exists, find_dangling
from server.problems import Problem
from server.schema.model import Schema
from server.service.problems import ProblemViewer
from server.service.read import Caller
from server.site.check.audit import Audit, is_upload
from server.site.check.document_rules import find_in_documents
from server.site.check.served import CheckResult, DocumentProblem, to_document_problem
from server.site.check.survey import duplicate_values, find_unequal_locales, report_problems
from server.storage.git.tree import read_blobs
from server.storage.media import media_key
from server.storage.read import decode

_STEPS_PER_FILE = 20
_BYTES_PER_STEP = 20
_STEPS_PER_PROBLEM = 10
# Parsing takes longer for lines, headings and links than for words. "[" begins a link, which is also checked.
_STEPS_PER_MARK = {"\n": 1, "<": 1, ">": 1, "*": 1, "|": 1, "#": 5, "[": 5}
_PROBLEMS_PER_STEP = 10  # when a result is filtered by permissions
_MAX_CACHE_BYTES = 40_000_000  # enough for the largest result that the default limit on steps allows
_BYTES_PER_ENTRY, _BYTES_PER_PROBLEM = 300, 500  # without texts

_Identity = tuple[str, str, str]  # path, rule and message


@dataclass(frozen=True, slots=True)
class _CheckOutcome:
    problems: tuple[DocumentProblem, ...]
    already_there: frozenset[_Identity]


@dataclass(frozen=True, slots=True)
class BranchProblems:
    """The problems at the commit `head`, each with True if it did not exist at the commit `since`."""

    since: str
    head: str
    problems: tuple[tuple[DocumentProblem, bool], ...]


class BranchChecks:
    """Checks of the files that a branch changed, with a cache of the results. This class is thread-safe."""

    def __init__(self, past: PastStates) -> None:
        self._past = past
        # The results of checks, by the commits `since` and `head`, for callers with all permissions. Saves
        # 1.1 s for a branch that has changed 1,000 documents with 20 broken links each.
        self._results: Cache[tuple[str, str], _CheckOutcome] = Cache(_MAX_CACHE_BYTES, _size)

    def find(self, caller: Caller, since: str, head: str, paths: Collection[str] = ()) -> BranchProblems:
        """Return the visible problems in files that differ between two commits.

        Problems that these changes cause in other files are included. If `paths` is given, only problems in
        these files are returned. Relations to users are not checked. Raises ForbiddenError, ConflictError,
        BusyError or LimitError.
        """
        require_of_site(caller.actor, PROBLEMS, "find", caller.state.schema)
        result = self._results.get((since, head))
        if result is None:
            result = self._check_on_turn(caller, since, head)
        caller.budget.spend(len(result.problems) // _PROBLEMS_PER_STEP)
        found = tuple(one for one in result.problems if not paths or one.problem.path in paths)
        shown = _visible_problems(
            caller, self._past.state_for_request(head, caller.state.settings).schema, found
        )
        return BranchProblems(
            since, head, tuple((one, _identity(one) not in result.already_there) for one in shown)
        )

    def _check_on_turn(self, caller: Caller, since: str, head: str) -> _CheckOutcome:
        # Requests for the same check wait for the turn. All but the first then find the result in the cache.
        caller.budget.take_turn()
        result = self._results.get((since, head))
        if result is None:
            result = _check_between(self._past, caller.budget, since, head)
            self._results.put((since, head), result)
        return result


def _check_between(past: PastStates, budget: Budget, since: str, head: str) -> _CheckOutcome:
    root, changed = past.site.root, frozenset(past.changed_between(since, head))
    before, after = past.at(since), past.at(head)
    removed = {key for key in _keys_at(before, changed) if not exists(after.state.snapshot, key)}
    try:
        old = {_identity(found) for found in _check_commit(root, before, changed, set(), budget)}
        found = _check_commit(root, after, changed, removed, budget)
    except LimitError as error:
        size = sum(blob.size for path in changed if (blob := after.known.blobs.get(path)))
        raise LimitError(
            f"The files that differ from the commit {since[:10]} are too large to check: "
            f"{len(changed):,} file{'s' * (len(changed) != 1)}, {size:,} bytes",
            error.details["limit"],
        ) from error
    return _CheckOutcome(found, frozenset(old & {_identity(one) for one in found}))


def _size(_: tuple[str, str], result: _CheckOutcome) -> int:
    texts = (len(one.problem.message) + len(one.problem.fix) for one in result.problems)
    return _BYTES_PER_ENTRY + _BYTES_PER_PROBLEM * len(result.problems) + sum(texts)


def _identity(found: DocumentProblem) -> _Identity:
    return found.problem.path, found.problem.rule, found.problem.message


def _visible_problems(
    caller: Caller, schema: Schema, found: tuple[DocumentProblem, ...]
) -> Iterator[DocumentProblem]:
    seen = tuple(ProblemViewer(caller).visible_problems(CheckResult(found, "", 0)))
    on_branch = replace(caller, state=replace(caller.state, schema=schema))
    return ProblemViewer(on_branch).visible_problems(CheckResult(seen, "", 0))


def _check_commit(
    root: Path, past: PastState, paths: frozenset[str], removed: set[Key], budget: Budget
) -> tuple[DocumentProblem, ...]:
    """Return the problems in the files at `paths`, and one for each relation to a target in `removed`.

    Raises LimitError.
    """
    snapshot, keys = past.state.snapshot, set(_keys_at(past, paths))
    audit = _make_audit(root, past, paths | _published_paths(past, keys), budget)
    found: dict[Problem, None] = {}
    for path in sorted(paths & past.known.entries.keys()):
        found.update(dict.fromkeys(past.known.entries[path].problems))
    found.update(dict.fromkeys(problem for problem in duplicate_values(audit) if problem.path in paths))
    for problem in find_in_documents(audit, paths):
        budget.spend(_STEPS_PER_PROBLEM)  # To suggest a correction, a name is compared with many others.
        found[problem] = None
    found.update(dict.fromkeys(find_unequal_locales(audit, keys)))
    changed = [document for path, document in audit.documents.items() if path in paths]
    broken = [document for document in audit.invalid_documents if document.path in paths]
    found.update(dict.fromkeys(find_dangling(snapshot, audit.parse_file, [*changed, *broken])))
    if removed:
        found.update(dict.fromkeys(find_dangling(snapshot, audit.parse_file, None, removed)))
    return tuple(
        to_document_problem(audit, problem, None) for problem in report_problems(audit, found).problems
    )


def _make_audit(root: Path, past: PastState, paths: frozenset[str], budget: Budget) -> Audit:
    blobs = past.known.blobs
    texts: dict[str, str] = {}
    read = [path for path in sorted(paths & past.known.entries.keys()) if not is_upload(path)]
    budget.spend(sum(_STEPS_PER_FILE + blobs[path].size // _BYTES_PER_STEP for path in read))
    for path, data in zip(read, read_blobs(root, [blobs[path].id for path in read]), strict=True):
        try:
            texts[path] = decode(data or b"")
        except SyntaxProblem:
            continue
    budget.spend(sum(map(_steps_for_markup, texts.values())))
    # The budget checks the time before each document.
    audit = Audit(root, past.state.settings, past.state.snapshot, texts, checkpoint=budget.check)
    audit.__dict__["files"] = frozenset(path for path in blobs if is_upload(path) or audit.layout.claim(path))
    return audit


def _steps_for_markup(text: str) -> int:
    return sum(steps * text.count(mark) for mark, steps in _STEPS_PER_MARK.items())


def _published_paths(past: PastState, keys: set[Key]) -> set[str]:
    tables, locales = past.state.snapshot.tables, past.state.settings.locales.available
    versions = (
        tables[uid].versions.get((document_id, locale, PUBLISHED))
        for uid, document_id in keys
        if uid in tables
        for locale in locales
    )
    return {version.path for version in versions if version is not None}


def _keys_at(past: PastState, paths: frozenset[str]) -> Iterator[Key]:
    for path in paths:
        entry = past.known.entries.get(path)
        document: Document | None = entry.document if entry else None
        if is_upload(path):
            yield MEDIA, media_key(path) or ""
        elif document is not None:
            yield document.type.uid, document.document_id
