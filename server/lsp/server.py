"""The language server, which handles an editor's messages."""

import gc
import logging
import os
import queue
import sys
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

from server import __version__
from server.errors import ApiError, BifolioError
from server.jobs.job import Timing
from server.lsp.completion import complete, describe_completion
from server.lsp.diagnostics import FIX_ALL, QUICK_FIX, code_actions
from server.lsp.hover import hover
from server.lsp.inlay_hints import inlay_hints
from server.lsp.navigation import document_links, documents_by_title, find_definition, find_references
from server.lsp.new_document import NEW_DOCUMENT, new_document
from server.lsp.outline import document_symbols, folding_ranges
from server.lsp.positions import path_from_uri
from server.lsp.protocol import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    NOT_INITIALIZED,
    REQUEST_CANCELLED,
    REQUEST_FAILED,
    Json,
    Message,
    MessageReader,
    MessageWriter,
    RequestError,
    RequestId,
    is_id,
)
from server.lsp.renaming import prepare_rename, rename, will_rename
from server.lsp.session import Session
from server.lsp.view import EditorCapabilities, View
from server.lsp.workspace import Workspace

log = logging.getLogger("bifolio")

# This interval limits how long a request waits for the thread that checks the site.
SWITCH_INTERVAL_S = 0.0001
# While a request is handled, switch to the check less often, because a completion would otherwise take twice
# as long.
REQUEST_SWITCH_INTERVAL_S = 0.01
CAPABILITIES: Json = {
    "positionEncoding": "utf-16",
    "textDocumentSync": {"openClose": True, "change": 2, "save": {"includeText": False}},
    "codeActionProvider": {"codeActionKinds": [QUICK_FIX, FIX_ALL]},
    "completionProvider": {
        "triggerCharacters": [":", " ", "[", "{", '"', "'", "/", "(", "#", ","],
        "resolveProvider": True,
    },
    "hoverProvider": True,
    "definitionProvider": True,
    "referencesProvider": True,
    "documentLinkProvider": {},
    "documentSymbolProvider": True,
    "workspaceSymbolProvider": True,
    "foldingRangeProvider": True,
    "inlayHintProvider": True,
    "renameProvider": {"prepareProvider": True},
    "executeCommandProvider": {"commands": [NEW_DOCUMENT]},
    "workspace": {
        "workspaceFolders": {"supported": True, "changeNotifications": True},
        "fileOperations": {"willRename": {"filters": [{"scheme": "file", "pattern": {"glob": "**/*.*"}}]}},
    },
}

# arguments: view of the site, path of the file, parameters of the request
Feature = Callable[[View, str, Json], Any]
FEATURES: Mapping[str, Feature] = {
    "textDocument/completion": complete,
    "textDocument/hover": hover,
    "textDocument/definition": find_definition,
    "textDocument/documentLink": document_links,
    "textDocument/documentSymbol": document_symbols,
    "textDocument/foldingRange": folding_ranges,
    "textDocument/inlayHint": inlay_hints,
    "textDocument/prepareRename": prepare_rename,
}
# These requests are handled in a separate thread, so that typing is not delayed.
SLOW_REQUESTS = frozenset(
    {
        "textDocument/codeAction",
        "textDocument/references",
        "textDocument/rename",
        "workspace/executeCommand",
        "workspace/symbol",
        "workspace/willRenameFiles",
    }
)


