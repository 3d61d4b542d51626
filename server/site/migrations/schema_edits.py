"""Schema changes that don't change documents (docs/migrate.md)."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from server.auth.permissions import SITE_SUBJECTS
from server.documents.path_rules import Layout
from server.errors import ValidationError
from server.formats.edits import REMOVE
from server.formats.json import json_text
from server.formats.reorder_keys import reorder_keys
from server.formats.text_positions import KeyPath
from server.formats.tree import SyntaxProblem
from server.paths import TYPES
from server.schema.check import RESERVED_IDS
from server.schema.model import INVERSE_RELATIONS, USER, Schema, Type
from server.schema.spelling import ATTRIBUTE_KEYS, I18N_KEYS, suggestion
from server.site.configure import Configuration
from server.site.migrations.arguments import (
    ATTRIBUTE,
    ATTRIBUTES,
    COMPONENT,
    KIND,
    NEW_COMPONENT,
    TARGET,
    TITLE,
    TYPE,
    TYPE_ID,
    Arguments,
)
from server.site.migrations.attributes import configure_after, keep_markdown_body
from server.site.migrations.draft import Draft
from server.site.migrations.edits import Edits
from server.site.migrations.migration import find_type, require_attribute, split_target
from server.site.migrations.types import remove_from_settings
from server.site.migrations.value_check import describe_differing_values, describe_invalid_values
from server.storage.read import parse

Values = Mapping[str, Any]
_NEW_SIDE = "delete the relation, and add it again with the other side"
# Options that the `options` edit can't change, and what to do instead.
_FIXED: Mapping[str, str] = {
    **dict.fromkeys(("type", "relation", "repeatable", "multiple"), "use retype"),
    **dict.fromkeys(("customField", "morphBy"), "edit the schema"),
    **dict.fromkeys(("inversedBy", "mappedBy"), _NEW_SIDE),
    "target": "documents refer to the old target; add another relation, and delete this one",
    "component": "values belong to the old component; add another attribute, and delete this one",
}
_STRICTER = ("required", "unique", "min", "max", "minLength", "maxLength", "regex", "enum", "components")
_LOCALIZED = ("pluginOptions", "i18n", "localized")
_TYPE_OPTIONS: Mapping[str, KeyPath] = {
    "display": ("info", "displayName"),
    "drafts": ("options", "draftAndPublish"),
    "localized": _LOCALIZED,
}


@dataclass(frozen=True, slots=True)
class SchemaEdit:
    """A schema change that is not stored as a migration.

    The arguments named in `objects` are JSON objects, and those in `flags` are true or false.
    """

    plan: Callable[[Draft, Values], None]
    arguments: Arguments
    objects: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    named_by: str = field(default="type")

    def check(self, given: Values) -> None:
        for name in self.objects:
            if not isinstance(given.get(name), dict) or len(given[name]) > len(ATTRIBUTE_KEYS):
                raise ValueError(f"{name} must be an object")
        for name in self.flags:
            if given.get(name, False) not in (True, False):
                raise ValueError(f"{name} must be true or false")
        own = (*self.objects, *self.flags)
        self.arguments.check({key: value for key, value in given.items() if key not in own})


# --- attributes -----------------------------------------------------------------------------------


def _add(draft: Draft, given: Values) -> None:
    """Add an attribute. If it is a two-way relation, also add the attribute on the other side."""
    before = draft.configuration()
    type_, name = split_target(before.schema, given["attribute"])
    raw = given["definition"]
    if name in type_.attributes:
        raise ValidationError(f'{type_.uid} already has an attribute "{name}"')
    _require_known_keys(raw)
    draft.edit_configuration(type_.path, Edits(values={("attributes", name): raw}))
    _add_other_side(draft, before.schema, type_, name, raw)
    if place := given.get("before"):
        require_attribute(type_, place)
        names = list(type_.raw.get("attributes", {}))
        names.insert(names.index(place), name)
        _put_in_order(draft, type_, names)
    after = configure_after(draft, before)
    draft.require_possible()
    keep_markdown_body(draft, type_, after.schema, type_.body)
    if raw.get("required"):
        draft.warnings += describe_invalid_values(draft, before, after, type_.uid, name)


def _add_other_side(draft: Draft, schema: Schema, type_: Type, name: str, raw: Values) -> None:
    own, other = ("inversedBy", "mappedBy") if raw.get("inversedBy") else ("mappedBy", "inversedBy")
    there, relation = raw.get(own), INVERSE_RELATIONS.get(str(raw.get("relation")))
    target = schema.types.get(str(raw.get("target")))
    if not isinstance(there, str) or relation is None or target is None or target.uid == USER:
        return
    if not target.path or there in target.attributes:
        return  # If the attribute is not the other side, the check of the new schema fails.
    side: dict[str, Any] = {"type": "relation", "relation": relation, "target": type_.uid, other: name}
    if raw.get("private") is True:
        side["private"] = True
    draft.edit_configuration(target.path, Edits(values={("attributes", there): side}))
    draft.notes.append(f"{target.uid} gets the attribute {there}, the other side of this relation")


def _change_options(draft: Draft, given: Values) -> None:
    before = draft.configuration()
    type_, name = split_target(before.schema, given["attribute"])
    require_attribute(type_, name)
    options = given["options"]
    _require_known_keys(options)
    for key in options:
        if key in _FIXED:
            raise ValidationError(f"options can't change {key} of {type_.uid}.{name}; {_FIXED[key]}")
    there = type_.raw["attributes"][name]
    values: dict[KeyPath, Any] = {
        ("attributes", name, key): REMOVE if value is None else value
        for key, value in options.items()
        if key != "pluginOptions" and (value is not None or key in there)
    }
    if "pluginOptions" in options:
        localized = _read_localized(type_, name, options["pluginOptions"])
        values |= _value_at(type_.raw, ("attributes", name, *_LOCALIZED), localized)
    draft.edit_configuration(type_.path, Edits(values=values))
    after = configure_after(draft, before)
    draft.require_possible()
    if any(key in _STRICTER for key in options):
        draft.warnings += describe_invalid_values(draft, before, after, type_.uid, name)
    if "pluginOptions" in options and not localized:
        draft.warnings += describe_differing_values(draft, before, type_.uid, name)
    if options.get("private", True) is not True and there.get("private") is True:
        draft.warnings.append(f"all callers who can read {type_.uid} can read {name}")


def _read_localized(type_: Type, name: str, value: Any) -> bool:
    localized = value["i18n"].get("localized") if isinstance(value, dict) and [*value] == ["i18n"] else None
    if not isinstance(localized, bool):
        raise ValidationError('pluginOptions must look like {"i18n": {"localized": true}}')
    if type_.attributes[name].type in ("uid", "relation"):
        raise ValidationError(f"{type_.uid}.{name} always has a separate value in each locale")
    if not type_.localized:
        raise ValidationError(f"{type_.uid} is not localized, so its attributes have no locales")
    return localized


def _value_at(raw: Values, key_path: KeyPath, value: Any) -> dict[KeyPath, Any]:
    for length in range(1, len(key_path)):
        inner = raw.get(str(key_path[length - 1]))
        if not isinstance(inner, dict):
            for key in reversed(key_path[length:]):
                value = {key: value}
            return {key_path[:length]: value}
        raw = inner
    return {key_path: value}


def _require_known_keys(raw: Values) -> None:
    for key in raw:
        if key not in ATTRIBUTE_KEYS:
            hint = suggestion(key, ATTRIBUTE_KEYS)
            raise ValidationError(f'unknown option "{key[:100]}"' + (f"; {hint}" if hint else ""))
    i18n = raw.get("pluginOptions", {})
    i18n = i18n.get("i18n", {}) if isinstance(i18n, dict) else None
    if not isinstance(i18n, dict) or any(key not in I18N_KEYS for key in i18n):
        raise ValidationError('pluginOptions must look like {"i18n": {"localized": true}}')


def _reorder(draft: Draft, given: Values) -> None:
    before = draft.configuration()
    type_ = find_type(before.schema, given["type"])
    names, own = given["attributes"], list(type_.raw.get("attributes", {}))
    if sorted(names) != sorted(own):
        raise ValidationError(f"attributes must name each attribute of {type_.uid} once: {', '.join(own)}")
    _put_in_order(draft, type_, names)
    keep_markdown_body(draft, type_, draft.configuration().schema, type_.body)


def _put_in_order(draft: Draft, type_: Type, names: Sequence[str]) -> None:
    text = draft.text(type_.path)
    try:
        made = reorder_keys(type_.path, text, ("attributes",), names)
        is_same = made is not None and parse(type_.path, made, None) == parse(type_.path, text, None)
    except SyntaxProblem:
        made, is_same = None, False
    if made is None or not is_same:
        draft.refuse(type_.path, "contains syntax that Bifolio can't reorder safely", "edit the file by hand")
        draft.require_possible()
        return
    if made != text:
        draft.put(type_.path, made)


# --- types ----------------------------------------------------------------------------------------


def _add_type(draft: Draft, given: Values) -> None:
    before = draft.configuration()
    name, plural = given["type"], given["plural"]
    display = given.get("display", name)
    require_free_name(name)
    for id_ in (name, plural):
        _require_free_id(before.schema, id_)
    raw: dict[str, Any] = {
        "kind": given.get("kind", "collectionType"),
        "info": {"singularName": name, "pluralName": plural, "displayName": display},
        "options": {"draftAndPublish": given.get("drafts", False)},
    }
    if given.get("localized"):
        raw["pluginOptions"] = {"i18n": {"localized": True}}
    _put_new(draft, f"{TYPES}/{name}.json", {**raw, "attributes": {}})
    after = configure_after(draft, before)
    draft.require_possible()
    draft.may_adopt, layout = True, Layout(after.schema, after.settings)
    taken = len(list(draft.document_files(layout, [f"api::{name}.{name}"])))
    if taken:
        draft.warnings.append(f"{taken:,} existing files become documents of the type")
    draft.notes.append("no role has permissions for the type yet")


def _change_type(draft: Draft, given: Values) -> None:
    before = draft.configuration()
    type_ = find_type(before.schema, given["type"])
    if type_.kind == "component" and ("drafts" in given or "localized" in given):
        raise ValidationError(f"{type_.uid} is a component, so it has no drafts or locales of its own")
    if not given.keys() & _TYPE_OPTIONS.keys():
        raise ValidationError(f"Name at least one option to change: {', '.join(_TYPE_OPTIONS)}")
    values: dict[KeyPath, Any] = {}
    for name, at in _TYPE_OPTIONS.items():
        if name in given:
            values |= _value_at(type_.raw, at, given[name])
    draft.edit_configuration(type_.path, Edits(values=values))
    after = configure_after(draft, before)
    draft.require_possible()
    if given.get("localized") and not type_.localized:
        _note_shared_values(draft, after.schema.types[type_.uid])


def _note_shared_values(draft: Draft, type_: Type) -> None:
    shared = [a.name for a in type_.attributes.values() if not a.localized]
    if shared:
        draft.notes.append(
            "all locales of a document share the values of these attributes until they are localized, too: "
            + ", ".join(shared)
        )


def require_free_name(name: str) -> None:
    """Raise ValidationError if the name, such as `branch`, has another meaning in permissions."""
    if name.casefold() in SITE_SUBJECTS:
        raise ValidationError(
            f'Permissions for "{name}", which some roles may have, would no longer work; choose another name'
        )


def _require_free_id(schema: Schema, id_: str) -> None:
    if id_.casefold() in RESERVED_IDS:
        raise ValidationError(f'The API id "{id_}" is reserved; choose another name')
    for type_ in schema.content_types:
        # Some file systems ignore case in the names of schema files and folders.
        if id_.casefold() in (type_.singular.casefold(), type_.plural.casefold()):
            raise ValidationError(f'The API id "{id_}" is used in {type_.path}; choose another name')


def _add_component(draft: Draft, given: Values) -> None:
    before = draft.configuration()
    uid = given["component"]
    if any(other.casefold() == uid.casefold() for other in before.schema.types):
        raise ValidationError(f"{uid} already exists")
    category, _, name = uid.partition(".")
    display = given.get("display", name)
    made = {"info": {"displayName": display}, "options": {}, "attributes": {}}
    _put_new(draft, f"{TYPES}/components/{category}/{name}.json", made)
    configure_after(draft, before)
    draft.require_possible()


def _put_new(draft: Draft, path: str, raw: Values) -> None:
    if draft.exists(path):
        raise ValidationError(f"{path} already exists")
    draft.put(path, json_text(raw, indent="  ") + "\n")


def _delete_type(draft: Draft, given: Values) -> None:
    before = draft.configuration()
    type_ = find_type(before.schema, given["type"])
    if type_.kind == "component":
        raise ValidationError(f"{type_.uid} is a component; use delete-component")
    layout = Layout(before.schema, before.settings)
    paths = [path for path, _ in draft.document_files(layout, [type_.uid])]
    remove_from_settings(draft, type_)
    _delete_schema(draft, before, type_)
    for path in paths:
        draft.add_loss(path, (), "this document would be deleted")
        draft.remove(path)
        draft.documents.add(path)


def _delete_component(draft: Draft, given: Values) -> None:
    before = draft.configuration()
    component = find_type(before.schema, given["component"])
    if component.kind != "component":
        raise ValidationError(f"{component.uid} is not a component; use delete-type")
    _delete_schema(draft, before, component)


def _delete_schema(draft: Draft, before: Configuration, type_: Type) -> None:
    for place in _uses(before.schema, type_.uid):
        draft.refuse(place.path, f"attributes.{place.name} uses {type_.uid}", "delete this attribute first",
                     ("attributes", place.name))  # fmt: skip
    draft.require_possible()
    draft.remove(type_.path)
    configure_after(draft, before)
    draft.require_possible()


@dataclass(frozen=True, slots=True)
class _Use:
    path: str
    name: str


def _uses(schema: Schema, uid: str) -> Iterator[_Use]:
    for type_ in schema.types.values():
        if type_.path and type_.uid != uid:
            for attribute in type_.attributes.values():
                if attribute.target == uid or uid in attribute.component_uids:
                    yield _Use(type_.path, attribute.name)


SCHEMA_EDITS: Mapping[str, SchemaEdit] = {
    "add": SchemaEdit(
        _add, Arguments({"attribute": TARGET}, {"before": ATTRIBUTE}), ("definition",), named_by="attribute"
    ),
    "options": SchemaEdit(
        _change_options, Arguments({"attribute": TARGET}), ("options",), named_by="attribute"
    ),
    "reorder": SchemaEdit(_reorder, Arguments({"type": TYPE, "attributes": ATTRIBUTES})),
    "add-type": SchemaEdit(
        _add_type,
        Arguments({"type": TYPE_ID, "plural": TYPE_ID}, {"kind": KIND, "display": TITLE}),
        flags=("drafts", "localized"),
    ),
    "type-options": SchemaEdit(
        _change_type, Arguments({"type": TYPE}, {"display": TITLE}), flags=("drafts", "localized")
    ),
    "add-component": SchemaEdit(
        _add_component, Arguments({"component": NEW_COMPONENT}, {"display": TITLE}), named_by="component"
    ),
    "delete-type": SchemaEdit(_delete_type, Arguments({"type": TYPE})),
    "delete-component": SchemaEdit(
        _delete_component, Arguments({"component": COMPONENT}), named_by="component"
    ),
}
