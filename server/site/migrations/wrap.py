"""The `wrap`, `unwrap` and `move` migrations."""

from collections.abc import Collection, Mapping, Sequence
from copy import deepcopy
from typing import Any

from server.errors import ValidationError
from server.formats.edits import REMOVE
from server.formats.json import json_text
from server.formats.tree import is_null
from server.paths import TYPES
from server.schema.model import Attribute, Schema, Type
from server.site.migrations.arguments import NEW_COMPONENT
from server.site.migrations.attributes import configure_after, keep_markdown_body, replace_references
from server.site.migrations.draft import AttributeMapping, Draft
from server.site.migrations.edits import Edits
from server.site.migrations.migration import Migration, find_type, require_attribute, split_target
from server.site.migrations.move_to_related import move_to_related
from server.site.migrations.query_names import UP, NewNames

Raw = dict[str, Any]  # an attribute as written in a schema


# --- wrap -----------------------------------------------------------------------------------------


def wrap(draft: Draft, migration: Migration, *, is_new: bool) -> None:
    before = draft.configuration()
    names = [str(name) for name in migration.arguments["attributes"]]
    type_ = find_type(before.schema, str(migration.arguments["type"]))
    uid = str(migration.arguments["component"])
    holder = str(migration.arguments.get("as") or uid.rpartition(".")[2])
    _into_component(draft, type_, names, uid, holder, is_new=is_new)


def _into_component(
    draft: Draft, type_: Type, names: Sequence[str], uid: str, holder: str, *, is_new: bool
) -> None:
    before = draft.configuration()
    after = before
    if is_new:
        _update_references(draft, before.schema, type_, names, holder)
        raws = {name: _inner_raw(type_.raw["attributes"][name]) for name in names}
        private = _needs_private_holder(before.schema, type_, raws, uid, holder)
        if private:
            raws = {name: _public(raw) for name, raw in raws.items()}
        _add_to_component(draft, before.schema, uid, raws)
        _add_holder(draft, type_, names, uid, holder, private=private)
        after = configure_after(draft, before)
        keep_markdown_body(draft, type_, after.schema, type_.body)
        after = draft.configuration()
    elif holder not in type_.attributes:
        return

    def editor(mapping: AttributeMapping) -> Edits:
        found = {
            n: mapping.values[n]
            for n in names
            if n in mapping.values and (is_new or n not in type_.attributes)
        }
        if not found:
            return Edits()
        old = mapping.values.get(holder)
        inner: dict[str, Any] = {} if is_null(old) or not isinstance(old, dict) else dict(old)
        for name in found.keys() & inner.keys():
            what = f'"{name}" is already in "{holder}"'
            draft.refuse(mapping.path, what, "remove one of them", (*mapping.key_path, name))
        edits = Edits(values={(name,): REMOVE for name in found})
        if inner or any(not is_null(value) for value in found.values()):
            edits.values[holder,] = {**inner, **deepcopy(found)}
        return edits

    draft.edit_documents(before, after, type_.uid, editor, names)


def _update_references(draft: Draft, schema: Schema, type_: Type, names: Sequence[str], holder: str) -> None:
    """Update site.yaml's references to the attributes `names`, which move into the component `holder`.

    Raises ValidationError if an attribute can't be moved.
    """
    for name in names:
        require_attribute(type_, name)
        attribute = type_.attributes[name]
        if attribute.inversed_by or attribute.mapped_by:
            raise ValidationError(f"{type_.uid}.{name} has another side, so it can't be in a component")
        if name == type_.body:
            raise ValidationError(f"{type_.uid}.{name} is the body of Markdown files")
        if attribute.type == "dynamiczone":
            raise ValidationError(f"{type_.uid}.{name} is a dynamic zone, which can't be in a component")
        replace_references(draft, schema, type_, NewNames(type_.uid, name, ((holder, name),)))
    if len({type_.attributes[name].localized for name in names}) > 1:
        raise ValidationError(
            "Some of these attributes have a value for each locale and others do not, "
            "so they can't be in the same component"
        )
    draft.require_possible()


