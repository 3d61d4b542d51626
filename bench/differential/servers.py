"""One of the two servers, which replaces references in requests with its own values."""

import http.client
import json
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from bench.differential.compare_headers import compared
from bench.differential.request import PUBLIC, Answer, Request, encode, fill, target
from bench.host import HOST
from bench.peer.recording import Recording, key

_TIMEOUT = 60
_PLAIN = "/?=&[]$*,.:%+"  # characters that are not percent-encoded


@dataclass
class Server:
    """One of the two servers: its port, its tokens, and its values for references."""

    name: str
    port: int
    tokens: dict[str, str]
    names: dict[str, Any] = field(default_factory=dict)
    connection: http.client.HTTPConnection | None = None
    recording: Recording | None = None  # the recording to which responses are added, if any

    def ask(self, request: Request) -> Answer:
        # Status 0 means that there was no response.
        body, headers = encode(request, fill(request.body, self.names, self._get))
        if request.who != PUBLIC:
            known = self.tokens.get(request.who) or self.names.get(request.who, request.who)
            headers["Authorization"] = f"Bearer {known}"
        return self._send(request.method, target(request, self.names), body, headers)

    def _get(self, path: str) -> Any:
        headers = {"Authorization": f"Bearer {self.tokens['full']}"}
        return self._send("GET", quote(path, _PLAIN), None, headers).body

    def _named(self, headers: dict[str, str]) -> dict[str, str]:
        known = {f"Bearer {token}": f"Bearer {name}" for name, token in self.tokens.items()}
        return {name: known.get(value, value) for name, value in headers.items()}

    def _send(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> Answer:
        for _ in range(2):  # Try twice, because the server may have closed the idle connection.
            if self.connection is None:
                self.connection = http.client.HTTPConnection(HOST, self.port, timeout=_TIMEOUT)
            try:
                self.connection.request(method, path, body, headers)
                answer = self.connection.getresponse()
                content = answer.read()
                if self.recording is not None:
                    self.recording.add(
                        key(method, path, self._named(headers), body), answer.status, answer.headers, content
                    )
                return Answer(answer.status, _parsed(content), compared(answer.headers))
            except (OSError, http.client.HTTPException) as error:
                self.connection.close()
                self.connection, problem = None, error
        return Answer(0, f"no answer: {problem}")


def _parsed(body: bytes) -> Any:
    if not body:
        return None
    try:
        return json.loads(body)
    except ValueError:
        return body.decode("utf-8", "replace")[:500]
