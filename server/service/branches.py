"""The branches of a site as callers see, make, delete and merge them (docs/history.md)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from server.auth.permissions import require_branch
from server.errors import ForbiddenError
from server.history.branching import Branches, DocumentChange, changed_documents, fork_of
from server.history.merging.conflicts import Resolution
from server.history.merging.merge import Merge, Merger, MergeRequest
from server.history.past import PastStates
from server.schema.model import Schema
from server.service.document_write import Body, take_json_texts
from server.service.read import Caller
from server.service.write import Writes
from server.storage.git.branches import Branch

HEAD = "HEAD"  # as the origin of a branch: the commit that is checked out


@dataclass(frozen=True, slots=True)
class BranchChanges:
    """What a branch has changed since it left the branch that is served, at the commit `fork`."""

    fork: str
    head: str
    documents: Sequence[DocumentChange]


class SiteBranches:
    """The branches of a site. Methods raise ForbiddenError, and ConflictError in a site without commits."""

    def __init__(self, past: PastStates, writes: Writes) -> None:
        self._past, self._writes = past, writes
        self._branches = Branches(past)
        self._merger = Merger(past, self._branches)

    @property
    def served(self) -> str:
        """The branch that is served; "" for none."""
        return self._branches.served()

    def permit(self, caller: Caller, action: str) -> None:
        """Raise ForbiddenError if a caller may not do an action on branches."""
        require_branch(caller.actor, action, caller.state.schema)

    def all(self, caller: Caller) -> list[Branch]:
        """Return every branch, by name."""
        self.permit(caller, "find")
        return self._branches.all()

    def create(self, caller: Caller, name: str, origin: str = HEAD) -> Branch:
        """Make a branch of a commit, tag, branch or time.

        It shows all of that commit: other commits than those of branches take `history.read`. Raises
        ValidationError, and ConflictError if there is a branch of that name.
        """
        self.permit(caller, "create")
        head = self._past.require_commits()
        if origin == HEAD:
            commit = head
        elif caller.actor.may("history", "read"):
            commit = self._past.resolve(origin)
        else:
            commit = self._past.branch(origin)
        if not commit:
            raise ForbiddenError()
        return self._branches.create(name, commit)

    def delete(self, caller: Caller, name: str) -> None:
        """Delete a branch, merged or not. Raises NotFoundError, and ConflictError if it is checked out."""
        self.permit(caller, "delete")
        self._branches.delete(name)

    def changes(self, caller: Caller, name: str) -> BranchChanges:
        """Return which documents a branch has changed that a caller may find. Raises NotFoundError."""
        self.permit(caller, "find")
        caller.budget.take_turn()
        past, head = self._past, self._branches.commit(name)
        fork = fork_of(past, head)
        documents = changed_documents(past.at(fork), past.at(head), caller.actor)
        caller.budget.spend(len(documents))
        return BranchChanges(fork, head, documents)

    def merge(
        self, caller: Caller, name: str, resolution: Resolution, into: str = "", message: str = ""
    ) -> Merge:
        """Merge a branch into another one, "" for the one that is served.

        Raises UnmergedError for conflicts that `resolution` does not end, and what `Merger.merge` raises.
        """
        self.permit(caller, "merge")
        by = self._writes.authorship(caller, message=message)
        take_json_texts(_given(resolution, caller.state.schema), caller.state.schema, caller.budget)
        self._past.require_commits()
        caller.budget.take_turn()
        request = MergeRequest(name, into, caller.actor, by, resolution)
        return self._merger.merge(request, caller.state.settings)


def _given(resolution: Resolution, schema: Schema) -> Iterator[Body]:
    """Yield the values that a resolution gives for attributes, with the types of the documents."""
    types = {type_.singular: type_ for type_ in schema.content_types}
    for name, choice in resolution.documents.items():
        type_ = types.get(name.partition("/")[0])
        if type_ is not None and isinstance(choice, Mapping):
            yield type_, {key: one["value"] for key, one in choice.items() if isinstance(one, Mapping)}