def _inner_raw(raw: Raw) -> Raw:
    # Drop the `i18n` option, because components have no locales of their own.
    plugins = {key: value for key, value in (raw.get("pluginOptions") or {}).items() if key != "i18n"}
    rest = {key: value for key, value in raw.items() if key != "pluginOptions"}
    return {**rest, "pluginOptions": plugins} if plugins else rest


def _needs_private_holder(
    schema: Schema, type_: Type, raws: Mapping[str, Raw], uid: str, holder: str
) -> bool:
    component = schema.types.get(uid)
    if component is None or (holder in type_.attributes and holder not in raws):
        return False
    there = component.raw["attributes"]
    return all(
        raw.get("private") is True and name in there and _inner_raw(there[name]) == _public(raw)
        for name, raw in raws.items()
    )


def _public(raw: Raw) -> Raw:
    return {key: value for key, value in raw.items() if key != "private"}


def _add_to_component(draft: Draft, schema: Schema, uid: str, raws: Mapping[str, Raw]) -> None:
    component = schema.types.get(uid)
    if component is None:
        try:
            NEW_COMPONENT.read(uid)
        except ValueError as error:
            raise ValidationError(f"component {error}") from error
        category, _, name = uid.partition(".")
        display = name.replace("-", " ").capitalize()
        made = {"info": {"displayName": display}, "options": {}, "attributes": dict(raws)}
        draft.put(f"{TYPES}/components/{category}/{name}.json", json_text(made, indent="  ") + "\n")
        return
    edits = Edits()
    for name, raw in raws.items():
        there = component.raw["attributes"].get(name)
        if there is None:
            edits.values["attributes", name] = raw
        elif _inner_raw(there) != raw:
            raise ValidationError(f'{uid} already has a different attribute "{name}"')
    draft.edit_configuration(component.path, edits)


def _add_holder(
    draft: Draft, type_: Type, names: Collection[str], uid: str, holder: str, *, private: bool
) -> None:
    edits = Edits(values={("attributes", name): REMOVE for name in names})
    there = type_.attributes.get(holder)
    if there is None or holder in names:
        localized = any(type_.attributes[name].localized for name in names)
        raw: Raw = {"type": "component", "repeatable": False, "component": uid}
        if private:
            raw["private"] = True
            draft.notes.append(f"{type_.uid}.{holder} is private, because {', '.join(names)} were private")
        if localized:
            raw["pluginOptions"] = {"i18n": {"localized": True}}
        edits.values["attributes", holder] = raw
    elif there.component != uid or there.repeatable:
        raise ValidationError(f'{type_.uid} already has an attribute "{holder}"; choose a name with --as')
    draft.edit_configuration(type_.path, edits)


# --- unwrap ---------------------------------------------------------------------------------------


def unwrap(draft: Draft, migration: Migration, *, is_new: bool) -> None:
    """Replace a component attribute with the attributes of the component."""
    before = draft.configuration()
    type_, holder = split_target(before.schema, str(migration.arguments["attribute"]))
    after = before
    if is_new:
        require_attribute(type_, holder)
        component = _single_component(before.schema, type_, type_.attributes[holder])
        replace_references(draft, before.schema, type_, NewNames(type_.uid, holder, ((),)))
        draft.require_possible()
        _move_out(draft, type_, holder, component, component.attributes, drop=True)
        after = configure_after(draft, before)
        keep_markdown_body(draft, type_, after.schema, type_.body)
        after = draft.configuration()
    elif holder in type_.attributes:
        return

    def editor(mapping: AttributeMapping) -> Edits:
        inner = mapping.values.get(holder)
        if holder not in mapping.values or not (isinstance(inner, dict) or is_null(inner)):
            return Edits()
        found = inner if isinstance(inner, dict) else {}
        return _out_of_component(draft, mapping, holder, found, REMOVE)

    draft.edit_documents(before, after, type_.uid, editor, (holder,))


