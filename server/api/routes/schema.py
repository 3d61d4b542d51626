"""Handlers for /api/content-type-builder and /api/i18n: content types, components and locales."""

import os

from flask import Response, request

from server.api.request import answer, parameters, require_permission, state_of
from server.api.routes.handlers import Handlers
from server.config.model import FILE
from server.documents.locale_names import describe
from server.errors import NotFoundError, ValidationError
from server.schema.describe import describe_component, describe_types, describe_visible_type
from server.schema.model import Schema
from server.service.render import dumps
from server.site.site import Site


def bind(handles: Handlers, site: Site) -> None:
    """Register the handlers."""

    def allowed(action: str) -> Schema:
        require_permission(request, "content-type", action)
        return state_of(request).schema

    @handles("findContentTypes")
    def content_types() -> Response:
        described = describe_types(allowed("find"))
        kind = _kind(parameters(request).get("kind"))
        return answer(dumps({"data": [d for d in described if kind in ("", d["schema"]["kind"])]}))

    @handles("findOneContentType")
    def content_type(uid: str) -> Response:
        described = describe_visible_type(allowed("findOne"), uid)
        if described is None:
            raise NotFoundError("contentType.notFound")
        return answer(dumps({"data": described}))

    @handles("findComponents")
    def components() -> Response:
        schema = allowed("find")
        found = sorted((t for t in schema.types.values() if t.kind == "component"), key=lambda t: t.uid)
        return answer(dumps({"data": [describe_component(type_) for type_ in found]}))

    @handles("findOneComponent")
    def component(uid: str) -> Response:
        schema = allowed("findOne")
        type_ = schema.types.get(uid)
        if type_ is None or type_.kind != "component":
            raise NotFoundError("component.notFound")
        return answer(dumps({"data": describe_component(type_)}))

    @handles("findLocales")
    def locales() -> Response:
        require_permission(request, "locale", "find")
        settings = state_of(request).settings
        timestamps = _timestamps(site)
        return answer(dumps([describe(code, settings, timestamps) for code in settings.locales.available]))


def _kind(value: object) -> str:
    if value not in (None, "", "collectionType", "singleType"):
        raise ValidationError("kind must be one of the following values: collectionType, singleType")
    return str(value or "")


def _timestamps(site: Site) -> tuple[str, str]:
    """Return when the settings file was created and last changed.

    If the site has no settings file, the first commit's time is used.
    """
    committed = site.git.committed
    try:
        changed = os.stat(site.root / FILE).st_mtime
    except OSError:
        changed = min((first for first, _ in committed.times.values()), default=site.started)
    return committed.timestamps(FILE, changed)
