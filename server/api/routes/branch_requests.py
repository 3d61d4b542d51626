"""Writes to a branch: the one that a request names with `?branch=NAME`, or else the one that is served."""

from collections.abc import Callable, Collection
from typing import TypeVar

from flask import g, request

from server.api.environ import STATE, parse_query
from server.api.identities import Identities
from server.api.request import authorship, operation_of, state_of, tell_commit, write_signed
from server.auth.permissions import require_branch
from server.errors import ValidationError
from server.history.branching.branches import Branches
from server.history.branching.write import BranchWriter
from server.history.past import PastStates
from server.index.dangling import Key
from server.site.site import Site, State
from server.storage.journal import Write
from server.storage.undo.keeper import Keeper
from server.write.context import Context

Wanted = TypeVar("Wanted")
Result = TypeVar("Result")
METHODS = ("POST", "PUT", "DELETE")


class BranchRequests:
    """Writes of requests to the branch that each of them names."""

    def __init__(self, site: Site, identities: Identities, past: PastStates) -> None:
        self.site, self.identities = site, identities
        self.branches = Branches(past)
        self.writer = BranchWriter(past, self.branches)

    def open(self) -> None:
        """Let a write that names a branch which is not served be one of the state of that branch.

        Raises ForbiddenError, ValidationError, and what `BranchWriter.state` raises.
        """
        environ = request.environ
        if request.method not in METHODS or "branch" not in environ.get("QUERY_STRING", ""):
            return
        if request.routing_exception:
            return
        if not operation_of(request).branch:
            if "branch" in request.args:
                raise ValidationError("branch is for writes of content; this is not written to a branch")
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

    @property
    def is_asked(self) -> bool:
        """Whether the request is a write to a branch that is not served."""
        return "branch" in g

    @property
    def commit(self) -> str:
        """The last commit of the branch that is written to; "" where that is the one that is served."""
        return self.branches.get(g.branch).commit if self.is_asked else ""

    def write(
        self,
        prepare: Callable[[Wanted, Context], Result],
        wanted: Wanted,
        addressed: Callable[[Result], Collection[Key]] | None = None,
        message: str = "",
        keeper: Keeper | None = None,
    ) -> tuple[State, Result]:
        """Write what a request asks for, as `write_signed` does; to the branch that it names, if it does.

        Such a write is a commit, which the answer names; git takes it back, and `keeper` keeps nothing of it.
        """
        if not self.is_asked:
            return write_signed(
                self.site, self.identities, request, prepare, wanted, addressed, message, keeper
            )
        by = authorship(self.identities, request, addressed, message)
        state, result, commit = self.writer.write(g.branch, prepare, wanted, by, g.today)
        tell_commit(commit)
        return state, result

    def preview(
        self, prepare: Callable[[Wanted, Context], Result], wanted: Wanted
    ) -> tuple[list[Write], Result]:
        """The files that `write` would change, and what `prepare` returns."""
        if not self.is_asked:
            return self.site.preview(prepare, wanted)
        return self.writer.preview(g.branch, prepare, wanted, g.today)
