"""Recorded responses from one server, and a server that plays them back."""
# A response is found by its request and conversation. Unknown requests get the status 599. Repeated requests
# get their responses in the recorded order, and then the last response again.

import http.client
import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import Message
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from bench.differential.compare_headers import compared
from bench.host import HOST
from bench.serving import Serving, free_port, running

NOT_RECORDED = 599
_BEGIN = "/recording/begin/"  # prefix of a path that ends in the name of a conversation
_FORM = "multipart/form-data"
_MATTER = (
    "authorization", "origin", "accept", "content-type", "strapi-response-format",
    "access-control-request-method", "access-control-request-headers",
)  # fmt: skip


def key(method: str, path: str, headers: Mapping[str, str], body: bytes | None) -> str:
    # The bytes of the pictures in a form depend on the library that creates them, so they are not part of the
    # key.
    known = {name.lower(): value for name, value in headers.items()}
    told = [f"{name}: {known[name]}" for name in _MATTER if name in known]
    content = b"" if known.get("content-type", "").startswith(_FORM) else body or b""
    return sha256("\n".join([method, path, *told]).encode() + b"\n\n" + content).hexdigest()[:20]


@dataclass
class Recording:
    """Recorded responses by conversation and request key. Identical responses are stored once."""

    answers: list[Any] = field(default_factory=list)  # status, headers, body
    asked: dict[str, dict[str, list[int]]] = field(default_factory=dict)
    _case: str = ""
    _known: dict[str, int] = field(default_factory=dict)

    def begin(self, case: str) -> None:
        self._case = case

    def add(self, asked: str, status: int, headers: Message, body: bytes) -> None:
        answer = [status, compared(headers), body.decode()]
        text = json.dumps(answer)
        if text not in self._known:
            self._known[text] = len(self.answers)
            self.answers.append(answer)
        self.asked.setdefault(self._case, {}).setdefault(asked, []).append(self._known[text])

    def write(self, path: Path) -> None:
        lines = ",\n".join(json.dumps(answer, ensure_ascii=False) for answer in self.answers)
        path.write_text(f'{{"asked": {json.dumps(self.asked)},\n"answers": [\n{lines}\n]}}\n', "utf-8")


@dataclass(frozen=True)
class Playback:
    """A running server that plays back a recording."""

    serving: Serving

    @property
    def port(self) -> int:
        return self.serving.port

    def begin(self, case: str) -> None:
        connection = http.client.HTTPConnection(HOST, self.port, timeout=30)
        connection.request("POST", _BEGIN + case)
        connection.getresponse().read()
        connection.close()


@contextmanager
def playing(file: Path) -> Iterator[Playback]:
    port = free_port()
    command = [sys.executable, "-m", "bench.peer.recording", str(file), str(port)]
    with running(command, port) as serving:
        yield Playback(serving)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    recording: Recording
    case, counts = "", dict[tuple[str, str], int]()

    def do(self) -> None:
        """Respond to any request."""
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path.startswith(_BEGIN):
            type(self).case = self.path.removeprefix(_BEGIN)
            self._answer(204, {}, b"")
            return
        asked = key(self.command, self.path, dict(self.headers.items()), body or None)
        found = self.recording.asked.get(self.case, {}).get(asked)
        if not found:
            self._answer(NOT_RECORDED, {}, b"")
            return
        count = self.counts.get((self.case, asked), 0)
        self.counts[self.case, asked] = count + 1
        status, headers, text = self.recording.answers[found[min(count, len(found) - 1)]]
        self._answer(status, headers, text.encode())

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = do_OPTIONS = do_PATCH = do

    def _answer(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        self.send_response_only(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if status not in (204, 304):
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Ignore the log message."""


def main() -> None:
    found = json.loads(Path(sys.argv[1]).read_bytes())
    _Handler.recording = Recording(found["answers"], found["asked"])
    ThreadingHTTPServer((HOST, int(sys.argv[2])), _Handler).serve_forever()


if __name__ == "__main__":
    main()
