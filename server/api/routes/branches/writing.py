"""Writes of content with `?branch=NAME`: to a branch that is not the one that is served."""

from collections.abc import Callable, Collection
from typing import TypeVar

from flask import g, request

from server.api.environ import STATE, parse_query
from server.api.identities import Identities
from server.api.request import authorship, state_of, tell_commit
from server.auth.permissions import require_branch
from server.errors import ValidationError
from server.history.branching.branches import Branches
from server.history.branching.write import BranchWriter
from server.history.past import PastStates
from server.index.dangling import Key
from server.site.site import State
from server.write.context import Context
from server.write.request import WriteRequest

Result = TypeVar("Result")
METHODS = ("POST", "PUT", "DELETE")


def refuse_elsewhere() -> None:
    """Raise ValidationError where something names a branch that is not written to branches."""
    if request.method in METHODS and request.blueprint != "content" and "branch" in request.args:
        raise ValidationError("branch is for writes of documents; nothing else is written to a branch")


class BranchRequests:
    """The branch that each write of content names with `branch`, if that is not the one that is served."""

    def __init__(self, identities: Identities, past: PastStates) -> None:
        self.identities = identities
        self.branches = Branches(past)
        self.writer = BranchWriter(past, self.branches)

    def open(self) -> None:
        """Let a write that names a branch be one of the state of that branch.

        Raises ForbiddenError, ValidationError, and what `BranchWriter.state` raises.
        """
        environ = request.environ
        if request.method not in METHODS or not environ.get("QUERY_STRING"):
            return
        name = parse_query(environ["QUERY_STRING"]).get("branch")
        if name is None:
            return
        state = state_of(request)
        require_branch(self.identities.actor(request), "update", state.schema)
        if not isinstance(name, str) or not name:
            raise ValidationError("branch must be the name of one branch")
        if name != self.branches.served():
            g.branch, g.today = name, state.settings
            environ[STATE] = self.writer.state(name, state.settings)

    def is_asked(self) -> bool:
        """Whether the request is a write to a branch that is not served."""
        return "branch" in g

    def write(
        self,
        prepare: Callable[[WriteRequest, Context], Result],
        wanted: WriteRequest,
        addressed: Callable[[Result], Collection[Key]],
    ) -> tuple[State, Result]:
        """`write_signed`, to the branch. The answer names the commit."""
        by = authorship(self.identities, request, addressed)
        state, result, commit = self.writer.write(g.branch, prepare, wanted, by, g.today)
        tell_commit(commit)
        return state, result
