"""Data classes and helpers for tools."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from server.api.mcp.json_rpc import Json, encode
from server.api.mcp.rest_client import Reply, RestClient
from server.config.model import Settings
from server.errors import ApiError, BifolioError, ForbiddenError, LimitError, NotFoundError, ValidationError
from server.schema.model import Type
from server.schema.spelling import suggestion

ENVELOPE_BYTES = 700  # room for everything in a result but its lists and texts
RESPONSE_BYTES = 400  # room for everything in a response but its result
# Room for sentences that say what is left out.
_NOTE_BYTES = 200
_MAX_NAME_CHARS = 100
_MAX_CONTEXT_CHARS = 120  # of an unchanged line in a diff
MEDIA = "upload"  # the `type` of media files


@dataclass(frozen=True, slots=True)
class Call:
    """A call to a tool. `json_as_text` is set if the client can only read JSON that is sent as text."""

    arguments: Mapping[str, Any]
    rest: RestClient
    settings: Settings
    json_as_text: bool = False

    def values(self, *names: str) -> Json:
        return {name: self.arguments[name] for name in names if self.arguments.get(name) is not None}

    def text(self, name: str) -> str:
        return str(self.arguments.get(name) or "")

    def reject(self, condition: str, *names: str) -> None:
        """Raise ValidationError if any of the named arguments was given.

        The error message ends with `condition`.
        """
        for name in self.values(*names):
            raise ValidationError(f'"{name}" can\'t be used {condition}')

    @property
    def max_bytes(self) -> int:
        most = self.settings.mcp.max_bytes - ENVELOPE_BYTES
        return most // 2 if self.json_as_text else most


@dataclass(frozen=True, slots=True)
class Image:
    """An image in a result. `data` is encoded in base64."""

    data: str
    media_type: str


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a tool. `summary` is a single line of text."""

    summary: str
    content: Json
    is_error: bool = False
    image: Image | None = None


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool. `optional` contains the names of the `output` properties that a result can omit."""

    name: str
    title: str
    description: str
    input: Json
    output: Json
    run: Callable[[Call], Result]
    required: Sequence[str] = ()
    optional: Sequence[str] = ()
    is_read_only: bool = False
    is_destructive: bool = False
    is_idempotent: bool = False
    is_open_world: bool = False

    @property
    def input_schema(self) -> Json:
        required = {"required": list(self.required)} if self.required else {}
        return {"type": "object", "properties": self.input, **required, "additionalProperties": False}

    @property
    def output_schema(self) -> Json:
        required = [name for name in self.output if name not in self.optional]
        return {"type": "object", "properties": self.output, "required": required}

    def describe(self) -> Json:
        # The hints readOnlyHint and idempotentHint are false by default.
        hints = {"openWorldHint": self.is_open_world}
        if self.is_read_only:
            hints["readOnlyHint"] = True
        else:
            hints["destructiveHint"] = self.is_destructive
        if self.is_idempotent:
            hints["idempotentHint"] = True
        return {
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "inputSchema": self.input_schema,
            "outputSchema": self.output_schema,
            "annotations": hints,
        }


class RestRequestError(BifolioError):
    """Error for a failed request to the REST API."""

    def __init__(self, reply: Reply) -> None:
        self.reply = reply
        super().__init__(f"status {reply.status}")


def body_of(reply: Reply) -> Any:
    if reply.is_error:
        raise RestRequestError(reply)
    return reply.body


def type_of(call: Call) -> Type:
    """Return the content type that the argument `type` names. Raises NotFoundError if it does not exist."""
    name = call.text("type")
    found = call.rest.type_named(name)
    if found is None:
        access = body_of(call.rest.send("GET", "/access"))["data"]
        names = [each["schema"]["singularName"] for each in access["contentTypes"]]
        if name == MEDIA:
            raise NotFoundError('Media files are read with find and get, and written with the tool "upload"')
        hint = suggestion(name[:_MAX_NAME_CHARS], names) or f"the types are {', '.join(names) or '(none)'}"
        raise NotFoundError(f'There is no content type "{name[:_MAX_NAME_CHARS]}"; {hint}')
    return found


def error_about_type(call: Call, type_: Type, error: ApiError) -> ApiError:
    """Return `error`, or ForbiddenError if the caller can't see the content type."""
    types = body_of(call.rest.send("GET", "/access"))["data"]["contentTypes"]
    return error if any(each["uid"] == type_.uid for each in types) else ForbiddenError()


