"""The tools `write` and `restore`."""

from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any

from server.api.mcp.json_rpc import Json
from server.api.mcp.rest_client import Reply, content_path, quoted
from server.api.mcp.tools.checking import new_problems, problems_before
from server.api.mcp.tools.destination import (
    Destination,
    branch_for_write,
    describe_write,
    may_read_sources,
    read_query,
    write_body,
    write_destination,
    write_query,
)
from server.api.mcp.tools.drafts import documents_whose_draft_is_published
from server.api.mcp.tools.history import history_body, history_path
from server.api.mcp.tools.missing import missing_document_error
from server.api.mcp.tools.schemas import (
    BRANCH,
    DRY_RUN,
    ID,
    LIST,
    LIST_OR_NULL,
    MESSAGE,
    NAMES,
    OBJECT,
    STATUS,
    TEXT,
    TYPE,
    WRITTEN,
)
from server.api.mcp.tools.tool import (
    Call,
    RestRequestError,
    Result,
    Tool,
    body_of,
    cut_lists,
    error_about_type,
    plural,
    reject_locale,
    required_id,
    type_of,
    with_short_context,
)
from server.api.operations.batch import DIFF, MAX_OPERATIONS
from server.config.mcp import WriteMode
from server.errors import ValidationError, add_operation_number
from server.query.serialize import query_string
from server.schema.model import Type

_MAX_NAMED_DRAFTS = 5
_ACTIONS = ("create", "update", "delete", "publish", "unpublish", "discard")
_CHOSEN_ID = (
    'The server chooses the "documentId" of a new document: leave it out. Later operations can refer to it '
    "as {{0.documentId}}. To change or translate an existing document, use the action update"
)
_METHODS = {"create": "POST", "update": "PUT", "publish": "PUT", "delete": "DELETE"}


def write(call: Call) -> Result:
    """Run the `write` tool. It sends all operations in one batch."""
    operations = [
        _batch_operation(call, number, one) for number, one in enumerate(call.arguments["operations"])
    ]
    body = {"operations": operations, **call.values("message")}
    destination = write_destination(call)

    def dry_run() -> Reply:
        return call.rest.send("POST", "/batch", write_query(destination, dry_run=True), body)

    if call.arguments.get("dryRun"):
        with _explain_not_found(call, destination):
            files = with_short_context(body_of(dry_run())["data"]["files"])
        return Result(_line_of_dry_run(files), cut_lists({"documents": [], "files": files}, call))
    before, drafts = problems_before(call, destination), documents_whose_draft_is_published(call, destination)
    query = write_query(destination, dry_run=False) | ({DIFF: "true"} if may_read_sources(call) else {})
    with _explain_not_found(call, destination), branch_for_write(call, destination, dry_run):
        reply = call.rest.send("POST", "/batch", query, body)
        done = write_body(reply, destination)
    content = {
        "documents": [_document(result) for result in done["data"]],
        "files": None if done.get("files") is None else with_short_context(done["files"]),
        "problems": new_problems(call, destination, before),
        **describe_write(call, destination, reply.headers.get("bifolio-commit", "")),
        **({"note": note} if (note := _write_note(call, drafts, done)) else {}),
    }
    return Result(_line_of_write(content, destination), cut_lists(content, call))


def _batch_operation(call: Call, number: int, argument: Json) -> Json:
    with add_operation_number(number):
        action, inner = argument["action"], Call(argument, call.rest, call.settings)
        type_ = type_of(inner)
        document_id = "" if action == "create" else required_id(inner, type_)
        if action == "create" and type_.kind == "singleType":
            error = ValidationError(f"{type_.singular} is a single type: use the action update")
            raise error_about_type(inner, type_, error)
        if action == "create" and argument.get("documentId") is not None:
            raise ValidationError(_CHOSEN_ID)
        if action in ("create", "update"):
            _reject_draft(inner, type_)
        reject_locale(inner, type_)
        if "data" in argument and action not in ("create", "update"):
            raise ValidationError(f'The action {action} does not accept "data"')
        method = _METHODS.get(action, "POST")
        path = quoted(content_path(type_, document_id, "" if action in _METHODS else action))
    query = inner.values("locale", "status") | ({"status": "published"} if action == "publish" else {})
    body = {} if action == "delete" else {"body": {"data": argument.get("data", {})}}
    found = {"method": method, "path": f"{path}?{query_string(query)}" if query else path, **body}
    return found | inner.values("ifMatch")


@contextmanager
def _explain_not_found(call: Call, destination: Destination) -> Iterator[None]:
    """Context manager: if an operation fails with status 404, raise an error that suggests a similar id."""
    try:
        yield
    except RestRequestError as error:
        details = error.reply.body["error"]["details"]
        if error.reply.status != HTTPStatus.NOT_FOUND or "operation" not in details:
            raise
        wanted = call.arguments["operations"][details["operation"]]
        if "{{" in str(wanted.get("documentId", "")):
            raise
        one = Call(wanted, call.rest, call.settings)
        raise missing_document_error(one, type_of(one), read_query(destination), details) from error


def _reject_draft(call: Call, type_: Type) -> None:
    if type_.draft_publish or call.text("status") != "draft":
        return
    when = "at once" if call.settings.mcp.write is WriteMode.DIRECT else "when the branch is merged"
    error = ValidationError(
        f"The content type {type_.singular} has no drafts, so every write is published {when}. "
        'If that is what you want, omit "status"'
    )
    raise error_about_type(call, type_, error)


