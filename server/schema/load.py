"""Reader for the schemas in content-types/."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from server.errors import SetupError, collect_setup_errors
from server.formats.config_file import ConfigFile, read_config_file
from server.formats.tree import describe_value, resolve_plain_values
from server.schema.check import check_cycles, check_type
from server.schema.model import (
    ATTRIBUTE_TYPES,
    BUILT_IN,
    CUSTOM_FIELD,
    DATE_PARTS,
    DATE_TYPES,
    DEPRECATED,
    FILE_FIELDS,
    INVERSE_RELATIONS,
    RESERVED_FIELDS,
    USER,
    Attribute,
    DraftKey,
    Kind,
    Schema,
    Type,
)
from server.schema.rules import read_rules
from server.schema.spelling import TOP_KEYS, find_mistyped_key, suggestion

FORMATS = ("md", "json", "yaml", "toml")  # file formats for new documents
FRONT_MATTER = ("yaml", "toml")  # formats of front matter in new Markdown files
API_ID = re.compile(r"[A-Za-z][A-Za-z0-9]*([-_][A-Za-z0-9]+)*")
ATTRIBUTE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


def read_content_types(root: Path) -> Schema:
    """Read a site's schemas. If there are errors, the first SetupError is raised."""
    schema, errors = read_all_content_types(root)
    if errors:
        raise errors[0]
    return schema


def read_all_content_types(root: Path) -> tuple[Schema, list[SetupError]]:
    """Return the schemas that could be read, and all errors in schema files."""
    types: dict[str, Type] = dict(BUILT_IN)
    files: dict[str, ConfigFile] = {}
    errors: list[SetupError] = []
    folder = root / "content-types"
    paths: list[Path] = []
    with collect_setup_errors(errors):
        paths = _schema_files(root, folder)
    for path in paths:
        with collect_setup_errors(errors):
            file = _read(root, path)
            made = _read_type(file, path.relative_to(folder), errors)
            if made.uid in types:
                what = f"the uid {made.uid} is also defined in {types[made.uid].path}"
                raise file.refuse(what, "remove one of the two", "info")
            types[made.uid] = made
            files[made.uid] = file
    types[USER] = user_type(types.values())
    schema = Schema(types)
    # This check is skipped if a schema can't be read, because every relation to its type would be reported as
    # wrong.
    if not errors:
        for uid, file in files.items():
            check_type(file, types[uid], schema, errors)
        with collect_setup_errors(errors):
            check_cycles(types, files)
    return schema, errors


def user_type(types: Iterable[Type]) -> Type:
    """Return the content type of users, including the inverse sides of relations to users."""
    found = dict(BUILT_IN[USER].attributes)
    for type_ in types:
        for a in type_.attributes.values() if type_.kind != "component" else ():
            kind, name = INVERSE_RELATIONS.get(a.relation or ""), a.inversed_by
            if a.target == USER and kind and name and name not in RESERVED_FIELDS:
                other = Attribute(
                    name, "relation", private=a.private, relation=kind, target=type_.uid, mapped_by=a.name
                )
                found.setdefault(name, other)
    return replace(BUILT_IN[USER], attributes=found)


def schema_paths(root: Path) -> Iterator[str]:
    """Yield the paths of the schema files. If a folder can't be read, yield no paths."""
    try:
        return iter(
            [path.relative_to(root).as_posix() for path in _schema_files(root, root / "content-types")]
        )
    except SetupError:
        return iter(())


def _schema_files(root: Path, folder: Path) -> list[Path]:
    # Do not ignore the error: the content types in an unreadable folder would appear to be deleted.
    def refuse(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):
            path = Path(error.filename or folder).relative_to(root).as_posix()
            if isinstance(error, NotADirectoryError):
                raise SetupError(
                    path, None, "is a file, but must be a folder", "move the file to a different path"
                ) from error
            what = f"the folder can't be read: {error.strerror}"
            raise SetupError(path, None, what, "check its permissions") from error

    return sorted(
        Path(base) / name
        for base, _, names in os.walk(folder, onerror=refuse)
        for name in names
        if name.endswith((".json", ".yaml", ".yml")) and not name.startswith(".")
    )


