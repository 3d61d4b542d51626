"""Renaming of documents and media files (docs/rename.md)."""

import os
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import product
from pathlib import PurePosixPath
from posixpath import basename, dirname

from server.documents.document import Document
from server.documents.ids import id_of_name
from server.documents.path_rules import ENDINGS, PathClaim
from server.errors import ConflictError, NotFoundError, ValidationError
from server.formats.tree import is_null
from server.index.dangling import MEDIA
from server.paths import UPLOADS
from server.schema.model import Type
from server.schema.spelling import suggestion
from server.storage.files import walk
from server.storage.media import SIDECAR_SUFFIX, is_media_name, media_key, mime_type, upload_path
from server.write.context import Context
from server.write.renaming.references import (
    ReferenceEditor,
    RenamedFileLink,
    documents_of,
    links_to_renamed_files,
)
from server.write.uploads.folders import existing_folder, folders_of


@dataclass(frozen=True, slots=True)
class RenameRequest:
    """Request to rename a document or media file.

    `old` and `new` are paths, or ids such as `article/fog`. `new` can also be a folder that ends in a slash.
    """

    old: str
    new: str


@dataclass(frozen=True, slots=True)
class RenameResult:
    """The result of a rename.

    `files` maps old paths to new paths. `references` are the other files in which references were changed,
    and `links` are Markdown links that still contain old paths.
    """

    files: Mapping[str, str]
    references: tuple[str, ...] = ()
    ids: tuple[str, str] | None = None
    links: tuple[RenamedFileLink, ...] = ()


def rename(request: RenameRequest, context: Context) -> RenameResult:
    """Rename a media file, or all files of a document, and update the references to it.

    Raises NotFoundError if `old` does not exist, ValidationError if `new` is invalid, or ConflictError if
    `new` is already taken or a file has an error.
    """
    claim = context.layout.claim(request.old)
    if request.old.startswith(f"{UPLOADS}/"):
        renamed = _rename_media(request, context)
    elif claim and context.changeset.exists(request.old):
        renamed = _rename_file(request, claim, context)
    else:
        renamed = _rename_id(request, context)
    return replace(renamed, links=links_to_renamed_files(context, renamed.files))


# --- media files ---------------------------------------------------------------------------------


def _rename_media(request: RenameRequest, context: Context) -> RenameResult:
    old, new = request.old, _into_folder(request.old, request.new)
    before, after = str(media_key(old)), upload_path(new)
    media = context.snapshot.media
    if before not in media:
        raise NotFoundError(f"{old} does not exist{_hint(before, media, f'{UPLOADS}/')}")
    old = media[before].path
    if after is None or ".." in after.split("/"):
        raise ValidationError(f"{new} is not inside {UPLOADS}, the folder for media files")
    if not is_media_name(after):
        raise ValidationError(f"{new} is not a valid name for a media file on every operating system")
    if mime_type(new) != mime_type(old):
        raise ValidationError(
            f"The file type must stay the same, but {new} would be {mime_type(new)}, and {old} is "
            f"{mime_type(old)}"
        )
    others = (file for file in media.values() if file.path != old)
    folder = existing_folder(dirname(after), folders_of(others))
    new = "/".join(filter(None, (UPLOADS, folder, basename(after))))
    # A file whose content is in a bucket does not exist on disk.
    files = {old: new} if context.changeset.exists(old) else {}
    if context.changeset.exists(new):
        raise ConflictError(f"{new} already exists")
    if context.changeset.exists(old + SIDECAR_SUFFIX):
        files[old + SIDECAR_SUFFIX] = new + SIDECAR_SUFFIX
    references = ReferenceEditor(context.snapshot.schema, (MEDIA, before), after).apply(context)
    _move(context, files)
    return RenameResult(files, references)


# --- documents -----------------------------------------------------------------------------------


