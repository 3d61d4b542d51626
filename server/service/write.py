"""Writes of documents: permissions, preparation, saving and rendering."""

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Generic, TypeVar

from server.auth.permissions import Actor, require_branch, require_source
from server.documents.path_rules import Layout
from server.errors import RESPONSE_ERRORS, ApiError, ValidationError
from server.events.presence import PUBLIC_ACTOR
from server.history.branching import Branches, BranchWriter
from server.history.past import PastStates
from server.index.budget import Budget
from server.index.dangling import Key
from server.service.batch import BatchReader
from server.service.document_write import (
    DocumentWrite,
    Operation,
    Verb,
    bodies_of,
    charge_json_texts,
    read_document_write,
    require_write,
    with_hashes,
)
from server.service.dry_run import FileChange, file_changes
from server.service.read import BranchContext, Caller, Rendering
from server.service.undo_permission import changes_schema, may_undo
from server.site.commits.message import Authorship
from server.site.site import Site, State
from server.storage.git.times import CommitTimes
from server.storage.intent import Write
from server.storage.store import Store
from server.storage.undo import Permit, UndoFolder, UndoRecorder
from server.write import prepare
from server.write.context import Context
from server.write.request import BatchRequest
from server.write.undo import UndoneDocument, describe_claim, undone_documents

log = logging.getLogger("bifolio")

