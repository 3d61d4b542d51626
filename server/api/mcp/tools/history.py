"""The tools `diff` and `history`."""

from http import HTTPStatus

from server.api.mcp.json_rpc import Json
from server.api.mcp.rest_client import Reply
from server.api.mcp.tools.destination import default_destination
from server.api.mcp.tools.missing import missing_document_error
from server.api.mcp.tools.schemas import COUNT, ID, LIST, LISTED, OBJECT, PAGES, STATUS, TEXT, TYPE
from server.api.mcp.tools.tool import (
    Call,
    Result,
    Tool,
    body_of,
    cut_lists,
    fitting_page,
    list_summary,
    plural,
    required_id,
    type_of,
)
from server.errors import NotFoundError, ValidationError
from server.schema.model import Type


def diff(call: Call) -> Result:
    """Run the `diff` tool."""
    if call.text("type"):
        call.reject('with a type; to compare with a branch, use "from" and "to"', "branch")
        call.reject("with a type", "page", "pageSize")
        return _diff_of_document(call)
    call.reject("without a type", "documentId", "from", "to", "locale", "status")
    branch = call.text("branch") or default_destination(call).branch
    if not branch:
        raise ValidationError('Name a "branch", or a "type" and "documentId"')
    pages = call.values("page", "pageSize")
    body = body_of(call.rest.send("GET", f"/branches/{branch}/changes", pages))
    media = body["meta"]["media"]
    listed = _listed(body, call, call.max_bytes * 3 // 4 if media else call.max_bytes)
    line = list_summary(listed, f"changed documents on {branch}")
    if media:
        line += f" Changed media files: {body['meta']['mediaTotal']}."
    return Result(line, cut_lists({"branch": branch, **listed, "media": media}, call))


def _diff_of_document(call: Call) -> Result:
    type_ = type_of(call)
    query = call.values("from", "to", "locale", "status")
    body = history_body(call, type_, call.rest.send("GET", f"{history_path(call, type_)}/diff", query))
    changed = body["data"]
    content = {"attributes": changed, "from": body["meta"]["from"], "to": body["meta"]["to"]}
    return Result(f"{plural(len(changed), 'changed attribute')}: {', '.join(changed) or 'none'}.", content)


def history_path(call: Call, type_: Type) -> str:
    name = type_.plural if type_.kind == "collectionType" else type_.singular
    document_id = required_id(call, type_).replace("/", "%2F")
    return "/".join(filter(None, ("/history", name, document_id)))


def history_body(call: Call, type_: Type, reply: Reply, at: Json | None = None) -> Json:
    """Return the body of a history response. Raises NotFoundError if the document does not exist."""
    if reply.status == HTTPStatus.NOT_FOUND and reply.body["error"]["message"] == NotFoundError.default:
        raise missing_document_error(call, type_, at or {})
    body: Json = body_of(reply)
    return body


def history(call: Call) -> Result:
    """Run the `history` tool."""
    pages = call.values("page", "pageSize")
    query = {"pagination": pages} if pages else {}
    if call.text("type"):
        type_ = type_of(call)
        query |= call.values("locale", "status")
        reply = call.rest.send("GET", history_path(call, type_), query)
        body = history_body(call, type_, reply)
    else:
        body = body_of(call.rest.send("GET", "/history", query))
    commits = [{**commit, "message": _without_trailers(commit["message"])} for commit in body["data"]]
    listed = _listed({**body, "data": commits}, call, call.max_bytes)
    return Result(list_summary(listed, "commits"), listed)


def _without_trailers(message: str) -> str:
    lines = message.splitlines()
    while lines and (lines[-1].startswith("Bifolio-") or not lines[-1]):
        lines.pop()
    return "\n".join(lines)


def _listed(body: Json, call: Call, max_bytes: int) -> Json:
    meta = body["meta"]["pagination"]
    offset = (meta["page"] - 1) * meta["pageSize"]
    return fitting_page(body["data"], meta["total"], offset, meta["pageSize"], max_bytes)


TOOLS = (
    Tool(
        "diff",
        "Compare versions",
        "Changes of a branch; or, with a type, of one document between two commits.",
        {
            "branch": {"type": "string", "description": "Default: your own branch"},
            "type": TYPE,
            "documentId": ID,
            "from": {
                "type": "string",
                "description": "Default: before the last change",
            },
            "to": {"type": "string", "description": "Default: now"},
            "locale": TEXT,
            "status": STATUS,
            **PAGES,
        },
        {**LISTED, "branch": TEXT, "media": LIST, "attributes": OBJECT},
        diff,
        optional=(*LISTED, "branch", "media", "attributes"),
        is_read_only=True,
    ),
    Tool(
        "history",
        "List commits",
        "Commits of a document, newest first, with the changed attributes. Without a type: of the site.",
        {"type": TYPE, "documentId": ID, "locale": TEXT, "status": STATUS, **PAGES},
        {**LISTED, "total": COUNT},
        history,
        optional=("next",),
        is_read_only=True,
    ),
)
