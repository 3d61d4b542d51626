"""Renames of documents and media files, as edits that the editor applies."""

import re
from collections.abc import Mapping
from typing import Any

from server.errors import ValidationError
from server.formats.text_positions import KeyPath
from server.index.dangling import MEDIA, Key
from server.lsp.edits import workspace_edit
from server.lsp.link_renaming import with_updated_links
from server.lsp.markdown import link_at
from server.lsp.navigation import key_at
from server.lsp.positions import path_from_uri
from server.lsp.protocol import Json
from server.lsp.view import Source, View
from server.paths import UPLOADS
from server.schema.model import title_of
from server.service.unsaved import EditorPlan, plan_rename
from server.write.renaming.rename import RenameRequest

_ESCAPED = re.compile(r"[^\w./~-]")  # characters that links can contain only as escapes
NO_FILES_MESSAGE = "Your editor can't rename files; close the document and run `bifolio mv` instead"


def prepare_rename(view: View, path: str, params: Json) -> Json | None:
    """Return the range of the text to rename at a position, and the current id of the document or file.

    Return None if nothing can be renamed there.
    """
    key, source = key_at(view, path, params), view.source(path)
    if key is None or source is None:
        return None
    index = source.text.index_of_position(params.get("position"))
    node = source.node_at(index)
    if node is None and (link := link_at(source.text, path, index)):
        return {"range": source.text.range(link.span), "placeholder": key[1]}
    if node is None or node.value is None:
        return None
    if source.target_at(node.path) is None and node.path not in _names(source):
        return None
    return {"range": source.text.range(node.value), "placeholder": key[1]}


def _names(source: Source) -> set[KeyPath]:
    # In a document's own file, the document can be renamed at its id, its title and its uids.
    type_ = source.claim.type
    uids = (name for name, attribute in type_.attributes.items() if attribute.type == "uid")
    return {(name,) for name in ("documentId", title_of(type_), *uids) if name}


def rename(view: View, path: str, params: Json, versions: Mapping[str, int | None]) -> Json:
    """Return the edit that renames a document or media file, and updates all references to it.

    Raises ValidationError if there is nothing to rename at the position or if the new name is invalid. Errors
    from `plan_rename` are passed on.
    """
    key, new = key_at(view, path, params), str(params.get("newName", "")).strip()
    if key is None or not new:
        raise ValidationError("There is no document to rename here")
    if key[0] != MEDIA:
        _refuse_escapes(key[1], new)
    return _edit(view, plan_rename(view.overlay, request_of(view, key, new)), versions)


def _refuse_escapes(old: str, new: str) -> None:
    # Characters in the old name are accepted, so that the rest of the name can be changed.
    found = next((c for c in _ESCAPED.findall(new) if c not in old), None)
    if found is not None:
        rule = 'A name can contain letters, digits and the characters "-", "_", ".", "~" and "/"'
        raise ValidationError(f'"{new}" contains "{found}", which links can\'t contain. {rule}')


def request_of(view: View, key: Key, new: str) -> RenameRequest:
    if key[0] == MEDIA:
        return RenameRequest(f"{UPLOADS}/{key[1]}", f"{UPLOADS}/{new.removeprefix(f'{UPLOADS}/')}")
    type_ = view.schema.types[key[0]]
    return RenameRequest(f"{type_.singular}/{key[1]}", f"{type_.singular}/{new}")


def _edit(view: View, plan: EditorPlan, versions: Mapping[str, int | None]) -> Json:
    if plan.renames and not view.client.renames_files:
        raise ValidationError(NO_FILES_MESSAGE)
    return workspace_edit(view.root, with_updated_links(view, plan), versions)


def will_rename(view: View, files: Any, versions: Mapping[str, int | None]) -> Json | None:
    """Return the edits that keep references valid when the editor renames files.

    Return None if no edits are needed.
    """
    changes: list[Json] = []
    for file in files if isinstance(files, list) else ():
        old, new = (
            (path_from_uri(file.get(key)) for key in ("oldUri", "newUri"))
            if isinstance(file, dict)
            else (None, None)
        )
        if (
            old is None
            or new is None
            or not (old.is_relative_to(view.root) and new.is_relative_to(view.root))
        ):
            continue
        before, after = (path.relative_to(view.root).as_posix() for path in (old, new))
        if view.layout.claim(before) is None and not before.startswith(f"{UPLOADS}/"):
            continue
        plan = with_updated_links(view, plan_rename(view.overlay, RenameRequest(before, after)))
        others = {path: to for path, to in plan.renames.items() if path != before}
        changes += workspace_edit(view.root, EditorPlan(plan.texts, others), versions)["documentChanges"]
    return {"documentChanges": changes} if changes else None
