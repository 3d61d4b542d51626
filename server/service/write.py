"""What a write is, whoever makes it: it is permitted, prepared, made by `Site.write`, and can be shown then.

    Command(caller, operations, …)  →  Writes.write  →  Result(state, documents, commit, undo, files)

Documents are written by commands. Whatever else changes files (a text, an upload, a repair) is prepared by a
function of its own and made by `Writes.make`, with the same branches, commits, undo and dry runs.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Generic, TypeVar

from server.auth.permissions import Actor, require_branch, require_source
from server.errors import ValidationError
from server.events.presence import PUBLIC_ACTOR
from server.history.branching import Branches, BranchWriter
from server.history.past import PastStates
from server.index.dangling import Key
from server.service.batch import BatchReader
from server.service.document_write import (
    DocumentWrite,
    Operation,
    Verb,
    bodies_of,
    permit,
    read_document_write,
    take_json_texts,
    with_hashes,
)
from server.service.dry_run import FileChange, file_changes
from server.service.read import Branch, Caller, Rendering
from server.service.undo_permission import may_take_back
from server.site.commits.message import Authorship
from server.site.site import Site, State
from server.storage.git.times import CommitTimes
from server.storage.store import Store
from server.storage.undo import Keeper, Permit, UndoFolder
from server.write import prepare
from server.write.context import Context
from server.write.request import BatchRequest
from server.write.undo import undone_documents

Wanted = TypeVar("Wanted")
Made = TypeVar("Made")
Prepare = Callable[[Wanted, Context], Made]
Addressed = Callable[[Made], Collection[Key]]  # which documents were asked to be written, of what was made
Describe = str | Callable[[Made], str]  # the message of a commit, or what makes it of what was made
Sign = Callable[[Actor], tuple[str, str]]  # the name and e-mail address that an actor's commits are by


@dataclass(frozen=True, slots=True)
class Command:
    """Writes of documents that a caller asks for, made in one step that is done or not done.

    In a batch, operations may refer to the documents of those before them, and errors say of which operation
    they are; each operation is taken from an iterator once those before it are read. With `dry_run`, nothing
    is written. With `undo`, it can be taken back. `message` is that of its commit.
    """

    caller: Caller
    operations: Iterable[Operation]
    is_batch: bool = False
    dry_run: bool = False
    undo: bool = False
    message: str = ""


@dataclass(frozen=True, slots=True)
class UndoOffer:
    """A write can be taken back by its caller under an id, until it expires (`server.service.undo`)."""

    id: str
    expires: datetime


@dataclass(frozen=True, slots=True)
class Written:
    """A document that was written, in the state after the whole command.

    `document_id` is "" if there was nothing to delete. `merged`: its change was merged with those of others.
    """

    write: DocumentWrite
    state: State
    document_id: str
    merged: bool

    @property
    def verb(self) -> Verb:
        """What was done to it."""
        return self.write.operation.verb

    def render(self) -> Rendering:
        """Render it as its parameters say; nothing of one that was deleted.

        Raises LimitError, and NotFoundError if it is gone again.
        """
        return self.write.render(self.state, self.document_id)


@dataclass(frozen=True, slots=True)
class Result:
    """What a command came to: documents in the order of its operations, or the files of a dry run.

    `commit` is its commit: "" for none, "pending" if that is made later. `undo` is None if it can't be taken
    back.
    """

    state: State
    documents: Sequence[Written] = ()
    commit: str = ""
    undo: UndoOffer | None = None
    files: Sequence[FileChange] | None = None


@dataclass(frozen=True, slots=True)
class Outcome(Generic[Made]):
    """What a change of files came to: `made` is what preparing it returned. The rest is as in a Result."""

    state: State
    made: Made
    commit: str
    undo: UndoOffer | None


class Writes:
    """Makes the writes of a site, to the branch that is served and to others.

    Safe to use from many threads. `sign` says in whose name an actor's commits are, and `source` where the
    event log says that the changes come from.
    """

    def __init__(self, site: Site, past: PastStates, sign: Sign, *, source: str = "api") -> None:
        self.site, self.past, self._sign, self._source = site, past, sign, source
        self._branches = Branches(past)
        self._writer = BranchWriter(past, self._branches)

    def on_branch(self, caller: Caller, name: object) -> Caller:
        """Return the caller as one who writes to a branch.

        Raises ForbiddenError, ValidationError, and what `BranchWriter.state` raises.
        """
        require_branch(caller.actor, "update", caller.state.schema)
        if not isinstance(name, str) or not name:
            raise ValidationError("branch must be the name of one branch")
        if name == self._branches.served():
            return caller
        today = caller.state.settings
        return replace(caller, state=self._writer.state(name, today), branch=Branch(name, today))

    def head(self, caller: Caller) -> str:
        """Return the last commit of the branch that a caller writes to; "" for the one that is served."""
        return self._branches.get(caller.branch.name).commit if caller.branch else ""

    def write(self, command: Command) -> Result:
        """Make the writes of a command, or try them.

        Raises ForbiddenError, ValidationError, NotFoundError, PreconditionError, ConflictError, and what
        `make` raises.
        """
        caller = command.caller
        if command.dry_run:  # before passwords are hashed, which takes long
            require_source(caller.actor, "read", caller.state.schema)
        writes = _read(command)
        take_json_texts(bodies_of(writes), caller.state.schema, caller.budget)
        writes = with_hashes(writes, caller.state.schema)
        act = prepare.batch if command.is_batch else prepare.without_batch
        wanted = BatchRequest(tuple((write.prepare, write.request) for write in writes))
        if command.dry_run:
            return Result(caller.state, files=self.preview(caller, act, wanted))

        def addressed(results: Iterable[tuple[str, bool]]) -> list[Key]:
            pairs = zip(writes, results, strict=True)
            return [key for write, (written, _) in pairs for key in write.addressed(written)]

        permits = tuple(map(_permit, writes)) if command.undo else ()
        outcome = self.make(caller, act, wanted, addressed, message=command.message, permits=permits)
        documents = [
            Written(write, outcome.state, document_id, merged)
            for write, (document_id, merged) in zip(writes, outcome.made, strict=True)
        ]
        return Result(outcome.state, documents, outcome.commit, outcome.undo)

    def make(
        self,
        caller: Caller,
        prepare: Prepare[Wanted, Made],
        wanted: Wanted,
        addressed: Addressed[Made] | None = None,
        *,
        message: Describe[Made] = "",
        permits: Collection[Permit] = (),
    ) -> Outcome[Made]:
        """Let `prepare` change files, in the name of a caller, on the branch that it writes to.

        With `permits` the caller can take it back, while it may still do what these say and what undoing
        does; but not what the public wrote, nor what was written to another branch, which git takes back.
        Raises what `prepare`, `Site.write` and `BranchWriter.write` raise.
        """
        if caller.branch:
            branch, by = caller.branch, self.authorship(caller, addressed, message)
            state, made, commit = self._writer.write(branch.name, prepare, wanted, by, branch.today)
            return Outcome(state, made, commit, None)
        signed = caller.state.settings.git.commit is not None
        by, keeper = self.authorship(caller, addressed, message, signed=signed), None
        if permits and caller.actor.name != PUBLIC_ACTOR:
            keeper = Keeper(self.site.root, caller.actor.name, dict.fromkeys(permits))
            by = replace(by, keep=keeper.keeping)
        state, made, commit = self.site.write(by, prepare, wanted)
        return Outcome(state, made, commit, self._offer(caller, state, keeper, permits))

    def _offer(
        self, caller: Caller, state: State, keeper: Keeper | None, permits: Collection[Permit]
    ) -> UndoOffer | None:
        """Return the offer to take back a write that was kept, if its caller may do that."""
        if keeper is None or not keeper.id:
            return None
        store = Store(self.site.root, state.schema, state.settings, CommitTimes().timestamps)
        documents = undone_documents(keeper.texts, state.snapshot, store)
        if not may_take_back(replace(caller, state=state), tuple(permits), documents):
            UndoFolder(self.site.root).forget(keeper.id)
            return None
        return UndoOffer(keeper.id, keeper.expires)

    def preview(self, caller: Caller, prepare: Prepare[Wanted, Made], wanted: Wanted) -> Sequence[FileChange]:
        """Return what `make` would change in files. It is prepared and checked as there, and raises as that.

        Raises ForbiddenError for a caller that may not see the files of documents.
        """
        require_source(caller.actor, "read", caller.state.schema)
        if caller.branch:
            writes, _ = self._writer.preview(caller.branch.name, prepare, wanted, caller.branch.today)
        else:
            writes, _ = self.site.preview(prepare, wanted)
        return list(file_changes(writes, caller))

    def authorship(
        self,
        caller: Caller,
        addressed: Addressed[Made] | None = None,
        message: Describe[Made] = "",
        *,
        signed: bool = True,
    ) -> Authorship:
        """Return by whom a write is. `signed`: with a name and address, which are looked up."""
        actor = caller.actor
        name, email = self._sign(actor) if signed else (actor.name, "")
        said, describe = (message, None) if isinstance(message, str) else ("", message)
        return Authorship(actor.name, name, email, said, addressed, source=self._source, describe=describe)


def _read(command: Command) -> list[DocumentWrite]:
    """Read the operations of a command. Raises ForbiddenError, ValidationError and PayloadTooLargeError."""
    caller = command.caller
    if command.is_batch:
        return BatchReader(caller).read(command.operations)
    [operation] = command.operations
    reader = caller.reader(operation.type)
    permit(reader, operation.verb, operation.params)
    return [read_document_write(reader, operation)]


def _permit(write: DocumentWrite) -> Permit:
    """Return what has to be permitted still for a write to be taken back."""
    request, verb = write.request, write.operation.verb
    return Permit(request.address.type.uid, verb, request.address.draft or verb is Verb.DISCARD)