def _rename_file(request: RenameRequest, claim: PathClaim, context: Context) -> RenameResult:
    new = _into_folder(request.old, request.new)
    if not new.endswith(ENDINGS):
        new += PurePosixPath(request.old).suffix
    new_claim = context.layout.claim(new)
    if new_claim is None or new_claim.type is not claim.type:
        raise ValidationError(
            f"Can't rename to {new}: the content type must stay {claim.type.singular}, as in {request.old}"
        )
    if (new_claim.locale, new_claim.draft) != (claim.locale, claim.draft):
        raise ValidationError(
            f"Can't rename to {new}: the locale and status must stay the same as in {request.old}"
        )
    if PurePosixPath(new).suffix != PurePosixPath(request.old).suffix:
        raise ValidationError(
            f"Can't rename to {new}: the file format must stay the same as in {request.old}"
        )
    documents = _documents_named(context, claim)
    pattern = context.layout.pattern_of(new)
    files = {d.path: _path(context, d, new_claim.name, pattern) for d in documents}
    derived = [d for d in documents if not _has_own_id(context, d)]
    if not derived:
        _move(context, {**files, **_companions(context, files)})
        return RenameResult(files)
    return _rename_documents(context, documents, files, (claim.document_id, new_claim.document_id))


def _rename_id(request: RenameRequest, context: Context) -> RenameResult:
    type_, old = _identify(request.old, context)
    first = request.new.partition("/")[0]
    other, new = _identify(request.new, context) if _type(first, context) else (type_, request.new)
    if other is not type_:
        raise ValidationError(
            f"Can't rename to {request.new}: the content type must stay {type_.singular}, as in {request.old}"
        )
    known = list(documents_of(context, type_.uid))
    documents = [document for document in known if document.document_id == id_of_name(old)]
    if not documents:
        hint = _hint(id_of_name(old), {document.document_id for document in known}, f"{type_.singular}/")
        raise NotFoundError(f'{type_.singular} "{old}" does not exist{hint}')
    files = {}
    for document in documents:
        claim = context.layout.claim(document.path)
        if claim and claim.document_id == document.document_id and type_.kind != "singleType":
            _refuse_unreadable(context, claim, {document.path for document in known})
            name = new.replace("--", "/") if "/" in claim.name else new
            files[document.path] = _path(context, document, name, context.layout.pattern_of(document.path))
    return _rename_documents(context, documents, files, (id_of_name(old), id_of_name(new)))


def _rename_documents(
    context: Context, documents: Iterable[Document], files: Mapping[str, str], ids: tuple[str, str]
) -> RenameResult:
    # `ids` contains the old and the new id.
    old, new = ids
    documents = list(documents)
    type_ = documents[0].type
    if not is_media_name(new):
        raise ValidationError(f'"{new}" is not a valid document id')
    existing = next((d for d in documents_of(context, type_.uid) if d.document_id == new), None)
    if existing:
        raise ConflictError(f'{type_.singular} "{new}" already exists: {existing.path}')
    references = ReferenceEditor(context.snapshot.schema, (type_.uid, old), new).apply(context)
    for document in documents:
        if document.document_id == old and (document.path not in files or _has_own_id(context, document)):
            context.changeset.put(document.path, context.text_with_changes(document, {"documentId": new}))
    _move(context, {**files, **_companions(context, files)})
    return RenameResult(files, references, ids)


def _documents_named(context: Context, claim: PathClaim) -> list[Document]:
    # Raises ConflictError if one of the files can't be parsed.
    documents = {}
    for document in documents_of(context, claim.type.uid):
        other = context.layout.claim(document.path)
        if other and other.name == claim.name:
            documents[document.path] = document
    _refuse_unreadable(context, claim, documents)
    return list(documents.values())


