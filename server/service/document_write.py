"""Parser for writes of documents. It also checks permissions."""

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from typing import Any

from server.auth.draft_visibility import may_read_drafts
from server.auth.permissions import may_draft, require
from server.config.model import ResponseFormat
from server.documents.document import DRAFT, PUBLISHED, Document
from server.errors import ApiError, BusyError, NotFoundError, ValidationError
from server.formats.json import count_values_of_string
from server.formats.tree import Tree
from server.index.budget import UNLIMITED, Budget
from server.index.dangling import Key
from server.index.fragments import Fragments
from server.index.snapshot import Snapshot
from server.query.ast import Query, Selection
from server.query.parse import locale_to_write, locales_to_delete, read_status
from server.schema.model import Attribute, Schema, Type
from server.service.read import Params, Reader, Rendering
from server.service.render import Renderer, render_one
from server.site.site import State
from server.write import prepare
from server.write.body_values import json_texts
from server.write.context import Context
from server.write.passwords import hash_passwords
from server.write.request import Address, WriteRequest
from server.write.validate import read_data

Prepare = Callable[[WriteRequest, Context], str]
Body = tuple[Type, Mapping[str, Tree]]  # content type, and new value for each attribute


class Verb(StrEnum):
    """The kinds of writes."""

    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"
    UNPUBLISH = "unpublish"
    DISCARD = "discard"


# These verbs change a whole document, so their request bodies contain no values.
ACTIONS = (Verb.UNPUBLISH, Verb.DISCARD)
# required permission and prepare function, by kind of content type and verb
WRITES: Mapping[tuple[str, Verb], tuple[str, Prepare]] = {
    ("collectionType", Verb.CREATE): ("create", prepare.create),
    ("collectionType", Verb.UPDATE): ("update", prepare.update),
    ("singleType", Verb.UPDATE): ("update", prepare.put_single),
    **{(kind, Verb.DELETE): ("delete", prepare.delete) for kind in ("collectionType", "singleType")},
    **{(kind, Verb.UNPUBLISH): ("update", prepare.unpublish) for kind in ("collectionType", "singleType")},
    **{(kind, Verb.DISCARD): ("update", prepare.discard) for kind in ("collectionType", "singleType")},
}


@dataclass(frozen=True, slots=True)
class Operation:
    """A request to write one document.

    `if_match` is the entity tag of the version that the client has read. If the document has changed since
    then, an update is rejected or, if `merge` is set, merged with the newer changes.
    """

    type: Type
    verb: Verb
    document_id: str | None = None
    params: Params = field(default_factory=dict)
    data: Tree = None
    if_match: str | None = None
    merge: bool = False


@dataclass(frozen=True, slots=True)
class DocumentWrite:
    """A permitted write of one document. If `query` is None, the response is empty."""

    operation: Operation
    reader: Reader
    prepare: Prepare
    request: WriteRequest
    query: Query | None

    def addressed_keys(self, written_id: str) -> list[Key]:
        return [(self.request.address.type.uid, written_id or self.operation.document_id or "")]

    def render(self, state: State, document_id: str) -> Rendering:
        """Render the written version. After a deletion, the result is empty.

        Raises NotFoundError if the document has been deleted since the write, or BusyError if the content
        type has changed since the request was parsed. Also raises LimitError.
        """
        if self.query is None:
            return Rendering(b"", "")
        reader, query = self.reader._replace(state=state), self.query
        if state.schema is not self.reader.state.schema:
            reader, query = self._with_current_schema(reader)
        document = self._document(state, document_id)
        rendering = reader.show(reader.view(query), query, document, self.operation.params)
        return self._without_hidden_tag(rendering)

    def render_ids(self, state: State, document_id: str, note: str) -> Rendering:
        """Render a response that contains only a note and the ids of the written document. No limits apply.

        Raises NotFoundError if the document has been deleted since the write.
        """
        if self.query is None:
            return Rendering(b"", "")
        reader, document = (
            self.reader._replace(state=state, budget=UNLIMITED),
            self._document(state, document_id),
        )
        if document is None:
            raise NotFoundError()
        query = self.query._replace(selection=Selection(fields=()))
        view, response_format = reader.view(query), reader.response_format
        body = render_one(view, document, query, response_format=response_format, note=note)
        return self._without_hidden_tag(reader.rendering(view, query, document, body))

    def _with_current_schema(self, reader: Reader) -> tuple[Reader, Query]:
        reader = reader._replace(type=reader.state.schema.types[self.request.address.type.uid])
        try:
            return reader, _response_query(reader, self.operation)
        except ApiError as error:
            raise BusyError("The content type was changed during this write") from error

    def _document(self, state: State, document_id: str) -> Document | None:
        address = self.request.address
        versions = (
            state.snapshot.get(address.type, document_id, locale, DRAFT if self._is_draft else PUBLISHED)
            for locale in (address.locale, *self.request.locales)
        )
        return next(filter(None, versions), None)

    def _without_hidden_tag(self, rendering: Rendering) -> Rendering:
        hidden = self._is_draft and not may_read_drafts(self.reader.actor, self.request.address.type)
        return rendering._replace(etag="") if hidden else rendering

    @property
    def _is_draft(self) -> bool:
        return self.query is not None and self.query.draft and self.request.address.type.draft_publish


def require_write(reader: Reader, verb: Verb, params: Params) -> None:
    """Raise ForbiddenError if the caller may not make this write.

    Raises ValidationError if the content type does not support the verb.
    """
    if (reader.type.kind, verb) not in WRITES:
        raise ValidationError(
            f'The content type {reader.type.singular} does not support the operation "{verb}"'
        )
    action = WRITES[reader.type.kind, verb][0]
    drafts_only = verb is Verb.DISCARD or params.get("status") == DRAFT
    if not drafts_only or not may_draft(reader.actor, reader.type, action):
        require(reader.actor, reader.type, action)


