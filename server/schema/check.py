"""Validation of schemas."""

import re
from collections.abc import Mapping
from importlib import import_module

from server.errors import SetupError, collect_setup_errors
from server.formats.config_file import ConfigFile
from server.schema.model import INVERSE_RELATIONS, RELATIONS, USER, Attribute, Schema, Type
from server.schema.rules import check_rules
from server.schema.spelling import suggestion

# API ids that would conflict with other paths below /api/, or with the names of users, roles or files in
# permissions
RESERVED_IDS = (
    "auth", "connect", "content-type", "content-type-builder", "history", "i18n", "locale", "metrics", "role",
    "upload", "uploads", "user", "users", "users-permissions",
)  # fmt: skip
_EXTERNAL = re.compile(r"(plugin|admin|strapi)::")


def check_type(file: ConfigFile, type_: Type, schema: Schema, errors: list[SetupError]) -> None:
    """Check the schema of one type, and append the errors found to `errors`."""
    with collect_setup_errors(errors):
        _check_api_ids(file, type_, schema)
    with collect_setup_errors(errors):
        check_rules(file, type_, schema.types)
    for attribute in type_.attributes.values():
        with collect_setup_errors(errors):
            _check_attribute(file, type_, attribute, schema.types)


def _check_api_ids(file: ConfigFile, type_: Type, schema: Schema) -> None:
    if type_.kind == "component":
        return
    for key, value in (("singularName", type_.singular), ("pluralName", type_.plural)):
        if value.casefold() in RESERVED_IDS:
            raise file.refuse(
                f'the API id "{value}" is reserved',
                "choose a name other than " + ", ".join(RESERVED_IDS),
                "info",
                key,
            )
        for other in schema.content_types:
            if other is not type_ and value in (other.singular, other.plural):
                raise file.refuse(
                    f'the API id "{value}" is also used in {other.path}',
                    "rename one of the two",
                    "info",
                    key,
                )


def _check_attribute(file: ConfigFile, type_: Type, attribute: Attribute, types: Mapping[str, Type]) -> None:
    at = ("attributes", attribute.name)
    if attribute.type == "relation":
        _check_relation(file, type_, attribute, types)
    elif attribute.type == "component":
        _check_component(file, attribute.component, types, *at, "component")
    elif attribute.type == "dynamiczone":
        for uid in attribute.components:
            _check_component(file, uid, types, *at, "components")
    elif attribute.type == "enumeration" and not attribute.enum:
        raise file.refuse(
            f'the enumeration attribute "{attribute.name}" has no values', 'add "enum": ["…"]', *at
        )
    elif attribute.target_field and attribute.target_field not in type_.attributes:
        raise file.refuse(
            f'unknown targetField "{attribute.target_field}" in attribute "{attribute.name}"',
            suggestion(attribute.target_field, type_.attributes)
            or "use the name of an attribute of this type",
            *at,
            "targetField",
        )
    elif attribute.regex:
        fault = import_module("server.schema.patterns").fault(attribute.regex)
        if fault:
            what = f'the regex of attribute "{attribute.name}" is invalid: {fault}'
            raise file.refuse(what, "write a valid regular expression", *at, "regex")


def _check_component(file: ConfigFile, uid: str | None, types: Mapping[str, Type], *key_path: str) -> None:
    if uid is None:
        raise file.refuse(
            f'attribute "{key_path[1]}" has no component', 'add "component": "category.name"', *key_path
        )
    if uid not in types or types[uid].kind != "component":
        known = [t.uid for t in types.values() if t.kind == "component"]
        raise file.refuse(
            f'unknown component "{uid}"',
            suggestion(uid, known) or f"add content-types/components/{uid.replace('.', '/', 1)}.json",
            *key_path,
        )