class Server:
    """Language server for one editor."""

    def __init__(
        self, stdin: BinaryIO, stdout: BinaryIO, site: Path | None = None, timing: Timing | None = None
    ) -> None:
        self.writer = MessageWriter(stdout)
        self._reader = MessageReader(stdin, self.writer)
        self._session = Session(self._publish, site, timing or Timing())
        self._messages: queue.Queue[Message | None] = queue.Queue()
        self._cancelled: set[RequestId] = set()
        self._slow = ThreadPoolExecutor(1, "lsp-slow")
        self._is_initialized = self._is_shut_down = False

    def run(self) -> int:
        """Handle messages until the connection closes. Return the exit status."""
        sys.setswitchinterval(SWITCH_INTERVAL_S)
        threading.Thread(target=self._read, name="lsp-read", daemon=True).start()
        while (message := self._messages.get()) is not None and message.method != "exit":
            self._handle(message)
            if self.writer.is_closed:
                break
        self._session.stop()
        self._slow.shutdown(wait=False, cancel_futures=True)
        return 0 if self._is_shut_down else 1

    def _read(self) -> None:
        # Cancellations are processed here, so that they take effect before queued requests are handled.
        try:
            while (message := self._reader.read()) is not None:
                if message.method == "$/cancelRequest" and message.id is None:
                    cancelled = message.params.get("id") if isinstance(message.params, dict) else None
                    if is_id(cancelled):
                        self._cancelled.add(cancelled)
                else:
                    self._messages.put(message)
        except (OSError, ValueError) as error:
            log.warning("the connection to the editor was lost: %s", error)
        finally:
            self._messages.put(None)

    def _handle(self, message: Message) -> None:
        if not message.method:  # responses have no method
            return
        params = message.params if isinstance(message.params, dict) else {}
        if message.id is None:
            try:
                self._notified(message.method, params)
            except Exception:
                log.exception("the notification %s can't be handled", message.method)
            return
        if message.method in SLOW_REQUESTS:
            self._slow.submit(self._respond, message.id, message.method, params)
        else:
            self._respond(message.id, message.method, params)

    def _respond(self, id_: RequestId, method: str, params: Json) -> None:
        try:
            self._refuse_cancelled(id_)
            result = self._requested(method, params)
            self._refuse_cancelled(id_)
            self.writer.respond(id_, result)
        except RequestError as error:
            self.writer.fail(id_, error.code, error.message)
        except (ApiError, BifolioError) as error:
            self.writer.fail(id_, REQUEST_FAILED, getattr(error, "message", "") or str(error))
        except Exception as error:
            log.exception("the request %s can't be handled", method)
            self.writer.fail(id_, INTERNAL_ERROR, f"{method} failed: {type(error).__name__}: {error}")
        finally:
            self._cancelled.discard(id_)

    def _refuse_cancelled(self, id_: RequestId) -> None:
        if id_ in self._cancelled:
            raise RequestError(REQUEST_CANCELLED, "the request was cancelled")

    # --- requests ------------------------------------------------------------------------------

    def _requested(self, method: str, params: Json) -> Any:
        if method == "initialize":
            return self._initialize(params)
        if not self._is_initialized:
            raise RequestError(NOT_INITIALIZED, "the first request must be initialize")
        if method == "shutdown":
            self._is_shut_down = True
            return None
        if self._is_shut_down:
            raise RequestError(INVALID_REQUEST, "the server has been shut down")
        if handler := self._handlers.get(method):
            return handler(params)
        feature = FEATURES.get(method)
        if feature is None:
            raise RequestError(METHOD_NOT_FOUND, f"{method} is not supported")
        found = self._file(params)
        view = found[0].view if found else None
        if found is None or view is None:
            return None
        sys.setswitchinterval(REQUEST_SWITCH_INTERVAL_S)
        try:
            return feature(view, found[1], params)
        finally:
            sys.setswitchinterval(SWITCH_INTERVAL_S)

    def _file(self, params: Json) -> tuple[Workspace, str] | None:
        document = params.get("textDocument")
        if not isinstance(document, dict) or not isinstance(document.get("uri"), str):
            raise RequestError(INVALID_PARAMS, "textDocument.uri is missing")
        return self._session.find(document["uri"])

    def _initialize(self, params: Json) -> Json:
        self._session.client = parse_capabilities(params.get("capabilities"))
        self._is_initialized = True
        folders = params.get("workspaceFolders")
        uris = [f.get("uri") for f in folders if isinstance(f, dict)] if isinstance(folders, list) else []
        for uri in uris or [params.get("rootUri")]:
            if path := path_from_uri(uri):
                self._session.open_folder(path)
        return {
            "capabilities": CAPABILITIES,
            "serverInfo": {"name": "bifolio", "version": __version__},
        }

    @property
    def _handlers(self) -> Mapping[str, Callable[[Json], Any]]:
        return {
            "completionItem/resolve": self._resolve,
            "textDocument/codeAction": self._code_actions,
            "textDocument/references": self._references,
            "textDocument/rename": self._rename,
            "workspace/executeCommand": self._execute,
            "workspace/symbol": self._symbols,
            "workspace/willRenameFiles": self._will_rename,
        }

    def _resolve(self, item: Json) -> Json:
        data = item.get("data")
        found = self._session.find(data.get("uri")) if isinstance(data, dict) else None
        view = found[0].view if found else None
        if text := describe_completion(view, data) if view else "":
            item["documentation"] = {"kind": "markdown", "value": text}
        return item

    def _current(self, params: Json) -> tuple[Workspace, View, str] | None:
        found = self._file(params)
        view = found[0].current_view() if found else None
        return (found[0], view, found[1]) if found and view else None

    def _code_actions(self, params: Json) -> list[Json]:
        found, range_ = self._current(params), params.get("range")
        text = found[1].text(found[2]) if found else None
        if found is None or text is None or not isinstance(range_, dict):
            return []
        workspace, view, path = found
        span = text.index_of_position(range_.get("start")), text.index_of_position(range_.get("end"))
        context = params.get("context")
        only = context.get("only") if isinstance(context, dict) else None
        kinds = only if isinstance(only, list) else []
        survey = workspace.survey_file(path, view.overlay)
        return code_actions(view, path, span, survey, workspace.versions, kinds)

    def _references(self, params: Json) -> list[Json]:
        found = self._current(params)
        return find_references(found[1], found[2], params) if found else []

    def _rename(self, params: Json) -> Json:
        found = self._current(params)
        if found is None:
            raise RequestError(REQUEST_FAILED, "the file belongs to no site, or the site is still being read")
        return rename(found[1], found[2], params, found[0].versions)

    def _symbols(self, params: Json) -> list[Json]:
        views = [workspace.view for workspace in list(self._session.workspaces.values())]
        query = str(params.get("query", ""))
        return [symbol for view in views if view for symbol in documents_by_title(view, query)]

    def _will_rename(self, params: Json) -> Json | None:
        files = params.get("files")
        first = files[0] if isinstance(files, list) and files and isinstance(files[0], dict) else {}
        found = self._session.find(first.get("oldUri"))
        view = found[0].current_view() if found else None
        return will_rename(view, files, found[0].versions) if found and view else None

    def _execute(self, params: Json) -> None:
        arguments = params.get("arguments")
        given = arguments[0] if isinstance(arguments, list) and arguments else None
        if params.get("command") != NEW_DOCUMENT or not isinstance(given, dict):
            raise RequestError(
                INVALID_PARAMS, f"the only command is {NEW_DOCUMENT}, with a mapping as argument"
            )
        if not self._session.client.creates_files:
            raise RequestError(REQUEST_FAILED, "your editor can't create files for a language server")
        workspaces = list(self._session.workspaces.values())
        found = self._session.find(given["uri"]) if "uri" in given else None
        workspace = found[0] if found else workspaces[0] if workspaces else None
        view = workspace.current_view() if workspace else None
        if view is None:
            raise RequestError(REQUEST_FAILED, "no site is open")
        edit, uri = new_document(view, given)
        self.writer.request("workspace/applyEdit", {"label": "New document", "edit": edit})
        if self._session.client.shows_documents:
            self.writer.request("window/showDocument", {"uri": uri, "takeFocus": True})

    # --- notifications -------------------------------------------------------------------------

    def _notified(self, method: str, params: Json) -> None:
        document = params.get("textDocument")
        if method == "workspace/didChangeWorkspaceFolders":
            self._change_folders(params.get("event"))
        elif not isinstance(document, dict) or not isinstance(document.get("uri"), str):
            return
        elif method == "textDocument/didOpen":
            self._session.open(document)
        elif method == "textDocument/didChange":
            self._session.change(document, params.get("contentChanges"))
        elif method == "textDocument/didSave":
            self._session.save(document)
        elif method == "textDocument/didClose":
            self._session.close(document)

    def _change_folders(self, event: Any) -> None:
        for key, change in (("removed", self._session.close_folder), ("added", self._session.open_folder)):
            folders = event.get(key) if isinstance(event, dict) else None
            for folder in folders if isinstance(folders, list) else ():
                if isinstance(folder, dict) and (path := path_from_uri(folder.get("uri"))):
                    change(path)

    # --- messages to the editor ----------------------------------------------------------------

    def _publish(self, uri: str, version: int | None, diagnostics: list[Json]) -> None:
        params: Json = {"uri": uri, "diagnostics": diagnostics}
        if version is not None:
            params["version"] = version
        self.writer.notify("textDocument/publishDiagnostics", params)


