"""The files of a document's versions: where each belongs, and its text after a change."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from server.documents.document import Document
from server.documents.encode import encode_attributes
from server.documents.keys import is_draft, name_of, published_value
from server.documents.path_rules import ENDINGS, Claim, is_partial
from server.errors import ConflictError
from server.formats.edits import REMOVE
from server.schema.model import Type
from server.storage.document_text import new_text
from server.storage.files import ignored
from server.write.context import Context, Values
from server.write.request import Address
from server.write.write_timestamps import (
    new_timestamps,
    timestamps_of_new_draft,
    timestamps_of_publishing,
    updated_timestamp,
)

NAME_BYTES = 120
_FORMATS: Mapping[str, str] = {"md": ".md", "json": ".json", "yaml": ".yaml", "toml": ".toml"}
_NAME = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.~-]*[A-Za-z0-9_-])?")
# What Windows takes for devices, whatever ending they have.
_DEVICES = frozenset(
    ["con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(10))]
)


@dataclass(frozen=True, slots=True)
class Update:
    """New values for a document: what is published of it, its draft, and its values after the change."""

    published: Document | None
    draft: Document | None
    base: Document  # the one of the two whose values and text the new ones are made from
    new: Values


def write_draft(context: Context, update: Update) -> None:
    """Let the draft have the new values; it gets a file of its own where it has none."""
    base, draft = update.base, update.draft
    changes = context.changes(base, update.new)
    if not changes:
        return
    if draft is None and update.published is not None:
        changes |= {**timestamps_of_new_draft(context, base), **draft_mark(base.type)}
    else:
        changes |= updated_timestamp(context.now)
    text = context.changed(base, changes)
    path = draft.path if draft else context.sibling(base.path, draft=True)
    context.replace(path, text, draft, update.published)


def write_published(context: Context, update: Update) -> None:
    """Publish the new values: the draft's file, if there was one, becomes the published one."""
    base, published, draft = update.base, update.published, update.draft
    changes = context.changes(base, update.new)
    if not changes and draft is None and published is not None:
        return
    timestamps = timestamps_of_publishing(context, base, published)
    text = context.changed(base, {**changes, **timestamps, **_no_draft_mark(context, base)})
    target = context.sibling(base.path, draft=False) if draft else base.path
    if published and PurePosixPath(published.path).suffix == PurePosixPath(base.path).suffix:
        target = published.path
    elif published:
        context.remove(published)
    context.replace(target, text, published, draft)
    if draft and draft.path != target:
        context.remove(draft)


def draft_mark(type_: Type) -> Values:
    """What the file of a draft says where `options.draftWhen` names a key."""
    return {type_.draft_key.name: type_.draft_key.value} if type_.draft_key else {}


def _no_draft_mark(context: Context, document: Document) -> Values:
    """What the file of a draft has to say otherwise when it is published."""
    key = document.type.draft_key
    if key is None or not is_draft(document.type, context.tree(document)):
        return {}
    published = published_value(key)
    return {key.name: REMOVE if published is None else published}


def write_new(context: Context, address: Address, document_id: str, values: Values, path: str) -> None:
    """Let a path hold a version that had no file."""
    type_ = address.type
    trees = encode_attributes(type_, [values[name] for name in type_.attributes])
    claim = context.layout.claim(path)
    if claim is None or claim.document_id != document_id:
        trees["documentId"] = document_id
    trees |= new_timestamps(context.now, is_published=type_.draft_publish and not address.draft)
    if address.draft:
        trees.update(draft_mark(type_))
    context.replace(path, new_text(path, type_.body, trees, type_.front_matter))


def free_path(
    context: Context, address: Address, document_id: str, values: Values, otherwise: str = ""
) -> str:
    """The path of a new document: named after its uid attribute, else `otherwise` or after its id.

    Where `options.fileName` says what a name is made of, that counts.
    """
    type_ = address.type
    uid = next((values[a.name] for a in type_.attributes.values() if a.type == "uid"), None)
    uid = name_of(type_, values) or uid
    # In lower case, since names that differ in case alone are one name on some file systems.
    named = uid.lower() if isinstance(uid, str) and _is_name(uid) else otherwise
    name = type_.singular if type_.kind == "singleType" else named or document_id
    ending = _FORMATS[type_.format]
    for candidate in (name, f"{name}-{document_id}"):
        claim = Claim(type_, candidate, address.locale, address.draft and not type_.draft_key)
        path = context.layout.path_of(claim, ending)
        free = type_.kind == "singleType" or not _is_taken(context, claim)
        if free and context.layout.claim(path) == claim:
            return path
    raise ConflictError(f"there is no free name for a document at {path}")


def _is_taken(context: Context, claim: Claim) -> bool:
    """Whether some file has a name already, in any locale, status and format."""
    for locale in context.settings.locales.available if claim.type.localized else (claim.locale,):
        for draft in (False, True):
            path = context.layout.path_of(Claim(claim.type, claim.name, locale, draft), "")
            stem = path if not claim.type.files else path.rpartition(".")[0]
            if any(context.changeset.exists(stem + ending) for ending in ENDINGS):
                return True
    return False


def _is_name(text: str) -> bool:
    """Whether a uid can be a file's name on every system, and means nothing to a shell.

    It is of ASCII, since file systems differ in how they spell other letters. A draft's uid may be anything.
    """
    return (
        len(text) <= NAME_BYTES
        and _NAME.fullmatch(text) is not None
        and text.partition(".")[0].lower() not in _DEVICES
        and not ignored(text)
        and not is_partial(text)
    )
