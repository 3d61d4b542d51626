"""Selection of the commit to check out when the remote has new commits."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

from server.auth.permissions import Actor
from server.errors import ConflictError, MergeConflictError, RemoteMergeError
from server.history.branching import CommittedFiles
from server.history.merging.conflicts import Resolution
from server.history.merging.plan import Outcome, Plan, Planner
from server.history.merging.sides import MergeSides
from server.history.past import PastStates
from server.storage.changeset import Changeset
from server.storage.git.branch_commit import CommitMetadata, make_commit
from server.storage.git.branches import merge_base
from server.storage.git.command import git_or_fail
from server.storage.git.commit import Person
from server.storage.git.refs import is_ancestor
from server.storage.git.repository import GitFile

log = logging.getLogger("bifolio")

_FIX = "Run bifolio check, correct what it reports, then run bifolio migrate apply --write"
NOTHING, FORWARD, MERGE, RESET, REAPPLY = "nothing", "fast-forward", "merge", "reset", "re-apply"
GIT = Actor("git", everything=True)
MAX_NAMED_FILES = 20


@dataclass(frozen=True, slots=True)
class Target:
    """The commit to check out. `how` is the kind of update, such as FORWARD or MERGE.

    The commit already contains the local edits in `included_edits`.
    """

    commit: str
    how: str
    included_edits: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def needs_backup(self) -> bool:
        # The target's history lacks the current commit, so a ref must protect the current commit from
        # deletion.
        return self.how in (RESET, REAPPLY)


def find_target(past: PastStates, head: str, remote_commit: str, known_commit: str) -> Target:
    """Return the commit to check out. If a merge is necessary, create its commit first.

    `known_commit` is the last remote commit that was merged, or "" if none was. Raises RemoteMergeError if
    the commits can't be merged.
    """
    root = past.site.root
    rewritten = bool(known_commit) and not is_ancestor(root, known_commit, remote_commit)
    if is_ancestor(root, head, remote_commit):
        return Target(remote_commit, FORWARD if head != remote_commit else NOTHING)
    if not rewritten and is_ancestor(root, remote_commit, head):
        return Target(head, NOTHING)
    if rewritten and is_ancestor(root, head, known_commit):
        return Target(remote_commit, RESET)
    base = merge_base(root, known_commit if rewritten else remote_commit, head)
    if not base:
        raise RemoteMergeError(
            "The git remote and the served branch have no common ancestor; merge them with git"
        )
    if rewritten:
        return Target(_reapply(past, MergeSides(base, remote_commit, head)), REAPPLY)
    return Target(_merge(past, MergeSides(base, head, remote_commit)), MERGE)


def plan_integration(past: PastStates, sides: MergeSides, files: Changeset) -> Plan:
    """Plan a merge of the whole repository. Raises RemoteMergeError if the commits can't be merged."""
    try:
        plan = Planner(past, GIT, past.site.state.settings, Resolution(), whole_repository=True).plan(
            sides, files
        )
    except MergeConflictError as error:
        raise _conflict_error(error) from error
    except ConflictError as error:
        raise RemoteMergeError(error.message, error.details) from error
    if plan.skipped:
        log.warning("merging commits of the git remote without their migrations: %s. %s", plan.skipped, _FIX)
    return plan


def base_with_edits(past: PastStates, head: str, target: Target) -> str:
    if not target.included_edits:
        return head
    return make_commit(
        past.site.root, (head,), target.included_edits, _sign(past, "Local edits included in a write")
    )


def _merge(past: PastStates, sides: MergeSides) -> str:
    outcomes, signed = _merged_files(past, sides), _sign(past, "Merge the remote's commits")
    return make_commit(past.site.root, (sides.ours, sides.theirs), outcomes, signed)


def _reapply(past: PastStates, sides: MergeSides) -> str:
    outcomes, root = _merged_files(past, sides), past.site.root
    log_output = git_or_fail(root, "log", "--no-merges", "--format=%s", f"{sides.base}..{sides.theirs}")
    subjects = log_output.splitlines()
    lines = (f"Re-apply {len(subjects)} commits", "", *subjects)
    message = subjects[0] if len(subjects) == 1 else "\n".join(lines)
    return make_commit(root, (sides.ours,), outcomes, _sign(past, message))


def _merged_files(past: PastStates, sides: MergeSides) -> Mapping[str, bytes | GitFile | None]:
    try:
        known = past.at(sides.ours).known
    except ConflictError as error:
        raise RemoteMergeError(error.message) from error
    files = Changeset(past.site.root, CommittedFiles(past.site.root, known.blobs))
    return {
        path: content_of(outcome) for path, outcome in plan_integration(past, sides, files).outcomes.items()
    }


def content_of(outcome: Outcome) -> bytes | GitFile | None:
    return outcome.encode() if isinstance(outcome, str) else outcome


def _sign(past: PastStates, message: str) -> CommitMetadata:
    committer = Person.parse(past.site.state.settings.git.committer)
    return CommitMetadata(f"{message}\n", committer, committer)


def _conflict_error(error: MergeConflictError) -> RemoteMergeError:
    conflicts = error.details["conflicts"]
    names = [_conflict(conflict) for conflict in conflicts]
    files = list(error.details["files"])
    summary = ", ".join([*names, *files][:MAX_NAMED_FILES])
    more = error.details["total"] - min(len(names) + len(files), MAX_NAMED_FILES)
    if more > 0:
        summary = f"{summary} and {more:,} more"
    files = sorted({*files, *(path for conflict in conflicts for path in conflict["files"])})
    what = f"The same values were changed here and on the git remote: {summary}"
    if (
        error.message != error.default
    ):  # Migrations could not be applied, which may have caused the conflicts.
        what = f"{what}. {error.message[:1].upper()}{error.message[1:]}"
    return RemoteMergeError(
        what,
        {"conflicts": names, "files": files},
    )


def _conflict(conflict: Mapping[str, object]) -> str:
    attributes = conflict.get("attributes")
    details = ", ".join(attributes) if isinstance(attributes, Mapping) else "deleted on one side"
    return f"{conflict['document']} ({details})"
