"""Reading and replacing the source text of a document's file, in which passwords are masked."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from server.documents.document import Document
from server.documents.password_masks import HIDDEN, without_hashes
from server.documents.path_rules import MARKDOWN, TOML
from server.documents.values import same_values
from server.errors import (
    ConflictError,
    ForbiddenError,
    NotFoundError,
    PreconditionError,
    ValidationError,
    with_fix,
)
from server.formats import frontmatter
from server.formats.edits import REMOVE, is_same_value
from server.formats.tree import Plain, SyntaxProblem, Tree, is_null
from server.schema.model import FILE_FIELDS, Schema, Type
from server.storage.document_text import change_text
from server.storage.files import size_signature
from server.storage.read import BOM, parse
from server.write.context import Context, syntax_errors_as_conflicts, values_of
from server.write.prepare import PUBLISHES_MESSAGE, fit_to_schema
from server.write.request import Address
from server.write.shared_attributes import write_shared_values
from server.write.validate import Change
from server.write.write import Writer, single_type_document_id
from server.write.write_timestamps import update_timestamps

# --- masking --------------------------------------------------------------------------------------

_HIDDEN_NEW = Plain("(hidden anew)")
_MIN_MASKED_CHARS = 8  # Shorter passwords are masked only as values of password attributes.


@dataclass(frozen=True, slots=True)
class MaskedText:
    """A file's text with its passwords masked, and the original passwords in the order of their masks."""

    text: str
    passwords: tuple[str, ...] = ()
    # whether passwords or hashes were masked anywhere outside password attributes
    has_other_passwords: bool = False

    @property
    def version(self) -> str:
        # first part of the text's entity tag
        return blake2b(self.text.encode(errors="surrogatepass"), digest_size=16).hexdigest()


def mask_of(number: int) -> Plain:
    return Plain(f"(hidden {number + 1})")


def mask_text(
    schema: Schema, type_: Type, path: str, text: str, known_passwords: Sequence[str] = ()
) -> MaskedText:
    """Return a file's text with its passwords replaced by numbered masks.

    If `known_passwords` is given, the numbers are the passwords' positions in that list. Raises ConflictError
    if the text can't be parsed and might contain a password.
    """
    if not has_passwords(schema, type_):
        return _without_strays(text, ())
    passwords: list[str] = []

    def mask(tree: Tree) -> Plain:
        passwords.append(str(tree))
        if not known_passwords:
            return mask_of(len(passwords) - 1)
        return mask_of(known_passwords.index(str(tree))) if tree in known_passwords else _HIDDEN_NEW

    with syntax_errors_as_conflicts(path):
        tree = parse(path, text, type_.body)
    shown = change_text(path, text, type_.body, mask_values(schema, type_, tree, mask))
    return _without_strays(shown, tuple(passwords))


def _without_strays(text: str, passwords: tuple[str, ...]) -> MaskedText:
    shown = text
    for password in passwords:
        if len(password) >= _MIN_MASKED_CHARS:
            shown = shown.replace(password, HIDDEN)
    shown = without_hashes(shown)
    return MaskedText(shown, passwords, has_other_passwords=shown != text)


def has_passwords(schema: Schema, type_: Type) -> bool:
    """Return True if documents of a content type can contain passwords, including inside components."""
    waiting, seen = [type_], {type_.uid}
    while waiting:
        for attribute in waiting.pop().attributes.values():
            if attribute.type == "password":
                return True
            inner = {*attribute.component_uids} - seen
            seen |= inner
            waiting += [schema.types[uid] for uid in sorted(inner)]
    return False


def mask_values(
    schema: Schema, type_: Type, tree: Mapping[str, Tree], mask: Callable[[Tree], Any]
) -> dict[str, Any]:
    """Return the attributes that contain passwords, with each password replaced by `mask(password)`."""
    masked = {}
    for name, attribute in type_.attributes.items():
        value = tree.get(name)
        if is_null(value):
            continue
        if attribute.type == "password":
            masked[name] = mask(value)
        elif attribute.holds_components:
            items = value if isinstance(value, list) else [value]
            masked_items = [_component(schema, attribute.component, item, mask) for item in items]
            if masked_items != items:
                masked[name] = masked_items if isinstance(value, list) else masked_items[0]
    return masked


