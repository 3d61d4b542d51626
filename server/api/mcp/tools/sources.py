"""The tools `read_file` and `write_file`."""

from http import HTTPStatus

from server.api.mcp.json_rpc import Json
from server.api.mcp.rest_client import Reply
from server.api.mcp.tools.checking import new_problems, problems_before
from server.api.mcp.tools.destination import (
    branch_for_write,
    describe_write,
    write_body,
    write_destination,
    write_query,
)
from server.api.mcp.tools.paths import missing_path_error, source_path, source_query, version_at_path
from server.api.mcp.tools.schemas import (
    BRANCH,
    COUNT,
    DRY_RUN,
    LIST,
    LIST_OR_NULL,
    MESSAGE,
    POSITIVE,
    TEXT,
    WRITTEN,
)
from server.api.mcp.tools.tool import (
    Call,
    Result,
    Tool,
    body_of,
    cut_lists,
    fitting_count,
    plural,
    with_short_context,
)
from server.errors import NotFoundError, ValidationError


def read_file(call: Call) -> Result:
    """Run the `read_file` tool."""
    branch = call.text("at")
    address = version_at_path(call, branch)
    query = source_query(address) | ({"at": branch} if branch else {})
    reply = call.rest.send("GET", source_path(address), query)
    if reply.status == HTTPStatus.NOT_FOUND:
        raise missing_path_error(call, address, branch)
    source = body_of(reply)["data"]
    text: str = source["text"]
    count = text.count("\n") + 1
    first = min(int(call.arguments.get("fromLine") or 1), count)
    last = min(int(call.arguments.get("toLine") or count), count)
    wanted = select_lines(text, first, last, call.max_bytes)
    wanted = wanted[: fitting_count(wanted, call.max_bytes - 500)]
    content: Json = {"path": source["path"], "text": "".join(wanted), "etag": reply.headers["etag"]}
    content |= {"lines": count, "problem": source["problem"]}
    end = first + len(wanted) - 1
    if end < count:
        content["next"] = {"fromLine": end + 1}
    return Result(f"{source['path']}, lines {first} to {end} of {count}.", content)


def select_lines(text: str, first: int, last: int, max_chars: int) -> list[str]:
    """Return the lines `first` to `last`, counted from 1.

    Stop after the line that makes the text longer than `max_chars` characters.
    """
    start = 0
    for _ in range(first - 1):
        start = text.index("\n", start) + 1
    found: list[str] = []
    left = max_chars
    while len(found) <= last - first and left >= 0:
        end = text.find("\n", start) + 1 or len(text)
        found.append(text[start:end])
        left -= end - start
        start = end
    return found


def write_file(call: Call) -> Result:
    """Run the `write_file` tool."""
    destination = write_destination(call)
    address = version_at_path(call, destination.branch if destination.exists else "", for_writing=True)
    dry_run = bool(call.arguments.get("dryRun"))
    headers, body = {"If-Match": call.text("ifMatch")}, {"data": {"text": call.arguments["text"]}}
    if call.text("ifMatch").strip() in ("", "*"):
        raise ValidationError('"ifMatch" must be the etag that read_file or get returned')
    if call.text("message"):
        headers["Bifolio-Message"] = call.text("message")

    def send(*, dry_run: bool) -> Reply:
        query = source_query(address) | write_query(destination, dry_run=dry_run)
        return call.rest.send("PUT", source_path(address), query, body, headers)

    checked = send(dry_run=True)
    if checked.status == HTTPStatus.NOT_FOUND and checked.body["error"]["message"] == NotFoundError.default:
        missing = missing_path_error(call, address, destination.branch if destination.exists else "")
        raise NotFoundError(f"{missing.message}. write_file replaces existing files; write creates documents")
    changed = with_short_context(write_body(checked, destination)["data"]["files"])
    if dry_run:
        return Result(
            f"Dry run: {plural(len(changed), 'file')} would change.", cut_lists({"files": changed}, call)
        )
    before = problems_before(call, destination)
    with branch_for_write(call, destination):
        reply = send(dry_run=False)
        write_body(reply, destination)
    content = {
        "files": changed,
        "etag": reply.headers["etag"],
        "problems": new_problems(call, destination, before),
        **describe_write(call, destination, reply.headers.get("bifolio-commit", "")),
    }
    return Result(f"Written to {destination.branch or 'the served branch'}.", cut_lists(content, call))


TOOLS = (
    Tool(
        "read_file",
        "Read a file",
        "The text of a file such as content/articles/fog.md, or some of its lines.",
        {
            "path": TEXT,
            "fromLine": POSITIVE,
            "toLine": POSITIVE,
            "at": {"type": "string", "description": "Branch. Default: the served branch"},
        },
        {"path": TEXT, "text": TEXT, "etag": TEXT, "lines": COUNT},
        read_file,
        required=("path",),
        is_read_only=True,
    ),
    Tool(
        "write_file",
        "Replace a file",
        "Replace the whole text of an existing file. To change attributes, use write.",
        {
            "path": TEXT,
            "text": TEXT,
            "ifMatch": {"type": "string", "description": "The etag that you read"},
            "message": MESSAGE,
            "branch": BRANCH,
            "dryRun": DRY_RUN,
        },
        {"files": LIST, "etag": TEXT, "problems": LIST_OR_NULL, **WRITTEN},
        write_file,
        required=("path", "text", "ifMatch"),
        optional=("etag", "problems", *WRITTEN),
        is_destructive=True,
    ),
)