def _check_relation(file: ConfigFile, type_: Type, attribute: Attribute, types: Mapping[str, Type]) -> None:
    at = ("attributes", attribute.name)
    if attribute.relation not in RELATIONS:
        raise file.refuse(
            f'unknown relation "{attribute.relation}" in attribute "{attribute.name}"',
            suggestion(str(attribute.relation), RELATIONS)
            or "use one of oneToOne, oneToMany, manyToOne, manyToMany",
            *at,
            "relation",
        )
    if attribute.polymorphic:
        return
    target = types.get(attribute.target or "")
    if target is None and attribute.target and _EXTERNAL.match(attribute.target):
        return
    if target is None or target.kind == "component":
        known = [t.uid for t in types.values() if t.kind != "component"]
        raise file.refuse(
            f'unknown content type "{attribute.target}"',
            suggestion(str(attribute.target), known) or "add a schema for it to content-types/",
            *at,
            "target",
        )
    if attribute.inversed_by and attribute.mapped_by:
        what = f'attribute "{attribute.name}" has both "inversedBy" and "mappedBy"'
        raise file.refuse(
            what,
            "keep one of them here, and move the other to the attribute on the other side of the relation",
            *at,
        )
    other_name = attribute.inversed_by or attribute.mapped_by
    if other_name:
        _check_inverse(file, type_, attribute, target, other_name, types)


def _check_inverse(
    file: ConfigFile,
    type_: Type,
    attribute: Attribute,
    target: Type,
    name: str,
    types: Mapping[str, Type],
) -> None:
    key = "inversedBy" if attribute.inversed_by else "mappedBy"
    at = ("attributes", attribute.name, key)
    if type_.kind == "component":
        raise file.refuse(f'a relation in a component can\'t have "{key}"', "remove this key", *at)
    other = target.attributes.get(name)
    if target.uid == USER and (
        other is None or (other.target, other.mapped_by) != (type_.uid, attribute.name)
    ):
        what = f'users already have an attribute named "{name}"'
        raise file.refuse(what, f"choose a different name for {key}", *at)
    if other is None or other.type != "relation":
        raise file.refuse(
            f'{target.uid} has no relation "{name}"',
            suggestion(name, target.attributes) or f"add the relation to {target.path}",
            *at,
        )
    if attribute.morph or other.morph:
        return
    if other.target not in types and not _EXTERNAL.match(other.target or ""):
        return  # This has already been reported as an error in the other content type's schema file.
    back = other.mapped_by if attribute.inversed_by else other.inversed_by
    if other.target != type_.uid or back != attribute.name:
        want = "mappedBy" if attribute.inversed_by else "inversedBy"
        raise file.refuse(
            f'the attribute "{name}" of {target.uid} does not point back to this relation',
            f'write "target": "{type_.uid}" and "{want}": "{attribute.name}" in {target.path}',
            *at,
        )
    if INVERSE_RELATIONS[attribute.relation or ""] != other.relation:
        raise file.refuse(
            f"this relation is {attribute.relation}, but its inverse in {target.path} is {other.relation}",
            f"change the relation in that file to {INVERSE_RELATIONS[attribute.relation or '']}",
            *at[:2],
            "relation",
        )


def check_cycles(types: Mapping[str, Type], files: Mapping[str, ConfigFile]) -> None:
    """Raise SetupError if components require each other in a cycle."""
    needs = {
        uid: {
            a.component: a.name
            for a in t.attributes.values()
            if a.component and a.required and (not a.repeatable or (a.min or 0) > 0)
        }
        for uid, t in types.items()
        if t.kind == "component"
    }
    for start in needs:
        path, seen = [start], {start}
        while path:
            step = next((n for n in needs.get(path[-1], {}) if n == start or n not in seen), None)
            if step is None:
                path.pop()
            elif step == start:
                chain = " → ".join([*path, start])
                name = needs[start][path[1] if len(path) > 1 else start]
                raise files[start].refuse(
                    f"these components require each other in a cycle: {chain}",
                    'remove "required" in one of these components',
                    "attributes",
                    name,
                )
            else:
                seen.add(step)
                path.append(step)