def _component(schema: Schema, uid: str | None, tree: Tree, mask: Callable[[Tree], Any]) -> Any:
    if not isinstance(tree, dict):
        return tree
    type_ = schema.types.get(str(uid or tree.get("__component")))
    if type_ is None:
        return tree
    values = {**tree, **mask_values(schema, type_, tree, mask)}
    return {key: value for key, value in values.items() if value is not REMOVE}


# --- other keys -----------------------------------------------------------------------------------


def other_keys(type_: Type, tree: Mapping[str, Tree]) -> dict[str, Tree]:
    if type_.other_keys is not None:
        return {}
    defined = {*FILE_FIELDS, *type_.attributes, *([type_.draft_key.name] if type_.draft_key else [])}
    return {key: value for key, value in tree.items() if key not in defined}


def text_of_keys(path: str, text: str, keys: Mapping[str, Any]) -> str:
    return _handler_of(path, text).export(dict(keys)).rstrip("\n") + "\n" if keys else ""


def read_keys(path: str, text: str, keys_text: str) -> dict[str, Tree]:
    """Parse `keys_text`, which contains keys in the same format as the file at `path`.

    Raises SyntaxProblem if it is not a valid mapping.
    """
    tree = _handler_of(path, text).read(keys_text) if keys_text.strip() else None
    if is_null(tree):
        return {}
    if not isinstance(tree, dict):
        raise SyntaxProblem("the other keys must be a mapping", 1, "write them as keys and values", 1)
    return tree


def _handler_of(path: str, text: str) -> frontmatter.Handler:
    if path.endswith(MARKDOWN):
        return frontmatter.split_front_matter(text).handler or frontmatter.YAML
    if path.endswith(TOML):
        return frontmatter.TOML
    return frontmatter.JSON if path.endswith(".json") else frontmatter.YAML


# --- replace --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SourceRequest:
    """Request to replace a file's whole text, or only those keys that are not attributes (`other_keys`)."""

    address: Address
    if_match: str
    text: str | None = None
    other_keys: str | None = None
    drafts_only: bool = False


def replace_source(request: SourceRequest, context: Context) -> str:
    """Replace the text of a document's file, and return the document's id.

    Raises NotFoundError if there is no such version, PreconditionError if the file has changed,
    ValidationError if the new text is invalid, ConflictError if the file has an error, or ForbiddenError if
    published content would change despite `drafts_only`.
    """
    address = fit_to_schema(request.address, context)
    document = _find_version(address, context)
    path, type_, schema = document.path, document.type, context.snapshot.schema
    current = context.changeset.text(path)
    bom, current = (BOM, current.removeprefix(BOM)) if current.startswith(BOM) else ("", current)
    shown = mask_text(schema, type_, path, current)
    _require_match(request.if_match, shown)
    if shown.has_other_passwords and request.text is not None:
        raise ConflictError(
            f"{path} contains the hash of a password outside of a password attribute; edit it by hand"
        )
    if request.text is None:
        context.require_valid_file(path)
    with _locate_errors(path):
        if request.text is not None:
            new_text = _unmask(context, document, request.text, shown)
        else:
            new_text = _with_keys(document, current, shown, request.other_keys or "")
    if new_text != current:
        new_text = update_timestamps(path, type_, current, new_text, context.now)
        context.put(path, bom + new_text, document)
        new_document = _read(context, document, bom + new_text)
        _require_valid(context, address, document, new_document)
    else:
        context.require_valid_file(path)
    if request.drafts_only and context.changes_published():
        raise ForbiddenError(PUBLISHES_MESSAGE)
    return document.document_id


