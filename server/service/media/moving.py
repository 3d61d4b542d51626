"""Moving and renaming media files, and updating links to them (docs/writing.md, "Uploads")."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from posixpath import basename, dirname

from server.auth.draft_visibility import may_read_drafts
from server.documents.document import DRAFT, Document
from server.documents.path_rules import Layout
from server.errors import ForbiddenError, ValidationError
from server.index.budget import UNLIMITED
from server.paths import UPLOADS
from server.query.ast import Query
from server.schema.model import UPLOAD
from server.service.document_write import Verb, require_write
from server.service.dry_run import FileChange
from server.service.media.uploads import MAY_DELETE, MAY_UPLOAD, find_file, render, written_file
from server.service.read import Caller
from server.service.renaming import rename_message
from server.service.undo_permission import file_visibility
from server.service.write import UndoOffer, Writes
from server.storage.media import media_key
from server.storage.undo import Permit
from server.write.context import Context
from server.write.renaming.references import RenamedFileLink
from server.write.renaming.rename import RenameRequest, RenameResult, rename

FORBIDDEN_MESSAGE = "Your role is not allowed to change all documents that use this file"


@dataclass(frozen=True, slots=True)
class MoveResult:
    """The result of moving a file. `changed_files` is the number of documents that were changed.

    `unchanged_links` contains the links that could not be changed. Documents that the caller may not see are
    left out of both.
    """

    file_json: bytes
    changed_files: int
    unchanged_links: Sequence[RenamedFileLink]
    commit: str
    undo: UndoOffer | None


def move_file(
    writes: Writes, caller: Caller, key: str, body: object, message: str = "", *, undo: bool = False
) -> MoveResult:
    """Move or rename a media file, and update the links to it. `body` contains the new folder or name.

    Raises ForbiddenError if the caller may not change all documents that use the file. Also raises
    NotFoundError, ValidationError or ConflictError.
    """
    request = read_move(caller, key, body)
    permits = _undo_permits(caller, request.old) if undo else ()
    message_ = message or partial(rename_message, request)
    outcome = writes.save(caller, _permitted(caller), request, message=message_, permits=permits)
    renamed, state = outcome.result, outcome.state
    file = written_file(state, request.new)
    # Without limits: the response must not be an error after a write.
    after = replace(caller, state=state, budget=UNLIMITED)
    shown = render(after, Query(state.schema.types[UPLOAD]), [file])[0]
    may_see = file_visibility(caller)
    links = [link for link in renamed.links if may_see(link.path)]
    documents = sum(map(may_see, renamed.references))
    return MoveResult(shown, documents, links, outcome.commit, outcome.undo)


def preview_move(writes: Writes, caller: Caller, key: str, body: object) -> Sequence[FileChange]:
    return writes.preview(caller, _permitted(caller), read_move(caller, key, body))


def read_move(caller: Caller, key: str, body: object) -> RenameRequest:
    """Parse a body with a `folder`, a `fileName` or both. Raises NotFoundError or ValidationError."""
    old = find_file(caller.state, key).path
    values = body if isinstance(body, Mapping) else {}
    known = {name: values[name] for name in ("folder", "fileName") if values.get(name) is not None}
    if not known or not all(isinstance(value, str) for value in known.values()):
        raise ValidationError('Expected a JSON object with "folder", "fileName" or both, as strings')
    name = known.get("fileName", basename(old))
    if not name or "/" in name:
        raise ValidationError('"fileName" must be the name of a file, without a folder')
    folder = (
        known["folder"].strip("/") if "folder" in known else dirname(old).removeprefix(UPLOADS).strip("/")
    )
    return RenameRequest(old, f"{UPLOADS}/{folder}/{name}" if folder else f"{UPLOADS}/{name}")


def _permitted(caller: Caller) -> Callable[[RenameRequest, Context], RenameResult]:
    def act(request: RenameRequest, context: Context) -> RenameResult:
        if request.old == request.new:
            return RenameResult({})
        renamed = rename(request, context)
        layout = Layout(caller.state.schema, caller.state.settings)
        for path in renamed.references:
            claim = layout.claim(path)
            if claim is None:
                raise ForbiddenError(FORBIDDEN_MESSAGE, actor=caller.actor.name)
            try:
                params = {"status": DRAFT} if claim.draft else {}
                require_write(caller.reader(claim.type), Verb.UPDATE, params)
            except ForbiddenError as error:
                # The error does not name the document, which may be hidden from the caller.
                raise ForbiddenError(FORBIDDEN_MESSAGE, actor=caller.actor.name) from error
        return renamed

    return act


def _undo_permits(caller: Caller, path: str) -> tuple[Permit, ...]:
    uses: Sequence[Document] = list(caller.state.snapshot.media_uses.get(media_key(path) or "", ()))
    changed = {(d.type.uid, d.status == DRAFT and may_read_drafts(caller.actor, d.type)) for d in uses}
    return (MAY_UPLOAD, MAY_DELETE, *(Permit(uid, Verb.UPDATE, draft) for uid, draft in sorted(changed)))
