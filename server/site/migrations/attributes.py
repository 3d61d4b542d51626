"""The `rename` and `drop` migrations."""

from collections.abc import Collection

from server.config.model import FILE
from server.errors import ValidationError
from server.formats.edits import REMOVE
from server.formats.text_positions import KeyPath
from server.formats.tree import is_null
from server.schema.model import Schema, Type
from server.site.configure import Configuration
from server.site.migrations.draft import AttributeMapping, Draft, new_problems
from server.site.migrations.edits import Edits
from server.site.migrations.migration import Migration, require_attribute, split_target
from server.site.migrations.query_names import NewNames
from server.site.migrations.references import references_in_schemas, references_in_settings, rename_references

BODY_TYPES = ("richtext", "text", "string")  # types of the attributes that `options.body` can name


def configure_after(draft: Draft, before: Configuration) -> Configuration:
    after = draft.configuration()
    for problem in new_problems(before, after):
        draft.refuse(problem.path, problem.message, problem.fix)
    return after


def keep_markdown_body(draft: Draft, before: Type, after: Schema, name: str | None) -> None:
    """Set `options.body` to `name` if another attribute would otherwise become the Markdown body."""
    type_ = after.types[before.uid]
    attribute = type_.attributes.get(name or "")
    if type_.body == name or attribute is None or attribute.type not in BODY_TYPES:
        return
    options = type_.raw.get("options")
    new = {**options, "body": name} if isinstance(options, dict) else {"body": name}
    draft.edit_configuration(type_.path, Edits(values={("options",): new}))


# --- rename ---------------------------------------------------------------------------------------


def rename(draft: Draft, migration: Migration, *, is_new: bool) -> None:
    """Rename an attribute in the schemas, the documents and site.yaml."""
    before = draft.configuration()
    type_, old = split_target(before.schema, str(migration.arguments["attribute"]))
    new = str(migration.arguments["to"])
    after = before
    if is_new:
        require_attribute(type_, old)
        if new in type_.attributes:
            raise ValidationError(f'{type_.uid} already has an attribute "{new}"')
        for path, edits in rename_references(draft, before.schema, type_, old, new).items():
            for at, reason in edits.refused.items():
                draft.refuse(path, f"{'.'.join(map(str, at))}: {reason}", "change it first", at)
            draft.edit_configuration(path, Edits(edits.renames, edits.values))
        draft.require_possible()
        draft.edit_configuration(type_.path, Edits({("attributes", old): new}))
        after = configure_after(draft, before)
    elif old in type_.attributes:
        return  # A later change has reused the old name, so documents may contain it.

    def editor(mapping: AttributeMapping) -> Edits:
        edits = Edits()
        if old in mapping.values and new in mapping.values:
            draft.refuse(mapping.path, f'contains both "{old}" and "{new}"', "remove one of them",
                         (*mapping.key_path, new))  # fmt: skip
        elif is_new and new in mapping.values:
            draft.refuse(mapping.path, f'already contains the key "{new}", which would become the attribute',
                         "remove or rename this key first", (*mapping.key_path, new))  # fmt: skip
        elif old in mapping.values:
            edits.renames[old,] = new
        return edits

    draft.edit_documents(before, after, type_.uid, editor, (old, new) if is_new else (old,))


# --- drop -----------------------------------------------------------------------------------------


def drop(draft: Draft, migration: Migration, *, is_new: bool) -> None:
    """Remove an attribute from the schemas, and its values from the documents.

    site.yaml's references to the attribute are removed, too.
    """
    before = draft.configuration()
    type_, name = split_target(before.schema, str(migration.arguments["attribute"]))
    after, derived = before, False
    if is_new:
        require_attribute(type_, name)
        derived = type_.attributes[name].derived
        _release(draft, before.schema, type_, name)
        if target := type_.attributes[name].target:
            draft.notes.append(f"{type_.uid} loses its relation {name} to {target}")
        draft.require_possible()
        draft.edit_configuration(type_.path, Edits(values={("attributes", name): REMOVE}))
        after = configure_after(draft, before)
        if type_.body != name:
            keep_markdown_body(draft, type_, after.schema, type_.body)
            after = draft.configuration()
    elif name in type_.attributes:
        return

    def editor(mapping: AttributeMapping) -> Edits:
        if name not in mapping.values:
            return Edits()
        if not is_null(mapping.values[name]) and not derived:
            draft.add_loss(mapping.path, (*mapping.key_path, name), f'"{name}" has a value')
        return Edits(values={(name,): REMOVE})

    draft.edit_documents(before, after, type_.uid, editor, (name,))


def _release(draft: Draft, schema: Schema, type_: Type, name: str) -> None:
    attribute = type_.attributes[name]
    if attribute.inversed_by and attribute.target in schema.types:
        other = schema.types[attribute.target or ""]
        if other.path:
            raise ValidationError(
                f"{other.uid}.{attribute.inversed_by} shows the other side of this relation; "
                f"drop it first: bifolio migrate drop {other.singular}.{attribute.inversed_by}"
            )
    removed = NewNames(type_.uid, name, ())
    for path, at in replace_references(draft, schema, type_, removed, ignored_keys=("inversedBy",)):
        draft.edit_configuration(path, Edits(values={at: REMOVE}))


def replace_references(
    draft: Draft, schema: Schema, type_: Type, new_names: NewNames, *, ignored_keys: Collection[str] = ()
) -> list[tuple[str, KeyPath]]:
    """Update site.yaml's references to an attribute.

    The migration is refused if site.yaml can't be updated, or if a schema contains a reference under a key
    that is not in `ignored_keys`. References under these keys are returned, each as the path of the schema
    and the key path.
    """
    excepted, name = [], new_names.old
    for path, edits in references_in_schemas(schema, type_, name, f"{name}-new").items():
        for at in (*edits.renames, *edits.values):
            if path != type_.path and at[0] == "attributes" and at[-1] in ignored_keys:
                excepted.append((path, at))
            else:
                where = ".".join(map(str, at))
                draft.refuse(path, f"{where} uses {type_.uid}.{name}", "change it first", at)
    edits = references_in_settings(draft, schema, type_, new_names)
    for at, reason in edits.refused.items():
        where = ".".join(map(str, at))
        draft.refuse(FILE, f"{where} uses {type_.uid}.{name}, and {reason}", "change it first", at)
    draft.edit_configuration(FILE, Edits(edits.renames, edits.values))
    return excepted
