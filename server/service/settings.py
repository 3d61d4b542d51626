"""Reading and changing the settings and roles in site.yaml over the API."""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from server.auth.permissions import SETTINGS, Actor, forbidden, has, has_all, require_of_site
from server.auth.roles import document_id_of, roles_of
from server.config.bounds import violated_bound
from server.config.model import ACTIONS, DEFAULTS, FILE, KEYS, Settings, known_actions, value_of
from server.config.reader import is_invalid, survey_file
from server.config.setting import SettingKey
from server.config.settings_file import (
    HIDDEN,
    PREVIEWS,
    change_settings_text,
    find_setting,
    json_value,
    mask_settings_text,
)
from server.config.webhooks import check_environment, without_variable
from server.documents.path_rules import Layout, PathClaim
from server.errors import (
    ConflictError,
    ForbiddenError,
    NotFoundError,
    PreconditionError,
    SetupError,
    StorageError,
    ValidationError,
)
from server.formats.config_file import ConfigFile, parse_config_file
from server.formats.edits import REMOVE
from server.formats.regular_files import read_regular_file
from server.formats.tree import describe_value
from server.history.differences import diff_lines
from server.schema.model import Schema
from server.schema.spelling import suggestion
from server.service.describe_access import may_see_preview
from server.service.dry_run import FileChange, split_lines
from server.service.read import Caller
from server.service.write import Writes
from server.site.configure import check_populates
from server.storage.files import MISSING_FILE_ERRORS
from server.write.context import Context
from server.write.precondition import matches_version, version_of_text

