"""GET /: what there is to read, as a page for people and as JSON for programs that ask for it.

It shows whoever asks what they may find and nothing more: without credentials that is what the public may.
"""

from base64 import b64encode
from hashlib import sha256
from pathlib import Path

from flask import Blueprint, Response, redirect, render_template, request
from werkzeug.wrappers import Response as BaseResponse

from server import __version__
from server.api.identities import Identities
from server.api.render import dumps
from server.api.request import answer, state_of
from server.auth.permissions import Actor, may_find
from server.documents.document import PUBLISHED
from server.errors import NotFoundError
from server.schema.model import Type
from server.site.site import State

_TEMPLATES = Path(__file__).parent.parent / "templates"
_STYLE = (_TEMPLATES / "start.css").read_text(encoding="utf-8")
_POLICY = (
    f"default-src 'none'; style-src 'sha256-{b64encode(sha256(_STYLE.encode()).digest()).decode()}'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
)


def blueprint(identities: Identities) -> Blueprint:
    """The route of the page, and those of addresses at which people look for one."""
    bp = Blueprint("start", __name__, template_folder=str(_TEMPLATES))

    @bp.get("/")
    def start() -> Response:
        state, actor = state_of(request), identities.actor(request)
        readable = _readable(state, actor)
        shown = _json(state, readable) if _wants_json() else _page(state, readable)
        shown.vary.add("Accept")
        return shown

    @bp.get("/api")
    @bp.get("/admin")
    def elsewhere() -> BaseResponse:
        _refuse_programs()
        return redirect("./")  # relative, so that it holds behind a proxy that adds a path

    @bp.get("/api/")
    @bp.get("/admin/")
    def elsewhere_with_slash() -> BaseResponse:
        _refuse_programs()
        return redirect("../")

    return bp


def _refuse_programs() -> None:
    """Below /api there is a page for nobody but people. Raises NotFoundError."""
    if request.path.startswith("/api") and _wants_json():
        raise NotFoundError()


def _wants_json() -> bool:
    """Browsers ask for text/html; who takes anything is a program, or somebody with curl."""
    return request.accept_mimetypes.best_match(("application/json", "text/html")) != "text/html"


def _readable(state: State, actor: Actor) -> list[Type]:
    return [t for t in state.schema.content_types if may_find(actor, t.uid)]


def _path(type_: Type) -> str:
    return f"api/{type_.plural if type_.kind == 'collectionType' else type_.singular}"


def _json(state: State, readable: list[Type]) -> Response:
    types = [{"uid": t.uid, "kind": t.kind, "name": t.display, "url": f"/{_path(t)}"} for t in readable]
    return answer(
        dumps({"name": state.settings.name, "types": types, "openapi": "/openapi.json", "docs": "/docs"})
    )


def _page(state: State, readable: list[Type]) -> Response:
    locale = state.settings.default_locale
    count = {t.uid: len(state.snapshot.list(t, locale, PUBLISHED)) for t in readable}
    page = render_template(
        "start.html",
        name=state.settings.name,
        version=__version__,
        style=_STYLE,
        types=[(t.display, _path(t), count[t.uid], t.kind == "collectionType") for t in readable],
        hidden=len(state.schema.content_types) > len(readable),
    )
    return Response(
        page, headers={"Content-Security-Policy": _POLICY}, content_type="text/html; charset=utf-8"
    )
