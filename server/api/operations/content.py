"""Operations on documents (docs/querying.md, docs/writing.md)."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from server.api.accept import MARKDOWN
from server.api.operations.json_schema import (
    JSON,
    READ_ONE,
    TAG,
    TEXT,
    WRITE,
    JsonSchema,
    body_of,
    parameter_refs,
    ref,
    response_doc,
)
from server.api.operations.operation import Area, Audience, Docs, Operation, TypeView
from server.api.operations.permission import TypePermissionCheck
from server.api.serving.bodies import MAX_BODY_BYTES
from server.schema.model import Schema, Type
from server.service.markdown.document import ENDING

COLLECTION, SINGLE = "collectionType", "singleType"
UNPUBLISH, DISCARD = "unpublish", "discard"
_MERGED = {
    "schema": {"const": "merge"},
    "description": "The change was merged with later changes.",
}


def _list(audience: Audience) -> Docs:
    view = _view(audience)

    def listed(document: Any) -> Any:
        pagination = {"page": 1, "pageSize": 1, "pageCount": 1, "total": 1}
        return {"data": [document], "meta": {"pagination": pagination}}

    found = _with_markdown(_answer(view, f"{view.name}List", "A page of documents.", listed))
    parameters = [*_reading(view, many=True), *parameter_refs("pagination")]
    return Docs(f"List {view.type.plural}", {200: found}, parameters)


def _create(audience: Audience) -> Docs:
    view = _view(audience)
    parameters, body = [*_writing(view), *parameter_refs("prefer")], _body(view, f"{view.name}Input")
    return Docs(f"Create a {view.type.singular}", {201: _document(view)}, parameters, body, (*WRITE, 404))


def _find_one(audience: Audience) -> Docs:
    view = _view(audience)
    parameters = [*_path_parameters(view), *_reading(view, many=False)]
    found = _with_markdown(_document(view))
    return Docs(f"Get a {view.type.singular}", {200: found}, parameters, errors=READ_ONE)


def _update(audience: Audience) -> Docs:
    view = _view(audience)
    summary = f"Change a {view.type.singular}: omitted attributes keep their values, null clears them"
    summary += ", or create it if it does not exist" * (view.type.kind == SINGLE)
    changed = {**_document(view), "headers": {"ETag": TAG, "Preference-Applied": _MERGED}}
    parameters = [*_path_parameters(view), *_writing(view), *parameter_refs("ifMatch", "prefer")]
    return Docs(summary, {200: changed}, parameters, _body(view, f"{view.name}Change"), (*WRITE, 404, 412))


def _delete(audience: Audience) -> Docs:
    view = _view(audience)
    localized = view.type.localized
    parameters = [
        *_path_parameters(view),
        *parameter_refs(*["localeOfList"] * localized, "ifMatch", "prefer"),
    ]
    summary = f"Delete a {view.type.singular}" + ", in one locale or all" * localized
    errors = (*WRITE, *[404] * audience.may_branch, 412)
    return Docs(summary, {204: response_doc("Deleted, or it did not exist.")}, parameters, errors=errors)


def _unpublish(audience: Audience) -> Docs:
    return _action(audience, "Unpublish a {}: keep the draft, or turn the published version into a draft")


def _discard(audience: Audience) -> Docs:
    return _action(audience, "Discard the draft of a {} and keep the published version")


def _action(audience: Audience, summary: str) -> Docs:
    view = _view(audience)
    locales = parameter_refs(*["localesWritten"] * view.type.localized)
    parameters = [*_path_parameters(view), *_showing(view), *locales, *parameter_refs("ifMatch", "prefer")]
    errors = (*WRITE, 404, 412)
    return Docs(summary.format(view.type.singular), {200: _document(view)}, parameters, errors=errors)


# --- parts of descriptions -----------------------------------------------------------------------


def _view(audience: Audience) -> TypeView:
    assert audience.view, "An operation of content types is described for one type"
    return audience.view


def _path_parameters(view: TypeView) -> Sequence[JsonSchema]:
    return parameter_refs("documentId") if view.type.kind == COLLECTION else ()


def _showing(view: TypeView) -> list[JsonSchema]:
    return parameter_refs(f"{view.name}.fields", f"{view.name}.populate")


def _reading(view: TypeView, *, many: bool) -> list[JsonSchema]:
    found = _showing(view)
    found += parameter_refs(f"{view.name}.filters", f"{view.name}.sort", "q") if many else []
    found += parameter_refs("localeOfList" if many else "locale") if view.type.localized else []
    names = ["status", *["publicationFilter"] * many, "publicationStatus"]
    return found + parameter_refs(*names * view.type.draft_publish)


def _writing(view: TypeView) -> list[JsonSchema]:
    status = "statusOfDraft" if view.drafts_only else "statusWritten"
    names = [*["localeWritten"] * view.type.localized, *[status] * view.type.draft_publish]
    return _showing(view) + parameter_refs(*names)


def _body(view: TypeView, name: str) -> JsonSchema:
    schema = {"type": "object", "properties": {"data": ref(name)}, "required": ["data"]}
    example = view.examples.get("input")
    return body_of(schema, example and {"data": example})


def _document(view: TypeView) -> JsonSchema:
    return _answer(view, f"{view.name}Answer", "The document.", lambda d: {"data": d, "meta": {}})


def _answer(view: TypeView, schema: str, description: str, wrap: Callable[[Any], Any]) -> JsonSchema:
    made = response_doc(description, ref(schema), has_etag=True)
    known = {k: {"value": wrap(v)} for k, v in view.examples.items() if k != "input"}
    if known:
        made["content"][JSON]["examples"] = known
    return made


def _with_markdown(answer: JsonSchema) -> JsonSchema:
    return {**answer, "content": {**answer["content"], MARKDOWN: {"schema": TEXT}}}


# --- the rows ------------------------------------------------------------------------------------


_LIST, _DOCUMENT, _SINGLE = "/api/{pluralApiId}", "/api/{pluralApiId}/{documentId}", "/api/{singularApiId}"
_of_collection = partial(Operation, kind=COLLECTION)
_of_single = partial(Operation, kind=SINGLE)
_writes_collection = partial(_of_collection, branch=True, dry_run="source", commits="maybe")
_writes_single = partial(_of_single, branch=True, dry_run="source", commits="maybe")
_DISCARDS = TypePermissionCheck("update", needs_drafts=True)
_UNPUBLISHES = TypePermissionCheck("update", drafts=False, needs_drafts=True)

CONTENT = Area(
    "content",
    parts=(),  # the area of all paths below /api that belong to no other area
    takes_at=True,
    varies_by_commit=True,
    operations=(
        _of_collection("findDocument", "GET", _LIST, TypePermissionCheck("find"), _list, runs_inline=True),
        _writes_collection(
            "createDocument", "POST", _LIST, TypePermissionCheck("create"), _create, MAX_BODY_BYTES
        ),
        _of_collection(
            "findOneDocument", "GET", _DOCUMENT, TypePermissionCheck("findOne"), _find_one, runs_inline=True
        ),
        _writes_collection(
            "updateDocument", "PUT", _DOCUMENT, TypePermissionCheck("update"), _update, MAX_BODY_BYTES
        ),
        _writes_collection("deleteDocument", "DELETE", _DOCUMENT, TypePermissionCheck("delete"), _delete),
        _writes_collection(
            "unpublishDocument", "POST", f"{_DOCUMENT}/actions/{UNPUBLISH}", _UNPUBLISHES, _unpublish
        ),
        _writes_collection("discardDocument", "POST", f"{_DOCUMENT}/actions/{DISCARD}", _DISCARDS, _discard),
        _of_single("findOneSingle", "GET", _SINGLE, TypePermissionCheck("find"), _find_one, runs_inline=True),
        _writes_single(
            "updateSingle", "PUT", _SINGLE, TypePermissionCheck("update"), _update, MAX_BODY_BYTES
        ),
        _writes_single("deleteSingle", "DELETE", _SINGLE, TypePermissionCheck("delete"), _delete),
        _writes_single("unpublishSingle", "POST", f"{_SINGLE}/actions/{UNPUBLISH}", _UNPUBLISHES, _unpublish),
        _writes_single("discardSingle", "POST", f"{_SINGLE}/actions/{DISCARD}", _DISCARDS, _discard),
    ),
)


def parse_content_path(path: str, schema: Schema) -> tuple[Type, str] | None:
    """Return the content type and the document id that a path names, or None for any other path.

    In the path of a list or a single type, the id is "".
    """
    # As in WSGI, each character represents one byte.
    parts = path.split("/", 4)  # "", "api", the type, the id, and "" for a trailing slash
    type_ = schema.endpoints.get(parts[2]) if len(parts) > 2 else None
    if type_ is None or parts[1] != "api":
        return None
    document_id = parts[3] if len(parts) > 3 else ""
    if len(parts) > 4 and (parts[4] or not document_id):
        return None
    if document_id and type_.kind == "singleType":
        return None
    return type_, document_id


def parse_markdown_path(path: str, schema: Schema) -> tuple[Type, str] | None:
    if not path.startswith("/api/") or not path.endswith(ENDING):
        return None
    type_ = schema.endpoints.get(path.removeprefix("/api/").removesuffix(ENDING))
    return (type_, "") if type_ else None