def _read(root: Path, path: Path) -> ConfigFile:
    file = read_config_file(root, path.relative_to(root).as_posix())
    try:
        return replace(file, data=resolve_plain_values(file.data))
    except ValueError as error:
        raise file.refuse(str(error), "use a different value") from error


def _read_type(file: ConfigFile, place: Path, errors: list[SetupError]) -> Type:
    attributes = _section(file, "attributes")
    wrong_key = (
        find_mistyped_key(file.data, "attributes", TOP_KEYS) if "attributes" not in file.data else None
    )
    # This error is raised first, because otherwise every relation to one of the attributes would be reported
    # as wrong.
    if wrong_key:
        raise file.refuse_key(f'unknown key "{wrong_key}"', 'did you mean "attributes"?', wrong_key)
    if place.parts[0] == "components":
        if len(place.parts) != 3:
            raise file.refuse(
                "the component is not inside a category folder",
                "move the file to content-types/components/CATEGORY/NAME.json",
            )
        uid = f"{place.parts[1]}.{place.stem}"
        display = str(_section(file, "info").get("displayName", place.stem))
        made = _read_attributes(file, attributes, False, errors)
        return Type(uid, "component", place.stem, "", display, made, path=file.path, raw=file.data)
    localized = _is_localized(file.data)
    return _read_content_type(file, _read_attributes(file, attributes, localized, errors), localized)


def _read_attributes(
    file: ConfigFile, names: Iterable[str], localized: bool, errors: list[SetupError]
) -> dict[str, Attribute]:
    made = {}
    for name in names:
        with collect_setup_errors(errors):
            made[name] = _read_attribute(file, name, localized)
    return made


def _read_content_type(file: ConfigFile, attributes: Mapping[str, Attribute], localized: bool) -> Type:
    kind: Kind = file.data.get("kind", "collectionType")
    if kind not in ("collectionType", "singleType"):
        hint = suggestion(str(kind), ("collectionType", "singleType"))
        raise file.refuse_value('be "collectionType" or "singleType"', hint, "kind")
    info = _section(file, "info")
    options = _section(file, "options")
    singular, plural = (_api_id(file, info, key) for key in ("singularName", "pluralName"))
    for option, known in (("format", FORMATS), ("frontMatter", FRONT_MATTER)):
        if options.get(option, known[0]) not in known:
            hint = suggestion(str(options[option]), known)
            raise file.refuse_value("be one of " + ", ".join(known), hint, "options", option)
    return Type(
        uid=f"api::{singular}.{singular}",
        kind=kind,
        singular=singular,
        plural=plural,
        display=str(info.get("displayName", singular)),
        attributes=attributes,
        draft_publish=bool(options.get("draftAndPublish", False)),
        localized=localized,
        files=_patterns(file, options, kind, localized),
        format=options.get("format", FORMATS[0]),
        front_matter=options.get("frontMatter", FRONT_MATTER[0]),
        draft_key=_draft_key(file, options),
        file_name=_file_name(file, options, attributes),
        body=_body(file, options, attributes),
        other_keys=_other_keys(file, options, attributes),
        rules=read_rules(file),
        path=file.path,
        raw=file.data,
    )


def _section(file: ConfigFile, *key_path: str) -> Mapping[str, Any]:
    value = file.get(*key_path)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise file.refuse_value("be an object", "write it as { … }", *key_path)
    return value


def _is_localized(data: Mapping[str, Any], default: bool = False) -> bool:
    options = data.get("pluginOptions")
    i18n = options.get("i18n") if isinstance(options, dict) else None
    return bool(i18n.get("localized", default)) if isinstance(i18n, dict) else default


def _api_id(file: ConfigFile, info: Mapping[str, Any], key: str) -> str:
    value = info.get(key)
    if value is None:
        raise file.refuse(f"info.{key} is missing", f'add "{key}": "…"', "info")
    if not isinstance(value, str) or not API_ID.fullmatch(value):
        raise file.refuse_value("be an API id", "use only letters, digits and dashes", "info", key)
    return value


