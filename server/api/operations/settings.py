"""Operations on site.yaml (docs/settings.md, docs/access.md)."""

from server.api.operations.json_schema import (
    COUNT,
    FLAG,
    READ,
    TEXT,
    TEXT_OR_NULL,
    WRITE,
    JsonSchema,
    body_of,
    in_path,
    list_of,
    object_of,
    parameter_refs,
    response_doc,
)
from server.api.operations.operation import Area, Docs, Operation, Tag
from server.api.operations.permission import may
from server.auth.permissions import SETTINGS

OF_SETTINGS = Tag("Settings", "Settings and roles in `site.yaml`.")

_SETTING = object_of(
    {
        **dict.fromkeys(("key", "type", "description", "default"), TEXT),
        "value": {"description": "The value in `site.yaml`; null if it is not set, or secret."},
        "set": {**FLAG, "description": "Whether `site.yaml` contains a value."},
        "editable": {**FLAG, "description": "Whether `PUT /settings` can change it."},
        "secret": {**FLAG, "description": "Whether the value is never shown."},
        "restart": {**FLAG, "description": "Whether a change takes effect after a restart of the server."},
    }
)
_PROBLEM = object_of({"problem": {**TEXT_OR_NULL, "description": "The first error in `site.yaml`."}})
_SETTINGS = object_of({"data": list_of(_SETTING), "meta": _PROBLEM})
_SETTINGS_BODY = object_of(
    {"data": {"type": "object", "minProperties": 1, "description": "Values by key; null for the default."}}
)
_ACTIONS: JsonSchema = {"type": "object", "additionalProperties": list_of(TEXT)}
_ROLE = object_of(
    {
        **dict.fromkeys(("name", "label", "description"), TEXT),
        "permissions": {**_ACTIONS, "description": "Permitted actions, by subject."},
        "users": {**COUNT, "description": "Number of users with this role."},
        "changeable": {**FLAG, "description": "Whether the caller has all of the role's permissions."},
    }
)
_ROLES = object_of(
    {
        "data": list_of(_ROLE),
        "meta": object_of({"actions": {**_ACTIONS, "description": "All actions, by subject."}}),
    }
)
_ROLE_BODY = object_of({"data": object_of({"permissions": _ACTIONS})})
_IN_PATH = in_path("role", "The name of a role.")
_IF_MATCH = parameter_refs("requiredIfMatch")
_SHOWN = "after the write; with `dryRun=true`, the change in `site.yaml`."
_ERRORS = (*WRITE, 404, 412)


def _role_write(id_: str, method: str, summary: str, body: JsonSchema | None) -> Operation:
    docs = Docs(
        summary,
        {200: response_doc(f"The roles {_SHOWN}", _ROLES, has_etag=True)},
        [_IN_PATH, *_IF_MATCH],
        body,
        _ERRORS,
    )
    permission = may("role", "find", "update")
    return Operation(id_, method, "/roles/{role}", permission, docs, dry_run="writer", commits="maybe")


SITE_FILE = Area(
    "settings",
    parts=("settings", "roles"),
    tag=OF_SETTINGS,
    may_query_accounts=True,
    operations=(
        Operation(
            "findSettings", "GET", "/settings", may(SETTINGS, "read"),
            Docs("List settings", {200: response_doc("The settings.", _SETTINGS, has_etag=True)}),
        ),
        Operation(
            "updateSettings", "PUT", "/settings", may(SETTINGS, "read", "write"),
            Docs(
                "Change settings in `site.yaml`",
                {200: response_doc(f"The settings {_SHOWN}", _SETTINGS, has_etag=True)},
                _IF_MATCH, body_of(_SETTINGS_BODY), (*WRITE, 412),
            ),
            dry_run="writer", commits="maybe",
        ),
        Operation(
            "listRoles", "GET", "/roles", may("role", "find"),
            Docs(
                "List roles with all their permissions",
                {200: response_doc("The roles.", _ROLES, has_etag=True)},
                errors=(*READ, 409, 503),
            ),
        ),
        _role_write(
            "putRole", "PUT", "Change the permissions of a role, or create a role", body_of(_ROLE_BODY)
        ),
        _role_write("removeRole", "DELETE", "Delete a role", None),
    ),
)  # fmt: skip