def _refuse_unreadable(context: Context, claim: PathClaim, known: Container[str]) -> None:
    for locale, draft, ending in product(context.settings.locales.available, (False, True), ENDINGS):
        path = context.layout.path_of(replace(claim, locale=locale, draft=draft), ending)
        if path not in known and context.layout.claim(path) and context.changeset.exists(path):
            raise ConflictError(f"{path} can't be read; fix the file first")


def _has_own_id(context: Context, document: Document) -> bool:
    return not is_null(context.tree(document).get("documentId"))


def _path(context: Context, document: Document, name: str, pattern: str | None) -> str:
    # Raises ValidationError if the name is invalid.
    claim = context.layout.claim(document.path)
    if claim is None:
        raise ConflictError(f"{document.path} no longer contains a document; try again")
    new_claim = replace(claim, name=name)
    path = context.layout.path_of(new_claim, PurePosixPath(document.path).suffix, pattern)
    if not is_media_name(name) or context.layout.claim(path) != new_claim:
        raise ValidationError(f'"{name}" is not a valid file name for this content type')
    return path


def _companions(context: Context, files: Mapping[str, str]) -> dict[str, str]:
    # Returns the new paths of other files in the folders of renamed documents. Only a document with a path
    # such as `posts/{name}/index.md` has its own folder.
    moved: dict[str, str] = {}
    for old, new in files.items():
        claim, pattern = context.layout.claim(old), context.layout.pattern_of(old) or ""
        tail = pattern.partition("{name}")[2].replace("{locale}", claim.locale if claim else "")
        if not tail.startswith("/"):
            continue
        folder = old.removesuffix(tail)
        inside = walk(context.changeset.root, [folder]).files
        others = {path.rpartition("/")[0] + "/" for path in inside if context.layout.claim(path)}
        others.discard(f"{folder}/")
        for path in inside:
            if context.layout.claim(path) is None and not path.startswith(tuple(others)):
                moved[path] = new.removesuffix(tail) + path.removeprefix(folder)
    return moved


# --- names ---------------------------------------------------------------------------------------


def _type(name: str, context: Context) -> Type | None:
    types = context.snapshot.schema.content_types
    return next((type_ for type_ in types if name in (type_.singular, type_.plural)), None)


def _identify(text: str, context: Context) -> tuple[Type, str]:
    # Splits a string such as `article/fog`. Raises NotFoundError if the type is unknown.
    name, _, document_id = text.partition("/")
    type_ = _type(name, context)
    if type_ is None or not document_id:
        types = [type_.singular for type_ in context.snapshot.schema.content_types]
        hint = "" if text.startswith("content/") else _hint(name, types, "", f"/{document_id or 'ID'}")
        raise NotFoundError(f"No file or document has the name {text}; write a document as TYPE/ID{hint}")
    return type_, document_id.removesuffix("/")


def _hint(word: str, known: Iterable[str], before: str, after: str = "") -> str:
    hint = suggestion(word, known)
    return "; " + hint.replace('"', f'"{before}', 1).replace('"?', f'{after}"?') if hint else ""


def _into_folder(old: str, new: str) -> str:
    return new + PurePosixPath(old).name if new.endswith("/") else new


def _move(context: Context, files: Mapping[str, str]) -> None:
    # Pending changes are moved, too. Raises ConflictError if a new path exists, or if a file has an error
    # or is a symbolic link.
    changeset = context.changeset
    texts = {path for path, _ in changeset.texts()}
    for old, new in files.items():
        # If the file has an error, its last valid version is served. After the rename, it would not be.
        context.require_valid_file(old)
        if changeset.exists(new):
            raise ConflictError(f"{new} already exists")
        if os.path.islink(changeset.root / old):
            raise ConflictError(f"{old} is a symbolic link; rename it by hand")
        # As a text, a description is still known if the new files disappear before they can be read.
        if old in texts or (upload_path(old) and old.endswith(SIDECAR_SUFFIX)):
            changeset.put(new, changeset.text(old))
        else:
            changeset.put_file(new, changeset.root / old)
        changeset.delete(old)
