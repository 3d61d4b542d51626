"""A write of content as a value, permitted and read: the same for a request and for a part of a batch."""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from server.api.operations.content import DISCARD, UNPUBLISH
from server.auth.permissions import may_draft, may_read_drafts, require
from server.documents.document import DRAFT, PUBLISHED, Document
from server.errors import ValidationError
from server.index.dangling import Key
from server.index.fragments import Fragments
from server.index.snapshot import Snapshot
from server.query.ast import Query
from server.query.parse import deleted_locales, read_status, written_locale
from server.schema.model import Attribute, Schema, Type
from server.service.read import Params, Reader, Rendering
from server.service.render import Renderer
from server.site.site import State
from server.write import prepare
from server.write.context import Context
from server.write.passwords import hash_passwords
from server.write.request import Address, WriteRequest
from server.write.validate import read_data

Prepare = Callable[[WriteRequest, Context], str]
ACTIONS = (UNPUBLISH, DISCARD)  # of POST /api/…/actions/ACTION
# By the kind of a type and the method or action: the permission that a write takes, what it does, and the
# status of its answer. A new document of a collection has no id in its path, all others have one.
WRITES: Mapping[tuple[str, str], tuple[str, Prepare, int]] = {
    ("collectionType", "POST"): ("create", prepare.create, 201),
    ("collectionType", "PUT"): ("update", prepare.update, 200),
    ("collectionType", "DELETE"): ("delete", prepare.delete, 204),
    ("singleType", "PUT"): ("update", prepare.put_single, 200),
    ("singleType", "DELETE"): ("delete", prepare.delete, 204),
    **{(kind, UNPUBLISH): ("update", prepare.unpublish, 200) for kind in ("collectionType", "singleType")},
    **{(kind, DISCARD): ("update", prepare.discard, 200) for kind in ("collectionType", "singleType")},
}


@dataclass(frozen=True, slots=True)
class Sent:
    """What a client sends to write a document: a method or action of WRITES, where to, and what."""

    method: str
    document_id: str | None
    params: Params
    body: Any = None
    if_match: str | None = None
    merge: bool = False


@dataclass(frozen=True, slots=True)
class DocumentWrite:
    """A write that its actor may make, and how the answer shows the version; nothing, where it is deleted."""

    sent: Sent
    reader: Reader
    prepare: Prepare
    request: WriteRequest
    query: Query | None
    status: int

    def addressed(self, written: str) -> list[Key]:
        """The document that the write is about; `written` is the id that it returned."""
        return [(self.request.address.type.uid, written or self.sent.document_id or "")]

    def shown(self, state: State, document_id: str) -> Rendering:
        """The version that was written, in a state after it. Raises NotFoundError where it is gone again.

        Without an entity tag where it is a draft that the actor may not read: that stands for all its values.
        """
        address, reader = self.request.address, replace(self.reader, state=state)
        if self.query is None:
            return Rendering(b"", "")
        draft = self.query.draft and address.type.draft_publish
        versions = (
            state.snapshot.get(address.type, document_id, locale, DRAFT if draft else PUBLISHED)
            for locale in (address.locale, *self.request.locales)
        )
        document = next(filter(None, versions), None)
        shown = reader.show(reader.view(self.query), self.query, document, self.sent.params)
        if draft and not may_read_drafts(reader.actor, address.type):
            return replace(shown, etag="")
        return shown


def permit(reader: Reader, method: str, params: Params) -> None:
    """Raise ForbiddenError where the actor of a reader may not write documents of its type in that way."""
    action = WRITES[reader.type.kind, method][0]
    drafts_alone = method == DISCARD or params.get("status") == DRAFT
    if not drafts_alone or not may_draft(reader.actor, reader.type, action):
        require(reader.actor, reader.type, action)


def read_document_write(reader: Reader, sent: Sent) -> DocumentWrite:
    """What a client sent who is permitted to, as a write of the reader's type. Raises ValidationError."""
    _, act, status = WRITES[reader.type.kind, sent.method]
    if sent.method == "DELETE":
        return DocumentWrite(sent, reader, act, _deletion(reader, sent), None, status)
    if sent.method in ACTIONS:
        return DocumentWrite(sent, reader, act, _action(reader, sent), _shown_draft(reader, sent), status)
    query = reader.query(sent.params, own_draft=True)
    return DocumentWrite(sent, reader, act, _change(reader, sent), query, status)


def hashed(operations: Sequence[DocumentWrite]) -> list[DocumentWrite]:
    """The operations with the hashes of passwords in place of them; see `hash_passwords`."""
    schema = operations[0].reader.state.schema
    bodies = [(operation.request.address.type, operation.request.data) for operation in operations]
    return [
        replace(operation, request=replace(operation.request, data=data))
        for operation, data in zip(operations, hash_passwords(schema, bodies), strict=True)
    ]