def _out_of_component(
    draft: Draft, mapping: AttributeMapping, holder: str, found: Mapping[str, Any], rest: Any
) -> Edits:
    edits = Edits(values={(holder,): rest})
    for name, value in found.items():
        if name in mapping.values and name != holder:
            draft.refuse(mapping.path, f'already contains the key "{name}"', "remove it first",
                         (*mapping.key_path, name))  # fmt: skip
        edits.values[name,] = deepcopy(value)
    return edits


def _single_component(schema: Schema, type_: Type, attribute: Attribute) -> Type:
    if attribute.type != "component" or attribute.repeatable:
        raise ValidationError(f"{type_.uid}.{attribute.name} does not hold a single component")
    return schema.types[attribute.component or ""]


def _move_out(
    draft: Draft, type_: Type, holder: str, component: Type, names: Collection[str], *, drop: bool
) -> None:
    edits = Edits(values={("attributes", holder): REMOVE} if drop else {})
    for name in names:
        if name in type_.attributes and not (drop and name == holder):
            raise ValidationError(f'{type_.uid} already has an attribute "{name}"')
        raw = _inner_raw(component.raw["attributes"][name])
        if type_.attributes[holder].private and raw.get("private") is not True:
            raw["private"] = True
            draft.notes.append(f"{type_.uid}.{name} becomes private, because {holder} is private")
        if type_.attributes[holder].localized:
            raw["pluginOptions"] = {**raw.get("pluginOptions", {}), "i18n": {"localized": True}}
        edits.values["attributes", name] = raw
    draft.edit_configuration(type_.path, edits)


# --- move -----------------------------------------------------------------------------------------


def move(draft: Draft, migration: Migration, *, is_new: bool) -> None:
    """Move an attribute into a component, out of a component, or to a related type."""
    schema = draft.configuration().schema
    source, name = split_target(schema, str(migration.arguments["attribute"]))
    target = find_type(schema, str(migration.arguments["to"]))
    if holder := _only_holder(source, target.uid):
        _into_component(draft, source, [name], target.uid, holder, is_new=is_new)
    elif holder := _only_holder(target, source.uid):
        _out_to_holder(draft, source, target, name, holder, is_new=is_new)
    elif "component" in (source.kind, target.kind):
        raise ValidationError(
            f"Neither {source.uid} nor {target.uid} holds the other as a single component; "
            "move the values with a script"
        )
    else:
        move_to_related(draft, migration, source, target, is_new=is_new)


def _only_holder(type_: Type, uid: str) -> str:
    found = [a.name for a in type_.attributes.values() if a.component == uid]
    return found[0] if len(found) == 1 and not type_.attributes[found[0]].repeatable else ""


def _out_to_holder(
    draft: Draft, component: Type, type_: Type, name: str, holder: str, *, is_new: bool
) -> None:
    before = draft.configuration()
    after = before
    if is_new:
        require_attribute(component, name)
        holders = {t.uid for t in before.schema.types.values() if _holds(t, component.uid)}
        others = holders - {type_.uid}
        if others:
            raise ValidationError(f"{component.uid} is also used by {', '.join(sorted(others))}")
        replace_references(draft, before.schema, component, NewNames(component.uid, name, ((UP, name),)))
        draft.require_possible()
        _move_out(draft, type_, holder, component, [name], drop=False)
        draft.edit_configuration(component.path, Edits(values={("attributes", name): REMOVE}))
        after = configure_after(draft, before)
        keep_markdown_body(draft, type_, after.schema, type_.body)
        after = draft.configuration()
    elif name in component.attributes or name not in type_.attributes:
        return

    def editor(mapping: AttributeMapping) -> Edits:
        inner = mapping.values.get(holder)
        if not isinstance(inner, dict) or name not in inner:
            return Edits()
        rest = {key: value for key, value in inner.items() if key != name}
        return _out_of_component(draft, mapping, holder, {name: inner[name]}, rest)

    draft.edit_documents(before, after, type_.uid, editor, (name,))


def _holds(type_: Type, uid: str) -> bool:
    return any(uid in a.component_uids for a in type_.attributes.values())
