"""Undo of a schema change. It is impossible once documents have been saved with the new schema."""

from collections.abc import Iterator, Mapping, Sequence

from server.config.model import FILE
from server.documents.path_rules import MARKDOWN, Layout
from server.documents.readers import READERS, InvalidValue
from server.errors import ConflictError, SetupError, ValidationError, with_fix
from server.formats.tree import Tree, is_null
from server.schema.model import Attribute, Type
from server.site.configure import Configuration
from server.site.migrations.claims import find_reclaimed
from server.site.migrations.draft import MAX_SHOWN, AttributeMapping, Draft, new_problems
from server.site.migrations.edits import Edits
from server.site.migrations.migration import migration_paths, read_migration
from server.site.migrations.plan import ARGUMENTS
from server.site.migrations.types import TypeRename, rename_type_in_settings, type_rename_of
from server.write.context import Context
from server.write.undo import MAX_NAMED_FILES, UndoRequest, require_same_claims, restore_unchecked

INVALID_MESSAGE = "Nothing was undone, because schemas have been changed later"
RECLAIMED_MESSAGE = "Nothing was undone, because these files would become other documents"
SETTINGS_MESSAGE = "Nothing was undone, because settings that were changed later use the new content types"
SAVED_MESSAGE = "Nothing was undone, because these documents were saved with the new schema"


def restore_schemas(request: UndoRequest, context: Context) -> tuple[str, ...]:
    """Restore the files that a schema change wrote. Return their paths, or () if no file changes.

    The caller must check permissions. Raises ConflictError if files were changed later, if values would be
    lost, or if a file would belong to another document.
    """
    before, renames = Draft(context).configuration(), list(_type_renames(request, context))
    paths = restore_unchecked(
        UndoRequest(request.write, request.copy_of, lambda _: None, request.may_see), context
    )
    if not paths:
        return ()
    draft = Draft(context)
    for names in renames:
        rename_type_in_settings(draft, names)
    _refuse(request, SETTINGS_MESSAGE, {each.path: each.message for each in draft.refusals})
    try:
        after = draft.configuration()
    except ValidationError as error:
        raise ConflictError(f"{INVALID_MESSAGE}: {error.message}") from error
    require_same_claims(request, Layout(after.schema, after.settings))
    problems = {each.path: each.message for each in new_problems(before, after) if each.path == FILE}
    _refuse(request, SETTINGS_MESSAGE, problems)
    later = dict.fromkeys(sorted(set(_later_documents(draft, before, after)) - set(paths)), "")
    _refuse(request, SAVED_MESSAGE, later)
    reclaimed = find_reclaimed(draft, before, after, paths)
    _refuse(request, RECLAIMED_MESSAGE, {each.path: with_fix(each.message, each.fix) for each in reclaimed})
    return tuple(dict.fromkeys((*paths, *draft.changed_paths)))


def _type_renames(request: UndoRequest, context: Context) -> Iterator[TypeRename]:
    then = {file.path: file.before for file in request.write.files}
    paths, exists = list(migration_paths(then)), context.changeset.exists
    added = [(path, context.changeset.text(path)) for path in paths if then[path] is None and exists(path)]
    # An undo of an undo restores migrations.
    removed = [(path, text) for path in paths if (text := then[path]) is not None and not exists(path)]
    for path, text in reversed(added):
        if names := _type_rename(path, text):
            yield names.reversed()
    for path, text in removed:
        if names := _type_rename(path, text):
            yield names


def _type_rename(path: str, text: str) -> TypeRename | None:
    try:
        return type_rename_of(read_migration(path, text, ARGUMENTS))
    except SetupError:  # Somebody has edited the file, so nothing is undone anyway.
        return None


def _refuse(request: UndoRequest, message: str, reasons: Mapping[str, str]) -> None:
    if not reasons:
        return
    shown = [path for path in reasons if request.may_see(path)]
    others = "" if len(shown) == len(reasons) else ", and files that you are not allowed to see"
    named = [f"{path}: {reasons[path]}" if reasons[path] else path for path in shown[:MAX_NAMED_FILES]]
    raise ConflictError(f"{message}: {', '.join(named)}{others}", {"files": shown[:MAX_SHOWN]})


def _later_documents(draft: Draft, before: Configuration, after: Configuration) -> Iterator[str]:
    layout = Layout(before.schema, before.settings)
    for uid, type_ in before.schema.types.items():
        restored = after.schema.types.get(uid)
        if not type_.path:
            continue
        if restored is None and type_.kind != "component":
            yield from (path for path, _ in draft.document_files(layout, [uid]))
        elif names := _changed_attributes(type_, restored):
            yield from _with_values(draft, before, uid, names, restored)


def _changed_attributes(type_: Type, restored: Type | None) -> list[str]:
    then = restored.attributes if restored else {}
    return [
        name
        for name, attribute in type_.attributes.items()
        if not attribute.derived and (name not in then or _form(then[name]) != _form(attribute))
    ]


def _form(attribute: Attribute) -> tuple[str, bool]:
    return attribute.type, attribute.to_many


def _with_values(
    draft: Draft, before: Configuration, uid: str, names: Sequence[str], restored: Type | None
) -> list[str]:
    found: list[str] = []
    attributes = restored.attributes if restored else {}
    body, restored_body = before.schema.types[uid].body, restored.body if restored else None

    def check(mapping: AttributeMapping) -> Edits:
        for name in names:
            # A Markdown file does not name the attribute of its text, so the text gets the restored name.
            is_text = name == body and not mapping.key_path and mapping.path.endswith(MARKDOWN)
            then = attributes.get((restored_body if is_text else name) or "")
            if not is_null(mapping.values.get(name)) and not _is_valid(mapping.values[name], then):
                found.append(mapping.path)
        return Edits()

    # Files that can't be parsed don't prevent the undo.
    Draft(draft.context).edit_documents(before, before, uid, check, names)
    return found


def _is_valid(tree: Tree, attribute: Attribute | None) -> bool:
    if attribute is None:
        return False
    if attribute.type not in READERS:
        return attribute.to_many or not isinstance(tree, list)
    try:
        READERS[attribute.type](tree, attribute)
    except InvalidValue:
        return False
    return True