def _find_version(address: Address, context: Context) -> Document:
    document_id = address.document_id or single_type_document_id(
        context.snapshot, context.settings, address.type, address.locale
    )
    published, draft = context.versions(address.type, document_id or "", address.locale)
    document = draft if address.draft else published
    if document is None:
        raise NotFoundError("This document has no draft, so there is no draft file" if published else "")
    return document


def _require_match(if_match: str, masked_text: MaskedText) -> None:
    named = (tag.strip().strip('"').partition(".")[0] for tag in if_match.split(","))
    if if_match.strip() != "*" and masked_text.version not in named:
        raise PreconditionError(details={"version": masked_text.version})


@contextmanager
def _locate_errors(path: str) -> Iterator[None]:
    # Converts a syntax error in the new text to a ValidationError.
    try:
        yield
    except SyntaxProblem as error:
        raise _text_error(path, error.line, error.message, error.fix) from error


def _text_error(path: str, line: int | None, message: str, fix: str) -> ValidationError:
    prefix = f"line {line}: " if line else ""
    return ValidationError(f"{prefix}{with_fix(message, fix)}", {"line": line, "file": path})


def _unmask(context: Context, document: Document, text: str, masked_text: MaskedText) -> str:
    kept = {str(mask_of(number)): Plain(password) for number, password in enumerate(masked_text.passwords)}

    def unmask(tree: Tree) -> Plain:
        if str(tree) not in kept:
            raise ValidationError(
                "A password can't be set in the source file; keep the masked value, or remove the line"
            )
        return kept[str(tree)]

    if not has_passwords(context.snapshot.schema, document.type):
        return text
    tree = parse(document.path, text, document.type.body)
    passwords = mask_values(context.snapshot.schema, document.type, tree, unmask)
    return change_text(document.path, text, document.type.body, passwords) if passwords else text


def _with_keys(document: Document, current: str, masked_text: MaskedText, keys_text: str) -> str:
    keys = read_keys(document.path, current, keys_text)
    for name in keys:
        if name not in other_keys(document.type, keys):
            raise ValidationError(
                f'The key "{name[:100]}" is defined by {document.type.uid}, so it can\'t be changed '
                'in "otherKeys"; change the attribute instead'
            )
    with syntax_errors_as_conflicts(document.path):
        before = other_keys(document.type, parse(document.path, masked_text.text, document.type.body))
    changes: dict[str, Any] = {name: REMOVE for name in before if name not in keys}
    changes |= {k: v for k, v in keys.items() if k not in before or not is_same_value(before[k], v)}
    return change_text(document.path, current, document.type.body, changes) if changes else current


def _read(context: Context, document: Document, text: str) -> Document:
    # Raises ValidationError if the text is invalid or changes the document's id, locale or status.
    data = text.encode()
    entry = context.store.parse_file(document.path, data, size_signature(len(data), time.time_ns()))
    if entry is None or entry.document is None:
        problem = next((p for p in entry.problems if p.severity == "error"), None) if entry else None
        if problem is None:
            raise ValidationError()
        raise _text_error(document.path, problem.line, problem.message, problem.fix)
    new = entry.document
    if (new.document_id, new.locale) != (document.document_id, document.locale):
        raise ValidationError(
            "This change would turn the file into a different document; the documentId can't be changed here"
        )
    if new.status != document.status:
        raise ValidationError(
            f"This change would make the file {new.status}; publish or unpublish the document instead"
        )
    return new


def _require_valid(context: Context, address: Address, document: Document, new: Document) -> None:
    # All attributes of a published version are validated. Values that all locales share are also written to
    # the files for other locales. Raises ValidationError.
    old, values = values_of(document), values_of(new)
    changed = {name: value for name, value in values.items() if not same_values(value, old[name])}
    whole = address.type.draft_publish and not address.draft
    writer = Writer(context)
    writer.require_valid(
        address, document.document_id, values, Change({}), lambda name: whole or name in changed
    )
    write_shared_values(context, address, document.document_id, changed)
