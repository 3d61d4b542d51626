"""The app of a site: the handlers of every path, behind one entrance."""

from importlib import import_module

from flask import Flask, Response

from server.api.front import Front
from server.api.openapi import routes as openapi
from server.api.request import Identities
from server.api.response import NOBODY
from server.api.routes import auth, builder, content, i18n, search, sessions, upload, uploads, users
from server.auth.accounts import Accounts
from server.auth.sessions import Sessions
from server.site.site import Site

MAX_BODY = 16 * 1024 * 1024  # of JSON, in bytes; a larger body is refused unread


def create_app(site: Site, accounts: Accounts) -> Flask:
    """The app of a loaded site. Flask has its paths; `wsgi_app` is where requests come in."""
    app = Flask("quire", static_folder=None)
    app.url_map.merge_slashes = False
    app.config["MAX_CONTENT_LENGTH"] = MAX_BODY
    app.config["TRAP_HTTP_EXCEPTIONS"] = True  # Errors of routing come out like all others, as exceptions.
    tokens = Sessions(site.root, auth.session_seconds(site.state.settings))
    identities = Identities.of(accounts, tokens)
    app.register_blueprint(auth.blueprint(identities))
    app.register_blueprint(sessions.blueprint(identities))
    app.register_blueprint(upload.blueprint(site, identities))
    app.register_blueprint(users.blueprint(identities))
    app.register_blueprint(builder.blueprint(identities))
    app.register_blueprint(i18n.blueprint(site, identities))
    app.register_blueprint(content.blueprint(site, identities))
    app.register_blueprint(uploads.blueprint(site))
    app.register_blueprint(openapi.blueprint(identities))
    app.register_blueprint(search.blueprint(site, identities))

    @app.get("/_health")
    def health() -> Response:
        return Response(status=204, headers={"Cache-Control": NOBODY})

    rate = site.state.settings.rate_limit
    count = import_module("server.api.limiting").Limiter(rate).count if rate else None
    app.wsgi_app = Front(app, site, identities, count)  # type: ignore[method-assign]
    return app