MAX_CHANGES = 200  # for one request
BUILT_IN_ROLES = frozenset(DEFAULTS.roles)
NEW_ROLE = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,49}")
# YAML does not read some of these words as text; the others are members of every object in JavaScript.
_NO_ROLES = frozenset(
    [
        "null",
        "true",
        "false",
        "yes",
        "no",
        "on",
        "off",
        "y",
        "n",
        "constructor",
        "prototype",
        "tostring",
        "valueof",
        "hasownproperty",
    ]
)
# How to change the settings that have endpoints of their own, by kind.
_ELSEWHERE = {
    "roles": "roles are changed with PUT /roles",
    "webhooks": "webhooks are changed with PUT /webhooks",
}
_FOUND = re.compile(r" \(found .*\)", re.DOTALL)
_MORE = re.compile(r" \(\[more\]\([^)]*\)\)")
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """The text of site.yaml, and its parsed content.

    `problem` is the first error in the file, or "". It quotes no values, because they could be secret.
    """

    text: str
    file: ConfigFile
    settings: Settings
    problem: str

    @property
    def version(self) -> str:
        return version_of_text(self.text)


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting. `value` is None if the setting is not set in site.yaml or is secret."""

    key: SettingKey
    value: Any
    is_set: bool

    @property
    def description(self) -> str:
        return strip_markdown(self.key.description)

    @property
    def default(self) -> str:
        return strip_markdown(self.key.default_description) or _written(value_of(DEFAULTS, self.key.name))


@dataclass(frozen=True, slots=True)
class SettingsChange:
    """A request to change settings.

    `if_match` is the version of site.yaml that the client has read. `values` is called with the settings in
    the file, while the write lock is held, and returns the new values by path. If `prune` is set, sections
    that become empty are removed.
    """

    actor: Actor
    message: str
    if_match: str
    values: Callable[[Settings], Mapping[Path, Any]]
    prune: bool = True


@dataclass(frozen=True, slots=True)
class RoleAccess:
    """A role, and the actions that it permits for each subject, such as a content type.

    `changeable` is set if the caller may change the role.
    """

    name: str
    permissions: Mapping[str, Sequence[str]]
    changeable: bool


# --- reading --------------------------------------------------------------------------------------


def read_settings_file(writes: Writes) -> SettingsFile:
    """Read site.yaml from disk.

    Raises ConflictError if the file is not UTF-8, or StorageError if it can't be read.
    """
    try:
        text = read_regular_file(writes.site.root / FILE).decode()
    except MISSING_FILE_ERRORS:
        text = ""
    except UnicodeDecodeError as error:
        raise ConflictError(f"{FILE} is not UTF-8; save the file as UTF-8 first") from error
    except OSError as error:
        raise StorageError(f"{FILE} can't be read: {error.strerror}") from error
    return parse_settings(text)


def parse_settings(text: str) -> SettingsFile:
    try:
        file = parse_config_file(FILE, text.removeprefix("\ufeff"), optional=True)
    except SetupError as error:
        return SettingsFile(text, ConfigFile(FILE, {}, {}), DEFAULTS, str(error))
    settings, wrong = survey_file(file)
    return SettingsFile(text, file, settings, _FOUND.sub("", str(wrong[0])) if wrong else "")


def list_settings(caller: Caller, file: SettingsFile) -> Iterator[Setting]:
    require_settings(caller, "read")
    for key in KEYS.values():
        if key.value_type != "roles":
            value = json_value(file.file, key)
            yield Setting(key, _shown(caller, file, key, value), value is not None)


def _shown(caller: Caller, file: SettingsFile, key: SettingKey, value: Any) -> Any:
    # An invalid value can contain credentials that do not belong there, such as those in the URL of a bucket.
    if key.secret or (not key.editable and is_invalid(file.file, key)):
        return None
    if key.value_type != PREVIEWS or not isinstance(value, dict):
        return value
    types = caller.state.schema.subjects
    return {
        name: url if name in types and may_see_preview(caller.actor, types[name]) else HIDDEN
        for name, url in value.items()
    }


def list_roles(caller: Caller, settings: Settings) -> list[RoleAccess]:
    """Return all roles with their permissions. Raises ForbiddenError if the caller may not list them."""
    require_role(caller, "find")
    return [
        RoleAccess(
            role.type,
            actions_by_subject(settings.roles[role.type]),
            has_all(caller.actor, settings.roles[role.type]),
        )
        for role in roles_of(settings)
    ]


def actions_by_subject(permissions: frozenset[str]) -> Mapping[str, Sequence[str]]:
    """Group the actions of permissions such as `article.find` by subject, in the documented order."""
    found: dict[str, list[str]] = {}
    for permission in sorted(permissions):
        subject, _, action = permission.rpartition(".")
        found.setdefault(subject, []).append(action)
    order = {subject: known_actions(subject) for subject in found}
    return {
        subject: sorted(actions, key=lambda a: order[subject].index(a) if a in order[subject] else -1)
        for subject, actions in found.items()
    }


def grantable_actions(schema: Schema) -> Mapping[str, Sequence[str]]:
    others = {subject: actions for subject, actions in ACTIONS.items() if subject}
    return {**others, **{subject: known_actions(subject) for subject in schema.subjects}}


def require_settings(caller: Caller, *actions: str) -> None:
    for action in actions:
        require_of_site(caller.actor, SETTINGS, action, caller.state.schema)


def require_role(caller: Caller, *actions: str) -> None:
    for action in actions:
        if not caller.actor.may("role", action):
            raise forbidden(caller.actor, "role", action, is_type=False)


def strip_markdown(markdown: str) -> str:
    return _LINK.sub(r"\1", _MORE.sub("", markdown)).replace("`", "")


def _written(value: Any) -> str:
    if not value and value is not False:
        return ""
    shown = ", ".join(value) if isinstance(value, tuple) else value
    return str(shown).lower() if isinstance(shown, bool) else str(shown)


# --- changes --------------------------------------------------------------------------------------


def settings_change(caller: Caller, if_match: str, data: object) -> SettingsChange:
    """Parse a request to change settings. A value of None restores the default.

    Raises ForbiddenError or ValidationError.
    """
    require_settings(caller, "read", "write")
    if not isinstance(data, dict) or not data or len(data) > MAX_CHANGES:
        raise ValidationError('The request body must look like {"data": {"name": "…"}}')
    values: dict[Path, Any] = {}
    for name, value in data.items():
        found = find_setting(str(name))
        if found is None:
            fix = suggestion(str(name), KEYS)
            hint = f"; {fix}" if fix else ""
            raise invalid([(str(name), f'"{str(name)[:100]}" is not a setting{hint}')])
        key, path = found
        if not key.editable:
            where = _ELSEWHERE.get(key.value_type, f"edit {FILE} instead")
            raise invalid([(key.name, f"{key.name} can't be changed over the API; {where}")])
        values[path] = REMOVE if value is None or value == {} else value
    names = ", ".join(dict.fromkeys(".".join(path) for path in values))
    return SettingsChange(caller.actor, f"Change settings: {names}", if_match, lambda _: values)


def role_change(caller: Caller, if_match: str, role: str, data: object) -> SettingsChange:
    """Parse a request to create or change a role. `data["permissions"]` maps subjects to lists of actions.

    Raises ForbiddenError or ValidationError.
    """
    require_role(caller, "find", "update")
    permissions = data.get("permissions") if isinstance(data, dict) else None
    if not isinstance(permissions, dict) or len(permissions) > MAX_CHANGES:
        raise ValidationError(
            'The request body must look like {"data": {"permissions": {"article": ["find"]}}}'
        )
    known, values = grantable_actions(caller.state.schema), dict[Path, Any]()
    for subject, actions in permissions.items():
        if not isinstance(actions, list) or not all(isinstance(action, str) for action in actions):
            raise invalid([(f"permissions.{subject}", f'"{subject}" must be a list of actions')])
        if actions and subject not in known:
            raise invalid([(f"permissions.{subject}", f'unknown content type "{subject[:100]}"')])
        values[("roles", role, subject)] = list(dict.fromkeys(actions)) or REMOVE

    def values_for(settings: Settings) -> Mapping[Path, Any]:
        if not has_all(caller.actor, settings.roles.get(role, frozenset())):
            raise ForbiddenError(
                f"You can't change the role {role}, because it has permissions that you don't have",
                actor=caller.actor.name,
            )
        if role in settings.roles:
            return values
        if not NEW_ROLE.fullmatch(role) or role.lower() in _NO_ROLES:
            raise ValidationError("A role's name must be letters, digits, - and _, beginning with a letter")
        _require_distinct_name(settings, role)
        return {("roles", role): {}, **values}

    return SettingsChange(caller.actor, f"Change the role {role}", if_match, values_for, prune=False)


def _require_distinct_name(settings: Settings, new: str) -> None:
    for role in settings.roles:
        if document_id_of(role) == new or document_id_of(new) == role:
            raise ConflictError(
                f"The name {new} can't be told from the role {role}, because a role's documentId is role- and"
                " its name; choose another name"
            )


def remove_role_change(caller: Caller, if_match: str, role: str, users: int) -> SettingsChange:
    """Return the change that removes a role. Raises ForbiddenError if the caller may not change roles.

    If `users`, the number of users with the role, is not 0, applying the change raises ConflictError.
    """
    require_role(caller, "find", "update")

    def values_for(settings: Settings) -> Mapping[Path, Any]:
        if role not in settings.roles:
            raise NotFoundError("Role not found")
        if role in BUILT_IN_ROLES:
            raise ConflictError(
                f"The role {role} is built in, so it can't be deleted; remove its permissions"
            )
        if users:
            who = "1 user has" if users == 1 else f"{users:,} users have"
            raise ConflictError(f"{who} the role {role}; give them another role first")
        return {("roles", role): REMOVE}

    return SettingsChange(caller.actor, f"Delete the role {role}", if_match, values_for)


def preview_change(writes: Writes, caller: Caller, change: SettingsChange) -> Sequence[FileChange]:
    _, (before, after) = writes.planned_files(caller, _prepare, change)
    if before == after:
        return []
    shown = [mask_settings_text(text, keeps_inline_comments=True) for text in (before, after)]
    return [settings_diff(before, *shown)]


def settings_diff(text: str, before: str, after: str) -> FileChange:
    lines = diff_lines(split_lines(before), split_lines(after), 0)
    shown = [part for line in lines for part in line.split("\n")]
    return FileChange(FILE, "update" if text else "create", shown)


def make_change(
    writes: Writes, caller: Caller, change: SettingsChange, message: str
) -> tuple[SettingsFile, str]:
    """Change site.yaml. Return the changed file and the id of the commit.

    Raises PreconditionError if the file has changed. Also raises ValidationError, ForbiddenError,
    ConflictError, or any error of `Writes.save`.
    """
    outcome = writes.save(caller, _prepare, change, message=message)
    writes.refresh_configuration((FILE,))
    # Another program could have changed the file again.
    return parse_settings(outcome.result[1]), outcome.commit


def _prepare(change: SettingsChange, context: Context) -> tuple[str, str]:
    before = text_before(context, change.if_match)
    old = parse_settings(before)
    values = change.values(old.settings)
    after = change_settings_text(before, values, prune=change.prune)
    new = parse_settings(after)
    _require_valid(new, context.store.layout.schema, list(values))
    _require_bounds(new, list(values))
    _require_grants(change.actor, old.settings, new.settings)
    _require_same_locales(old.settings, new.settings, list(values), context)
    if after != before:
        context.changeset.put(FILE, after)
    return before, after


def text_before(context: Context, if_match: str) -> str:
    text = context.changeset.text(FILE) if context.changeset.exists(FILE) else ""
    version = version_of_text(text)
    if not matches_version(if_match, version):
        raise PreconditionError(f"{FILE} has changed since you read it", {"version": version})
    return text


def _require_valid(new: SettingsFile, schema: Schema, paths: Sequence[Path]) -> None:
    wrong = settings_errors(new, schema)
    if wrong:
        names = [".".join(path) for path in paths]
        raise invalid([_without_value(error, names) for error in wrong])


def settings_errors(new: SettingsFile, schema: Schema) -> list[SetupError]:
    """Return the errors that would make the server reject the settings."""
    wrong: list[SetupError] = []
    if not new.text.strip():
        return wrong
    try:
        wrong += survey_file(parse_config_file(FILE, new.text.removeprefix("\ufeff"), optional=True))[1]
        wrong += check_populates(new.settings, schema)
    except SetupError as error:
        wrong.append(error)
    try:
        check_environment(new.settings.webhooks, os.environ)
    except SetupError as error:
        wrong.append(without_variable(error))
    return wrong


def _require_bounds(new: SettingsFile, paths: Sequence[Path]) -> None:
    """Raise ValidationError if a value at `paths` is outside the bounds for changes over the API."""
    for name in (".".join(path) for path in paths):
        if key := KEYS.get(name):
            must = violated_bound(key, value_of(new.settings, name))
            written = new.file.get(*key.path)
            if key.value_type == "locales" and isinstance(written, list):
                codes = [str(code).lower() for code in written]
                must = "not contain a locale twice" if len({*codes}) < len(codes) else ""
            if must:
                raise invalid([(name, f"{name} must {must} (found {describe_value(written)})")])


def _require_same_locales(old: Settings, new: Settings, paths: Sequence[Path], context: Context) -> None:
    """Raise ValidationError if a new default locale would move documents to another locale."""
    default = new.locales.default
    if default == old.locales.default:
        return
    schema = context.store.layout.schema
    before, after = Layout(schema, old), Layout(schema, new)
    tables = (context.snapshot.tables[type_.uid] for type_ in schema.content_types if type_.localized)
    served = (document.path for table in tables for document in table.versions.values())
    if any(_changes_locale(before.claim(path), after.claim(path)) for path in chain(served, context.broken)):
        # The message names no file, because the caller may not be allowed to read it.
        name = "locales.default" if ("locales", "default") in paths else "locales.available"
        what = f"Files without a locale in their names would move from {old.locales.default} to {default}"
        raise invalid([(name, f"{what}; run `bifolio migrate set-locale {default}`, which renames them")])


def _changes_locale(before: PathClaim | None, after: PathClaim | None) -> bool:
    return before is not None and after is not None and before.identity != after.identity


def _without_value(error: SetupError, names: Sequence[str]) -> tuple[str, str]:
    """Return the name of the setting that an error is about, and the error's message.

    If the error is not about a setting in `names`, the name is "", and the message does not quote the value.
    """
    name = _name_in(error.message, names)
    return name, str(error) if name else _FOUND.sub("", str(error))


def _name_in(message: str, names: Sequence[str]) -> str:
    return next((name for name in names if name in message), "")


def _require_grants(actor: Actor, old: Settings, new: Settings) -> None:
    for role in old.roles.keys() | new.roles.keys():
        changed = old.roles.get(role, frozenset()) ^ new.roles.get(role, frozenset())
        for permission in sorted(changed):
            if not has(actor, permission):
                raise ForbiddenError(
                    f"You can't change the permission {permission}, because you don't have it",
                    actor=actor.name,
                    permission=permission,
                )


def invalid(errors: Sequence[tuple[str | tuple[str, ...], str]]) -> ValidationError:
    """Return a ValidationError that lists the path and the message of each invalid value."""
    rows = [
        {
            "path": path.split(".") if isinstance(path, str) else list(path),
            "message": message,
            "name": "ValidationError",
        }
        for path, message in errors
    ]
    return ValidationError(errors[0][1], {"errors": rows})
