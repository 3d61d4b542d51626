"""The `rename-component`, `rename-type` and `set-locale` migrations."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from server.config.model import FILE
from server.documents.path_rules import ENDINGS, Layout
from server.errors import ValidationError
from server.formats.edits import REMOVE
from server.formats.text_positions import KeyPath
from server.formats.tree import Plain, Tree
from server.paths import CONTENT, TYPES
from server.schema.model import Schema, Type
from server.site.configure import Configuration
from server.site.migrations.attributes import configure_after
from server.site.migrations.draft import AttributeMapping, Draft
from server.site.migrations.edits import Edits
from server.site.migrations.migration import Migration, find_type
from server.site.migrations.references import entries, settings_tree, value_at

# Sections of site.yaml whose keys are content types.
_BY_TYPE = (("api", "populate"), ("preview",), ("export", "types"))


def _renamed(old: Tree, new: str) -> str:
    return Plain(new) if type(old) is Plain else new


def _rename_uid(draft: Draft, schema: Schema, old: str, new: str) -> None:
    for type_ in schema.types.values():
        edits = Edits()
        for name, raw in type_.raw.get("attributes", {}).items() if type_.path else ():
            for key in ("target", "component"):
                if raw.get(key) == old:
                    edits.values["attributes", name, key] = new
            if old in (raw.get("components") or ()):
                edits.values["attributes", name, "components"] = [
                    new if uid == old else uid for uid in raw["components"]
                ]
        draft.edit_configuration(type_.path, edits)
    _rename_uid_in_settings(draft, old, new)


def _rename_uid_in_settings(draft: Draft, old: str, new: str) -> None:
    edits = Edits()
    _rename_on(settings_tree(draft), (), old, new, edits)
    draft.edit_configuration(FILE, edits)


def _rename_on(tree: Tree, key_path: KeyPath, old: str, new: str, edits: Edits) -> None:
    for key, value in tree.items() if isinstance(tree, dict) else ():
        if key_path and key_path[-1] == "on" and key == old:
            edits.renames[(*key_path, key)] = new
        _rename_on(value, (*key_path, key), old, new, edits)


# --- components -----------------------------------------------------------------------------------


def rename_component(draft: Draft, migration: Migration, *, is_new: bool) -> None:
    """Rename a component in the schemas, the dynamic zones of documents, and site.yaml."""
    before = draft.configuration()
    old, new = str(migration.arguments["component"]), str(migration.arguments["to"])
    after = before
    if is_new:
        component = find_type(before.schema, old)
        if component.kind != "component":
            raise ValidationError(f'"{old}" must be CATEGORY.NAME, such as shared.seo')
        category, _, name = new.partition(".")
        if new in before.schema.types:
            raise ValidationError(f"{new} already exists")
        ending = PurePosixPath(component.path).suffix
        _rename_uid(draft, before.schema, component.uid, new)
        draft.move(component.path, f"{TYPES}/components/{category}/{name}{ending}")
        draft.require_possible()
        after = configure_after(draft, before)
    elif old in before.schema.types:
        return
    _edit_zones(draft, before, after, old, new)


def _edit_zones(draft: Draft, before: Configuration, after: Configuration, old: str, new: str) -> None:
    for type_ in before.schema.types.values():
        zones = [a.name for a in type_.attributes.values() if a.type == "dynamiczone"]
        if not zones:
            continue

        def editor(mapping: AttributeMapping, zones: list[str] = zones) -> Edits:
            edits = Edits()
            for zone in zones:
                items = mapping.values.get(zone)
                for i, item in enumerate(items if isinstance(items, list) else ()):
                    if isinstance(item, dict) and item.get("__component") == old:
                        edits.values[zone, i, "__component"] = _renamed(item["__component"], new)
            return edits

        draft.edit_documents(before, after, type_.uid, editor, (old,))


# --- types ----------------------------------------------------------------------------------------


def rename_type(draft: Draft, migration: Migration, *, is_new: bool) -> None:
    """Rename a content type in the schemas, the documents, the file names and site.yaml."""
    before = draft.configuration()
    old, new = str(migration.arguments["type"]), str(migration.arguments["to"])
    plural = str(migration.arguments["plural"])
    if is_new:
        type_ = find_type(before.schema, old)
        if type_.kind == "component":
            raise ValidationError(f"{old} is a component; use bifolio migrate rename-component")
        draft.more_arguments["from-plural"] = type_.plural
        rename_type_in_settings(draft, TypeRename(type_.singular, type_.plural, new, plural))
        _rename_uid(draft, before.schema, type_.uid, _uid(new))
        info: KeyPath = ("info",)
        edits = Edits(values={(*info, "singularName"): new, (*info, "pluralName"): plural})
        draft.edit_configuration(type_.path, edits)
        place = PurePosixPath(type_.path)
        if place.stem == type_.singular:
            draft.move(type_.path, str(place.with_stem(new)))
        draft.require_possible()
        draft.notes.append("tokens with permissions for the old name must be created again")
        draft.notes.append(f"/api/{type_.plural} becomes /api/{plural}; ids (but not documentIds) change")
    elif old in before.schema.subjects or new not in before.schema.subjects:
        return
    _edit_morphs(draft, before, old, new)
    if is_new:
        configure_after(draft, before)
    _move_files(
        draft, old, new, str(migration.arguments.get("from-plural", "")) or _plural(before, old), plural
    )


def _uid(singular: str) -> str:
    return f"api::{singular}.{singular}"


def _plural(before: Configuration, singular: str) -> str:
    type_ = before.schema.subjects.get(singular)
    return type_.plural if type_ else f"{singular}s"


def _edit_morphs(draft: Draft, before: Configuration, old: str, new: str) -> None:
    for type_ in before.schema.types.values():
        names = [a.name for a in type_.attributes.values() if a.polymorphic and not a.derived]
        if not names:
            continue

        def editor(mapping: AttributeMapping, names: list[str] = names) -> Edits:
            edits = Edits()
            for name in names:
                value = mapping.values.get(name)
                targets: list[tuple[KeyPath, Any]] = [((name,), value)]
                if isinstance(value, list):
                    targets = [((name, i), item) for i, item in enumerate(value)]
                for at, item in targets:
                    if isinstance(item, dict) and item.get("__type") == _uid(old):
                        edits.values[(*at, "__type")] = _renamed(item["__type"], _uid(new))
            return edits

        draft.edit_documents(before, before, type_.uid, editor, (_uid(old),))


def _move_files(draft: Draft, old: str, new: str, old_plural: str, plural: str) -> None:
    type_ = draft.configuration().schema.subjects[new]
    if type_.files:
        return
    for path in list(draft.paths):
        target = path
        if type_.kind == "singleType" and path.startswith(f"{CONTENT}/{old}.") and path.endswith(ENDINGS):
            target = f"{CONTENT}/{new}.{path.removeprefix(f'{CONTENT}/{old}.')}"
        elif type_.kind != "singleType" and path.startswith(f"{CONTENT}/{old_plural}/"):
            target = f"{CONTENT}/{plural}/{path.removeprefix(f'{CONTENT}/{old_plural}/')}"
        if target != path:
            draft.move(path, target)
            draft.documents.add(target)


@dataclass(frozen=True, slots=True)
class TypeRename:
    """The old and the new API ids of a content type."""

    old: str
    old_plural: str
    new: str
    plural: str

    def reversed(self) -> "TypeRename":
        return TypeRename(self.new, self.plural, self.old, self.old_plural)


def type_rename_of(migration: Migration) -> TypeRename | None:
    given = {key: str(value) for key, value in migration.arguments.items()}
    if migration.operation != "rename-type" or "from-plural" not in given:
        return None
    return TypeRename(given["type"].rpartition(".")[2], given["from-plural"], given["to"], given["plural"])


def rename_type_in_settings(draft: Draft, names: TypeRename) -> None:
    """Rename a content type in site.yaml, for example in the permissions of roles."""
    tree, edits, old, new = settings_tree(draft), Edits(), names.old, names.new
    for role, _ in entries(tree, "roles"):
        if value_at(tree, "roles", role, old) is not None:
            edits.renames["roles", role, old] = new
    for section in _BY_TYPE:
        if value_at(tree, *section, old) is not None:
            edits.renames[(*section, old)] = new
    for key, _ in entries(tree, "search", "weights"):
        if key.startswith(f"{old}."):
            edits.renames["search", "weights", key] = new + key.removeprefix(old)
    for name, request in entries(tree, "export", "queries"):
        path, question, query = str(request).partition("?")
        if path.split("/")[2:3] == [names.old_plural]:
            parts = path.split("/")
            made = "/".join((*parts[:2], names.plural, *parts[3:])) + question + query
            edits.values["export", "queries", name] = _renamed(request, made)
    webhooks = tree.get("webhooks")
    for i, webhook in enumerate(webhooks if isinstance(webhooks, list) else ()):
        _rename_word(edits, ("webhooks", i, "types"), value_at(webhook, "types"), {old: new})
    for rule, paths in entries(tree, "check", "ignore"):
        _rename_folder(edits, ("check", "ignore", rule), paths, names.old_plural, names.plural)
    draft.edit_configuration(FILE, edits)
    _rename_uid_in_settings(draft, _uid(old), _uid(new))


def remove_from_settings(draft: Draft, type_: Type) -> None:
    """Remove a content type from site.yaml.

    Settings that list several types are not changed. If one of them still names the type, the change is
    refused later.
    """
    tree, edits, own = settings_tree(draft), Edits(), type_.singular
    for role, _ in entries(tree, "roles"):
        if value_at(tree, "roles", role, own) is not None:
            edits.values["roles", role, own] = REMOVE
            draft.notes.append(f"the role {role} loses its permissions for the type")
    for section in (*_BY_TYPE, ("urls",)):
        if value_at(tree, *section, own) is not None:
            edits.values[(*section, own)] = REMOVE
    for key, _ in entries(tree, "search", "weights"):
        if key.startswith(f"{own}."):
            edits.values["search", "weights", key] = REMOVE
    draft.edit_configuration(FILE, edits)


def _rename_word(edits: Edits, key_path: KeyPath, value: Tree, names: Mapping[str, str]) -> None:
    if isinstance(value, str) and str(value) in names:
        edits.values[key_path] = _renamed(value, names[str(value)])
    for i, item in enumerate(value if isinstance(value, list) else ()):
        _rename_word(edits, (*key_path, i), item, names)


def _rename_folder(edits: Edits, key_path: KeyPath, value: Tree, old: str, new: str) -> None:
    start = f"{CONTENT}/{old}/"
    if isinstance(value, str) and value.startswith(start):
        edits.values[key_path] = _renamed(value, f"{CONTENT}/{new}/" + value.removeprefix(start))
    for i, item in enumerate(value if isinstance(value, list) else ()):
        _rename_folder(edits, (*key_path, i), item, old, new)


# --- locales --------------------------------------------------------------------------------------


def set_locale(draft: Draft, migration: Migration, *, is_new: bool) -> None:
    """Change the default locale. Files are renamed so that their documents keep their locales."""
    before = draft.configuration()
    new, old = str(migration.arguments["locale"]), before.settings.locales.default
    if not is_new:
        return  # The name of a file that was added later does not show which default locale it assumes.
    if new not in before.settings.locales.available or new == old:
        known = ", ".join(name for name in before.settings.locales.available if name != old) or "none"
        raise ValidationError(f'The locale must be one of locales.available (found "{new}"; others: {known})')
    tree = settings_tree(draft)
    locales = value_at(tree, "locales")
    if not isinstance(locales, dict):
        raise ValidationError("site.yaml has no locales")
    draft.edit_configuration(FILE, Edits(values={("locales", "default"): new}))
    after = configure_after(draft, before)
    layouts = [Layout(each.schema, each.settings) for each in (before, after)]
    moves = {}
    for path, claim in draft.document_files(
        layouts[0], [t.uid for t in before.schema.content_types if t.localized]
    ):
        pattern = layouts[0].pattern_of(path)
        moves[path] = layouts[1].path_of(claim, PurePosixPath(path).suffix, pattern)
    _move_all(draft, {path: target for path, target in moves.items() if target != path})


def _move_all(draft: Draft, moves: Mapping[str, str]) -> None:
    texts = {target: draft.text(path) for path, target in moves.items()}
    for target in texts:
        if draft.exists(target) and target not in moves:
            draft.refuse(target, "this file already exists", "rename it first")
    for path in moves:
        draft.remove(path)
    for target, text in texts.items():
        draft.put(target, text)
        draft.documents.add(target)
