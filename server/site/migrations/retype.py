"""The `retype` migration."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from server.documents.readers import READERS, InvalidValue
from server.errors import ValidationError
from server.formats.edits import REMOVE
from server.formats.tree import Tree, is_null
from server.schema.model import ATTRIBUTE_TYPES, INVERSE_RELATIONS, Attribute, Type
from server.schema.spelling import suggestion
from server.site.migrations.attributes import BODY_TYPES, configure_after, keep_markdown_body
from server.site.migrations.conversions import (
    CONVERSIONS,
    NUMBER,
    TEXT,
    ConversionResult,
    convert_tree,
    item_to_list,
    list_to_item,
)
from server.site.migrations.draft import AttributeMapping, Draft
from server.site.migrations.edits import Edits
from server.site.migrations.migration import Migration, require_attribute, split_target
from server.site.migrations.references import rename_references

MAX_VALUES = 200  # limit for an enumeration made from documents
# Options that only some types have.
_OPTIONS: Mapping[str, tuple[str, ...]] = {
    "minLength": TEXT,
    "maxLength": TEXT,
    "regex": TEXT,
    "min": NUMBER,
    "max": NUMBER,
    "enum": ("enumeration",),
    "targetField": ("uid",),
}
# Names of the types of a media file or component: a single value, or a list.
ONE, MANY = "one", "many"
_LIST_OPTIONS = {"media": "multiple", "component": "repeatable"}
Conversion = Callable[[Tree], ConversionResult | None]


def retype(draft: Draft, migration: Migration, *, is_new: bool) -> None:
    """Change the type of an attribute, and convert its values in all documents."""
    before = draft.configuration()
    type_, name = split_target(before.schema, str(migration.arguments["attribute"]))
    wanted = str(migration.arguments["type"])
    after = before
    if is_new:
        require_attribute(type_, name)
        old = type_.attributes[name]
        values = _values(draft, type_, old) if (wanted, old.type in TEXT) == ("enumeration", True) else ()
        new = _retyped_attribute(type_, old, wanted, values)
        _edit_schema(draft, type_, old, new)
        after = configure_after(draft, before)
        keep_markdown_body(draft, type_, after.schema, type_.body)
        after = draft.configuration()
        draft.more_arguments["from"] = _word(old)
    elif name not in type_.attributes or _word(type_.attributes[name]) != wanted:
        return  # A later change has removed or retyped the attribute.
    else:
        new = type_.attributes[name]
        old = _former(new, str(migration.arguments.get("from", new.type)))
    conversion = _conversion(old, new)

    def editor(mapping: AttributeMapping) -> Edits:
        if name not in mapping.values or new.derived:
            return Edits()
        return _edit_value(draft, mapping, name, conversion, new, is_new=is_new)

    draft.edit_documents(before, after, type_.uid, editor, (name,))
    if is_new and new.relation in ("oneToOne", "oneToMany") and old.relation in ("manyToOne", "manyToMany"):
        _refuse_shared_targets(draft, type_, name, new)


def _edit_value(
    draft: Draft,
    mapping: AttributeMapping,
    name: str,
    conversion: Conversion,
    new: Attribute,
    *,
    is_new: bool,
) -> Edits:
    tree, at = mapping.values[name], (*mapping.key_path, name)
    if not is_new and _is_valid(tree, new):
        return Edits()
    try:
        found = conversion(tree)
    except InvalidValue as error:
        if is_new:
            draft.refuse(
                mapping.path, f'"{name}" must be {error.expected}', error.fix or "correct it first", at
            )
        return Edits()
    if found is None:
        draft.add_loss(mapping.path, at, f'the value of "{name}" can\'t be converted to {new.type}')
        return Edits(values={(name,): REMOVE})
    if not found.is_exact:
        draft.add_loss(mapping.path, at, f'the value of "{name}" would not stay the same as {_word(new)}')
    return Edits() if found.is_unchanged else Edits(values={(name,): found.tree})


def _is_valid(tree: Tree, new: Attribute) -> bool:
    if new.type == "component":
        return isinstance(tree, list) == new.repeatable
    try:
        READERS[new.type](tree, new)
    except InvalidValue:
        return False
    return True


def _conversion(old: Attribute, new: Attribute) -> Conversion:
    if new.type in ("component", "media", "relation"):
        # A single target or file is also a valid list.
        if new.to_many:
            return item_to_list if new.type == "component" else lambda _: ConversionResult(is_unchanged=True)
        return list_to_item
    return lambda tree: convert_tree(tree, old, new)


# --- schema ---------------------------------------------------------------------------------------


def _word(attribute: Attribute) -> str:
    if attribute.type == "relation":
        return attribute.relation or ""
    if attribute.type in _LIST_OPTIONS:
        return MANY if attribute.to_many else ONE
    return attribute.type


def _former(new: Attribute, word: str) -> Attribute:
    if new.type in ("relation", "media", "component"):
        return new
    return replace(new, type=word) if word in READERS else new


def _retyped_attribute(type_: Type, old: Attribute, new_type: str, values: tuple[str, ...]) -> Attribute:
    name = f"{type_.uid}.{old.name}"
    if new_type == _word(old):
        raise ValidationError(f"{name} already has the type {new_type}")
    if old.type == "relation" and new_type in INVERSE_RELATIONS and old.relation in INVERSE_RELATIONS:
        if old.derived:
            raise ValidationError(f"{name} is stored on the other side; retype {old.target} {old.mapped_by}")
        return replace(old, relation=new_type)
    if old.type in _LIST_OPTIONS and new_type in (ONE, MANY):
        many = new_type == MANY
        return replace(old, multiple=many) if old.type == "media" else replace(old, repeatable=many)
    if (old.type, new_type) not in CONVERSIONS:
        known = [new for former, new in CONVERSIONS if former == old.type]
        known += [*INVERSE_RELATIONS] if old.type == "relation" else []
        known += [ONE, MANY] if old.type in _LIST_OPTIONS else []
        hint = suggestion(new_type, known) if new_type not in ATTRIBUTE_TYPES else ""
        fix = hint or (f"use one of {', '.join(sorted(set(known)))}" if known else "use a script")
        raise ValidationError(f"{name} can't be converted from {_word(old)} to {new_type}; {fix}")
    if type_.body == old.name and new_type not in BODY_TYPES:
        raise ValidationError(f"{name} is the body of Markdown files, so it can't become {new_type}")
    return replace(old, type=new_type, enum=values)


def _edit_schema(draft: Draft, type_: Type, old: Attribute, new: Attribute) -> None:
    at = ("attributes", old.name)
    raw: dict[str, Any] = type_.raw["attributes"][old.name]
    edits = Edits()
    if new.type == "relation":
        edits.values[(*at, "relation")] = new.relation
        _edit_inverse(draft, type_, old, new)
    elif new.type in _LIST_OPTIONS:
        edits.values[(*at, _LIST_OPTIONS[new.type])] = new.to_many
    else:
        edits.values[(*at, "type")] = new.type
        unfit = (key for key in raw if new.type not in _OPTIONS.get(key, (new.type,)))
        edits.values.update({(*at, key): REMOVE for key in unfit})
        if new.type == "enumeration":
            edits.values[(*at, "enum")] = list(new.enum)
        if "default" in raw:
            _edit_default(edits, raw["default"], old, new)
        if raw.get("type") == "customField":
            raise ValidationError(f"{type_.uid}.{old.name} is a custom field; edit its schema by hand")
    draft.edit_configuration(type_.path, edits)


def _edit_default(edits: Edits, default: Any, old: Attribute, new: Attribute) -> None:
    try:
        found = convert_tree(default, old, new)
    except InvalidValue:
        found = None
    if found is None or not found.is_unchanged:
        edits.values["attributes", old.name, "default"] = found.tree if found else REMOVE


def _edit_inverse(draft: Draft, type_: Type, old: Attribute, new: Attribute) -> None:
    for path, edits in rename_references(draft, draft.configuration().schema, type_, old.name, "").items():
        for at in edits.values:
            if at[0] == "attributes" and at[-1] == "mappedBy":
                inverse = INVERSE_RELATIONS[new.relation or ""]
                draft.edit_configuration(path, Edits(values={(*at[:-1], "relation"): inverse}))


# --- values ---------------------------------------------------------------------------------------


def _values(draft: Draft, type_: Type, attribute: Attribute) -> tuple[str, ...]:
    if known := draft.enums.get(f"{type_.uid}.{attribute.name}"):
        return known
    found: set[str] = set()

    def collect(mapping: AttributeMapping) -> Edits:
        value = mapping.values.get(attribute.name)
        if isinstance(value, str) and not is_null(value):
            found.add(str(value))
        return Edits()

    before = draft.configuration()
    draft.edit_documents(before, before, type_.uid, collect, (attribute.name,))
    draft.require_possible()
    if len(found) > MAX_VALUES or not found:
        count = f"{len(found):,} different values" if found else "no values"
        raise ValidationError(
            f"{type_.uid}.{attribute.name} has {count}, but an enumeration needs 1 to {MAX_VALUES}"
        )
    return tuple(sorted(found))


def _refuse_shared_targets(draft: Draft, type_: Type, name: str, new: Attribute) -> None:
    snapshot, owners = draft.context.snapshot, dict[Any, str]()
    for (uid, document_id, *_), versions in sorted(snapshot.claims.items()):
        for document in versions if uid == type_.uid else ():
            draft.permit(document.path)
            for target in document.get(name) or ():
                if owners.setdefault(target, document_id) != document_id:
                    what = f'"{name}" refers to {target}, as {owners[target]} does'
                    draft.refuse(document.path, what, f"with {new.relation}, only one document can", (name,))
