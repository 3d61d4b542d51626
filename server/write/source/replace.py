"""A new text of a document's file → the files that it changes.

It is what somebody could write with an editor, but that the file goes on to hold the same version of the same
document, and that what it changes keeps to the options of its type.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from server.documents.document import Document
from server.documents.values import same_values
from server.errors import ConflictError, ForbiddenError, NotFoundError, PreconditionError, ValidationError
from server.formats.edits import REMOVE, same
from server.formats.tree import Plain, SyntaxProblem, Tree
from server.storage.document_text import changed_text
from server.storage.files import size_signature
from server.storage.read import BOM, parse
from server.write.context import Context, unreadable, values_of
from server.write.prepare import PUBLISHES, fitted
from server.write.request import Address
from server.write.shared import share
from server.write.source.masking import Masked, has_passwords, mask_of, masked, masked_values
from server.write.source.other_keys import other_keys, read_keys
from server.write.validate import Change
from server.write.write import Writer, single_id

_TIMESTAMPS = ("updatedAt", "publishedAt")


@dataclass(frozen=True, slots=True)
class SourceRequest:
    """A new text of the file of one version, or of the keys in it that its type does not have.

    `if_match` names the text that it was made from. With `drafts_only`, nothing published may change.
    """

    address: Address
    if_match: str
    text: str | None = None
    other_keys: str | None = None
    drafts_only: bool = False


def replace_source(request: SourceRequest, context: Context) -> str:
    """Let the file of a version have another text; returns the id of its document.

    Raises NotFoundError where the version has no file of its own, PreconditionError where that has another
    text than the one named, and ValidationError for a text that can't be this document's.
    """
    address = fitted(request.address, context)
    held = _held(address, context)
    path, type_, schema = held.path, held.type, context.snapshot.schema
    current = context.changeset.text(path)
    bom, current = (BOM, current.removeprefix(BOM)) if current.startswith(BOM) else ("", current)
    shown = masked(schema, type_, path, current)
    _require_match(request.if_match, shown)
    if shown.strays and request.text is not None:
        raise ConflictError(f"{path} has a password's hash where no password is; edit it by hand")
    with _told(path):
        if request.text is not None:
            made = _unmasked(context, held, request.text, shown)
        else:
            made = _with_keys(held, current, shown, request.other_keys or "")
    if made != current:
        made = _stamped(context, held, current, made)
        context.put(path, bom + made, held)
        new = _read(context, held, bom + made)
        _require_valid(context, address, held, new)
    if request.drafts_only and context.changes_published():
        raise ForbiddenError(PUBLISHES)
    return held.document_id


def _held(address: Address, context: Context) -> Document:
    """The version that an address means, which has a file of its own. Raises NotFoundError."""
    document_id = address.document_id or single_id(
        context.snapshot, context.settings, address.type, address.locale
    )
    published, draft = context.versions(address.type, document_id or "", address.locale)
    held = draft if address.draft else published
    if held is None:
        raise NotFoundError("There is no file of that version" if published else "")
    return held


def _require_match(if_match: str, shown: Masked) -> None:
    """Raise PreconditionError where a file has another text than the one that was read."""
    named = (tag.strip().strip('"').partition(".")[0] for tag in if_match.split(","))
    if if_match.strip() != "*" and shown.version not in named:
        raise PreconditionError(details={"version": shown.version})


@contextmanager
def _told(path: str) -> Iterator[None]:
    """Turn what is wrong in a text that was sent into a ValidationError that says where."""
    try:
        yield
    except SyntaxProblem as error:
        raise _refusal(path, error.line, error.message, error.fix) from error


def _refusal(path: str, line: int | None, message: str, fix: str) -> ValidationError:
    """The error for a text, of a line in it."""
    where = f"line {line}: " if line else ""
    return ValidationError(f"{where}{message}{f' ({fix})' if fix else ''}", {"line": line, "file": path})


def _unmasked(context: Context, held: Document, text: str, shown: Masked) -> str:
    """A text that was sent with the passwords that its masks stand for."""
    kept = {str(mask_of(number)): Plain(password) for number, password in enumerate(shown.passwords)}

    def unmask(tree: Tree) -> Plain:
        if str(tree) not in kept:
            raise ValidationError("A password can't be written here; keep what stands for it, or remove it")
        return kept[str(tree)]

    if not has_passwords(context.snapshot.schema, held.type):
        return text
    tree = parse(held.path, text, held.type.body)
    passwords = masked_values(context.snapshot.schema, held.type, tree, unmask)
    return changed_text(held.path, text, held.type.body, passwords) if passwords else text


def _with_keys(held: Document, current: str, shown: Masked, said: str) -> str:
    """The text of a file with other keys. Raises ValidationError and SyntaxProblem."""
    keys = read_keys(held.path, current, said)
    for name in keys:
        if name not in other_keys(held.type, keys):
            raise ValidationError(f'"{name[:100]}" is a key that {held.type.uid} has; change it as such')
    with unreadable(held.path):
        before = other_keys(held.type, parse(held.path, shown.text, held.type.body))
    changes: dict[str, Any] = {name: REMOVE for name in before if name not in keys}
    changes |= {k: v for k, v in keys.items() if k not in before or not same(before[k], v)}
    return changed_text(held.path, current, held.type.body, changes) if changes else current


def _stamped(context: Context, held: Document, current: str, made: str) -> str:
    """A new text whose timestamps of the last change are new as well, where it has left them as they were."""
    try:
        tree = parse(held.path, made, held.type.body)
        before = parse(held.path, current, held.type.body)
    except SyntaxProblem:
        return made  # What is wrong with it is told later; or it was, and is no more.
    kept = [name for name in _TIMESTAMPS if name in tree and same(tree[name], before.get(name))]
    changes = {name: Plain(context.now) for name in kept}
    return changed_text(held.path, made, held.type.body, changes) if changes else made


def _read(context: Context, held: Document, text: str) -> Document:
    """The version that a file with a new text holds. Raises ValidationError for another one."""
    data = text.encode()
    entry = context.store.entry(held.path, data, size_signature(len(data), time.time_ns()))
    if entry is None or entry.document is None:
        wrong = next((p for p in entry.problems if p.severity == "error"), None) if entry else None
        raise _refusal(held.path, wrong.line, wrong.message, wrong.fix) if wrong else ValidationError()
    new = entry.document
    if (new.document_id, new.locale) != (held.document_id, held.locale):
        raise ValidationError("The file would be another document; its documentId can't be changed here")
    if new.status != held.status:
        raise ValidationError(f"The file would be {new.status}; publish or unpublish the document instead")
    return new


def _require_valid(context: Context, address: Address, held: Document, new: Document) -> None:
    """Hold what has changed against the options of the type, and let other locales have what they share.

    All that is published of a type with drafts is checked, as at any write. Raises ValidationError.
    """
    old, values = values_of(held), values_of(new)
    changed = {name: value for name, value in values.items() if not same_values(value, old[name])}
    whole = address.type.draft_publish and not address.draft
    writer = Writer(context)
    writer.require_valid(address, held.document_id, values, Change({}), lambda name: whole or name in changed)
    share(context, address, held.document_id, changed)
