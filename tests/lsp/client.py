"""Client for language servers: starts `bifolio lsp` as an editor does, and waits for its messages."""

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

Json = dict[str, Any]
TIMEOUT_S = 60.0
CAPABILITIES: Json = {
    "textDocument": {
        "completion": {"completionItem": {"snippetSupport": True}},
        "documentSymbol": {"hierarchicalDocumentSymbolSupport": True},
    },
    "workspace": {"workspaceEdit": {"documentChanges": True, "resourceOperations": ["create", "rename"]}},
}


class ResponseError(Exception):
    """An error response."""


class Client:
    """A language server in its own process, and the messages that it has sent."""

    def __init__(self, folder: Path | None, *options: str, env: dict[str, str] | None = None) -> None:
        command = [sys.executable, "-m", "server", "lsp", *options]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env
        )
        self.folder, self.errors = folder, b""
        self.messages: list[Json] = []
        self._arrived = threading.Condition()
        self._ended = False
        self._next_id = 0
        self.versions: dict[str, int] = {}
        self._readers = [
            threading.Thread(target=read, daemon=True) for read in (self._read, self._read_errors)
        ]
        for reader in self._readers:
            reader.start()

    # --- messages ------------------------------------------------------------------------------

    def _read(self) -> None:
        stream = self.process.stdout
        assert stream is not None
        while header := stream.readline():
            assert header.startswith(b"Content-Length: "), header
            stream.readline()
            message = json.loads(stream.read(int(header.split()[1])))
            with self._arrived:
                self.messages.append(message)
                self._arrived.notify_all()
        with self._arrived:
            self._ended = True
            self._arrived.notify_all()

    def _read_errors(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.errors += line

    def wait(self, wanted: Callable[[Json], bool], since: int = 0) -> Json:
        """Return the first message since a number that fulfils a condition."""
        with self._arrived:
            at = since
            while True:
                for message in self.messages[at:]:
                    at += 1
                    if wanted(message):
                        return message
                assert not self._ended, self.errors.decode()
                assert self._arrived.wait(TIMEOUT_S), (self.messages[-3:], self.errors.decode())

    def send(self, message: Json) -> None:
        self.send_bytes(json.dumps({"jsonrpc": "2.0", **message}).encode())

    def send_bytes(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(data), data))
        self.process.stdin.flush()

    def notify(self, method: str, params: Json) -> None:
        self.send({"method": method, "params": params})

    def begin(self, method: str, params: Any) -> int:
        """Send a request and return its id."""
        self._next_id += 1
        self.send({"id": self._next_id, "method": method, "params": params})
        return self._next_id

    def ask(self, method: str, params: Any = None) -> Any:
        """Send a request and return its result."""
        id_ = self.begin(method, params)
        answer = self.wait(lambda message: message.get("id") == id_ and "method" not in message)
        if "error" in answer:
            raise ResponseError(answer["error"]["code"], answer["error"]["message"])
        return answer["result"]

    # --- an editor's steps ---------------------------------------------------------------------

    def start(self, capabilities: Json | None = None, folders: list[Path] | None = None) -> Json:
        given = folders if folders is not None else [self.folder] if self.folder else []
        params: Json = {
            "processId": None,
            "rootUri": None,
            "capabilities": CAPABILITIES if capabilities is None else capabilities,
            "workspaceFolders": [{"uri": folder.as_uri(), "name": folder.name} for folder in given],
        }
        result: Json = self.ask("initialize", params)
        self.notify("initialized", {})
        return result

    def uri(self, path: str) -> str:
        assert self.folder is not None
        return (self.folder / path).as_uri()

    def open(self, path: str, text: str | None = None) -> list[Json]:
        """Open a file, and return its diagnostics."""
        assert self.folder is not None
        if text is None:
            text = (self.folder / path).read_bytes().decode()
        self.versions[path] = 1
        document = {"uri": self.uri(path), "languageId": "markdown", "version": 1, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": document})
        return self.diagnostics(path, 1)

    def change(self, path: str, text: str) -> None:
        """Replace the text of an open file."""
        self.versions[path] += 1
        document = {"uri": self.uri(path), "version": self.versions[path]}
        params = {"textDocument": document, "contentChanges": [{"text": text}]}
        self.notify("textDocument/didChange", params)

    def diagnostics(self, path: str, version: int | None = None) -> list[Json]:
        """Wait for the diagnostics of a version of a file."""
        uri, wanted = self.uri(path), version or self.versions.get(path)

        def is_of(message: Json) -> bool:
            params = message.get("params", {})
            return (
                message.get("method") == "textDocument/publishDiagnostics"
                and params["uri"] == uri
                and params.get("version") == wanted
            )

        found: list[Json] = self.wait(is_of)["params"]["diagnostics"]
        return found

    def until_diagnosed(self, path: str, wanted: Callable[[list[str]], bool]) -> list[Json]:
        """Wait until the messages of a file's diagnostics fulfil a condition."""
        uri = self.uri(path)

        def is_wanted(message: Json) -> bool:
            params = message.get("params", {})
            return (
                message.get("method") == "textDocument/publishDiagnostics"
                and params["uri"] == uri
                and wanted([one["message"] for one in params["diagnostics"]])
            )

        found: list[Json] = self.wait(is_wanted)["params"]["diagnostics"]
        return found

    def at(self, path: str, line: int, character: int, **more: Any) -> Json:
        """Return the parameters of a request about a position."""
        position = {"line": line, "character": character}
        return {"textDocument": {"uri": self.uri(path)}, "position": position, **more}

    def stop(self) -> int:
        """Shut the server down, and return its exit status."""
        self.ask("shutdown")
        self.notify("exit", {})
        return self.process.wait(TIMEOUT_S)

    def end(self) -> None:
        """Kill the server, and close its streams once the threads have read to their ends."""
        self.process.kill()
        self.process.wait()
        for reader in self._readers:
            reader.join(TIMEOUT_S)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert stream is not None
            with suppress(BrokenPipeError):
                stream.close()


@contextmanager
def language_server(folder: Path | None, *options: str) -> Iterator[Client]:
    """Context manager: start a language server, and end it."""
    client = Client(folder, *options)
    try:
        yield client
    finally:
        client.end()
