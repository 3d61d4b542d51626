"""Reading and replacing the source text of documents' files."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from server.auth.draft_visibility import may_read_drafts, require_document_source
from server.auth.permissions import require_source
from server.documents.document import DRAFT, PUBLISHED, Document
from server.documents.ids import to_nfc
from server.errors import ConflictError, NotFoundError, StorageError
from server.formats.tree import SyntaxProblem
from server.index.budget import UNLIMITED
from server.index.dangling import Key
from server.index.snapshot import Snapshot
from server.query.parse import locale_to_write, read_status
from server.schema.model import Schema, Type
from server.service.document_write import Verb, require_write
from server.service.dry_run import FileChange
from server.service.read import Caller, Params
from server.service.write import Writes, recording_files
from server.site.site import Site, State
from server.storage.files import MISSING_FILE_ERRORS
from server.storage.git.tree import read_named
from server.storage.intent import Write
from server.storage.read import MAX_FILE_BYTES, decode, parse, read_bytes
from server.write.request import Address
from server.write.source import SourceRequest, mask_text, other_keys, text_of_keys
from server.write.source import replace_source as prepare


@dataclass(frozen=True, slots=True)
class SourceFile:
    """The file that contains one version of a document. `draft` is set if the draft was requested."""

    caller: Caller
    type: Type
    document: Document
    draft: bool

    def in_state(self, state: State) -> "SourceFile":
        old = self.document
        type_ = state.schema.types[self.type.uid]
        document = _document(state.snapshot, type_, old.document_id, old.locale, old.status)
        return replace(self, caller=replace(self.caller, state=state), type=type_, document=document)


@dataclass(frozen=True, slots=True)
class Source:
    """The text of a file, in which passwords are masked.

    To replace the text, a client must send back `version`. `other_keys` is the part of the text whose keys
    are not attributes of the content type.
    """

    text: str
    version: str
    other_keys: str
    problem: SyntaxProblem | None


@dataclass(frozen=True, slots=True)
class NewSource:
    """The new text of a file, or only of the keys that are not attributes (`other_keys`)."""

    if_match: str
    text: str | None = None
    other_keys: str | None = None


def find_source(
    caller: Caller,
    api_id: str,
    document_id: str,
    params: Params,
    served_schema: Schema,
    *,
    to_write: bool = False,
) -> SourceFile:
    """Return the file that contains a version of a document. `document_id` is "" for a single type.

    The caller needs permission under both the branch's schema and the served schema. Raises ForbiddenError,
    NotFoundError or ValidationError.
    """
    state, actor = caller.state, caller.actor
    require_source(actor, "read", state.schema)
    type_ = state.schema.endpoints.get(api_id)
    if type_ is None or (type_.kind == "singleType") != (document_id == ""):
        raise NotFoundError()
    served = served_schema.types.get(type_.uid, type_)
    require_document_source(actor, type_, state.schema, draft=False)
    require_document_source(actor, served, served_schema, draft=False)
    locale = locale_to_write(params.get("locale"), type_, state.settings)
    status = read_status(params.get("status"))
    require_document_source(actor, type_, state.schema, draft=status == DRAFT)
    require_document_source(actor, served, served_schema, draft=status == DRAFT)
    document = _document(state.snapshot, type_, to_nfc(document_id), locale, status)
    if to_write:
        require_source(actor, "write", state.schema)
        require_write(caller.reader(type_), Verb.UPDATE, params)
    return SourceFile(caller, type_, document, status == DRAFT)


def read_source(site: Site, file: SourceFile, commit: str = "") -> Source:
    """Return the text of a file in a commit or, if `commit` is "", on disk.

    Raises ConflictError if the file is not valid text. Also raises NotFoundError, StorageError or LimitError.
    """
    path = file.document.path
    return _source(file, _read_in_commit(site, path, commit) if commit else _read_on_disk(site, path))


def _source(file: SourceFile, text: str) -> Source:
    document, type_ = file.document, file.type
    file.caller.budget.allow(len(text))
    source = mask_text(file.caller.state.schema, type_, document.path, text)
    problem, others = None, ""
    try:
        keys = other_keys(type_, parse(document.path, source.text, type_.body))
        others = text_of_keys(document.path, source.text, keys)
    except SyntaxProblem as error:
        problem = error
    return Source(source.text, source.version, others, problem)


def sibling_files(file: SourceFile) -> Iterator[Document]:
    settings, claims = file.caller.state.settings, file.caller.state.snapshot.claims
    statuses = (PUBLISHED, DRAFT) if may_read_drafts(file.caller.actor, file.type) else (PUBLISHED,)
    for locale in dict.fromkeys((settings.locales.default, *settings.locales.available)):
        for status in statuses:
            yield from claims.get((file.type.uid, file.document.document_id, locale, status), ())


def try_source(writes: Writes, file: SourceFile, new: NewSource) -> Sequence[FileChange]:
    return writes.preview(file.caller, prepare, _request(file, new))


def replace_source(
    writes: Writes, file: SourceFile, new: NewSource, message: str = ""
) -> tuple[SourceFile, Source, str]:
    """Replace the text of a file. Return the changed file, its source and the id of the commit.

    Raises the errors of `server.write.source.replace_source` and `Writes.save`.
    """

    def addressed(document_id: str) -> list[Key]:
        return [(file.type.uid, document_id)]

    made: list[Write] = []
    recording = recording_files(prepare, made)
    outcome = writes.save(file.caller, recording, _request(file, new), addressed, message=message)
    changed = file.in_state(outcome.state)
    # Without limits: the response must not be an error after a write, and the text is at most 1 MB.
    changed = replace(changed, caller=replace(changed.caller, budget=UNLIMITED))
    text = next((decode(one.data) for one in made if one.data and one.path == changed.document.path), None)
    commit = outcome.commit if file.caller.branch else ""
    source = read_source(writes.site, changed, commit) if text is None else _source(changed, text)
    return changed, source, outcome.commit


def _request(file: SourceFile, new: NewSource) -> SourceRequest:
    type_, document = file.type, file.document
    draft = file.draft and type_.draft_publish
    address = Address(type_, document.document_id, document.locale, draft)
    drafts_only = not file.caller.actor.may(type_.singular, "update")
    if new.text is not None:
        return SourceRequest(address, new.if_match, text=new.text, drafts_only=drafts_only)
    return SourceRequest(address, new.if_match, other_keys=new.other_keys or "", drafts_only=drafts_only)


def _document(snapshot: Snapshot, type_: Type, document_id: str, locale: str, status: str) -> Document:
    if type_.kind == "singleType":
        document = next(iter(snapshot.list(type_, locale, status)), None)
    else:
        document = snapshot.get(type_, document_id, locale, status)
    if document is None:
        raise NotFoundError()
    return document


def _read_in_commit(site: Site, path: str, commit: str) -> str:
    data = next(read_named(site.root, [f"{commit}:./{path}"], MAX_FILE_BYTES))
    if data is None:
        raise NotFoundError()
    try:
        return decode(data)
    except SyntaxProblem as error:
        raise ConflictError(f"{path}: {error.message}") from error


def _read_on_disk(site: Site, path: str) -> str:
    try:
        return decode(read_bytes(site.root, path)[0])
    except MISSING_FILE_ERRORS as error:
        raise NotFoundError() from error
    except SyntaxProblem as error:
        raise ConflictError(f"{path}: {error.message}; fix the file first") from error
    except OSError as error:
        raise StorageError(f"{path} can't be read: {error.strerror}") from error
