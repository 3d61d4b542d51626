"""Who may be at a document and be told of others there, and what they are told."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from server.auth.permissions import Actor, may_draft, may_find, may_read_drafts
from server.errors import ForbiddenError
from server.events.presence.table import Presence
from server.schema.model import Attribute, Schema, Type

PUBLIC = "public"
_DEEPEST = 20  # names and numbers in the path of a field


def may_attend(actor: Actor, type_: Type) -> bool:
    """Whether an actor is told who is at the documents of a type, and others of it there.

    Those are who works on them: who may find them, and see their drafts or change them. The public never is.
    """
    if actor.name == PUBLIC or not may_find(actor, type_.uid):
        return False
    changes = actor.may(type_.singular, "update") or may_draft(actor, type_, "update")
    return changes or may_read_drafts(actor, type_)


def attended_types(actor: Actor, schema: Schema) -> Mapping[str, Type]:
    """The types that `may_attend` allows an actor, by name. Raises ForbiddenError where there is none."""
    found = {type_.singular: type_ for type_ in schema.content_types if may_attend(actor, type_)}
    if not found:
        raise ForbiddenError()
    return found


def is_field(path: str, type_: Type, actor: Actor, schema: Schema) -> bool:
    """Whether a dotted path such as `sections.2.title` is of an attribute that an actor may know of."""
    types, parts = [type_], path.split(".")
    if len(parts) > _DEEPEST:
        return False
    while parts:
        name, *parts = parts
        found = [each.attributes[name] for each in types if name in each.attributes]
        types = [schema.types[uid] for a in found for uid in _components(a)]
        if not any(_is_known(a, type_, actor) for a in found):
            return False
        if parts and parts[0].isascii() and parts[0].isdigit() and any(a.to_many for a in found):
            parts = parts[1:]
    return True


def _components(attribute: Attribute) -> tuple[str, ...]:
    return tuple(filter(None, (attribute.component, *attribute.components)))


def _is_known(attribute: Attribute, type_: Type, actor: Actor) -> bool:
    """Whether an actor may know of an attribute, as `/access` shows it."""
    if attribute.type == "relation" and attribute.target and not may_find(actor, attribute.target):
        return False
    writes = actor.may(type_.singular, "update") or may_draft(actor, type_, "update")
    return writes or attribute.visible


def by_document(present: Iterable[Presence]) -> Mapping[tuple[str, str], Sequence[Presence]]:
    """Who is where, by the names of types and the ids of documents."""
    found: dict[tuple[str, str], list[Presence]] = {}
    for one in present:
        found.setdefault((one.type, one.document_id), []).append(one)
    return found


def others_at(
    document: tuple[str, str], present: Sequence[Presence], type_: Type, actor: Actor, schema: Schema
) -> dict[str, Any]:
    """What JSON says to an actor of a document, by the name of its type and its id: who is there but itself.

    A person whose clients are at several places of it is one.
    """
    people: dict[str, dict[str, Any]] = {}
    for one in present:
        if one.caller == actor.name:
            continue
        field = one.field if one.field and is_field(one.field, type_, actor, schema) else None
        person = people.setdefault(one.caller, {"kind": one.kind, "name": one.name, "at": []})
        place = {"locale": one.locale, "field": field}
        if place not in person["at"]:
            person["at"].append(place)
    return {"type": document[0], "documentId": document[1], "people": list(people.values())}
