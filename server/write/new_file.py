"""Creation of files for new documents."""

import re
from collections.abc import Mapping

from server.documents.encode import encode_attributes
from server.documents.file_keys import draft_key_value, file_name_for
from server.documents.path_rules import ENDINGS, PathClaim, is_partial
from server.errors import ConflictError
from server.storage.document_text import new_text
from server.storage.files import DEVICE_NAMES, is_ignored
from server.write.context import Context, Values
from server.write.request import Address
from server.write.write_timestamps import timestamps_of_new_file

MAX_NAME_BYTES = 120
_ENDINGS: Mapping[str, str] = {"md": ".md", "json": ".json", "yaml": ".yaml", "toml": ".toml"}
_NAME = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.~-]*[A-Za-z0-9_-])?")


def write_new(context: Context, address: Address, document_id: str, values: Values, path: str) -> None:
    """Create a file at `path` for a new version of a document."""
    type_ = address.type
    trees = encode_attributes(type_, [values[name] for name in type_.attributes])
    claim = context.layout.claim(path)
    if claim is None or claim.document_id != document_id:
        trees["documentId"] = document_id
    trees |= timestamps_of_new_file(context, is_published=type_.draft_publish and not address.draft)
    if address.draft:
        trees.update(draft_key_value(type_))
    context.replace_file(path, new_text(path, type_.body, trees, type_.front_matter))


def unused_path(
    context: Context, address: Address, document_id: str, values: Values, default_name: str = ""
) -> str:
    """Return an unused path for a new document's file. Raises ConflictError if no such path is found."""
    type_ = address.type
    # Private uids are not used, because everybody can see file names.
    uids = (a for a in type_.attributes.values() if a.type == "uid" and a.visible)
    uid = next((values[a.name] for a in uids), None)
    built = file_name_for(type_, values)
    folders = (type_.file_name or "").count("/") if built else 0
    uid = built or uid
    # Use lower case, because some file systems ignore case.
    named = uid.lower() if isinstance(uid, str) and _is_path(uid, folders) else default_name
    name = type_.singular if type_.kind == "singleType" else named or document_id
    ending = _ENDINGS[type_.format]
    for candidate in (name, f"{name}-{document_id}"):
        claim = PathClaim(type_, candidate, address.locale, address.draft and not type_.draft_key)
        path = context.layout.path_of(claim, ending)
        is_free = type_.kind == "singleType" or not _is_taken(context, claim)
        if is_free and context.layout.claim(path) == claim:
            return path
    raise ConflictError(f"no unused file name was found for a document at {path}")


def _is_taken(context: Context, claim: PathClaim) -> bool:
    # The name must be free in all locales, statuses and file formats.
    for locale in context.settings.locales.available if claim.type.localized else (claim.locale,):
        for draft in (False, True):
            path = context.layout.path_of(PathClaim(claim.type, claim.name, locale, draft), "")
            stem = path if not claim.type.files else path.rpartition(".")[0]
            if any(context.changeset.exists(stem + ending) for ending in ENDINGS):
                return True
    return False


def _is_path(text: str, folders: int) -> bool:
    parts = text.split("/")
    return len(parts) == folders + 1 and all(map(_is_name, parts))


def _is_name(text: str) -> bool:
    # A draft's uid can be any string, but a file name must be valid on every operating system. Non-ASCII
    # letters are excluded because file systems encode them differently.
    return (
        len(text) <= MAX_NAME_BYTES
        and _NAME.fullmatch(text) is not None
        and text.partition(".")[0].lower() not in DEVICE_NAMES
        and not is_ignored(text)
        and not is_partial(text)
    )
