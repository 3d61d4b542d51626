"""The JSON log of `bifolio serve --log json`."""

import json
import logging
import os
import re
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote
from uuid import uuid4

from server.api.operations.table import ROUTES, route_of
from server.problems import Problem
from server.site.change import Change
from server.site.site import State

HEADER = "X-Request-Id"
MAX_PATH_CHARS = 1000  # Longer paths and query strings are truncated.
# The query strings of requests to these routes are not logged, because they may contain a key.
SECRET_ROUTES = ("studio", "users")
# Query parameters that contain secrets, in lower case without `_` and `-`. They are masked on all paths,
# because a client may send a secret to the wrong path.
SECRET_PARAMETERS = frozenset(
    {
        "accesstoken", "apikey", "apitoken", "authorization", "clientsecret", "code", "confirmation",
        "currentpassword", "idtoken", "jwt", "key", "newpassword", "password", "passwordconfirmation",
        "refreshtoken", "resetpasswordtoken", "resettoken", "secret", "token",
    }
)  # fmt: skip
_PARAMETER = re.compile(r"[^&;]+")
_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_current = threading.local()


def write_line(level: str, event: str, fields: Mapping[str, Any]) -> None:
    """Write a line to standard output. Lines from different processes are never interleaved."""
    now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    line = json.dumps({"time": now, "level": level, "event": event, **fields}, ensure_ascii=False)
    with suppress(OSError):  # Requests must succeed even if the program that reads the log has exited.
        os.write(sys.stdout.fileno(), line.encode(errors="replace") + b"\n")


def request_id(header: str) -> str:
    return header if _ID.fullmatch(header) else uuid4().hex


def set_request_id(request_id_: str) -> None:
    """Set the request id for this thread's log messages."""
    _current.request = request_id_


def log_request(environ: Mapping[str, Any], id_: str, status: int, started: float) -> None:
    """Log a request. `started` is the value of `time.perf_counter()` when the request began."""
    path, query = environ["PATH_INFO"], environ["QUERY_STRING"]
    told = {
        "request": id_,
        "client": environ.get("REMOTE_ADDR", ""),
        "method": environ["REQUEST_METHOD"],
        "path": path[:MAX_PATH_CHARS],
        "query": _shown(path, query)[:MAX_PATH_CHARS],
        "status": status,
        "ms": round((time.perf_counter() - started) * 1000, 2),
    }
    write_line("error" if status >= 500 else "info", "request", told)


def _shown(path: str, query: str) -> str:
    if query and ROUTES[route_of(path)] in SECRET_ROUTES:
        return "…"
    return _PARAMETER.sub(_masked, query)


def _masked(match: re.Match[str]) -> str:
    parameter = match[0]
    name, equals, _ = unquote(parameter).partition("=")
    last = name.rpartition("[")[2].rstrip("]")  # for example, `password` in `user[password]`
    if not equals or last.lower().replace("_", "").replace("-", "") not in SECRET_PARAMETERS:
        return parameter
    return f"{name}=…"


class JsonHandler(logging.Handler):
    """Logging handler that writes JSON with the current request's id."""

    def emit(self, record: logging.LogRecord) -> None:
        told = {"logger": record.name, "message": record.getMessage()}
        if request := getattr(_current, "request", ""):
            told["request"] = request
        if record.exc_info:
            told["exception"] = logging.Formatter().formatException(record.exc_info)
        write_line(record.levelname.lower(), "log", told)


# --- json log -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class JsonLog:
    """Log that writes JSON. If `quiet` is set, changes, warnings and fixed problems are not logged."""

    quiet: bool = False

    def print_ready(
        self,
        state: State,
        problems: Sequence[Problem],
        seconds: float,
        url: str,
        commit: tuple[str, str, str] | None = None,
        studio: str = "",  # not logged, because it contains the one-time key
    ) -> None:
        versions = sum(len(table.versions) for table in state.snapshot.tables.values())
        told = {"name": state.settings.name, "url": url, "seconds": round(seconds, 3), "versions": versions}
        if commit:
            told["commit"] = commit[0]
        write_line("info", "ready", told)
        self._problems(problems, "problem")

    def print_change(self, change: Change, seconds: float) -> None:
        paths = {
            "read": change.changed,
            "removed": change.removed,
            "written": change.written,
            "deleted": change.deleted,
        }
        told = {name: list(listed) for name, listed in paths.items() if listed}
        if (told or change.reloaded) and not self.quiet:
            ms = round(seconds * 1000, 1)
            write_line("info", "change", {**told, "reloaded": change.reloaded, "ms": ms})
        self._problems(change.problems, "problem")
        if not self.quiet:
            self._problems(change.fixed, "fixed")

    def tell(self, line: str) -> None:
        write_line("info", "log", {"message": line})

    def warn(self, line: str) -> None:
        write_line("warning", "log", {"message": line})

    def _problems(self, problems: Sequence[Problem], event: str) -> None:
        for problem in problems:
            if problem.severity == "error" or not self.quiet:
                level = "info" if event == "fixed" else problem.severity
                write_line(level, event, {**asdict(problem), "severity": problem.severity})