def parse_capabilities(capabilities: Any) -> EditorCapabilities:
    """Parse the capabilities that an editor sends."""

    def has(*keys: str) -> Any:
        found = capabilities
        for key in keys:
            found = found.get(key) if isinstance(found, dict) else None
        return found

    operations = has("workspace", "workspaceEdit", "resourceOperations")
    operations = operations if isinstance(operations, list) else []
    return replace(
        EditorCapabilities(),
        snippets=has("textDocument", "completion", "completionItem", "snippetSupport") is True,
        creates_files="create" in operations,
        renames_files="rename" in operations,
        shows_documents=has("window", "showDocument", "support") is True,
        nests_symbols=has("textDocument", "documentSymbol", "hierarchicalDocumentSymbolSupport") is True,
    )


class LogToEditor(logging.Handler):
    """Log handler that sends warnings and errors to the editor, which shows them."""

    def __init__(self, writer: MessageWriter) -> None:
        super().__init__(logging.WARNING)
        self._writer = writer

    def emit(self, record: logging.LogRecord) -> None:
        kind = 1 if record.levelno >= logging.ERROR else 2
        self._writer.notify("window/logMessage", {"type": kind, "message": record.getMessage()})


def serve_stdio(site: Path | None) -> int:
    """Run a language server on standard input and output. Return the exit status."""
    # Garbage collection during a check would delay a completion by 0.3 s in a large site. `Workspace`
    # collects after each check.
    gc.disable()
    stdout = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    server = Server(sys.stdin.buffer, stdout, site)
    log.addHandler(logging.StreamHandler(sys.stderr))
    log.addHandler(LogToEditor(server.writer))
    return server.run()
