"""/api/content-type-builder: what types and components there are, for clients that generate code."""

from flask import Blueprint, Response, request

from server.api.identities import Identities
from server.api.render import dumps
from server.api.request import answer, parameters, state_of
from server.errors import NotFoundError, ValidationError
from server.schema.describe import describe_component, describe_types, describe_visible_type
from server.schema.model import Schema


def blueprint(identities: Identities) -> Blueprint:
    """The routes of content types and components."""
    bp = Blueprint("builder", __name__, url_prefix="/api/content-type-builder")

    def allowed(action: str) -> Schema:
        identities.permit(request, "content-type", action)
        return state_of(request).schema

    @bp.get("/content-types", strict_slashes=False)
    def content_types() -> Response:
        described = describe_types(allowed("find"))
        kind = _kind(parameters(request).get("kind"))
        return answer(dumps({"data": [d for d in described if kind in ("", d["schema"]["kind"])]}))

    @bp.get("/content-types/<uid>", strict_slashes=False)
    def content_type(uid: str) -> Response:
        described = describe_visible_type(allowed("findOne"), uid)
        if described is None:
            raise NotFoundError("contentType.notFound")
        return answer(dumps({"data": described}))

    @bp.get("/components", strict_slashes=False)
    def components() -> Response:
        schema = allowed("find")
        found = sorted((t for t in schema.types.values() if t.kind == "component"), key=lambda t: t.uid)
        return answer(dumps({"data": [describe_component(type_) for type_ in found]}))

    @bp.get("/components/<uid>", strict_slashes=False)
    def component(uid: str) -> Response:
        schema = allowed("findOne")
        type_ = schema.types.get(uid)
        if type_ is None or type_.kind != "component":
            raise NotFoundError("component.notFound")
        return answer(dumps({"data": describe_component(type_)}))

    return bp


def _kind(value: object) -> str:
    """The kind of content types that is asked for; "" for both. Raises ValidationError."""
    if value not in (None, "", "collectionType", "singleType"):
        raise ValidationError("kind must be one of the following values: collectionType, singleType")
    return str(value or "")
