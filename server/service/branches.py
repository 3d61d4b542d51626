"""Listing, creating, deleting, comparing and merging branches (docs/branches.md)."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from server.auth.permissions import (
    SETTINGS,
    forbidden,
    has_site_permission,
    may_write_schemas,
    require_branch,
)
from server.errors import ValidationError
from server.history.branch_documents import BranchDocumentCounter
from server.history.branching import (
    Branches,
    DocumentChange,
    MediaChange,
    changed_documents,
    changed_media,
    fork_of,
)
from server.history.configuration_changes import ConfigurationChange, changed_configuration, diffs
from server.history.merging.conflicts import Resolution
from server.history.merging.merge import BranchMergeResult, Merger, MergeRequest
from server.history.past import PastStates
from server.paths import SETTINGS as SETTINGS_FILE
from server.schema.model import Schema
from server.service.branch_problems import BranchChecks, BranchProblems
from server.service.document_write import Body, charge_json_texts
from server.service.read import Caller
from server.service.write import Writes
from server.storage.git.branches import Branch, merge_base
from server.storage.git.refs import COMMIT_ID

MAX_LISTED_FILES = 100  # of content types, settings and migrations
HEAD = "HEAD"  # value of `start` that stands for the commit that is checked out


@dataclass(frozen=True, slots=True)
class BranchChanges:
    """The changes on a branch between the commits `fork` and `head`.

    `files` lists at most MAX_LISTED_FILES of the changed configuration files that the caller may read.
    `total_files` counts all changed configuration files, including those that the caller may not read.
    """

    fork: str
    head: str
    documents: Sequence[DocumentChange]
    media: Sequence[MediaChange]
    files: Sequence[ConfigurationChange]
    total_files: int


class SiteBranches:
    """The branches of a site. Methods raise ForbiddenError if the caller lacks the required permission."""

    def __init__(self, past: PastStates, writes: Writes) -> None:
        self._past, self._writes = past, writes
        self._branches = Branches(past)
        self._documents = BranchDocumentCounter(past)
        self._merger = Merger(past, self._branches)
        self._checks = BranchChecks(past)

    @property
    def served(self) -> str:
        return self._branches.served()

    def permit(self, caller: Caller, action: str) -> None:
        require_branch(caller.actor, action, caller.state.schema)

    def all(self, caller: Caller) -> list[Branch]:
        self.permit(caller, "find")
        return self._branches.all()

    def count_documents(self, caller: Caller, branches: Sequence[Branch]) -> list[int | None]:
        """Return, for each branch, the number of its changed documents that the caller may see.

        The number is None if the branch can't be compared with the served branch. Raises BusyError or
        LimitError.
        """
        caller.budget.take_turn()
        return [
            None
            if branch.problem
            else self._documents.count(branch.commit, caller.actor, caller.state, caller.budget)
            for branch in branches
        ]

    def merged_names(self) -> frozenset[str]:
        return self._branches.merged()

    def create(self, caller: Caller, name: str, start: str = HEAD) -> Branch:
        """Create a branch that starts at a commit, tag, branch or time.

        Raises ValidationError if a name is invalid, or ConflictError if the branch already exists.
        """
        self.permit(caller, "create")
        head = self._past.require_commits()
        if start == HEAD:
            commit = head
        elif caller.actor.may("history", "read"):
            commit = self._past.resolve(start)
        else:
            commit = self._past.branch(start)
        if not commit:
            raise forbidden(caller.actor, "history", "read", is_type=False)
        return self._branches.create(name, commit)

    def delete(self, caller: Caller, name: str, if_match: str | None = None) -> None:
        """Delete a branch, even if it has not been merged.

        Raises NotFoundError if there is no such branch, PreconditionError if it has changed, or ConflictError
        if it is checked out.
        """
        self.permit(caller, "delete")
        self._branches.delete(name, if_match)

    def changes(self, caller: Caller, name: str) -> BranchChanges:
        """Return the changes on a branch, without those that the caller may not see. Raises NotFoundError."""
        self.permit(caller, "find")
        caller.budget.take_turn()
        past, head = self._past, self._branches.commit(name)
        fork = fork_of(past, head)
        before, after = past.at(fork), past.at(head)
        documents = changed_documents(before, after, caller.actor, caller.state.schema)
        media = changed_media(before, after, caller.actor, caller.state.schema)
        changed = changed_configuration(past.site.root, fork, head)
        readable = {path: changed[path] for path in changed if _may_read(caller, path)}
        listed = dict(islice(readable.items(), MAX_LISTED_FILES))
        files = list(diffs(past.site.root, listed))
        lines = sum(len(file.lines or ()) for file in files)
        caller.budget.spend(len(documents) + len(media) + lines)
        return BranchChanges(fork, head, documents, media, files, len(changed))

    def problems(
        self, caller: Caller, name: str, since: str = "", paths: Collection[str] = ()
    ) -> BranchProblems:
        """Return the problems in files that a branch has changed since the commit `since`.

        If `since` is "", this is the commit at which the branch started. If `paths` is given, only problems
        in these files are returned. Raises ValidationError if the commit `since` is not on the branch. Also
        raises NotFoundError or LimitError.
        """
        self.permit(caller, "find")
        past, head = self._past, self._branches.commit(name)
        is_id = COMMIT_ID.fullmatch(since)
        if since and not (is_id and merge_base(past.site.root, since, head) == since):
            raise ValidationError(f'"since" must be the id of a commit on the branch (found "{since[:100]}")')
        return self._checks.find(caller, since or fork_of(past, head), head, paths)

    def merge(
        self,
        caller: Caller,
        name: str,
        resolution: Resolution,
        into: str = "",
        message: str = "",
        if_match: str | None = None,
    ) -> BranchMergeResult:
        """Merge the branch `name` into the branch `into`. If `into` is "", merge it into the served branch.

        Raises PreconditionError if the branch has changed, or MergeConflictError if conflicts remain
        unresolved.
        """
        self.permit(caller, "merge")
        authorship = self._writes.authorship(caller, message=message)
        charge_json_texts(
            _resolved_values(resolution, caller.state.schema), caller.state.schema, caller.budget
        )
        self._past.require_commits()
        caller.budget.take_turn()
        request = MergeRequest(name, into, caller.actor, authorship, resolution, if_match)
        return self._merger.merge(request, caller.state.settings)


def _may_read(caller: Caller, path: str) -> bool:
    if path == SETTINGS_FILE:
        return has_site_permission(caller.actor, SETTINGS, "read", caller.state.schema)
    return may_write_schemas(caller.actor, caller.state.schema)


def _resolved_values(resolution: Resolution, schema: Schema) -> Iterator[Body]:
    types = {type_.singular: type_ for type_ in schema.content_types}
    for name, choice in resolution.documents.items():
        type_ = types.get(name.partition("/")[0])
        if type_ is not None and isinstance(choice, Mapping):
            yield (
                type_,
                {key: resolved["value"] for key, resolved in choice.items() if isinstance(resolved, Mapping)},
            )