Request = TypeVar("Request")
Made = TypeVar("Made")
Prepare = Callable[[Request, Context], Made]
# returns the keys of the written documents; the argument is the result of `prepare`
Addressed = Callable[[Made], Collection[Key]]
# a commit message, or a function of the result of `prepare`
Describe = str | Callable[[Made], str]
# returns a context manager, inside which the files are replaced
Around = Callable[[Collection[Write]], AbstractContextManager[None]]
# returns the name and email address with which an actor authors commits
Sign = Callable[[Actor], tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Command:
    """A request to write documents. Either all of them are written, or none.

    If `is_batch` is set, operations can refer to earlier ones. If `diff` is set, the result includes a diff
    of the changed files.
    """

    caller: Caller
    operations: Iterable[Operation]
    is_batch: bool = False
    dry_run: bool = False
    diff: bool = False
    undo: bool = False
    message: str = ""


@dataclass(frozen=True, slots=True)
class UndoOffer:
    """An offer to undo a write. The caller can accept it with this id until `expires`."""

    id: str
    expires: datetime


@dataclass(frozen=True, slots=True)
class Written:
    """A document that was written. `document_id` is "" if there was nothing to delete.

    `merged` is set if the write was merged with newer changes.
    """

    write: DocumentWrite
    state: State
    document_id: str
    merged: bool

    @property
    def verb(self) -> Verb:
        return self.write.operation.verb

    def render(self) -> Rendering:
        return self.write.render(self.state, self.document_id)

    def render_within_limits(self) -> Rendering:
        """Render the document. If it exceeds a limit, render only its ids and a note.

        Raises NotFoundError if the document has been deleted since the write.
        """
        try:
            return self.render()
        except RESPONSE_ERRORS as error:
            note = f"The document was written, but the response contains only its ids. {error.message}."
            return self.write.render_ids(self.state, self.document_id, note)


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a command: the written documents or, after a dry run, a diff in `files`.

    If `Command.diff` is set, the result contains both. If the diff is too large, `files` is None and `note`
    says so. `commit` is "pending" if the commit will be made later, or "" if there will be none.
    """

    state: State
    documents: Sequence[Written] = ()
    commit: str = ""
    undo: UndoOffer | None = None
    files: Sequence[FileChange] | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Outcome(Generic[Made]):
    """The result of `Writes.save`. `result` is the value that `prepare` returned.

    The other fields have the same meaning as in `Result`.
    """

    state: State
    result: Made
    commit: str
    undo: UndoOffer | None


class Writes:
    """Writer of changes to any branch. This class is thread-safe.

    `sign` returns the name and email address for an actor's commits. `source` is recorded in the event log.
    """

    def __init__(self, site: Site, past: PastStates, sign: Sign, *, source: str = "api") -> None:
        self.site, self.past, self._sign, self._source = site, past, sign, source
        self._branches = Branches(past)
        self._writer = BranchWriter(past, self._branches)

    def on_branch(self, caller: Caller, name: object) -> Caller:
        """Return a copy of `caller` whose reads and writes go to the named branch.

        Raises ForbiddenError or ValidationError.
        """
        require_branch(caller.actor, "update", caller.state.schema)
        if not isinstance(name, str) or not name:
            raise ValidationError('"branch" must be a single branch name')
        if name == self._branches.served():
            return caller
        today = caller.state.settings
        return replace(caller, state=self._writer.state(name, today), branch=BranchContext(name, today))

    def head(self, caller: Caller) -> str:
        return self._branches.get(caller.branch.name).commit if caller.branch else ""

    def write(self, command: Command) -> Result:
        """Execute a command, and return the result.

        Raises ForbiddenError, ValidationError, NotFoundError, PreconditionError, ConflictError, or any error
        of `save`.
        """
        caller = command.caller
        if (
            command.dry_run or command.diff
        ):  # This check comes first, because hashing passwords (below) is slow.
            require_source(caller.actor, "read", caller.state.schema)
        writes = _parse_operations(command)
        charge_json_texts(bodies_of(writes), caller.state.schema, caller.budget)
        writes = with_hashes(writes, caller.state.schema)
        act = _limited(prepare.batch if command.is_batch else prepare.without_batch, caller.budget)
        batch = BatchRequest(tuple((write.prepare, write.request) for write in writes))
        if command.dry_run:
            return Result(caller.state, files=self.preview(caller, act, batch))

        def addressed(results: Iterable[tuple[str, bool]]) -> list[Key]:
            pairs = zip(writes, results, strict=True)
            return [key for write, (written, _) in pairs for key in write.addressed_keys(written)]

        made: list[Write] = []
        if command.diff:
            act = recording_files(act, made)
        permits = tuple(map(_permit, writes)) if command.undo else ()
        outcome = self.save(caller, act, batch, addressed, message=command.message, permits=permits)
        documents = [
            Written(write, outcome.state, document_id, merged)
            for write, (document_id, merged) in zip(writes, outcome.result, strict=True)
        ]
        files, note = _try_diff(made, caller) if command.diff else (None, "")
        return Result(outcome.state, documents, outcome.commit, outcome.undo, files, note)

    def save(
        self,
        caller: Caller,
        prepare: Prepare[Request, Made],
        request: Request,
        addressed: Addressed[Made] | None = None,
        *,
        message: Describe[Made] = "",
        permits: Collection[Permit] = (),
        around: Around | None = None,
    ) -> Outcome[Made]:
        """Call `prepare`, and save the files that it changes.

        `permits` contains the permissions that an undo requires; if it is empty, the write can't be undone.
        `around` returns a context manager in which the files are replaced, while the write lock is held. Both
        are used only for the served branch. Raises the errors of `prepare`, `Site.write` and
        `BranchWriter.write`.
        """
        if caller.branch:
            branch, authorship = caller.branch, self.authorship(caller, addressed, message)
            state, made, commit = self._writer.write(
                branch.name, prepare, request, authorship, branch.served_settings
            )
            return Outcome(state, made, commit, None)
        signed = caller.state.settings.git.commit is not None
        authorship, undo_recorder = self.authorship(caller, addressed, message, signed=signed), None
        authorship = replace(authorship, around=around)
        if permits and caller.actor.name != PUBLIC_ACTOR:
            layout = Layout(caller.state.schema, caller.state.settings)
            claim = partial(describe_claim, layout)
            undo_recorder = UndoRecorder(self.site.root, caller.actor.name, dict.fromkeys(permits), claim)
            recording = undo_recorder.recording
            authorship = replace(authorship, around=_nested(recording, around) if around else recording)
        state, made, commit = self.site.write(authorship, prepare, request)
        return Outcome(state, made, commit, self._offer_undo(caller, state, undo_recorder, permits))

    def _offer_undo(
        self, caller: Caller, state: State, undo_recorder: UndoRecorder | None, permits: Collection[Permit]
    ) -> UndoOffer | None:
        if undo_recorder is None or not undo_recorder.id:
            return None
        documents: Sequence[UndoneDocument] = ()
        if not changes_schema(permits):
            store = Store(self.site.root, state.schema, state.settings, CommitTimes().timestamps)
            documents = undone_documents(undo_recorder.texts, state.snapshot, store)
        if not may_undo(replace(caller, state=state), tuple(permits), documents):
            UndoFolder(self.site.root).forget(undo_recorder.id)
            return None
        return UndoOffer(undo_recorder.id, undo_recorder.expires)

    def refresh_configuration(self, paths: Collection[str]) -> None:
        """Read configuration files again after they were written.

        In a large site, a write does not do so by itself. If this fails, the files are read later, because
        the response to a write must not be an error.
        """
        try:
            self.site.refresh(paths)
        except ApiError as error:
            log.warning("%s: the new configuration can't be read yet: %s", self.site.root, error)

    def preview(
        self, caller: Caller, prepare: Prepare[Request, Made], request: Request
    ) -> Sequence[FileChange]:
        """Return the changes that `save` would make, without those that the caller may not see.

        Raises ForbiddenError if the caller lacks the permission `source.read`, or any error of `save`.
        """
        require_source(caller.actor, "read", caller.state.schema)
        writes, _ = self.planned_files(caller, prepare, request)
        return list(file_changes(writes, caller))

    def planned_files(
        self, caller: Caller, prepare: Prepare[Request, Made], request: Request
    ) -> tuple[Sequence[Write], Made]:
        """Return the files that `save` would write, and the result of `prepare`.

        No permissions are checked. Raises the errors of `save`.
        """
        if caller.branch:
            return self._writer.preview(caller.branch.name, prepare, request, caller.branch.served_settings)
        return self.site.preview(prepare, request)

    def authorship(
        self,
        caller: Caller,
        addressed: Addressed[Made] | None = None,
        message: Describe[Made] = "",
        *,
        signed: bool = True,
    ) -> Authorship:
        """Return the author and the message of a commit.

        `addressed` returns the documents that the message names. If `signed` is set, the author's name and
        email address are looked up.
        """
        actor = caller.actor
        name, email = self._sign(actor) if signed else (actor.name, "")
        fixed_message, describe = (message, None) if isinstance(message, str) else ("", message)
        return Authorship(
            actor.name, name, email, fixed_message, addressed, source=self._source, describe=describe
        )


def _parse_operations(command: Command) -> list[DocumentWrite]:
    caller = command.caller
    if command.is_batch:
        return BatchReader(caller, caller.budget.of_write()).read(command.operations)
    [operation] = command.operations
    reader = caller.reader(operation.type)
    require_write(reader, operation.verb, operation.params)
    return [read_document_write(reader, operation)]


def _limited(prepare: Prepare[Request, Made], budget: Budget) -> Prepare[Request, Made]:
    def limited(request: Request, context: Context) -> Made:
        # Each attempt has its own budget, because it can run in another thread.
        return prepare(request, replace(context, budget=budget.of_write()))

    return limited


def _nested(outer: Around, inner: Around) -> Around:
    @contextmanager
    def around(writes: Collection[Write]) -> Iterator[None]:
        with outer(writes), inner(writes):
            yield

    return around


def recording_files(prepare: Prepare[Request, Made], made: list[Write]) -> Prepare[Request, Made]:
    """Return a `prepare` function that also stores its writes in `made`."""

    def noting(request: Request, context: Context) -> Made:
        result = prepare(request, context)
        made[:] = context.changeset.writes()
        return result

    return noting


def _try_diff(made: Iterable[Write], caller: Caller) -> tuple[Sequence[FileChange] | None, str]:
    try:
        return list(file_changes(made, caller)), ""
    except RESPONSE_ERRORS as error:
        return None, f"Everything was written, but the response does not contain the diff. {error.message}."


def _permit(write: DocumentWrite) -> Permit:
    request, verb = write.request, write.operation.verb
    return Permit(request.address.type.uid, verb, request.address.draft or verb is Verb.DISCARD)
