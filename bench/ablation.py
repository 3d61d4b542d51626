"""Benchmark of each optimisation: the processor time of reads with and without it, without a network."""

import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from io import BytesIO
from itertools import count as counting
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import patch as patching

from flask import Flask, Response, request

from bench.effort import scaled
from bench.read_requests import Case, cases
from bench.sites import Sizes
from bench.tables import count, ratio, show
from server.api import entrance as entrances
from server.api.app import create_app
from server.api.request import actor_of, answer, parameters, state_of
from server.api.response_cache import make_response_cache
from server.auth.accounts import Accounts
from server.index import planner as plan
from server.index.fragments import Fragments
from server.index.planner import Plan
from server.service.opening import Mode, open_site
from server.service.read import Reader

_out = patching.object
ROUNDS = scaled(5, 1)
REQUESTS = scaled(60)  # number of requests of each kind in each round
_numbers = counting()


@dataclass(frozen=True)
class Optimisation:
    """An optimisation, the requests that measure it, and a patch that disables it."""

    name: str
    requests: str
    without: Callable[[], Any]
    is_repeated: bool = False  # whether to repeat the same request


def _nothing_kept(self: Fragments, selection: Any, make: Any) -> Any:
    return make


OPTIMISATIONS = (
    Optimisation(
        "response cache", "list of 25", lambda: _out(entrances, "MAX_RESPONSE_BYTES", -1), is_repeated=True
    ),
    Optimisation(
        "reading without Flask", "one document", lambda: _out(entrances, "parse_content_path", _nothing)
    ),
    Optimisation(
        "rendered-document cache",
        "list of 25, populate=*",
        lambda: _out(Fragments, "cached", _nothing_kept),
    ),
    Optimisation(
        "bitset filters",
        "filter through relations, sort",
        lambda: _out(plan.Planner, "plan", lambda self, filter_: Plan(residual_filter=filter_)),
    ),
    Optimisation(
        "chunked text search",
        "$containsi in the body",
        lambda: _out(plan, "_TEXT_OPERATORS", frozenset()),
    ),
)


def _nothing(*_: Any) -> None:
    return None


def _read_by_flask(app: Flask) -> None:
    # This route handles reads while the optimisation "reading without Flask" is disabled.

    @app.get("/api/<api_id>/<document_id>")
    def read(api_id: str, document_id: str) -> Response:
        state, actor = state_of(request), actor_of(request)
        reader = Reader(state, state.schema.endpoints[api_id], actor)
        shown = reader.get(parameters(request), document_id)
        found = answer(shown.body)
        found.headers["ETag"] = shown.etag
        return found


def measure(root: Path, articles: int) -> None:
    """Print a table of how much time each optimisation saves."""
    site = open_site(root, Mode.SERVER, records=False).site
    app = create_app(site, Accounts(root, site.state.settings.accounts))
    entrance = app.wsgi_app
    assert isinstance(entrance, entrances.Entrance)
    _read_by_flask(app)
    kinds: Mapping[str, Case] = {case.name: case for case in cases(Sizes(articles))}
    rows = []
    for optimisation in OPTIMISATIONS:
        paths = kinds[optimisation.requests].paths
        for _ in range(3):
            # warm-up: create everything that is created on first use
            _median_cpu_s(app, paths, is_repeated=optimisation.is_repeated)
        taken: dict[bool, list[float]] = {True: [], False: []}
        for _ in range(ROUNDS):
            for with_it in (True, False):
                with ExitStack() as stack:
                    if not with_it:
                        entrance.cache = make_response_cache()
                        stack.enter_context(optimisation.without())
                    taken[with_it].append(_median_cpu_s(app, paths, is_repeated=optimisation.is_repeated))
        best = {with_it: median(found) for with_it, found in taken.items()}
        kind = f"{optimisation.requests}, again" if optimisation.is_repeated else optimisation.requests
        cells = [f"{best[with_it] * 1000:.3f} ms" for with_it in (False, True)]
        rows.append([optimisation.name, kind, *cells, ratio(best[False] / best[True])])
    head = ["optimisation", "request", "without", "with", "speedup"]
    show(f"What each optimisation saves, {count(articles)} articles", head, rows)


def _median_cpu_s(app: Any, paths: Any, *, is_repeated: bool) -> float:
    """Return the median processor time of one request, in seconds."""
    taken = []
    for i in range(REQUESTS):
        path = paths[0] if is_repeated else f"{paths[i % len(paths)]}&unlike={next(_numbers)}"
        began = time.thread_time()
        _call(app, path)
        taken.append(time.thread_time() - began)
    return median(taken)


def _call(app: Any, target: str) -> bytes:
    path, _, query = target.partition("?")
    environ = {
        "REQUEST_METHOD": "GET",
        "PATH_INFO": path,
        "QUERY_STRING": query,
        "SERVER_NAME": "bench",
        "SERVER_PORT": "80",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "wsgi.url_scheme": "http",
        "wsgi.input": BytesIO(),
        "wsgi.errors": sys.stderr,
    }
    return b"".join(app.wsgi_app(environ, lambda status, headers, error=None: None))
