"""/api/content-type-builder: what types and components there are, for clients that generate code."""

from flask import Blueprint, Response, request

from server.api.identities import Identities
from server.api.render import dumps
from server.api.request import answer, state_of
from server.errors import NotFoundError
from server.schema.describe import describe_component, describe_type
from server.schema.model import BUILT_IN, Schema


def blueprint(identities: Identities) -> Blueprint:
    """The routes of content types and components."""
    bp = Blueprint("builder", __name__, url_prefix="/api/content-type-builder")

    def allowed(action: str) -> Schema:
        identities.permit(request, "content-type", action)
        return state_of(request).schema

    @bp.get("/content-types", strict_slashes=False)
    def content_types() -> Response:
        schema = allowed("find")
        types = [*schema.content_types, *(schema.types[uid] for uid in BUILT_IN)]
        return answer(dumps({"data": [describe_type(schema, type_) for type_ in types]}))

    @bp.get("/content-types/<uid>", strict_slashes=False)
    def content_type(uid: str) -> Response:
        schema = allowed("findOne")
        type_ = schema.types.get(uid)
        if type_ is None or type_.kind == "component":
            raise NotFoundError()
        return answer(dumps({"data": describe_type(schema, type_)}))

    @bp.get("/components", strict_slashes=False)
    def components() -> Response:
        schema = allowed("find")
        found = sorted((t for t in schema.types.values() if t.kind == "component"), key=lambda t: t.uid)
        return answer(dumps({"data": [describe_component(schema, type_) for type_ in found]}))

    @bp.get("/components/<uid>", strict_slashes=False)
    def component(uid: str) -> Response:
        schema = allowed("findOne")
        type_ = schema.types.get(uid)
        if type_ is None or type_.kind != "component":
            raise NotFoundError()
        return answer(dumps({"data": describe_component(schema, type_)}))

    return bp