def read_document_write(reader: Reader, operation: Operation) -> DocumentWrite:
    """Parse an operation that `require_write` has permitted. Raises ValidationError."""
    _, act = WRITES[reader.type.kind, operation.verb]
    if operation.verb is Verb.DELETE:
        return DocumentWrite(operation, reader, act, _deletion(reader, operation), None)
    if operation.verb in ACTIONS:
        request = _action_request(reader, operation)
        return DocumentWrite(operation, reader, act, request, _response_query(reader, operation))
    query = _response_query(reader, operation)
    return DocumentWrite(operation, reader, act, _change(reader, operation), query)


def with_hashes(writes: Sequence[DocumentWrite], schema: Schema) -> list[DocumentWrite]:
    return [
        replace(write, request=replace(write.request, data=data))
        for write, data in zip(writes, hash_passwords(schema, bodies_of(writes)), strict=True)
    ]


def bodies_of(writes: Iterable[DocumentWrite]) -> list[Body]:
    return [(write.request.address.type, write.request.data) for write in writes]


def charge_json_texts(bodies: Iterable[Body], schema: Schema, budget: Budget) -> None:
    for type_, data in bodies:
        for text in json_texts(schema, type_, data):
            budget.take_values(count_values_of_string(text, budget.values))


def _change(reader: Reader, operation: Operation) -> WriteRequest:
    locale = locale_to_write(operation.params.get("locale"), reader.type, reader.state.settings)
    draft = read_status(operation.params.get("status")) == DRAFT and reader.type.draft_publish
    address = Address(reader.type, operation.document_id, locale, draft)
    return WriteRequest(
        address,
        reader.actor,
        read_data(operation.data),
        operation.if_match,
        reader.user_tables(),
        merge=operation.merge and operation.verb is Verb.UPDATE,
        drafts_only=not reader.actor.may(reader.type.singular, WRITES[reader.type.kind, operation.verb][0]),
        show=partial(_render_values, reader, draft=draft),
    )


def _deletion(reader: Reader, operation: Operation) -> WriteRequest:
    params = operation.params
    reader.query({name: value for name, value in params.items() if name not in ("locale", "status")})
    if reader.type.draft_publish and params.get("status") == DRAFT:
        raise ValidationError(
            'A draft can\'t be deleted separately; omit "status" to delete both the draft and the '
            "published version"
        )
    locales = locales_to_delete(params.get("locale"), reader.type, reader.state.settings)
    address = Address(reader.type, operation.document_id, locales[0], draft=False)
    return WriteRequest(address, reader.actor, if_match=operation.if_match, locales=locales)


def _action_request(reader: Reader, operation: Operation) -> WriteRequest:
    type_, action, params = reader.type, operation.verb, operation.params
    if not type_.draft_publish:
        raise ValidationError(
            f"The content type {type_.singular} does not use drafts, so there is nothing to {action}"
        )
    if "status" in params:
        raise ValidationError(
            f'"status" can\'t be used with the action "{action}", which affects both the draft and the '
            "published version"
        )
    settings = reader.state.settings
    named = locales_to_delete(params.get("locale"), type_, settings)
    locales = tuple(locale_to_write(locale, type_, settings) for locale in named)
    address = Address(type_, operation.document_id, locales[0], draft=action is Verb.DISCARD)
    drafts_only = not reader.actor.may(type_.singular, WRITES[type_.kind, action][0])
    return WriteRequest(
        address, reader.actor, if_match=operation.if_match, locales=locales, drafts_only=drafts_only
    )


def _response_query(reader: Reader, operation: Operation) -> Query:
    if operation.verb not in ACTIONS:
        return reader.query(operation.params, own_draft=True)
    params = {name: value for name, value in operation.params.items() if name != "locale"}
    return reader.query({**params, "status": DRAFT}, own_draft=True)


def _render_values(
    reader: Reader, snapshot: Snapshot, document: Document, names: Collection[str], *, draft: bool
) -> Mapping[str, Any]:
    # The cache for fragments starts empty, because these values are rendered only once.
    snapshot, type_ = replace(snapshot, fragments=Fragments()), document.type
    state = replace(reader.state, snapshot=snapshot, schema=snapshot.schema)
    params = {
        "fields": [name for name in names if type_.attributes[name].selectable],
        "populate": _populate(snapshot.schema, type_, names),
        **({"status": "draft"} if draft else {}),
    }
    reader = reader._replace(type=type_, state=state)
    query = reader.query(params)
    selection = query.selection._replace(fields=query.selection.fields or ())
    rendered = json.loads(
        Renderer(reader.view(query), response_format=reader.response_format).document(document, selection)
    )
    wrapped = reader.response_format is ResponseFormat.V4
    values: Mapping[str, Any] = rendered.get("attributes", {}) if wrapped else rendered
    return {name: values[name] for name in names if name in values}


def _populate(schema: Schema, type_: Type, names: Collection[str]) -> dict[str, Any]:
    return {
        name: _populate_attribute(schema, type_.attributes[name])
        for name in names
        if type_.attributes[name].populatable
    }


def _populate_attribute(schema: Schema, attribute: Attribute) -> Any:
    if attribute.type == "component":
        inner = schema.types[attribute.component or ""]
        return {"populate": _populate(schema, inner, inner.attributes)}
    if attribute.type == "dynamiczone":
        inside = ((uid, schema.types[uid]) for uid in attribute.components)
        return {"on": {uid: {"populate": _populate(schema, t, t.attributes)} for uid, t in inside}}
    return "true"