def _patterns(file: ConfigFile, options: Mapping[str, Any], kind: Kind, localized: bool) -> tuple[str, ...]:
    value = options.get("files", [])
    patterns = [value] if isinstance(value, str) else value
    at = ("options", "files")
    for pattern in patterns:
        if not isinstance(pattern, str) or pattern.startswith("/") or ".." in pattern.split("/"):
            what = f'options.files must not point outside the site\'s folder (found "{pattern}")'
            raise file.refuse(what, "write a path relative to the site's folder", *at)
        if not pattern.endswith((".md", ".mdx", ".markdown", ".json", ".yaml", ".yml", ".toml")):
            what = f'options.files must end with a supported file extension (found "{pattern}")'
            raise file.refuse(what, "use .md, .mdx, .json, .yaml or .toml", *at)
        fields = re.findall(r"\{(.*?)\}", pattern)
        known = ("name", "locale", "initial")
        if any(f not in known for f in fields) or len(set(fields)) != len(fields):
            what = f'options.files contains an unknown or repeated placeholder (found "{pattern}")'
            raise file.refuse(what, "use only {name}, {locale} and {initial}, each at most once", *at)
        if "initial" in fields and "name" not in fields[fields.index("initial") :]:
            what = f'options.files contains {{initial}}, but no {{name}} after it (found "{pattern}")'
            raise file.refuse(what, "add {name} after {initial}", *at)
        if kind == "collectionType" and "name" not in fields:
            what = f'options.files must contain {{name}} (found "{pattern}")'
            raise file.refuse(what, "add {name}, which stands for the document's name", *at)
        if "locale" in fields and not localized:
            what = f'options.files contains {{locale}}, but the type is not localized (found "{pattern}")'
            raise file.refuse(what, "set pluginOptions.i18n.localized to true", *at)
    return tuple(patterns)


def _draft_key(file: ConfigFile, options: Mapping[str, Any]) -> DraftKey | None:
    value = options.get("draftWhen")
    if value is None:
        return None
    at = ("options", "draftWhen")
    (name, wanted), *more = value.items() if isinstance(value, dict) and value else [("", None)]
    if more or not isinstance(wanted, bool | str) or name in FILE_FIELDS:
        fix = 'write it as {"draft": true} or {"published": false}'
        raise file.refuse("options.draftWhen must be an object with exactly one key", fix, *at)
    if not options.get("draftAndPublish"):
        raise file.refuse(
            "options.draftWhen requires options.draftAndPublish, which is not set",
            "set options.draftAndPublish to true",
            *at,
        )
    return DraftKey(name, wanted)


def _body(file: ConfigFile, options: Mapping[str, Any], attributes: Mapping[str, Attribute]) -> str | None:
    name = options.get("body")
    if name is None:
        return next((a.name for a in attributes.values() if a.type == "richtext"), None)
    found = attributes.get(name)
    if found is None or found.type not in ("richtext", "text", "string"):
        raise file.refuse_value(
            "be the name of an attribute of type richtext, text or string",
            "write the name of such an attribute",
            "options",
            "body",
        )
    return found.name


def _file_name(
    file: ConfigFile, options: Mapping[str, Any], attributes: Mapping[str, Attribute]
) -> str | None:
    pattern = options.get("fileName")
    if pattern is None:
        return None
    folders, _, last = pattern.rpartition("/") if isinstance(pattern, str) else ("", "", "")
    names, folder_fields = (re.findall(r"\{(.*?)\}", text) for text in (last, folders))
    fitting = {a.name for a in attributes.values() if a.type in ("string", "uid", *DATE_TYPES)}
    dates = {a.name for a in attributes.values() if a.type in DATE_TYPES}
    parts = {f"{name}.{part}" for name in dates.intersection(names) for part in DATE_PARTS}
    is_known = fitting.issuperset(names) and parts.issuperset(folder_fields)
    if not names or len(set(names)) != len(names) or not is_known:
        fix = (
            "write a pattern such as {date}-{slug} or {date.year}/{date.month}/{date}-{slug}, "
            "with the names of attributes of these types"
        )
        raise file.refuse_value(
            "contain placeholders for string, uid, date or datetime attributes", fix, "options", "fileName"
        )
    return str(pattern)


def _other_keys(
    file: ConfigFile, options: Mapping[str, Any], attributes: Mapping[str, Attribute]
) -> str | None:
    name = options.get("otherKeys")
    if name is None:
        return None
    if not isinstance(name, str) or name not in attributes or attributes[name].type != "json":
        fix = "add an attribute of type json"
        raise file.refuse_value("be the name of an attribute of type json", fix, "options", "otherKeys")
    return name


