"""Conversion of imported schemas. Attributes and schemas that Bifolio does not support are omitted."""

import re
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from server.config.model import FILE, Settings
from server.config.reader import read_settings
from server.errors import ConflictError, SetupError
from server.formats.edits import REMOVE
from server.formats.json import json_text, read_json
from server.formats.tree import SyntaxProblem, resolve_plain_values
from server.formats.yaml.reader import read_yaml
from server.paths import TYPES
from server.schema.load import read_content_types
from server.schema.model import ATTRIBUTE_TYPES, BUILT_IN, CUSTOM_FIELD, USER, Schema
from server.storage.document_text import change_text
from server.tools.importer.merge import Merge
from server.tools.importer.record import digest_of
from server.tools.importer.source import ImportNotes, Json, SchemaJson

# attributes that Strapi adds to every content type
_ADDED_ATTRIBUTES = (
    "createdAt",
    "updatedAt",
    "publishedAt",
    "createdBy",
    "updatedBy",
    "locale",
    "localizations",
)
_SCHEMA_KEYS = ("kind", "collectionName", "info", "options", "pluginOptions", "attributes")
_UID = re.compile(r"api::([^.]+)\.([^.]+)")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")

UNKNOWN_TYPE_MESSAGE = "belongs to a plugin or the admin panel, which Bifolio does not have"
NOT_IMPORTED: Mapping[str, str] = {
    "plugin::upload.folder": "folders of the media library are not supported; their files were imported",
    "plugin::users-permissions.user": "accounts are not imported; create them with `bifolio user create`",
    "plugin::users-permissions.role": "define roles in site.yaml (docs/access.md)",
    "plugin::users-permissions.permission": "define permissions in site.yaml (docs/access.md)",
    "admin::api-token": "tokens are not imported; create them with `bifolio token create`",
    "plugin::content-releases.release": "releases are not supported; use git branches",
    "plugin::review-workflows.workflow": "review workflows are not supported; use reviews on your git host",
}


@dataclass(frozen=True, slots=True)
class SiteModel:
    """The site's schema and settings after the import."""

    schema: Schema
    settings: Settings


def bifolio_uids(schemas: Sequence[SchemaJson]) -> dict[str, str]:
    """Map Strapi's uids to Bifolio's uids, for example `api::blog.article` to `api::article.article`."""
    found = {}
    for schema in schemas:
        uid = str(schema["uid"])
        known = _UID.fullmatch(uid)
        name = (schema.get("info") or {}).get("singularName") or (known[2] if known else "")
        found[uid] = f"api::{name}.{name}" if known else uid
    return found


def clean_schemas(schemas: Sequence[SchemaJson], uids: Mapping[str, str]) -> dict[str, Json]:
    """Convert Strapi's schemas to the contents of Bifolio's schema files. The keys are Bifolio's uids."""
    found = {}
    for schema in schemas:
        uid = str(schema["uid"])
        if _UID.fullmatch(uid) or "::" not in uid:
            _require_valid_shape(uid, schema)
            clean = {key: schema[key] for key in _SCHEMA_KEYS if schema.get(key) is not None}
            if "::" not in uid:
                clean.pop("kind", None)
            clean["attributes"] = {
                name: _attribute(attribute, uids)
                for name, attribute in schema["attributes"].items()
                if name not in _ADDED_ATTRIBUTES and not name.startswith("strapi_")
            }
            found[uids[uid]] = clean
    return found


def note_user_attributes(schemas: Sequence[SchemaJson], uids: Mapping[str, str], notes: ImportNotes) -> None:
    """Add notes about the attributes that the project has added to users, because they are not imported."""
    found: Mapping[str, SchemaJson] = next(
        (schema["attributes"] for schema in schemas if schema["uid"] == USER), {}
    )
    for name, attribute in found.items():
        target = str(attribute.get("target"))
        if name in BUILT_IN[USER].attributes or name in _ADDED_ATTRIBUTES or name.startswith("strapi_"):
            continue
        if attribute.get("type") != "relation" or not _UID.fullmatch(target):
            notes.add(USER, f'"{name}" was added to users; accounts in Bifolio do not support it')
        elif not attribute.get("inversedBy") and not attribute.get("mappedBy"):
            other = uids.get(target, target)
            notes.add(USER, f'"{name}" is one-way; to import it into {other}, make it two-way in Strapi')


# Other rules are checked when the schema files are read.
_SHAPES: Mapping[str, type] = {"info": dict, "options": dict, "pluginOptions": dict, "attributes": dict}
_PARTS: Mapping[str, type] = {
    "type": str, "target": str, "relation": str, "component": str, "components": list, "pluginOptions": dict,
}  # fmt: skip


def _require_valid_shape(uid: str, schema: SchemaJson) -> None:
    attributes = schema["attributes"]
    wrong = [key for key, kind in _SHAPES.items() if not isinstance(schema.get(key) or {}, kind)]
    for name, attribute in attributes.items() if not wrong else ():
        if not isinstance(attribute, dict) or not isinstance(attribute.get("type"), str):
            wrong.append(name)
            continue
        wrong += [
            f"{name}.{key}"
            for key, kind in _PARTS.items()
            if not isinstance(attribute.get(key, kind()), kind)
        ]
        wrong += [f"{name}.components" for c in attribute.get("components", ()) if not isinstance(c, str)]
        wrong += (
            [name] if attribute["type"] in _NEEDED and _NEEDED[attribute["type"]] not in attribute else []
        )
    i18n = (schema.get("pluginOptions") or {}).get("i18n") if not wrong else None
    if wrong or not isinstance(i18n or {}, dict):
        raise ValueError(f"the schema of {uid} is invalid at {(wrong or ['pluginOptions'])[0]}")


