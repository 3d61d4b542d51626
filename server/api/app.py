"""The handlers of every path, in a Flask app.

Reads of content need none of them (`server.api.front`), so that `quire serve` loads this module and all
that it needs at the first request that is for a handler.
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from flask import Flask, Response
from werkzeug.exceptions import HTTPException
from werkzeug.routing import Rule
from werkzeug.wrappers import Response as BaseResponse

from server.api.failure import envelope
from server.api.front import LIVE, Front
from server.api.identities import Identities
from server.api.monitoring import blueprint as monitoring
from server.api.monitoring.watched import Watched
from server.api.openapi import routes as openapi
from server.api.response import OF_BODY, Answer, Environ, without
from server.api.routes import (
    auth,
    batch,
    builder,
    content,
    i18n,
    search,
    sessions,
    start_page,
    upload,
    uploads,
    users,
)
from server.api.routes.access import blueprint as access
from server.api.routes.actions import blueprint as actions
from server.api.routes.branches import blueprint as branches
from server.api.routes.branches.writing import BranchRequests
from server.api.routes.events import blueprint as events
from server.api.routes.git import blueprint as git
from server.api.routes.history import blueprint as history
from server.api.routes.presence import blueprint as presence
from server.api.routes.problems import blueprint as problems
from server.api.routes.source import blueprint as source
from server.api.routes.source.dry_run import open_dry_run
from server.api.routes.undo import blueprint as undo
from server.api.serving.bodies import MAX_BODY
from server.api.studio import routes as studio
from server.errors import HTTP_NAMES
from server.history.past import PastStates
from server.site.site import Site
from server.storage.bucket.site_bucket import SiteBucket

if TYPE_CHECKING:
    from server.auth.accounts import Accounts

_TOLD = ("Allow", "Content-Range", "Retry-After")  # the headers of werkzeug's errors that clients act on


def create_app(site: Site, accounts: "Accounts") -> Flask:
    """The app of a loaded site, all of it loaded. `wsgi_app` is where requests come in."""
    identities = Identities(site.root, site.state.settings, accounts)
    past = PastStates(site)
    watched = Watched.alone(site.root, site.state.settings.accounts)
    app = _make(site, identities, past, watched)
    app.wsgi_app = Front(site, identities, partial(_handle, app), past)  # type: ignore[method-assign]
    return app


def handler(
    site: Site, identities: Identities, past: PastStates, watched: Watched
) -> Callable[[Environ], Answer]:
    """What answers a request by the handler of its path. It raises what that raises."""
    return partial(_handle, _make(site, identities, past, watched))


class _MatchedRule(Rule):
    """A URL rule that is only matched.

    werkzeug also compiles functions that build URLs from each rule, which took 60 of the 70 ms of making the
    app. Nothing here builds URLs from rules.
    """

    @staticmethod
    def _compile_builder(append_unknown: bool = True) -> Callable[..., tuple[str, str]]:
        return _refuse_to_build


def _refuse_to_build(*_: object, **__: object) -> tuple[str, str]:
    raise NotImplementedError("URLs are not built from rules")


class _App(Flask):
    url_rule_class = _MatchedRule


def _make(site: Site, identities: Identities, past: PastStates, watched: Watched) -> Flask:
    app = _App("quire", static_folder=None)
    app.url_map.merge_slashes = False
    app.config["MAX_CONTENT_LENGTH"] = MAX_BODY
    app.config["TRAP_HTTP_EXCEPTIONS"] = True  # Errors of routing come out like all others, as exceptions.
    branched, bucket = BranchRequests(site, identities, past), SiteBucket(site.root, site.image_cache.folder)
    app.before_request(open_dry_run)
    app.before_request(branched.open)
    app.register_blueprint(auth.blueprint(identities))
    app.register_blueprint(sessions.blueprint(identities))
    app.register_blueprint(upload.blueprint(site, identities, branched, bucket))
    app.register_blueprint(users.blueprint(identities))
    app.register_blueprint(builder.blueprint(identities))
    app.register_blueprint(i18n.blueprint(site, identities))
    app.register_blueprint(content.blueprint(identities, branched))
    app.register_blueprint(actions.blueprint(identities, branched))
    app.register_blueprint(batch.blueprint(identities, branched))
    app.register_blueprint(undo.blueprint(site, identities))
    app.register_blueprint(uploads.blueprint(site, past, bucket))
    app.register_blueprint(openapi.blueprint(identities))
    app.register_blueprint(search.blueprint(site, identities))
    app.register_blueprint(history.blueprint(site, identities, past, branched))
    app.register_blueprint(source.blueprint(site, identities, branched))
    app.register_blueprint(branches.blueprint(identities, past))
    app.register_blueprint(access.blueprint(identities, past))
    app.register_blueprint(problems.blueprint(site, identities))
    app.register_blueprint(studio.blueprint(site, identities))
    app.register_blueprint(events.blueprint(identities, watched.recorder.database))
    app.register_blueprint(git.blueprint(site, watched.notices))
    app.register_blueprint(presence.blueprint(identities, watched.presence))
    app.register_blueprint(monitoring.blueprint(site, identities, watched, bucket))
    app.register_blueprint(start_page.blueprint(identities))

    def health() -> Response:  # The front answers before this; the route says which methods there are.
        return Response(status=204)

    for path in LIVE:
        app.add_url_rule(path, view_func=health)

    return app


def _handle(app: Flask, environ: Environ) -> Answer:
    try:
        with app.request_context(environ):
            return _adapt(app.full_dispatch_request(), environ)
    except HTTPException as error:
        return _http_failure(error)


def _adapt(response: BaseResponse, environ: Environ) -> Answer:
    """What a handler of Flask's returned, or werkzeug itself.

    What it declares public is the same for everybody; anything else depends on who asks. A stream keeps
    the headers that describe it: its length, its range, its own entity tag.
    """
    control = response.headers.get("Cache-Control", "")
    vary = (*response.vary, *(() if control.startswith("public") else ("Authorization",)))
    status, headers = response.status_code, response.headers
    if response.direct_passthrough or response.is_streamed:
        body, _, sent = response.get_wsgi_response(environ)
        return Answer(body, status, "", "", control, vary, without(sent, "Cache-Control", "Vary"))
    kept = without(headers.items(), "Cache-Control", "ETag", "Vary", *OF_BODY)
    kind, etag = headers.get("Content-Type", ""), headers.get("ETag", "")
    return Answer(response.get_data(), status, kind, etag, control, vary, kept)


def _http_failure(error: HTTPException) -> Answer:
    """The answer to what werkzeug raises: of routing, of a body that is too large, of a range."""
    status = error.code or 500
    if status < 400:
        return _adapt(error.get_response(), {"REQUEST_METHOD": "GET"})
    message = error.name if status != 404 else "Not Found"
    headers = tuple((name, value) for name, value in error.get_headers() if name in _TOLD)
    return envelope(status, HTTP_NAMES.get(status, "ApplicationError"), message, {}, headers)
