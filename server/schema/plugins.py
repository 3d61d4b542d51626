"""Schemas of the content types of Strapi's plugins, for code generators."""

from collections.abc import Mapping
from typing import Any

from server.schema.model import ROLE, UPLOAD, USER

Raw = Mapping[str, Any]

FOLDER, LOCALE, PERMISSION = (
    "plugin::upload.folder",
    "plugin::i18n.locale",
    "plugin::users-permissions.permission",
)
_HIDDEN = {"content-manager": {"visible": False}, "content-type-builder": {"visible": False}}
_REQUIRED, _UNIQUE, _PRIVATE = {"required": True}, {"unique": True}, {"private": True}


def _own(kind: str, *options: Raw, **more: Any) -> Raw:
    merged = {key: value for option in options for key, value in option.items()}
    return {"type": kind, "configurable": False, **merged, **more}


def _to(relation: str, target: str, **other: str) -> Raw:
    return {"type": "relation", "relation": relation, "target": target, **other}


def _secret(kind: str, **more: Any) -> Raw:
    return _own(kind, _PRIVATE, searchable=False, **more)


def _hidden_type_schema(names: tuple[str, str, str], collection: str, attributes: Raw) -> Raw:
    info = dict(zip(("displayName", "singularName", "pluralName"), names, strict=True))
    return {
        "kind": "collectionType",
        "collectionName": collection,
        "info": info,
        "pluginOptions": _HIDDEN,
        "attributes": attributes,
    }


_FILE: Raw = {
    "name": _own("string", _REQUIRED),
    "alternativeText": _own("text"),
    "caption": _own("text"),
    "focalPoint": _own("json"),
    "width": _own("integer"),
    "height": _own("integer"),
    "formats": _own("json"),
    "hash": _own("string", _REQUIRED),
    "ext": _own("string"),
    "mime": _own("string", _REQUIRED),
    "size": _own("decimal", _REQUIRED),
    "url": _own("text", _REQUIRED),
    "previewUrl": _own("text"),
    "provider": _own("string", _REQUIRED),
    "provider_metadata": _own("json"),
    "related": _own("relation", relation="morphToMany"),
    "folder": {**_to("manyToOne", FOLDER, inversedBy="files"), **_PRIVATE},
    "folderPath": {"type": "string", "minLength": 1, **_REQUIRED, **_PRIVATE, "searchable": False},
}
_FOLDER: Raw = {
    "name": {"type": "string", "minLength": 1, **_REQUIRED},
    "pathId": {"type": "integer", **_UNIQUE, **_REQUIRED},
    "parent": _to("manyToOne", FOLDER, inversedBy="children"),
    "children": _to("oneToMany", FOLDER, mappedBy="parent"),
    "files": _to("oneToMany", UPLOAD, mappedBy="folder"),
    "path": {"type": "string", "minLength": 1, **_REQUIRED},
}
_USER: Raw = {
    "username": _own("string", _REQUIRED, _UNIQUE, minLength=3),
    "email": _own("email", _REQUIRED, minLength=6),
    "provider": _own("string"),
    "password": _secret("password", minLength=6),
    "resetPasswordToken": _secret("string"),
    "confirmationToken": _secret("string"),
    "confirmed": _own("boolean", default=False),
    "blocked": _own("boolean", default=False),
    "role": {**_own("relation"), **_to("manyToOne", ROLE, inversedBy="users")},
}
_ROLE: Raw = {
    "name": _own("string", _REQUIRED, minLength=3),
    "description": _own("string"),
    "type": _own("string", _UNIQUE),
    "permissions": {**_own("relation"), **_to("oneToMany", PERMISSION, mappedBy="role")},
    "users": {**_own("relation"), **_to("oneToMany", USER, mappedBy="role")},
}
PLUGIN_TYPES: Mapping[str, Raw] = {
    UPLOAD: _hidden_type_schema(("File", "file", "files"), "files", _FILE),
    FOLDER: _hidden_type_schema(("Folder", "folder", "folders"), "upload_folders", _FOLDER),
    LOCALE: _hidden_type_schema(
        ("Locale", "locale", "locales"),
        "i18n_locale",
        {"name": _own("string", min=1, max=50), "code": _own("string", _UNIQUE)},
    ),
    PERMISSION: _hidden_type_schema(
        ("Permission", "permission", "permissions"),
        "up_permissions",
        {
            "action": _own("string", _REQUIRED),
            "role": {**_own("relation"), **_to("manyToOne", ROLE, inversedBy="permissions")},
        },
    ),
    ROLE: _hidden_type_schema(("Role", "role", "roles"), "up_roles", _ROLE),
    USER: {
        "kind": "collectionType",
        "collectionName": "up_users",
        "info": {"displayName": "User", "singularName": "user", "pluralName": "users"},
        "options": {"timestamps": True},
        "attributes": _USER,
    },
}