def _write_note(call: Call, drafts: list[str], done: Json) -> str:
    if done.get("files") == [] and all(one["action"] == "publish" for one in call.arguments["operations"]):
        return "Nothing to publish: no draft differs from what is published."
    notes = (
        done.get("meta", {}).get("note"),
        _published_drafts_note(drafts) if drafts else "",
        _shared_locales_note(call),
    )
    return " ".join(filter(None, notes))


def _shared_locales_note(call: Call) -> str:
    shared = list[str]()
    for wanted in call.arguments["operations"]:
        one = Call(wanted, call.rest, call.settings)
        if one.text("locale") in ("", call.settings.locales.default) or not wanted.get("data"):
            continue
        type_ = type_of(one)
        attributes = (type_.attributes.get(name) for name in wanted["data"])
        shared += [f"{type_.singular}.{each.name}" for each in attributes if each and not each.localized]
    if not shared:
        return ""
    return f"All locales share {', '.join(dict.fromkeys(shared))}, so this changed the other locales, too."


def _published_drafts_note(drafts: list[str]) -> str:
    named = ", ".join(drafts[:_MAX_NAMED_DRAFTS])
    more = f" and {len(drafts) - _MAX_NAMED_DRAFTS} more" if len(drafts) > _MAX_NAMED_DRAFTS else ""
    return (
        f"This also published changes in the drafts of {named}{more}, and removed these drafts. "
        "To change only a draft, use status: draft."
    )


def _document(result: Json) -> Json:
    return {key: result[key] for key in ("documentId", "status", "etag")}


def _line_of_dry_run(files: list[Any]) -> str:
    return f"Dry run: {plural(len(files), 'file')} would change. Nothing was written."


def _line_of_write(content: Json, destination: Destination) -> str:
    where = destination.branch or "the served branch"
    line = f"{plural(len(content['documents']), 'operation')} applied on {where}; {_found(content)}."
    if destination.branch:
        line += f" Read it with at={destination.branch}; a person merges it."
    return f"{line} {content['note']}" if "note" in content else line


def _found(content: Json) -> str:
    problems = content["problems"]
    return "new problems are unknown" if problems is None else plural(len(problems), "new problem")


def restore(call: Call) -> Result:
    """Run the `restore` tool."""
    type_ = type_of(call)
    _reject_draft(call, type_)
    reject_locale(call, type_)
    path = f"{history_path(call, type_)}/restore"
    destination = write_destination(call)
    dry_run = bool(call.arguments.get("dryRun"))
    headers = {"Bifolio-Message": call.text("message")} if call.text("message") else {}
    fields = call.arguments.get("fields")
    body: Json = {"at": call.text("version")}
    body |= {"fields": [fields] if isinstance(fields, str) else fields} if fields else {}

    def send(*, dry_run: bool) -> Reply:
        query = write_query(destination, dry_run=dry_run) | call.values("locale", "status")
        return call.rest.send("POST", path, query, body, headers)

    files = None
    if dry_run or may_read_sources(call):
        tried = history_body(call, type_, send(dry_run=True), read_query(destination))
        files = with_short_context(tried["data"]["files"])
    if dry_run:
        return Result(_line_of_dry_run(files or []), cut_lists({"files": files}, call))
    before = problems_before(call, destination)
    with branch_for_write(call, destination):
        reply = send(dry_run=False)
        done = history_body(call, type_, reply, read_query(destination))
    content = {
        "data": {key: done["data"].get(key) for key in ("documentId", "locale")},
        **({} if files is None else {"files": files}),
        "problems": new_problems(call, destination, before),
        **describe_write(call, destination, reply.headers.get("bifolio-commit", "")),
    }
    where = destination.branch or "the served branch"
    return Result(f"{type_.singular} restored on {where}; {_found(content)}.", cut_lists(content, call))


_OPERATION: Json = {
    "type": "object",
    "properties": {
        "action": {"enum": list(_ACTIONS)},
        "type": TEXT,
        "documentId": {"type": "string", "description": "Omit for create"},
        "data": {"type": "object", "description": "Attributes, for create and update"},
        "locale": TEXT,
        "status": {
            **STATUS,
            "description": "draft: change only the draft. Default: published, with the draft's changes",
        },
        "ifMatch": {"type": "string", "description": "The etag that you read"},
    },
    "required": ["action", "type"],
    "additionalProperties": False,
}

TOOLS = (
    Tool(
        "write",
        "Write documents",
        "Create, update, publish, unpublish or delete documents, or discard their drafts: all or none. "
        "Omitted attributes keep their values, null clears them. {{0.documentId}} stands for the documentId "
        "that the first operation returns.",
        {
            "operations": {"type": "array", "items": _OPERATION, "minItems": 1, "maxItems": MAX_OPERATIONS},
            "message": MESSAGE,
            "branch": BRANCH,
            "dryRun": DRY_RUN,
        },
        {"documents": LIST, "files": LIST_OR_NULL, "problems": LIST_OR_NULL, **WRITTEN},
        write,
        required=("operations",),
        optional=("problems", *WRITTEN),
        is_destructive=True,
    ),
    Tool(
        "restore",
        "Restore a version",
        "Restore an earlier version of a document, or some of its fields.",
        {
            "type": TYPE,
            "documentId": ID,
            "version": {"type": "string", "description": "Commit or time, from history"},
            "fields": NAMES,
            "status": {**STATUS, "description": "Which to overwrite"},
            "locale": TEXT,
            "message": MESSAGE,
            "branch": BRANCH,
            "dryRun": DRY_RUN,
        },
        {"data": OBJECT, "files": LIST, **WRITTEN},
        restore,
        required=("type", "version"),
        optional=("data", "files", *WRITTEN),
        is_destructive=True,
        is_idempotent=True,
    ),
)
