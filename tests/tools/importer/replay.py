"""A server that answers what the reference implementation answered, or asks it and remembers."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

# A path → the status, the media type and the bytes of its answer.
Answer = tuple[int, str, bytes]
Ask = Callable[[str, str], Answer]
JSON = "application/json"


@contextmanager
def serving(ask: Ask) -> Iterator[str]:
    """A server on 127.0.0.1 that has its answers from `ask` (path, Authorization); its address."""

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
    """Answers that were recorded, for whoever has the token; files for everybody."""

    def ask(path: str, authorization: str) -> Answer:
        if path in files:
            return 200, "application/octet-stream", files[path]
        if authorization != f"Bearer {token}":
            return 401, JSON, b'{"data":null,"error":{"status":401,"name":"UnauthorizedError"}}'
        if path not in answers:
            return 404, JSON, b'{"data":null,"error":{"status":404,"name":"NotFoundError"}}'
        return 200, JSON, json.dumps(answers[path]).encode()

    return ask
