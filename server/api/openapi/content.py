"""The operations of content types: lists, documents, single types, as far as the caller may use them."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from server.api.openapi.operations import TAG, WRITE, answer, json_content, operation
from server.api.openapi.types import TypeSchemas, ref
from server.api.openapi.values import JsonSchema
from server.api.routes.operation import DISCARD, UNPUBLISH
from server.auth.permissions import Actor, may_branch, may_draft
from server.schema.model import Type

Examples = Callable[
    [Type], Mapping[str, Any]
]  # a type → examples of a document by name: `plain` and `populated`
_ACTIONS: Mapping[str, str] = {
    UNPUBLISH: "Unpublish a {}: its draft is left, or what was published as that",
    DISCARD: "Discard the draft of a {}, which is as it is published then",
}
MERGED = {
    "schema": {"const": "merge"},
    "description": "The change was merged with those that others have made since.",
}


@dataclass(frozen=True, slots=True)
class ContentPaths:
    """Makes the paths of types; `public` needs no credentials, `examples` are a type's.

    `commits` where a write may become a commit.
    """

    schemas: TypeSchemas
    public: Actor
    examples: Examples
    limited: bool
    commits: bool

    def of(self, type_: Type) -> Iterator[tuple[str, JsonSchema]]:
        """The paths of a type, each with the operations that the actor may use."""
        if type_.kind == "singleType":
            path = f"/api/{type_.singular}"
            yield path, self._allowed(type_, self._single(type_))
        else:
            path = f"/api/{type_.plural}/{{documentId}}"
            yield f"/api/{type_.plural}", self._allowed(type_, self._collection(type_))
            yield path, self._allowed(type_, self._document(type_))
        if type_.draft_publish:
            for action, made in self._actions(type_):
                yield f"{path}/actions/{action}", made

    def _allowed(self, type_: Type, methods: Mapping[str, tuple[str, JsonSchema]]) -> JsonSchema:
        actor, found = self.schemas.actor, {}
        for method, (action, made) in methods.items():
            if actor.may(type_.singular, action):
                found[method] = made
            elif may_draft(actor, type_, action):
                found[method] = {**made, "parameters": [_drafted(each) for each in made["parameters"]]}
        return found

    def _collection(self, type_: Type) -> dict[str, tuple[str, JsonSchema]]:
        name = self._name(type_)
        listed = self._make(
            type_,
            "find",
            f"find{name}",
            f"A list of {type_.plural}",
            answers={200: self._list_answer(type_)},
            parameters=[*self._reading(type_, many=True), _shared("pagination")],
        )
        made = self._make(
            type_,
            "create",
            f"create{name}",
            f"A new {type_.singular}",
            answers={201: self._one_answer(type_)},
            parameters=[*self._writing(type_), _shared("prefer")],
            body=self._body(type_, f"{name}Input"),
            commits=self.commits,
            errors=(*WRITE, 404),
        )
        return {"get": ("find", listed), "post": ("create", made)}

    def _document(self, type_: Type) -> dict[str, tuple[str, JsonSchema]]:
        """The operations of one document of a collection."""
        return {
            method: (action, {**made, "parameters": [_shared("documentId"), *made["parameters"]]})
            for method, (action, made) in self._one(type_, "findOne", "documentId").items()
        }

    def _single(self, type_: Type) -> dict[str, tuple[str, JsonSchema]]:
        return self._one(type_, "find", "document")

    def _one(self, type_: Type, find: str, what: str) -> dict[str, tuple[str, JsonSchema]]:
        """Reading, changing and deleting one document."""
        name, shown = self._name(type_), {200: self._one_answer(type_)}
        found = self._make(
            type_,
            find,
            f"findOne{name}",
            f"One {type_.singular}",
            answers=shown,
            parameters=self._reading(type_, many=False),
            errors=(400, 401, 403, 404, 500),
        )
        changed = self._make(
            type_,
            "update",
            f"update{name}",
            f"Change a {type_.singular}: what the body does not name keeps its value, null clears it"
            + (", and where there is no document it is made" if what == "document" else ""),
            answers={200: {**shown[200], "headers": {"ETag": TAG, "Preference-Applied": MERGED}}},
            parameters=[*self._writing(type_), _shared("ifMatch"), _shared("prefer")],
            body=self._body(type_, f"{name}Change"),
            commits=self.commits,
            errors=(*WRITE, 404, 412),
        )
        gone = self._make(
            type_,
            "delete",
            f"delete{name}",
            f"Delete a {type_.singular}" + (", or one locale of it" if type_.localized else ""),
            answers={204: answer("It is gone, or never was.")},
            parameters=[
                *[_shared("localeOfList")] * type_.localized,
                *self._branch(),
                _shared("ifMatch"),
                _shared("prefer"),
            ],
            errors=(*WRITE, *[404] * len(self._branch()), 412),
            commits=self.commits,
        )
        return {"get": (find, found), "put": ("update", changed), "delete": ("delete", gone)}

    def _actions(self, type_: Type) -> Iterator[tuple[str, JsonSchema]]:
        """What can be done to a document as a whole, as far as the actor may."""
        actor = self.schemas.actor
        document_id = [_shared("documentId")] * (type_.kind == "collectionType")
        parameters = [*document_id, *self._showing(type_), *[_shared("localesWritten")] * type_.localized]
        for action, summary in _ACTIONS.items():
            may = actor.may(type_.singular, "update")
            may = may or (action == DISCARD and may_draft(actor, type_, "update"))
            made = self._make(
                type_,
                "update",
                f"{action}{self._name(type_)}",
                summary.format(type_.singular),
                answers={200: self._one_answer(type_)},
                parameters=[*parameters, *self._branch(), _shared("ifMatch"), _shared("prefer")],
                commits=self.commits,
                errors=(*WRITE, 404, 412),
            )
            yield action, {"post": made} if may else {}

    def _name(self, type_: Type) -> str:
        return self.schemas.names[type_.uid]

    def _make(self, type_: Type, action: str, name: str, summary: str, **more: Any) -> JsonSchema:
        public = self.public.may(type_.singular, action)
        return operation(type_.display, name, summary, public=public, limited=self.limited, **more)

    # --- parameters and bodies -----------------------------------------------------------------

    def _showing(self, type_: Type) -> list[JsonSchema]:
        name = self._name(type_)
        populated = bool(self.schemas.links(type_)) or type_.localized
        return [ref(f"{name}.{p}", "parameters") for p in ["fields", *["populate"] * populated]]

    def _reading(self, type_: Type, *, many: bool) -> list[JsonSchema]:
        name = self._name(type_)
        found = self._showing(type_)
        found += [ref(f"{name}.{p}", "parameters") for p in ("filters", "sort")] if many else []
        found += [_shared("q")] if many else []
        found += [_shared("localeOfList" if many else "locale")] if type_.localized else []
        if type_.draft_publish:
            found += map(_shared, ["status", *["publicationFilter"] * many])
        return found

    def _writing(self, type_: Type) -> list[JsonSchema]:
        found = self._showing(type_)
        found += [_shared("localeWritten")] if type_.localized else []
        return [*found, *[_shared("statusWritten")] * type_.draft_publish, *self._branch()]

    def _branch(self) -> list[JsonSchema]:
        """The parameter that names the branch to write to, for who may."""
        may = may_branch(self.schemas.actor, "update", self.schemas.types)
        return [_shared("branch")] if may else []

    def _body(self, type_: Type, name: str) -> JsonSchema:
        schema = {"type": "object", "properties": {"data": ref(name)}, "required": ["data"]}
        example = self.examples(type_).get("input")
        return {"required": True, "content": json_content(schema, example and {"data": example})}

    # --- answers -------------------------------------------------------------------------------

    def _one_answer(self, type_: Type) -> JsonSchema:
        return self._answered(
            type_, f"{self._name(type_)}Answer", "The document.", lambda d: {"data": d, "meta": {}}
        )

    def _list_answer(self, type_: Type) -> JsonSchema:
        def listed(document: Any) -> Any:
            pagination = {"page": 1, "pageSize": 1, "pageCount": 1, "total": 1}
            return {"data": [document], "meta": {"pagination": pagination}}

        return self._answered(type_, f"{self._name(type_)}List", "A page of documents.", listed)

    def _answered(self, type_: Type, schema: str, description: str, wrap: Callable[[Any], Any]) -> JsonSchema:
        made = answer(description, ref(schema), tagged=True)
        known = {k: {"value": wrap(v)} for k, v in self.examples(type_).items() if k != "input"}
        if known:
            made["content"]["application/json"]["examples"] = known
        return made


def _drafted(parameter: JsonSchema) -> JsonSchema:
    """A parameter of an operation that may write drafts alone."""
    return _shared("statusOfDraft") if parameter == _shared("statusWritten") else parameter


def _shared(name: str) -> JsonSchema:
    return ref(name, "parameters")


def answer_schemas(schemas: TypeSchemas) -> Iterator[tuple[str, JsonSchema]]:
    """The bodies of answers, by name: a document and a list of each content type."""
    for type_ in schemas.types.content_types:
        shown = ref(schemas.names[type_.uid])
        empty = {"type": "object", "maxProperties": 0}
        paged = {
            "type": "object",
            "properties": {"pagination": ref("Pagination")},
            "required": ["pagination"],
        }
        yield f"{schemas.names[type_.uid]}Answer", _envelope(shown, empty)
        yield f"{schemas.names[type_.uid]}List", _envelope({"type": "array", "items": shown}, paged)


def _envelope(data: JsonSchema, meta: JsonSchema) -> JsonSchema:
    return {
        "type": "object",
        "properties": {"data": data, "meta": meta},
        "required": ["data", "meta"],
        "additionalProperties": False,
    }
