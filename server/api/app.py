"""Flask app that handles all requests except content reads and liveness checks."""

from collections.abc import Callable
from functools import cache, partial
from typing import TYPE_CHECKING

from flask import Flask, Response, request
from werkzeug.exceptions import HTTPException, MethodNotAllowed, NotFound
from werkzeug.routing import BaseConverter, Map, Rule
from werkzeug.wrappers import Response as BaseResponse

from server.api.entrance import Entrance
from server.api.error_response import envelope
from server.api.identities import Identities
from server.api.monitoring import handlers as monitoring
from server.api.monitoring.request_counts import MonitoredParts
from server.api.openapi import routes as openapi
from server.api.operations.operation import CONVERTERS
from server.api.operations.table import OPERATIONS
from server.api.request import allowed_methods, not_found
from server.api.response import BODY_HEADERS, Answer, Environ, without
from server.api.routes import (
    access,
    agents,
    auth,
    batch,
    branches,
    content,
    events,
    git_hook,
    overview,
    presence,
    problems,
    public_site,
    schema,
    search,
    sessions,
    settings,
    source,
    start_page,
    undo,
    upload,
    uploads,
    user_management,
    users,
    webhooks,
)
from server.api.routes.handlers import Handlers
from server.api.routes.history import handlers as history
from server.api.routes.write_requests import check_dry_run, enforce_branch_only, switch_to_branch
from server.api.serving.bodies import MAX_BODY_BYTES
from server.api.serving.heads import has_body
from server.api.studio import routes as studio
from server.errors import HTTP_NAMES, ContentCodingError
from server.history.past import PastStates
from server.service.branches import SiteBranches
from server.service.media.files import MediaFiles
from server.service.public_site.redirects import Redirects
from server.service.write import Writes
from server.site.site import Site
from server.storage.bucket.site_bucket import SiteBucket

if TYPE_CHECKING:
    from server.auth.accounts import Accounts

# Headers of werkzeug's error responses that are passed on to the client.
_KEPT_HEADERS = ("Content-Range", "Retry-After")


def create_app(site: Site, accounts: "Accounts") -> Flask:
    identities = Identities(site.folder, site.state.settings, accounts)
    past = PastStates(site)
    monitored = MonitoredParts.for_single_process(site.root, site.state.settings.accounts)
    app = _make(site, identities, past, monitored)
    app.wsgi_app = Entrance(site, identities, partial(_handle, app), past)  # type: ignore[method-assign]
    return app


def make_flask_handler(
    site: Site, identities: Identities, past: PastStates, monitored: MonitoredParts
) -> Callable[[Environ], Answer]:
    return partial(_handle, _make(site, identities, past, monitored))


class _MatchedRule(Rule):
    # Skip the functions that build URLs, because Bifolio does not need them. werkzeug took 60 ms to compile
    # them, and only 10 ms to create the rest of the app.
    @staticmethod
    def _compile_builder(append_unknown: bool = True) -> Callable[..., tuple[str, str]]:
        return _refuse_to_build


def _refuse_to_build(*_: object, **__: object) -> tuple[str, str]:
    raise NotImplementedError("URLs are not built from rules")


