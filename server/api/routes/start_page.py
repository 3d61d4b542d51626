"""Handler for GET /, the start page."""

import re
from base64 import b64encode
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any

from flask import Response, redirect, render_template, request
from werkzeug.wrappers import Response as BaseResponse

from server import __version__
from server.api.request import actor_of, answer, state_of
from server.api.routes.handlers import Handlers
from server.auth.permissions import Actor, may_find
from server.documents.document import PUBLISHED, Document
from server.documents.locale_names import locale_name
from server.errors import NotFoundError
from server.schema.model import Attribute, Type
from server.service.render import dumps
from server.site.site import State

MAX_EXAMPLE_DOCUMENTS = 20  # How many documents of each type are searched for examples.
FILTERED_TYPES = (
    "enumeration",
    "string",
    "uid",
    "boolean",
    "integer",
    "date",
)  # the attribute types to use in example filters, most suitable first
MAX_VALUE_CHARS = 40  # Longer values are not used as examples.
MAX_SHORT_WORD_CHARS = 3  # Words with at most this many characters are not used as examples.

TEMPLATES = Path(__file__).parent.parent / "templates"
_STYLE = (TEMPLATES / "start.css").read_text(encoding="utf-8")
_POLICY = (
    f"default-src 'none'; style-src 'sha256-{b64encode(sha256(_STYLE.encode()).digest()).decode()}'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
)


def bind(handles: Handlers) -> None:
    """Register the handlers."""

    @handles("startPage")
    def start() -> Response:
        state, actor = state_of(request), actor_of(request)
        readable = _readable(state, actor)
        shown = _json(state, readable) if _wants_json() else _page(state, readable, actor)
        shown.vary.add("Accept")
        return shown

    @handles("startFromApi", "startFromAdmin")
    def elsewhere() -> BaseResponse:
        _refuse_programs()
        return redirect("./")  # A relative URL, because a proxy may add a path prefix.

    @handles("startFromApiWithSlash", "startFromAdminWithSlash")
    def elsewhere_with_slash() -> BaseResponse:
        _refuse_programs()
        return redirect("../")


def _refuse_programs() -> None:
    # Only browsers are redirected from /api to the start page.
    if request.path.startswith("/api") and _wants_json():
        raise NotFoundError()


def _wants_json() -> bool:
    # Browsers prefer text/html. Programs such as curl accept any media type.
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


def _example_queries(type_: Type, documents: list[Document], actor: Actor) -> list[str]:
    wanted = sorted(
        (a for a in type_.attributes.values() if a.type in FILTERED_TYPES and a.visible), key=_rank
    )
    values = ((a, _value(type_, document, a)) for a in wanted for document in documents)
    texts = ((a, str(v).lower() if isinstance(v, bool) else str(v)) for a, v in values if v is not None)
    filtered = next(
        (f"filters[{a.name}]={text}" for a, text in texts if 0 < len(text) <= MAX_VALUE_CHARS), None
    )
    related = (
        f"populate={a.name}"
        for a in type_.attributes.values()
        if a.populatable
        and (a.target is None or may_find(actor, a.target))
        and not a.morph
        and any(_value(type_, document, a) for document in documents)
    )
    if type_.kind == "singleType" or not documents:
        filtered = None
    return [query for query in (filtered, next(related, None)) if query]


def _rank(attribute: Attribute) -> int:
    return FILTERED_TYPES.index(attribute.type)


def _value(type_: Type, document: Document, attribute: Attribute) -> Any:
    return document.values[list(type_.attributes).index(attribute.name)]


def _example_word(type_: Type, documents: list[Document]) -> str:
    texts = (
        _value(type_, document, a)
        for document in documents
        for a in type_.attributes.values()
        if a.type == "string" and a.visible
    )
    words = (max(re.findall(r"[^\W\d_]+", text), key=len, default="") for text in texts if text)
    return next((word for word in words if len(word) > MAX_SHORT_WORD_CHARS), "")


def _page(state: State, readable: list[Type], actor: Actor) -> Response:
    locale = state.settings.locales.default
    listed = {t.uid: state.snapshot.list(t, locale, PUBLISHED) for t in readable}
    shown = {t.uid: list(islice(listed[t.uid], MAX_EXAMPLE_DOCUMENTS)) for t in readable}
    in_locale = f" in {locale_name(locale)}" if len(state.settings.locales.available) > 1 else ""
    words = (_example_word(t, shown[t.uid]) for t in readable)
    page = render_template(
        "start.html",
        name=state.settings.name,
        version=__version__,
        style=_STYLE,
        types=[
            (
                t.display,
                _path(t),
                f"{len(listed[t.uid]):,} published{in_locale if t.localized else ''}",
                t.kind == "collectionType",
                _example_queries(t, shown[t.uid], actor),
            )
            for t in readable
        ],
        word=next(filter(None, words), ""),
        hidden=len(state.schema.content_types) > len(readable),
    )
    return Response(
        page, headers={"Content-Security-Policy": _POLICY}, content_type="text/html; charset=utf-8"
    )