# options of attributes: field in `Attribute`, key in a schema file, type of the value
_OPTIONS: tuple[tuple[str, str, type | tuple[type, ...]], ...] = (
    ("required", "required", bool),
    ("unique", "unique", bool),
    ("private", "private", bool),
    ("default", "default", object),
    ("min", "min", (int, float, str)),
    ("max", "max", (int, float, str)),
    ("min_length", "minLength", int),
    ("max_length", "maxLength", int),
    ("regex", "regex", str),
    ("enum", "enum", list),
    ("target_field", "targetField", str),
    ("relation", "relation", str),
    ("target", "target", str),
    ("inversed_by", "inversedBy", str),
    ("mapped_by", "mappedBy", str),
    ("component", "component", str),
    ("components", "components", list),
    ("repeatable", "repeatable", bool),
    ("multiple", "multiple", bool),
    ("allowed_types", "allowedTypes", list),
    ("deprecated", "deprecated", (bool, str)),
)
_KINDS: Mapping[type | tuple[type, ...], str] = {
    bool: "true or false",
    int: "a whole number",
    str: "text",
    list: "a list",
    (int, float, str): "a number",
    (bool, str): "true, or text that says what to use instead",
}

# attribute types for the custom fields of Strapi plugins; fields that are not listed have the type `json`
CUSTOM_FIELDS: Mapping[str, str] = {
    "plugin::ckeditor.CKEditor": "richtext",
    "plugin::ckeditor5.CKEditor": "richtext",
    "plugin::color-picker.color": "string",
    "plugin::country-select.country": "string",
    "plugin::string-select.string-select": "string",
}


def _is_no_limit(key: str, value: Any) -> bool:
    # Text is allowed, because Strapi writes the limits of large numbers as text.
    try:
        return key in ("min", "max") and not Decimal(str(value)).is_finite()
    except InvalidOperation:
        return True


def _read_attribute(file: ConfigFile, name: str, type_localized: bool) -> Attribute:
    at = ("attributes", name)
    data = _section(file, *at)
    kind = data.get("type")
    if kind == CUSTOM_FIELD:
        kind = CUSTOM_FIELDS.get(str(data.get("customField")), "json")
    if kind not in ATTRIBUTE_TYPES:
        hint = suggestion(str(kind), ATTRIBUTE_TYPES)
        raise file.refuse(
            f'unknown type "{kind}" in attribute "{name}"' if kind else f'attribute "{name}" has no type',
            hint or "use one of " + ", ".join(ATTRIBUTE_TYPES),
            *at,
            "type",
        )
    if name in RESERVED_FIELDS or not ATTRIBUTE_NAME.fullmatch(name):
        raise file.refuse(f'an attribute can\'t be named "{name}"', "choose a different name", *at)
    values: dict[str, Any] = {"name": name, "type": kind}
    for ours, theirs, want in _OPTIONS:
        value = data.get(theirs)
        if value is None:
            continue
        is_valid = isinstance(value, want) and not (isinstance(value, bool) and want is int)
        if not is_valid or _is_no_limit(theirs, value):
            what = f'{theirs} of attribute "{name}" must be {_KINDS[want]} (found {describe_value(value)})'
            raise file.refuse(what, "", *at, theirs)
        values[ours] = tuple(str(item) for item in data[theirs]) if want is list else value
    if "deprecated" in values:
        said = values["deprecated"]
        values["deprecated"] = said if isinstance(said, str) else DEPRECATED if said else ""
    if kind == "relation" and "morphBy" in data:
        values["mapped_by"] = str(data["morphBy"])
    # Users are not stored in files, so the relation is stored in the files of this content type.
    if values.get("target") == USER and "mapped_by" in values:
        values.setdefault("inversed_by", values.pop("mapped_by"))
    # In a localized content type, attributes without the option `localized` have the same value in all
    # locales. As in Strapi, uids and relations always have a separate value for each locale.
    values["localized"] = type_localized and (kind in ("uid", "relation") or _is_localized(data))
    return Attribute(**values)
