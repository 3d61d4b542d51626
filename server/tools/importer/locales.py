"""Conversion of imported locales and roles to settings in site.yaml."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from server.config.model import FILE, Settings, known_actions
from server.config.reader import read_settings
from server.errors import SetupError
from server.formats.regular_files import read_regular_file
from server.formats.yaml.reader import read_yaml
from server.paths import CONTENT
from server.storage.document_text import change_text, new_text
from server.tools.importer.readers.links import LinkTable
from server.tools.importer.source import Roles, Source, is_localized


def settings_text(root: Path, source: Source) -> str | None:
    """Return the new text of site.yaml, or None if no change is needed.

    Raises SetupError if the existing site.yaml is invalid.
    """
    settings = read_settings(root)
    localized = any(is_localized(schema) for schema in source.schemas.values())
    locales = {"default": source.default_locale, "available": list(source.locales)}
    if not (root / FILE).exists():
        name = {"name": root.resolve().name}
        locale_settings = {"locales": locales} if localized else {}
        return new_text(
            FILE,
            None,
            {
                **name,
                **locale_settings,
                "api": {"populate_with_pagination": "allow", **source.project.to_nested_mapping()},
            },
        )
    text = read_regular_file(root / FILE).decode("utf-8")
    settings_tree = read_yaml(text) or {}
    changes: dict[str, Any] = {}
    if "populate_with_pagination" not in (settings_tree.get("api") or {}):
        changes["api"] = {**(settings_tree.get("api") or {}), "populate_with_pagination": "allow"}
    if localized:
        changes |= _merged_locale_settings(root, settings, source, settings_tree.get("locales"))
    return change_text(FILE, text, None, changes) if changes else None


def _merged_locale_settings(
    root: Path, settings: Settings, source: Source, current_value: Any
) -> Mapping[str, Any]:
    locales = {"default": source.default_locale, "available": list(source.locales)}
    if settings.locales.default != source.default_locale and (current_value or _has_content(root)):
        raise SetupError(
            FILE,
            None,
            f"the site's default locale is {settings.locales.default}, "
            f"but the content to import has the default locale {source.default_locale}",
            "change locales.default, or import into a different folder",
        )
    missing = [code for code in source.locales if code not in settings.locales.available]
    if not missing and settings.locales.default == source.default_locale:
        return {}
    known = (
        settings.locales.available
        if current_value or settings.locales.default == source.default_locale
        else ()
    )
    available = list(dict.fromkeys([*known, *source.locales]))
    return {"locales": {**locales, "available": available}}


def _has_content(root: Path) -> bool:
    return any(path.is_file() for path in (root / CONTENT).rglob("*"))


# --- roles ----------------------------------------------------------------------------------------

_ROLE = "plugin::users-permissions.role"
_PERMISSION = "plugin::users-permissions.permission"
# maps controllers of Strapi plugins to subjects in site.yaml
_SUBJECTS = {
    "plugin::upload.content-api": "upload",
    "plugin::users-permissions.user": "user",
    "plugin::users-permissions.auth": "auth",
    "plugin::users-permissions.role": "role",
}
_LOCALES = "plugin::i18n.locales.listLocales"


def read_roles(
    entities: Mapping[str, Sequence[tuple[int, Mapping[str, Any]]]], links: LinkTable, uids: Mapping[str, str]
) -> Roles:
    """Return the permissions of each role. Permissions that Bifolio does not support are omitted."""
    names = {row: str(data.get("type")) for row, data in entities.get(_ROLE, ())}
    roles: dict[str, dict[str, list[str]]] = {}
    for row, data in entities.get(_PERMISSION, ()):
        found = _convert_action(str(data.get("action")), uids)
        if found is None:
            continue
        for _, (_, role) in links.targets.get((_PERMISSION, row, "role"), ()):
            if role in names:
                roles.setdefault(names[role], {}).setdefault(found[0], []).append(found[1])
    return roles


def _convert_action(action: str, uids: Mapping[str, str]) -> tuple[str, str] | None:
    if action == _LOCALES:
        return "locale", "find"
    controller, _, verb = action.rpartition(".")
    subject = _SUBJECTS.get(controller)
    if controller.startswith("api::") and controller in uids:
        subject = uids[controller].rpartition(".")[2]
    if subject is None or verb not in known_actions(subject):
        return None
    return subject, verb


def roles_lines(roles: Roles) -> Iterator[str]:
    yield "roles:"
    for name, subjects in roles.items():
        yield f"  {name}:"
        yield from (f"    {subject}: [{', '.join(actions)}]" for subject, actions in subjects.items())
