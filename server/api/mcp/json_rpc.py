"""JSON-RPC 2.0 messages."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeGuard

import orjson

from server.errors import BifolioError
from server.formats.json import count_values, read_json
from server.formats.tree import Plain, SyntaxProblem
from server.service.render import dumps

# error codes
PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
HEADER_MISMATCH = -32020
UNSUPPORTED_VERSION = -32022

Json = dict[str, Any]
RequestId = int | str

_MAX_ID_CHARS = 200
_NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?", re.ASCII)


class RpcError(BifolioError):
    """Error that is sent as a JSON-RPC response. `id` is None if the request's id could not be read."""

    def __init__(
        self, code: int, message: str, data: Json | None = None, id_: RequestId | None = None
    ) -> None:
        self.code, self.message, self.data, self.id = code, message, data, id_
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class Message:
    """A message from a client. A notification has no `id`, and a response has no `method`."""

    method: str
    params: Mapping[str, Any] = field(default_factory=dict)
    id: RequestId | None = None


def parse(data: bytes, max_values: float) -> Message:
    """Parse a message. Raises RpcError if it is invalid or too large."""
    found = _read(data, max_values)
    if isinstance(found, list):
        raise RpcError(INVALID_REQUEST, "Batches are not supported: send each message by itself")
    if not isinstance(found, dict):
        raise RpcError(INVALID_REQUEST, "A message must be an object")
    id_ = found.get("id")
    if "id" in found and not _is_id(id_):
        raise RpcError(INVALID_REQUEST, "The id must be a string or an integer")
    version = found.get("jsonrpc")
    if type(version) is not str or version != "2.0":
        raise RpcError(INVALID_REQUEST, 'The member "jsonrpc" must be "2.0"', id_=id_)
    if "method" not in found and ("result" in found or "error" in found):
        return Message("", id=id_)
    method, params = found.get("method"), found.get("params", {})
    if type(method) is not str or not method:
        raise RpcError(INVALID_REQUEST, "The method must be a string", id_=id_)
    if not isinstance(params, dict):
        raise RpcError(INVALID_PARAMS, "The params must be an object", id_=id_)
    return Message(method, params, id_)


def _read(data: bytes, max_values: float) -> Any:
    try:
        text = data.decode("utf-8-sig")
        if count_values(text, max_values) > max_values:
            raise RpcError(INVALID_REQUEST, f"The message has more than {max_values:,} values")
        return read_json(text)
    except UnicodeDecodeError as error:
        raise RpcError(PARSE_ERROR, f"The message is not UTF-8: byte {error.start} is invalid") from error
    except SyntaxProblem as error:
        raise RpcError(PARSE_ERROR, f"The message can't be parsed: {error.message}") from error


def _is_id(value: object) -> TypeGuard[RequestId]:
    if type(value) is int:
        return value.bit_length() < 64
    return type(value) is str and len(value) <= _MAX_ID_CHARS


def result_of(id_: RequestId, result: Json) -> Json:
    return {"jsonrpc": "2.0", "id": id_, "result": result}


def error_of(error: RpcError) -> Json:
    found: Json = {"code": error.code, "message": error.message}
    if error.data is not None:
        found["data"] = error.data
    return {"jsonrpc": "2.0", **({} if error.id is None else {"id": error.id}), "error": found}


def encode(value: Any) -> bytes:
    """Serialize a value as JSON on a single line. Numbers keep their full precision."""
    try:
        return orjson.dumps(value, default=_number, option=orjson.OPT_PASSTHROUGH_SUBCLASS)
    except TypeError:
        return dumps(_without_plain(value))


def _number(value: object) -> orjson.Fragment:
    if isinstance(value, Plain) and _NUMBER.fullmatch(value):
        return orjson.Fragment(value.encode())
    raise TypeError(f"{type(value).__name__} is not a JSON value")


def _without_plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_plain(item) for item in value]
    return _number(value) if isinstance(value, Plain) else value
