"""The Flask app: blueprints, and the one place where errors become HTTP."""

import json
import logging
from importlib import import_module

import orjson
from flask import Flask, Response
from flask_cors import CORS
from werkzeug.exceptions import HTTPException
from werkzeug.wrappers import Response as BaseResponse

from server.api.cache import Answers
from server.api.openapi import routes as openapi
from server.api.request import Identities, answer
from server.api.routes import auth, builder, content, i18n, search, upload, uploads, users
from server.auth.accounts import Accounts
from server.auth.sessions import Sessions
from server.auth.users import Users
from server.errors import HTTP_NAMES, ApiError, MethodNotAllowedError
from server.site.site import Site

log = logging.getLogger("quire")

MAX_BODY = 16 * 1024 * 1024  # of JSON, in bytes; a larger body is refused unread
TOLD = ("Allow", "Content-Range", "Retry-After")  # headers of Flask's errors that clients go by


def create_app(site: Site, accounts: Accounts) -> Flask:
    """The WSGI app of a loaded site, with rendered answers kept in front of it."""
    app = Flask("quire", static_folder=None)
    app.url_map.merge_slashes = False
    app.config["MAX_CONTENT_LENGTH"] = MAX_BODY
    sessions = Sessions(site.root, auth.session_seconds(site.state.settings))
    identities = Identities(accounts, Users(accounts), sessions)
    app.register_blueprint(auth.blueprint(identities))
    app.register_blueprint(upload.blueprint(site, identities))
    app.register_blueprint(users.blueprint(site, identities))
    app.register_blueprint(builder.blueprint(identities))
    app.register_blueprint(i18n.blueprint(site, identities))
    app.register_blueprint(content.blueprint(site, identities))
    app.register_blueprint(uploads.blueprint(site))
    app.register_blueprint(openapi.blueprint(identities))
    app.register_blueprint(search.blueprint(site, identities))

    if site.state.settings.rate_limit:
        import_module("server.api.limiting").limit(app, site.state.settings.rate_limit)
    CORS(app, origins=list(site.state.settings.cors), send_wildcard=True, expose_headers=["ETag"])

    @app.after_request
    def add_headers(response: Response) -> Response:
        response.headers.setdefault("X-Content-Type-Options", "nosniff")
        response.headers.setdefault("Referrer-Policy", "no-referrer")
        response.headers.setdefault("X-Frame-Options", "SAMEORIGIN")
        return response

    @app.get("/_health")
    def health() -> Response:
        return Response(status=204)

    app.wsgi_app = Answers(app.wsgi_app, site, identities)  # type: ignore[method-assign]
    app.register_error_handler(ApiError, _api_error)
    app.register_error_handler(HTTPException, _http_error)
    app.register_error_handler(Exception, _unexpected)
    return app


def error_body(status: int, name: str, message: str, details: object) -> bytes:
    """The error envelope (docs/errors.md)."""
    error = {"status": status, "name": name, "message": message, "details": details}
    body = {"data": None, "error": error}
    try:
        return orjson.dumps(body)
    except TypeError:  # a value that is quoted has no UTF-8 form
        return json.dumps(body).encode()


def _api_error(error: ApiError) -> Response:
    found = answer(error_body(error.status, error.name, error.message, error.details), error.status)
    if isinstance(error, MethodNotAllowedError):
        found.headers["Allow"] = ", ".join(error.allowed)
    return found


def _http_error(error: HTTPException) -> BaseResponse:
    status = error.code or 500
    if status < 400 and error.response is not None:
        return error.get_response()  # a redirect
    message = error.name if status != 404 else "Not Found"
    found = answer(error_body(status, HTTP_NAMES.get(status, "ApplicationError"), message, {}), status)
    for name, value in error.get_headers():
        if name in TOLD:
            found.headers[name] = value
    return found


def _unexpected(error: Exception) -> Response:
    log.exception("unexpected error", exc_info=error)
    return answer(error_body(500, "InternalServerError", "Internal Server Error", {}), 500)
