"""Handlers for `/settings` and `/roles`."""

from typing import Any

from flask import Response, request

from server.api.identities import Identities
from server.api.request import add_commit_header, answer, caller_of, read_body
from server.api.response import PRIVATE_REVALIDATE
from server.api.routes.handlers import Handlers
from server.api.routes.write_requests import (
    answer_files,
    commit_message,
    data_of,
    is_dry_run,
    required_if_match,
)
from server.auth.permissions import SETTINGS, has_site_permission
from server.auth.roles import roles_of
from server.errors import ConflictError
from server.service.cache_tags import tag_of, tag_of_bytes
from server.service.read import Caller
from server.service.render import dumps
from server.service.settings import (
    Setting,
    SettingsChange,
    SettingsFile,
    grantable_actions,
    list_roles,
    list_settings,
    make_change,
    preview_change,
    read_settings_file,
    remove_role_change,
    require_role,
    require_settings,
    role_change,
    settings_change,
)
from server.service.write import Writes


def bind(handles: Handlers, identities: Identities, writes: Writes) -> None:
    """Register the handlers."""

    @handles("findSettings")
    def find_settings() -> Response:
        caller = caller_of(request)
        require_settings(caller, "read")
        return show_settings(caller, read_settings_file(writes))

    @handles("updateSettings")
    def update_settings() -> Response:
        caller = caller_of(request)
        require_settings(caller, "read", "write")
        change = settings_change(caller, required_if_match(), data_of(read_body(request)))
        return apply(caller, change, show_settings)

    @handles("listRoles")
    def find_roles() -> Response:
        caller = caller_of(request)
        require_role(caller, "find")
        return show_roles(caller, read_settings_file(writes))

    @handles("putRole")
    def put_role(role: str) -> Response:
        caller = caller_of(request)
        require_role(caller, "find", "update")
        change = role_change(caller, required_if_match(), role, data_of(read_body(request)))
        return apply(caller, change, show_roles)

    @handles("removeRole")
    def remove_role(role: str) -> Response:
        caller = caller_of(request)
        require_role(caller, "find", "update")
        # Otherwise, a user could get the role between the count of its users and the write.
        with identities.users.locked() as users:
            change = remove_role_change(caller, required_if_match(), role, users.get(role, 0))
            return apply(caller, change, show_roles)

    def apply(caller: Caller, change: SettingsChange, show: Any) -> Response:
        if is_dry_run():
            return answer_files(preview_change(writes, caller, change))
        file, commit = make_change(writes, caller, change, commit_message(request, change.message))
        return add_commit_header(show(caller, file), commit)

    def show_settings(caller: Caller, file: SettingsFile) -> Response:
        rows = [_setting_json(setting) for setting in list_settings(caller, file)]
        may_write = has_site_permission(caller.actor, SETTINGS, "write", caller.state.schema)
        meta = {"problem": file.problem or None}
        return _tagged(file, {"data": rows, "meta": meta}, may_write=may_write)

    def show_roles(caller: Caller, file: SettingsFile) -> Response:
        if file.problem:
            raise ConflictError(f"{file.problem}; fix the file first")
        names, users = {role.type: role for role in roles_of(file.settings)}, identities.users.count_by_role()
        rows = [
            {
                "name": role.name,
                "label": names[role.name].name,
                "description": names[role.name].description,
                "permissions": role.permissions,
                "users": users.get(role.name, 0),
                "changeable": role.changeable,
            }
            for role in list_roles(caller, file.settings)
        ]
        meta = {"actions": grantable_actions(caller.state.schema)}
        may_write = caller.actor.may("role", "update")
        return _tagged(file, {"data": rows, "meta": meta}, may_write=may_write)


def _setting_json(setting: Setting) -> dict[str, Any]:
    key = setting.key
    return {
        "key": key.name,
        "type": key.value_type,
        "description": setting.description,
        "default": setting.default,
        "value": setting.value,
        "set": setting.is_set,
        "editable": key.editable,
        "secret": key.secret,
        "restart": key.restart,
    }


def _tagged(file: SettingsFile, value: object, *, may_write: bool) -> Response:
    # This is not counted against `api.limits`: a write is not undone if it fails here, and too low a limit
    # can be raised again.
    body = dumps(value)
    response = answer(body, cache_control=PRIVATE_REVALIDATE)
    # The version depends on parts of the file that are not shown, such as comments.
    response.headers["ETag"] = tag_of(file.version, body) if may_write else tag_of_bytes(body)
    return response