def reject_locale(call: Call, type_: Type) -> None:
    """Raise ValidationError if documents of the content type can't have the requested locale.

    The REST API would ignore the locale, so the agent could mistake the result for a translation.
    """
    locale, available = call.text("locale"), call.settings.locales.available
    if type_.localized and locale not in ("", "*", "all", *available):
        known = ", ".join(available)
        error = ValidationError(f'"locale" must be one of {known} (found "{locale[:_MAX_NAME_CHARS]}")')
        raise error_about_type(call, type_, error)
    if not type_.localized and locale not in ("", "*", "all", call.settings.locales.default):
        error = ValidationError(
            f'Documents of the content type {type_.singular} have no translations; omit "locale" '
            f'(found "{locale[:_MAX_NAME_CHARS]}")'
        )
        raise error_about_type(call, type_, error)


def fitting_count(items: Sequence[Any], max_bytes: int) -> int:
    """Return how many items fit into `max_bytes` of JSON. Raises LimitError if not even the first fits."""
    size = 0
    for number, item in enumerate(items):
        size += len(encode(item)) + 1
        if size > max_bytes:
            if number == 0:
                raise too_large(size)
            return number
    return len(items)


def with_short_context(files: Sequence[Json]) -> list[Json]:
    return [{**file, "lines": [_short_context(line) for line in file["lines"]]} for file in files]


def _short_context(line: str) -> str:
    is_long = line.startswith(" ") and len(line) > _MAX_CONTEXT_CHARS
    return f"{line[:_MAX_CONTEXT_CHARS]}…" if is_long else line


def cut_lists(content: Json, call: Call) -> Json:
    """Shorten lists in a result until it is small enough, and name the shortened lists in its `note`.

    This is used for the results of writes, because a successful write must not return an error.
    """
    for name in ("files", "problems", "documents", "media"):
        items = content.get(name) or ()
        room = call.max_bytes - len(encode({**content, name: []})) - _NOTE_BYTES
        size = kept = 0
        while kept < len(items) and (size := size + len(encode(items[kept])) + 1) <= room:
            kept += 1
        if kept < len(items):
            note = f"{content.get('note', '')} Only {kept} of {len(items)} {name} are listed.".strip()
            content = {**content, name: items[:kept], "note": note}
    return content


def too_large(size: int) -> LimitError:
    return LimitError(
        f"The result would have {size:,} bytes, more than mcp.max_bytes allows; request less, for example "
        "with fewer fields or without populate",
        "max_bytes",
    )


def fitting_page_size(offset: int, max_size: int) -> int:
    """Return the largest size that a page beginning at `offset` can have, at most `max_size`.

    The size must divide `offset` evenly. If `offset` is 0, the size is a power of two.
    """
    if offset == 0:
        return 1 << (max_size.bit_length() - 1)
    return next(size for size in range(max_size, 0, -1) if offset % size == 0)


def fitting_page(found: list[Any], total: int, offset: int, size: int, max_bytes: int) -> Json:
    """Return the items that fit into `max_bytes`, and the parameters that request the next page."""
    fitting = fitting_count(found, max_bytes)
    if fitting < len(found):
        size = fitting_page_size(offset, fitting)
        found = found[:size]
    listed: Json = {"data": found, "total": total, "returned": len(found)}
    if found and offset + len(found) < total:
        listed["next"] = {"page": offset // size + 2, "pageSize": size}
    return listed


def list_summary(listed: Json, what: str) -> str:
    line = f"{listed['returned']} of {listed['total']} {what}."
    if "next" in listed:
        line += f" Next: page={listed['next']['page']}, pageSize={listed['next']['pageSize']}."
    return line


def plural(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' * (count != 1)}"


def required_id(call: Call, type_: Type) -> str:
    if type_.kind == "singleType":
        return ""
    if not call.text("documentId"):
        error = NotFoundError(f'"documentId" is missing; {type_.singular} is not a single type')
        raise error_about_type(call, type_, error)
    return call.text("documentId")
