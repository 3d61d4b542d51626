"""The stdio door: one message on each line of standard input and output."""

from collections.abc import Iterator
from typing import BinaryIO

from server.api.entrance import Entrance
from server.api.environ import ADMITTED
from server.api.mcp.dispatcher import respond
from server.api.mcp.gateway import Gateway
from server.api.mcp.json_rpc import INVALID_REQUEST, Json, RpcError, encode, error_of, parse
from server.api.mcp.protocol import INITIALIZE, LATEST_WITH_HANDSHAKE, version_of
from server.api.serving.bodies import MAX_BODY_BYTES

_PIECE_BYTES = 1024 * 1024


def serve(app: Entrance, authorization: str, source: BinaryIO, target: BinaryIO) -> None:
    """Respond to messages until the end of input, with the identity that `authorization` stands for."""
    environ = {ADMITTED: (True, ()), **({"HTTP_AUTHORIZATION": authorization} if authorization else {})}
    gateway, default = Gateway(app, environ), LATEST_WITH_HANDSHAKE
    for line in _lines(source):
        response: Json | None
        try:
            if line is None:
                raise RpcError(INVALID_REQUEST, f"A message must not exceed {MAX_BODY_BYTES:,} bytes")
            app.site.refresh()  # Other processes may have changed the files.
            settings = app.site.current().settings
            message = parse(line, settings.api.limits.values)
            version = version_of(message, default)
            response = respond(message, version, gateway, settings)
            if message.method == INITIALIZE:
                default = version
        except RpcError as error:
            response = error_of(error)
        if response is not None:
            target.write(encode(response) + b"\n")
            target.flush()


def _lines(source: BinaryIO) -> Iterator[bytes | None]:
    """Yield each line that is not blank, or None for a line that is too long."""
    while line := source.readline(MAX_BODY_BYTES + 1):
        if len(line) > MAX_BODY_BYTES and not line.endswith(b"\n"):
            while (rest := source.readline(_PIECE_BYTES)) and not rest.endswith(b"\n"):
                pass
            yield None
        elif line.strip():
            yield line