def _change(reader: Reader, sent: Sent) -> WriteRequest:
    """Which version is to hold what."""
    locale = written_locale(sent.params.get("locale"), reader.type, reader.state.settings)
    draft = read_status(sent.params.get("status")) == DRAFT and reader.type.draft_publish
    address = Address(reader.type, sent.document_id, locale, draft)
    return WriteRequest(
        address,
        reader.actor,
        read_data(sent.body),
        sent.if_match,
        reader.user_tables(),
        merge=sent.merge and sent.method == "PUT",
        drafts_only=not reader.actor.may(reader.type.singular, WRITES[reader.type.kind, sent.method][0]),
        show=partial(_shown_values, reader, draft=draft),
    )


def _deletion(reader: Reader, sent: Sent) -> WriteRequest:
    """The locales of a document that are to be gone; none there is no error (spec.md 4.3.7)."""
    params = sent.params
    reader.query({name: value for name, value in params.items() if name not in ("locale", "status")})
    if reader.type.draft_publish and params.get("status") == DRAFT:
        raise ValidationError("A draft can't be deleted alone: without status, both versions are deleted")
    locales = deleted_locales(params.get("locale"), reader.type, reader.state.settings)
    address = Address(reader.type, sent.document_id, locales[0], draft=False)
    return WriteRequest(address, reader.actor, if_match=sent.if_match, locales=locales)


def _action(reader: Reader, sent: Sent) -> WriteRequest:
    """The locales of a document in which it is to be unpublished, or its draft to be discarded."""
    type_, action, params = reader.type, sent.method, sent.params
    if not type_.draft_publish:
        raise ValidationError(f"{type_.singular} has no drafts, so that there is nothing to {action}")
    if "status" in params:
        raise ValidationError(f"{action} takes no status: it is about what is published and the draft")
    settings = reader.state.settings
    named = deleted_locales(params.get("locale"), type_, settings)
    locales = tuple(written_locale(locale, type_, settings) for locale in named)
    address = Address(type_, sent.document_id, locales[0], draft=action == DISCARD)
    drafts_only = not reader.actor.may(type_.singular, WRITES[type_.kind, action][0])
    return WriteRequest(
        address, reader.actor, if_match=sent.if_match, locales=locales, drafts_only=drafts_only
    )


def _shown_draft(reader: Reader, sent: Sent) -> Query:
    """How the answer to an action shows the draft that is left."""
    params = {name: value for name, value in sent.params.items() if name != "locale"}
    return reader.query({**params, "status": DRAFT}, own_draft=True)


def _shown_values(
    reader: Reader, snapshot: Snapshot, document: Document, names: Collection[str], *, draft: bool
) -> Mapping[str, Any]:
    """Some attributes of a version, by name, as its reader is shown them with everything in them populated.

    Those that nobody is shown, and relations to what the actor may not find, are left out. `draft`: the
    documents that it relates to are shown as drafts.
    """
    # What is rendered here is not asked for again.
    snapshot, type_ = replace(snapshot, fragments=Fragments()), document.type
    state = replace(reader.state, snapshot=snapshot, schema=snapshot.schema)
    params = {
        "fields": [name for name in names if type_.attributes[name].selectable],
        "populate": _populate(snapshot.schema, type_, names),
        **({"status": "draft"} if draft else {}),
    }
    reader = replace(reader, type=type_, state=state)
    query = reader.query(params)
    selection = replace(query.selection, fields=query.selection.fields or ())
    rendered = json.loads(Renderer(reader.view(query), v4=reader.v4).document(document, selection))
    values: Mapping[str, Any] = rendered.get("attributes", {}) if reader.v4 else rendered
    return {name: values[name] for name in names if name in values}


def _populate(schema: Schema, type_: Type, names: Collection[str]) -> dict[str, Any]:
    return {
        name: _inside(schema, type_.attributes[name]) for name in names if type_.attributes[name].populatable
    }


def _inside(schema: Schema, attribute: Attribute) -> Any:
    """What of an attribute is populated: of components everything, of other documents themselves."""
    if attribute.type == "component":
        inner = schema.types[attribute.component or ""]
        return {"populate": _populate(schema, inner, inner.attributes)}
    if attribute.type == "dynamiczone":
        inside = ((uid, schema.types[uid]) for uid in attribute.components)
        return {"on": {uid: {"populate": _populate(schema, t, t.attributes)} for uid, t in inside}}
    return "true"
