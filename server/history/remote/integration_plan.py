"""The commit that what is served is to come to, when the remote has another one: the remote's, or a merge.

What is there is never edited: a merge, like any commit that is made here, is a new one, of git's objects.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from server.auth.permissions import Actor
from server.errors import ConflictError, NotTakenOverError, UnmergedError
from server.history.branching import CommittedFiles
from server.history.merging.conflicts import Resolution
from server.history.merging.plan import Outcome, Plan, Planner
from server.history.merging.sides import Sides
from server.history.past import PastStates
from server.storage.changeset import Changeset
from server.storage.git.branch_commit import Signed, make_commit
from server.storage.git.branches import merge_base
from server.storage.git.command import git_or_fail
from server.storage.git.commit import Person
from server.storage.git.refs import is_ancestor
from server.storage.git.repository import Staged

NOTHING, FORWARD, MERGE, RESET, REAPPLY = "nothing", "fast-forward", "merge", "reset", "re-apply"
GIT = Actor("git", everything=True)
MAX_NAMED_FILES = 20


@dataclass(frozen=True, slots=True)
class Target:
    """A commit that is to be checked out, and how it comes from what is: one of the words above.

    `taken` are files with edits by hand that it has taken along, as they were then.
    """

    commit: str
    how: str
    taken: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def keeps(self) -> bool:
        """Whether what is checked out now is not in it, so that it is kept under a name."""
        return self.how in (RESET, REAPPLY)


def target_of(past: PastStates, head: str, theirs: str, known: str) -> Target:
    """What is to be checked out in the place of `head`, when the remote has `theirs`.

    `known` is the last commit of the remote that is in `head`, "" where there is none. Raises
    NotTakenOverError where both have changed the same.
    """
    root = past.site.root
    rewritten = bool(known) and not is_ancestor(root, known, theirs)
    if is_ancestor(root, head, theirs):
        return Target(theirs, FORWARD if head != theirs else NOTHING)
    if not rewritten and is_ancestor(root, theirs, head):
        return Target(head, NOTHING)
    if rewritten and is_ancestor(root, head, known):
        return Target(theirs, RESET)
    base = merge_base(root, known if rewritten else theirs, head)
    if not base:
        raise NotTakenOverError("The remote and what is served have no commit in common; merge them with git")
    if rewritten:
        return Target(_reapply(past, Sides(base, theirs, head)), REAPPLY)
    return Target(_merge(past, Sides(base, head, theirs)), MERGE)


def plan_integration(past: PastStates, sides: Sides, files: Changeset) -> Plan:
    """What a merge of the whole repository comes to. Raises NotTakenOverError for what both have changed."""
    try:
        return Planner(past, GIT, past.site.state.settings, Resolution(), whole=True).plan(sides, files)
    except UnmergedError as error:
        raise _in_the_way(error) from error
    except ConflictError as error:
        raise NotTakenOverError(error.message, error.details) from error


def with_taken(past: PastStates, head: str, target: Target) -> str:
    """The commit that edits by hand are compared with: `head`, with those that the target has taken along."""
    if not target.taken:
        return head
    return make_commit(past.site.root, (head,), target.taken, _sign(past, "Edits that a write has taken"))


def _merge(past: PastStates, sides: Sides) -> str:
    """A merge of what was committed here and what the remote has."""
    outcomes, signed = _between(past, sides), _sign(past, "Merge what the remote has")
    return make_commit(past.site.root, (sides.ours, sides.theirs), outcomes, signed)


def _reapply(past: PastStates, sides: Sides) -> str:
    """What was committed here since `base`, as one commit on top of a history that was rewritten."""
    outcomes, root = _between(past, sides), past.site.root
    said = git_or_fail(root, "log", "--no-merges", "--format=%s", f"{sides.base}..{sides.theirs}")
    subjects = said.splitlines()
    told = (f"Re-apply {len(subjects)} commits", "", *subjects)
    message = subjects[0] if len(subjects) == 1 else "\n".join(told)
    return make_commit(root, (sides.ours,), outcomes, _sign(past, message))


def _between(past: PastStates, sides: Sides) -> Mapping[str, bytes | Staged | None]:
    """The files that a merge of two commits changes in `ours`."""
    try:
        known = past.at(sides.ours).known
    except ConflictError as error:
        raise NotTakenOverError(error.message) from error
    files = Changeset(past.site.root, CommittedFiles(past.site.root, known.blobs))
    return {
        path: content_of(outcome) for path, outcome in plan_integration(past, sides, files).outcomes.items()
    }


def content_of(outcome: Outcome) -> bytes | Staged | None:
    """What a file comes to, as a commit takes it."""
    return outcome.encode() if isinstance(outcome, str) else outcome


def _sign(past: PastStates, message: str) -> Signed:
    committer = Person.of(past.site.state.settings.git.committer)
    return Signed(f"{message}\n", committer, committer)


def _in_the_way(error: UnmergedError) -> NotTakenOverError:
    """What both have changed, in one line, with the files."""
    conflicts = error.details["conflicts"]
    names = [_conflict(told) for told in conflicts]
    files = list(error.details["files"])
    said = ", ".join([*names, *files][:MAX_NAMED_FILES])
    more = error.details["total"] - min(len(names) + len(files), MAX_NAMED_FILES)
    if more > 0:
        said = f"{said} and {more:,} more"
    files = sorted({*files, *(path for told in conflicts for path in told["files"])})
    return NotTakenOverError(f"Both have changed the same: {said}", {"conflicts": names, "files": files})


def _conflict(told: Mapping[str, object]) -> str:
    attributes = told.get("attributes")
    inside = ", ".join(attributes) if isinstance(attributes, Mapping) else "deleted on one side"
    return f"{told['document']} ({inside})"
