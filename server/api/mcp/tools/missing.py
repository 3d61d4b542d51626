"""Errors for missing documents and media files, which suggest a similar id if there is one."""

from typing import Any

from server.api.mcp.json_rpc import Json
from server.api.mcp.rest_client import content_path
from server.api.mcp.tools.destination import default_destination
from server.api.mcp.tools.tool import Call
from server.errors import NotFoundError
from server.schema.model import Type
from server.schema.spelling import Suggestions, suggestion

_MAX_IDS = 100
_MAX_NAME_CHARS = 100


def missing_document_error(call: Call, type_: Type, at: Json, details: Json | None = None) -> NotFoundError:
    """Return the error for a missing document. If possible, it suggests another locale or a similar id.

    `at` contains the query parameters that select the branch.
    """
    document_id, locale = call.text("documentId"), call.text("locale")
    if type_.kind == "singleType" or not document_id:
        return NotFoundError(details=details)
    name = f'{type_.singular} "{document_id[:_MAX_NAME_CHARS]}"'
    own = {"filters": {"documentId": document_id}, "locale": "*", "fields": ["locale"], **at}
    status, drafts = call.values("status"), {**own, "status": "draft"}
    may_be_draft = type_.draft_publish and not status
    if may_be_draft and locale and _attribute_values(call, type_, "locale", {**drafts, "locale": locale}):
        message = (
            f'The {name} is not published in the locale "{locale}"; to read its draft, use status "draft"'
        )
        return NotFoundError(message, details)
    if locales := _attribute_values(call, type_, "locale", {**own, **status}):
        found = ", ".join(sorted({*locales}))
        message = f'The {name} does not exist in the locale "{locale}", but in {found}{_branch_hint(call)}'
        return NotFoundError(message, details)
    if may_be_draft and _attribute_values(call, type_, "locale", drafts):
        return NotFoundError(f'The {name} is not published; to read its draft, use status "draft"', details)
    near = similar_id(call, type_, document_id, at)
    hint = f'did you mean "{near}"?' if near else "find lists the documents"
    return NotFoundError(f"There is no {name}; {hint}{_branch_hint(call)}", details)


def similar_id(call: Call, type_: Type, document_id: str, at: Json) -> str:
    """Return the id most similar to `document_id` that the caller may find, or "" if none is similar."""
    if type_.kind == "singleType":
        return ""
    drafts = {"status": "draft"} if type_.draft_publish else {}
    for wanted in ({"$eqi": document_id}, {"$startsWithi": document_id[0]}):  # a difference in case first
        query = {"fields": ["documentId"], "filters": {"documentId": wanted}, **drafts, **at}
        ids = [one for one in _attribute_values(call, type_, "documentId", query) if one != document_id]
        if near := Suggestions().nearest(document_id[:_MAX_NAME_CHARS], ids):
            return near
    return ""


def missing_file_error(call: Call, at: Json) -> NotFoundError:
    """Return the error for a missing media file. If possible, it suggests a similar id."""
    document_id = call.text("documentId")
    query = {"fields": ["documentId"], "pagination": {"pageSize": _MAX_IDS}, **at}
    query["filters"] = {"documentId": {"$startsWithi": document_id[:1]}}
    reply = call.rest.send("GET", "/api/upload/files/page", query)
    ids = [] if reply.is_error else [file["documentId"] for file in reply.body["data"]]
    hint = suggestion(document_id[:_MAX_NAME_CHARS], ids) or "find with the type upload lists them"
    name = document_id[:_MAX_NAME_CHARS]
    return NotFoundError(f'There is no media file "{name}"; {hint}{_branch_hint(call)}')


def _branch_hint(call: Call) -> str:
    own = default_destination(call)
    is_of_branch = own.branch and own.exists and not call.text("at") and not call.text("branch")
    return f'. To read your own branch, use at: "{own.branch}"' if is_of_branch else ""


def _attribute_values(call: Call, type_: Type, name: str, query: dict[str, Any]) -> list[str]:
    paged = {**query, "pagination": {"pageSize": _MAX_IDS}}
    reply = call.rest.send("GET", content_path(type_), paged)
    return [] if reply.is_error else [str(one[name]) for one in reply.body["data"] if one.get(name)]
