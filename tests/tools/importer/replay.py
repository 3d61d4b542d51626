"""A server that replays recorded responses of Strapi, or forwards requests to Strapi and records the
responses.
"""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

# The status, media type and body of the response for a path.
Answer = tuple[int, str, bytes]
Ask = Callable[[str, str], Answer]
JSON = "application/json"


@contextmanager
def serving(ask: Ask) -> Iterator[str]:
    """Context manager: run a server on 127.0.0.1, and yield its URL.

    Its responses come from `ask`, which is called with the path and the `Authorization` header.
    """

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            status, kind, body = ask(self.path, self.headers.get("Authorization", ""))
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            if status in (301, 302):
                self.send_header("Location", "http://127.0.0.1:9/elsewhere")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def recorded(answers: Mapping[str, Any], files: Mapping[str, bytes], token: str) -> Ask:
    """Return a function that replays recorded responses if the token is right, and files without a token."""

    def ask(path: str, authorization: str) -> Answer:
        if path in files:
            return 200, "application/octet-stream", files[path]
        if authorization != f"Bearer {token}":
            return 401, JSON, b'{"data":null,"error":{"status":401,"name":"UnauthorizedError"}}'
        if path not in answers:
            return 404, JSON, b'{"data":null,"error":{"status":404,"name":"NotFoundError"}}'
        return 200, JSON, json.dumps(answers[path]).encode()

    return ask
