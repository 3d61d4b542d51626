"""The routes of `/source`: the file that a version of a document is in, its path and its text."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from flask import Response, request

from server.api.identities import Identities
from server.api.request import (
    answer,
    budget_of,
    caller_of,
    commit_of,
    parameters,
    read_body,
    state_of,
    tell_commit,
)
from server.api.response import CALLER
from server.api.routes.handlers import Handlers
from server.api.routes.write_requests import DRY_RUN, answer_files, is_dry_run, message_of
from server.auth.permissions import Actor, may_read_drafts, require, require_source
from server.documents.document import DRAFT, PUBLISHED, Document
from server.documents.ids import composed
from server.errors import ConflictError, ForbiddenError, NotFoundError, StorageError, ValidationError
from server.formats.tree import SyntaxProblem
from server.index.dangling import Key
from server.index.snapshot import Snapshot
from server.query.parse import read_status, written_locale
from server.schema.model import Type
from server.service.document_write import Verb, permit
from server.service.entity_tags import tag_of
from server.service.read import Reader
from server.service.render import dumps
from server.service.write import Writes
from server.site.site import Site, State
from server.storage.files import MISSING
from server.storage.read import decode, parse, read_bytes
from server.write.request import Address
from server.write.source.masking import Masked, masked
from server.write.source.other_keys import other_keys, text_of_keys
from server.write.source.replace import SourceRequest, replace_source

_PARAMETERS = ("locale", "status", DRY_RUN)


@dataclass(frozen=True, slots=True)
class Asked:
    """Whose file is asked for, by whom, in which state of the site."""

    state: State
    actor: Actor
    type: Type
    document: Document

    def after(self, state: State) -> "Asked":
        """The same version in a later state. Raises NotFoundError where it is gone again."""
        document = self.document
        found = _document(state.snapshot, self.type, document.document_id, document.locale, document.status)
        return replace(self, state=state, document=found)


def bind(handles: Handlers, site: Site, identities: Identities, writes: Writes) -> None:
    """Bind the operations of `/source`."""

    def asked(api_id: str, document_id: str) -> Asked:
        state, actor = state_of(request), identities.actor(request)
        require_source(actor, "read", state.schema)
        type_ = state.schema.endpoints.get(api_id)
        if type_ is None or (type_.kind == "singleType") != (document_id == ""):
            raise NotFoundError()
        require(actor, type_, "findOne" if document_id else "find")
        if commit_of(request):
            raise ConflictError("The site is served as it was at a commit, and its files are of today")
        locale, status = _version(parameters(request), state, type_)
        if (status == DRAFT or type_.draft_key) and type_.draft_publish and not may_read_drafts(actor, type_):
            raise ForbiddenError()  # Of some types, only what a file says tells whether it is a draft.
        return Asked(
            state, actor, type_, _document(state.snapshot, type_, composed(document_id), locale, status)
        )

    @handles("replaceSingleSource")
    def replace_single(api_id: str) -> Response:
        return replaced(asked(api_id, ""))

    @handles("replaceDocumentSource")
    def replace_one(api_id: str, document_id: str) -> Response:
        return replaced(asked(api_id, document_id))

    def replaced(one: Asked) -> Response:
        require_source(one.actor, "write", one.state.schema)
        params = parameters(request)
        permit(Reader(one.state, one.type, one.actor), Verb.UPDATE, params)
        wanted = _replacing(one, read_body(request), request.headers.get("If-Match"), draft=_is_draft(params))
        caller = caller_of(request, identities)
        if is_dry_run():
            return answer_files(writes.preview(caller, replace_source, wanted))

        def addressed(document_id: str) -> list[Key]:
            return [(one.type.uid, document_id)]

        outcome = writes.make(caller, replace_source, wanted, addressed, message=message_of(request))
        return tell_commit(shown(one.after(outcome.state)), outcome.commit)

    @handles("findSingleSource")
    def single(api_id: str) -> Response:
        return shown(asked(api_id, ""))

    @handles("findDocumentSource")
    def one(api_id: str, document_id: str) -> Response:
        return shown(asked(api_id, document_id))

    def shown(one: Asked) -> Response:
        text = _read(site, one.document.path)
        budget_of(request).allow(len(text))
        source = masked(one.state.schema, one.type, one.document.path, text)
        body = dumps({"data": _shown(one, source), "meta": {"files": list(_files(one))}})
        budget_of(request).write(len(body))
        response = answer(body, cache_control=CALLER)
        response.headers["ETag"] = tag_of(source.version, body)
        return response


def _version(params: Mapping[str, Any], state: State, type_: Type) -> tuple[str, str]:
    """The locale and status that are asked for. Raises ValidationError."""
    for name in params:
        if name not in _PARAMETERS:
            raise ValidationError(
                f'There is no parameter "{name[:100]}"; there are {" and ".join(_PARAMETERS)}'
            )
    return written_locale(params.get("locale"), type_, state.settings), read_status(params.get("status"))


def _is_draft(params: Mapping[str, Any]) -> bool:
    return read_status(params.get("status")) == DRAFT


def _replacing(one: Asked, body: Any, if_match: str | None, *, draft: bool) -> SourceRequest:
    """What a body asks for. Raises ValidationError."""
    data = body.get("data") if isinstance(body, dict) else None
    if not isinstance(data, dict) or len(data) != 1 or not {"text", "otherKeys"} >= data.keys():
        raise ValidationError(
            'The body must be {"data": {"text": "…"}}, or with "otherKeys" in place of that'
        )
    [(name, text)] = data.items()
    if not isinstance(text, str):
        raise ValidationError(f"{name} must be text")
    if not if_match:
        raise ValidationError("If-Match is needed: the ETag of the text that this was made from")
    type_, document = one.type, one.document
    address = Address(type_, document.document_id, document.locale, draft and type_.draft_publish)
    drafts_only = not one.actor.may(type_.singular, "update")
    if name == "text":
        return SourceRequest(address, if_match, text=text, drafts_only=drafts_only)
    return SourceRequest(address, if_match, other_keys=text, drafts_only=drafts_only)


def _document(snapshot: Snapshot, type_: Type, document_id: str, locale: str, status: str) -> Document:
    """The version that is asked for. Raises NotFoundError."""
    if type_.kind == "singleType":
        found = next(iter(snapshot.list(type_, locale, status)), None)
    else:
        found = snapshot.get(type_, document_id, locale, status)
    if found is None:
        raise NotFoundError()
    return found


def _read(site: Site, path: str) -> str:
    """The text of a document's file. Raises NotFoundError, ConflictError, and StorageError."""
    try:
        return decode(read_bytes(site.root, path)[0])
    except MISSING as error:
        raise NotFoundError() from error
    except SyntaxProblem as error:
        raise ConflictError(f"{path}: {error.message}; fix the file first") from error
    except OSError as error:
        raise StorageError(f"{path} can't be read: {error.strerror}") from error


def _shown(one: Asked, source: Masked) -> dict[str, Any]:
    """The path and text of a file, its other keys, and what keeps it from being read, as JSON."""
    document, type_ = one.document, one.type
    problem, others = None, ""
    try:
        keys = other_keys(type_, parse(document.path, source.text, type_.body))
        others = text_of_keys(document.path, source.text, keys)
    except SyntaxProblem as error:
        problem = {"line": error.line, "message": error.message, "fix": error.fix}
    return {
        "path": document.path,
        "locale": document.locale,
        "status": document.status,
        "text": source.text,
        "otherKeys": others,
        "problem": problem,
    }


def _files(one: Asked) -> Iterator[dict[str, str]]:
    """The files of all versions of the document that the actor may see."""
    settings, claims = one.state.settings, one.state.snapshot.claims
    statuses = (PUBLISHED, DRAFT) if may_read_drafts(one.actor, one.type) else (PUBLISHED,)
    for locale in dict.fromkeys((settings.default_locale, *settings.locales)):
        for status in statuses:
            for document in claims.get((one.type.uid, one.document.document_id, locale, status), ()):
                yield {"path": document.path, "locale": locale, "status": status}