def _make(site: Site, identities: Identities, past: PastStates, monitored: MonitoredParts) -> Flask:
    app = Flask("bifolio", static_folder=None, template_folder=str(start_page.TEMPLATES))
    app.url_map = _url_map()
    app.config["MAX_CONTENT_LENGTH"] = MAX_BODY_BYTES
    # Handle routing errors from Flask like any other error.
    app.config["TRAP_HTTP_EXCEPTIONS"] = True
    writes = Writes(site, past, identities.commit_author)
    bucket = SiteBucket(site.root, site.image_cache.folder)
    app.before_request(_answer_other_methods)
    app.before_request(_refuse_compressed)
    app.before_request(check_dry_run)
    app.before_request(partial(_open_branch, writes))
    handles = Handlers()
    auth.bind(handles, identities)
    sessions.bind(handles, identities)
    upload.bind(handles, site, writes, bucket)
    users.bind(handles, identities)
    settings.bind(handles, identities, writes)
    user_management.bind(handles, identities)
    schema.bind(handles, writes)
    content.bind(handles, writes)
    batch.bind(handles, writes)
    undo.bind(handles, writes)
    uploads.bind(
        handles,
        MediaFiles(site, past, bucket),
        monitored.transformations,
        monitored.counts.has_recent_requests,
    )
    openapi.bind(handles)
    search.bind(handles, site)
    overview.bind(handles)
    public_site.bind(handles, Redirects(past))
    history.bind(handles, site, past, writes)
    source.bind(handles, site, writes)
    branches.bind(handles, SiteBranches(past, writes))
    access.bind(handles, past)
    problems.bind(handles, site, identities, writes)
    studio.bind(handles, site, identities)
    events.bind(handles, monitored.recorder.database)
    webhooks.bind(handles, site, writes, monitored.recorder.database)
    git_hook.bind(handles, site, monitored.notices)
    presence.bind(handles, monitored.presence)
    agents.bind(handles, monitored.recorder.database)
    monitoring.bind(handles, site, identities, monitored, bucket)
    start_page.bind(handles)
    app.view_functions.update({o.id: handles.by_id[o.id] for o in OPERATIONS if not o.runs_inline})
    return app


# Saves 4 ms whenever another app is created, which a new generation of workers and each test with a site do.
@cache
def _url_map() -> Map:
    rules = [
        _MatchedRule(o.rule, endpoint=o.id, methods=[o.method], strict_slashes=not o.slash)
        for o in OPERATIONS
        if not o.runs_inline
    ]
    converters = {name: _converter(pattern) for name, pattern in CONVERTERS.items()}
    return Map(rules, converters={**converters, **Map.default_converters}, merge_slashes=False)


def _converter(pattern: str) -> type[BaseConverter]:
    return type("Converter", (BaseConverter,), {"regex": pattern, "part_isolating": True})


def _answer_other_methods() -> Response | None:
    unmatched = isinstance(request.routing_exception, NotFound | MethodNotAllowed)
    if unmatched or request.method == "OPTIONS":
        # Break the reference cycle between the request and the error's traceback. Otherwise, the connection
        # would stay open until the next garbage collection, and the client's next request would have to wait.
        request.routing_exception = None
    if request.method == "OPTIONS":
        return Response(headers={"Allow": ", ".join(allowed_methods(request))})
    if unmatched:
        raise not_found(request)
    return None


def _open_branch(writes: Writes) -> None:
    switch_to_branch(writes)
    enforce_branch_only()


def _refuse_compressed() -> None:
    codings = request.environ.get("HTTP_CONTENT_ENCODING", "")
    if codings and has_body(request.environ) and codings.strip().lower() != "identity":
        raise ContentCodingError()


def _handle(app: Flask, environ: Environ) -> Answer:
    try:
        with app.request_context(environ):
            return _adapt(app.full_dispatch_request(), environ)
    except HTTPException as error:
        return _http_failure(error)


def _adapt(response: BaseResponse, environ: Environ) -> Answer:
    control = response.headers.get("Cache-Control", "")
    vary = (*response.vary, *(() if control.startswith("public") else ("Authorization",)))
    status, headers = response.status_code, response.headers
    if response.direct_passthrough or response.is_streamed:
        body, _, sent = response.get_wsgi_response(environ)
        return Answer(body, status, "", "", control, vary, without(sent, "Cache-Control", "Vary"))
    kept = without(headers.items(), "Cache-Control", "ETag", "Vary", *BODY_HEADERS)
    kind, etag = headers.get("Content-Type", ""), headers.get("ETag", "")
    return Answer(response.get_data(), status, kind, etag, control, vary, kept)


def _http_failure(error: HTTPException) -> Answer:
    status = error.code or 500
    if status < 400:
        return _adapt(error.get_response(), {"REQUEST_METHOD": "GET"})
    message = error.name if status != 404 else "Not Found"
    headers = tuple((name, value) for name, value in error.get_headers() if name in _KEPT_HEADERS)
    return envelope(status, HTTP_NAMES.get(status, "ApplicationError"), message, {}, headers)