_NEEDED = {"component": "component", "dynamiczone": "components"}


def _attribute(attribute: SchemaJson, uids: Mapping[str, str]) -> Json:
    clean = dict(attribute)
    if "target" in clean:
        clean["target"] = uids.get(clean["target"], clean["target"])
    return clean


def schema_path(uid: str, schema: SchemaJson) -> str | None:
    """Return the path of a schema's file, or None if the schema's name is invalid."""
    if "::" in uid:
        parts = [str((schema.get("info") or {}).get("singularName"))]
    else:
        parts = ["components", *uid.split(".")]
    if not all(_NAME.fullmatch(part) for part in parts):
        return None
    return f"{TYPES}/{'/'.join(parts)}.json"


def merge_schemas(
    root: Path, schemas: Mapping[str, SchemaJson], notes: ImportNotes, new_merge: Callable[[], Merge]
) -> tuple[Merge, SiteModel]:
    """Merge schemas into the site. Each invalid schema is left out and mentioned in a note.

    Raises SetupError if the site's own files are invalid.
    """
    remaining = {uid: dict(schema) for uid, schema in schemas.items()}
    _remove_unsupported(remaining, notes)
    existing_paths = {uid: type_.path for uid, type_ in read_content_types(root).types.items() if type_.path}
    while True:
        merge = new_merge()
        paths = {
            existing_paths.get(uid) or str(schema_path(uid, schema)): uid for uid, schema in remaining.items()
        }
        for path, uid in paths.items():
            _merge_schema(merge, path, remaining[uid])
        with tempfile.TemporaryDirectory(prefix="bifolio-import-") as folder:
            stage = Path(folder)
            _copy_site(root, stage, merge)
            try:
                return merge, SiteModel(read_content_types(stage), read_settings(stage))
            except SetupError as error:
                refused = paths.get(error.path)
                if refused is None:
                    raise
                _remove_schema(remaining, refused, f"{error.message}; the import leaves out this type", notes)


def _merge_schema(merge: Merge, path: str, schema: SchemaJson) -> None:
    def changed(old: str) -> str:
        try:
            tree = read_json(old) if path.endswith(".json") else read_yaml(old)
        except SyntaxProblem as error:
            raise ConflictError(f"{path}: {error.message}") from error
        if resolve_plain_values(tree) == resolve_plain_values(dict(schema)):
            return old
        changes = {**dict.fromkeys(tree, REMOVE), **schema}
        return change_text(path, old, None, changes)

    def new() -> str:
        return json_text(dict(schema), indent="  ") + "\n"

    merge.merge_text(TYPES, path, digest_of(schema), new, changed)


def _copy_site(root: Path, stage: Path, merge: Merge) -> None:
    if (root / FILE).is_file():
        shutil.copyfile(root / FILE, stage / FILE)
    if (root / TYPES).is_dir():
        shutil.copytree(root / TYPES, stage / TYPES)
    for path, text in merge.changeset.texts():
        (stage / path).parent.mkdir(parents=True, exist_ok=True)
        (stage / path).write_bytes(text.encode())


def _remove_unsupported(schemas: dict[str, Json], notes: ImportNotes) -> None:
    for uid in [uid for uid, schema in schemas.items() if schema_path(uid, schema) is None]:
        _remove_schema(schemas, uid, "its name can't be a file name; the import leaves it out", notes)
    for uid, schema in schemas.items():
        wrong = {name: _unsupported_reason(a, schemas) for name, a in schema["attributes"].items()}
        for name, why in wrong.items():
            if why:
                notes.add(uid, f'"{name}" {why}; the import leaves it out')
        schema["attributes"] = {name: a for name, a in schema["attributes"].items() if not wrong[name]}


def _unsupported_reason(attribute: SchemaJson, schemas: Mapping[str, SchemaJson]) -> str:
    kind, target = attribute.get("type"), attribute.get("target")
    if kind not in ATTRIBUTE_TYPES and kind != CUSTOM_FIELD:
        return f"has the type {kind}, which Bifolio does not support"
    if target and target not in schemas and target not in BUILT_IN:
        return f"refers to {target}, which is not a content type"
    return ""


def _remove_schema(schemas: dict[str, Json], uid: str, reason: str, notes: ImportNotes) -> None:
    notes.add(uid, reason)
    del schemas[uid]
    for other_uid, schema in schemas.items():
        kept: dict[str, Any] = {}
        for name, attribute in schema["attributes"].items():
            if uid in (attribute.get("target"), attribute.get("component")):
                notes.add(other_uid, f'"{name}" requires {uid}; the import leaves it out')
                continue
            if uid in (attribute.get("components") or ()):
                rest = [component for component in attribute["components"] if component != uid]
                kept[name] = {**attribute, "components": rest}
                continue
            kept[name] = attribute
        schema["attributes"] = kept
