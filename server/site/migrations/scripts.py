"""The `script` and `split` migrations (docs/migrate.md).

Only `bifolio migrate` runs a site's Python code. The server, merges and `bifolio check` never do.
"""

from collections.abc import Callable, Mapping
from typing import Any

from server.errors import ValidationError
from server.formats.edits import REMOVE
from server.formats.text_positions import KeyPath
from server.formats.tree import resolve_plain_values
from server.schema.model import Type
from server.site.migrations.attributes import configure_after, keep_markdown_body, replace_references
from server.site.migrations.draft import AttributeMapping, Draft
from server.site.migrations.edits import Edits
from server.site.migrations.migration import Migration, find_type, require_attribute, split_target
from server.site.migrations.query_names import NewNames

Document = dict[str, Any]


def script(draft: Draft, migration: Migration, *, is_new: bool) -> None:
    """Call the function `migrate` of the migration's Python file for each document, and save the results."""
    before = draft.configuration()
    type_ = find_type(before.schema, str(migration.arguments["type"]))
    names = _run(migration)
    function = _function(names, "migrate", migration)
    draft.may_publish = True  # A script is allowed to publish drafts.
    after = before
    if is_new and names.get("ATTRIBUTES"):
        _edit_attributes(draft, type_, names["ATTRIBUTES"])
        after = configure_after(draft, before)
        keep_markdown_body(draft, type_, after.schema, type_.body)
        after = draft.configuration()

    def editor(mapping: AttributeMapping) -> Edits:
        old = _values(mapping.values)
        new = _call(draft, mapping, function, dict(old))
        if not isinstance(new, dict):
            if new is not None:
                draft.refuse(
                    mapping.path, "the function must return a document as a dict", key_path=mapping.key_path
                )
            return Edits()
        differing = (key for key in new if key not in old or new[key] != old[key])
        changed: dict[KeyPath, Any] = {(key,): new[key] for key in differing}
        return Edits(values={**changed, **{(key,): REMOVE for key in old.keys() - new.keys()}})

    draft.edit_documents(before, after, type_.uid, editor, ())


def split(draft: Draft, migration: Migration, *, is_new: bool) -> None:
    """Replace an attribute with other attributes.

    The function `split` of the migration's Python file computes their values.
    """
    before = draft.configuration()
    type_, name = split_target(before.schema, str(migration.arguments["attribute"]))
    names = _run(migration)
    function = _function(names, "split", migration)
    attributes = names.get("ATTRIBUTES")
    if not isinstance(attributes, dict) or not attributes:
        raise ValidationError(f"{migration.arguments['file']} must define ATTRIBUTES, the new attributes")
    after = before
    if is_new:
        require_attribute(type_, name)
        if name == type_.body:
            raise ValidationError(f"{type_.uid}.{name} is the body of Markdown files")
        new = NewNames(type_.uid, name, tuple((each,) for each in attributes))
        replace_references(draft, before.schema, type_, new)
        draft.require_possible()
        raws = attributes if type_.attributes[name].visible else _add_private(draft, type_, name, attributes)
        raw = type_.raw["attributes"][name]
        inherited = {each: _with_inherited_options(definition, raw) for each, definition in raws.items()}
        _edit_attributes(draft, type_, {name: None, **inherited})
        after = configure_after(draft, before)
        keep_markdown_body(draft, type_, after.schema, type_.body)
        after = draft.configuration()
    elif name in type_.attributes and name not in attributes:
        return

    def editor(mapping: AttributeMapping) -> Edits:
        if name not in mapping.values or (name in attributes and not is_new):
            return Edits()
        found = _call(draft, mapping, function, _values(mapping.values)[name])
        if not isinstance(found, dict) or not found.keys() <= attributes.keys():
            message = f"the function must return a dict with keys in {', '.join(attributes)}"
            draft.refuse(mapping.path, message, key_path=(*mapping.key_path, name))
            return Edits()
        kept: dict[KeyPath, Any] = {(key,): value for key, value in found.items() if value is not None}
        return Edits(values={(name,): REMOVE, **kept})

    draft.edit_documents(before, after, type_.uid, editor, (name,))


def _add_private(draft: Draft, type_: Type, name: str, attributes: Mapping[str, Any]) -> Mapping[str, Any]:
    found = dict(attributes)
    for new, raw in attributes.items():
        if isinstance(raw, dict) and "private" not in raw:
            found[new] = {**raw, "private": True}
            draft.notes.append(f"{type_.uid}.{new} becomes private, because {name} is private")
    return found


def _run(migration: Migration) -> dict[str, Any]:
    """Execute the Python file of a migration, and return its globals.

    Raises ValidationError if the file can't be executed.
    """
    file, text = str(migration.arguments["file"]), str(migration.arguments.get("code", ""))
    names: dict[str, Any] = {"__name__": "migration"}
    try:
        exec(compile(text, file, "exec"), names)
    except Exception as error:
        line = getattr(error, "lineno", None)
        place = f"{file}:{line}" if line else file
        raise ValidationError(f"{place} can't be executed: {type(error).__name__}: {error}") from error
    return names


def _function(names: Mapping[str, Any], name: str, migration: Migration) -> Callable[[Any], Any]:
    function = names.get(name)
    if not callable(function):
        raise ValidationError(f"{migration.arguments['file']} must define the function {name}")
    return function  # type: ignore[no-any-return]


def _call(draft: Draft, mapping: AttributeMapping, function: Callable[[Any], Any], value: Any) -> Any:
    try:
        return function(value)
    except Exception as error:
        what = f"the function raised {type(error).__name__}: {error}"
        draft.refuse(mapping.path, what, key_path=mapping.key_path)
        return None


def _values(tree: Mapping[str, Any]) -> Document:
    found = {}
    for key, value in tree.items():
        try:
            found[key] = resolve_plain_values(value)
        except ValueError:
            found[key] = str(value)
    return found


def _with_inherited_options(raw: Any, old: Mapping[str, Any]) -> Any:
    if not isinstance(raw, dict):
        return raw
    made = dict(raw)
    if "private" in old:
        made.setdefault("private", old["private"])
    plugins, old_plugins = raw.get("pluginOptions") or {}, old.get("pluginOptions") or {}
    if "i18n" in old_plugins and "i18n" not in plugins:
        made["pluginOptions"] = {**plugins, "i18n": old_plugins["i18n"]}
    return made


def _edit_attributes(draft: Draft, type_: Type, attributes: Mapping[str, Any]) -> None:
    values: dict[KeyPath, Any] = {}
    for name, raw in attributes.items():
        values["attributes", name] = REMOVE if raw is None else raw
    draft.edit_configuration(type_.path, Edits(values=values))
