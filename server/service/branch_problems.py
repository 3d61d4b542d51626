"""Problems in the files that a branch changed, and problems that these changes cause in other files."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from server.auth.permissions import PROBLEMS, require_of_site
from server.documents.document import PUBLISHED, Document
from server.formats.tree import SyntaxProblem
from server.history.past import PastState, PastStates
from server.index.dangling import MEDIA, Key, exists, find_dangling
from server.problems import Problem
from server.schema.model import Schema
from server.service.problems import ProblemViewer
from server.service.read import Caller
from server.site.check.audit import Audit, is_upload
from server.site.check.document_rules import find_in_documents
from server.site.check.served import CheckResult, DocumentProblem, with_document
from server.site.check.survey import duplicate_values, report_problems, unequal_locales
from server.storage.git.tree import read_blobs
from server.storage.media import media_key
from server.storage.read import decode


@dataclass(frozen=True, slots=True)
class BranchProblems:
    """The problems on a branch at the commit `head`, each with whether the commit `since` did not have it."""

    since: str
    head: str
    problems: tuple[tuple[DocumentProblem, bool], ...]


def branch_problems(
    past: PastStates, caller: Caller, since: str, head: str, paths: Collection[str] = ()
) -> BranchProblems:
    """Check the files that differ between two commits. Return the problems that the caller is allowed to see.

    If there are `paths`, return only problems in these files. Relations to users are not checked.

    Raises ForbiddenError or ConflictError.
    """
    require_of_site(caller.actor, PROBLEMS, "find", caller.state.schema)
    caller.budget.take_turn()
    root, changed = past.site.root, frozenset(past.changed_between(since, head))
    before, after = past.at(since), past.at(head)
    removed = {key for key in _keys_at(before, changed) if not exists(after.state.snapshot, key)}
    old = {_identity(found) for found in _check(root, before, changed, set())}
    found = _check(root, after, changed, removed)
    if paths:
        found = tuple(one for one in found if one.problem.path in paths)
    shown = _visible(caller, past.state_for_request(head, caller.state.settings).schema, found)
    return BranchProblems(since, head, tuple((one, _identity(one) not in old) for one in shown))


def _identity(found: DocumentProblem) -> tuple[str, str, str]:
    return found.problem.path, found.problem.rule, found.problem.message


def _visible(caller: Caller, schema: Schema, found: tuple[DocumentProblem, ...]) -> Iterator[DocumentProblem]:
    """Yield the problems that the caller is allowed to see by the served schema and by the branch's."""
    seen = tuple(ProblemViewer(caller).shown(CheckResult(found, "", 0)))
    on_branch = replace(caller, state=replace(caller.state, schema=schema))
    return ProblemViewer(on_branch).shown(CheckResult(seen, "", 0))


def _check(
    root: Path, past: PastState, paths: frozenset[str], removed: set[Key]
) -> tuple[DocumentProblem, ...]:
    """Check the files at `paths` in a commit, and all relations to the `removed` documents and files."""
    snapshot, keys = past.state.snapshot, set(_keys_at(past, paths))
    audit = _audit(root, past, paths | _locales_of(past, keys))
    found: dict[Problem, None] = {}
    for path in sorted(paths & past.known.entries.keys()):
        found.update(dict.fromkeys(past.known.entries[path].problems))
    found.update(dict.fromkeys(problem for problem in duplicate_values(audit) if problem.path in paths))
    found.update(dict.fromkeys(find_in_documents(audit, paths)))
    found.update(dict.fromkeys(unequal_locales(audit, keys)))
    changed = [document for path, document in audit.documents.items() if path in paths]
    broken = [document for document in audit.broken if document.path in paths]
    found.update(dict.fromkeys(find_dangling(snapshot, audit.parsed, [*changed, *broken])))
    if removed:
        found.update(dict.fromkeys(find_dangling(snapshot, audit.parsed, None, removed)))
    return tuple(with_document(audit, problem, None) for problem in report_problems(audit, found).problems)


def _audit(root: Path, past: PastState, paths: frozenset[str]) -> Audit:
    """Return an audit of a commit that has read only the files at `paths`."""
    blobs = past.known.blobs
    texts: dict[str, str] = {}
    read = [path for path in sorted(paths & past.known.entries.keys()) if not is_upload(path)]
    for path, data in zip(read, read_blobs(root, [blobs[path].id for path in read]), strict=True):
        try:
            texts[path] = decode(data or b"")
        except SyntaxProblem:
            continue
    audit = Audit(root, past.state.settings, past.state.snapshot, texts)
    audit.__dict__["files"] = frozenset(path for path in blobs if is_upload(path) or audit.layout.claim(path))
    return audit


def _locales_of(past: PastState, keys: set[Key]) -> set[str]:
    """Return the paths of the published versions of documents."""
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
