"""The source text of a document's file: mask passwords, keep unknown keys, replace the text."""

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
from server.errors import ConflictError, ForbiddenError, NotFoundError, PreconditionError, ValidationError
from server.formats import frontmatter
from server.formats.edits import REMOVE, same
from server.formats.tree import Plain, SyntaxProblem, Tree, is_null
from server.schema.model import FILE_FIELDS, Schema, Type
from server.storage.document_text import change_text
from server.storage.files import size_signature
from server.storage.read import BOM, parse
from server.write.context import Context, unreadable, values_of
from server.write.prepare import PUBLISHES_MESSAGE, fit_to_schema
from server.write.request import Address
from server.write.shared_attributes import share
from server.write.validate import Change
from server.write.write import Writer, single_id
from server.write.write_timestamps import stamp_text

# --- masking --------------------------------------------------------------------------------------

_HIDDEN_NEW = Plain("(hidden anew)")
_MIN_MASKED_CHARS = 8  # A shorter password is masked only in its own attribute.


@dataclass(frozen=True, slots=True)
class Masked:
    """A text as it may be shown, and the passwords that its masks stand for, in their order."""

    text: str
    passwords: tuple[str, ...] = ()
    strays: bool = False  # whether there are hashes where the schema knows no password

    @property
    def version(self) -> str:
        """What changes whenever the text does: the first part of its entity tag."""
        return blake2b(self.text.encode(errors="surrogatepass"), digest_size=16).hexdigest()


def mask_of(number: int) -> Plain:
    """What stands for a password of a file, counted from 0."""
    return Plain(f"(hidden {number + 1})")


def mask_text(schema: Schema, type_: Type, path: str, text: str, earlier: Sequence[str] = ()) -> Masked:
    """The text of a file of a type with masks in place of passwords; of a later one, those `earlier` had.

    Raises ConflictError for a text that can't be read and may hold a password.
    """
    if not has_passwords(schema, type_):
        return _without_strays(text, ())
    found: list[str] = []

    def mask(tree: Tree) -> Plain:
        found.append(str(tree))
        if not earlier:
            return mask_of(len(found) - 1)
        return mask_of(earlier.index(str(tree))) if tree in earlier else _HIDDEN_NEW

    with unreadable(path):
        tree = parse(path, text, type_.body)
    shown = change_text(path, text, type_.body, mask_values(schema, type_, tree, mask))
    return _without_strays(shown, tuple(found))


def _without_strays(text: str, passwords: tuple[str, ...]) -> Masked:
    """A text that has masks already, without hashes and known passwords in other places."""
    shown = text
    for password in passwords:
        if len(password) >= _MIN_MASKED_CHARS:
            shown = shown.replace(password, HIDDEN)
    shown = without_hashes(shown)
    return Masked(shown, passwords, strays=shown != text)


def has_passwords(schema: Schema, type_: Type) -> bool:
    """Whether documents of a type have passwords, be it in components."""
    waiting, seen = [type_], {type_.uid}
    while waiting:
        for attribute in waiting.pop().attributes.values():
            if attribute.type == "password":
                return True
            inner = {uid for uid in (attribute.component, *attribute.components) if uid} - seen
            seen |= inner
            waiting += [schema.types[uid] for uid in sorted(inner)]
    return False


def mask_values(
    schema: Schema, type_: Type, tree: Mapping[str, Tree], mask: Callable[[Tree], Any]
) -> dict[str, Any]:
    """The attributes of a file that hold passwords, by name, with what `mask` makes of each password.

    They come in the order of the schema. A password for which it gives REMOVE is left out of its component.
    """
    found = {}
    for name, attribute in type_.attributes.items():
        value = tree.get(name)
        if is_null(value):
            continue
        if attribute.type == "password":
            found[name] = mask(value)
        elif attribute.holds_components:
            items = value if isinstance(value, list) else [value]
            made = [_component(schema, attribute.component, item, mask) for item in items]
            if made != items:
                found[name] = made if isinstance(value, list) else made[0]
    return found


def _component(schema: Schema, uid: str | None, tree: Tree, mask: Callable[[Tree], Any]) -> Any:
    """A component with its passwords masked; what is none stays."""
    if not isinstance(tree, dict):
        return tree
    type_ = schema.types.get(str(uid or tree.get("__component")))
    if type_ is None:
        return tree
    values = {**tree, **mask_values(schema, type_, tree, mask)}
    return {key: value for key, value in values.items() if value is not REMOVE}


# --- other keys -----------------------------------------------------------------------------------


def other_keys(type_: Type, tree: Mapping[str, Tree]) -> dict[str, Tree]:
    """What the tree of a file says under keys that mean nothing to its type; see `options.otherKeys`."""
    if type_.other_keys is not None:
        return {}
    known = {*FILE_FIELDS, *type_.attributes, *([type_.draft_key.name] if type_.draft_key else [])}
    return {key: value for key, value in tree.items() if key not in known}


def text_of_keys(path: str, text: str, keys: Mapping[str, Any]) -> str:
    """Some keys as the file at a path, with this text, would have them if it had nothing else."""
    return _handler_of(path, text).export(dict(keys)).rstrip("\n") + "\n" if keys else ""


def read_keys(path: str, text: str, said: str) -> dict[str, Tree]:
    """The keys that such a text says. Raises SyntaxProblem."""
    tree = _handler_of(path, text).read(said) if said.strip() else None
    if is_null(tree):
        return {}
    if not isinstance(tree, dict):
        raise SyntaxProblem("the other keys must be a mapping", 1, "write them as keys and values", 1)
    return tree


def _handler_of(path: str, text: str) -> frontmatter.Handler:
    """The format of a file's keys: its own, or that of its front matter."""
    if path.endswith(MARKDOWN):
        return frontmatter.split(text).handler or frontmatter.YAML
    if path.endswith(TOML):
        return frontmatter.TOML
    return frontmatter.JSON if path.endswith(".json") else frontmatter.YAML


# --- replace --------------------------------------------------------------------------------------


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
    address = fit_to_schema(request.address, context)
    held = _find_version(address, context)
    path, type_, schema = held.path, held.type, context.snapshot.schema
    current = context.changeset.text(path)
    bom, current = (BOM, current.removeprefix(BOM)) if current.startswith(BOM) else ("", current)
    shown = mask_text(schema, type_, path, current)
    _require_match(request.if_match, shown)
    if shown.strays and request.text is not None:
        raise ConflictError(f"{path} has a password's hash where no password is; edit it by hand")
    with _locate_errors(path):
        if request.text is not None:
            made = _unmask(context, held, request.text, shown)
        else:
            made = _with_keys(held, current, shown, request.other_keys or "")
    if made != current:
        made = stamp_text(path, type_, current, made, context.now)
        context.put(path, bom + made, held)
        new = _read(context, held, bom + made)
        _require_valid(context, address, held, new)
    if request.drafts_only and context.changes_published():
        raise ForbiddenError(PUBLISHES_MESSAGE)
    return held.document_id


def _find_version(address: Address, context: Context) -> Document:
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
def _locate_errors(path: str) -> Iterator[None]:
    """Turn what is wrong in a text that was sent into a ValidationError that says where."""
    try:
        yield
    except SyntaxProblem as error:
        raise _refusal(path, error.line, error.message, error.fix) from error


def _refusal(path: str, line: int | None, message: str, fix: str) -> ValidationError:
    """The error for a text, of a line in it."""
    where = f"line {line}: " if line else ""
    return ValidationError(f"{where}{message}{f' ({fix})' if fix else ''}", {"line": line, "file": path})


def _unmask(context: Context, held: Document, text: str, shown: Masked) -> str:
    """A text that was sent with the passwords that its masks stand for."""
    kept = {str(mask_of(number)): Plain(password) for number, password in enumerate(shown.passwords)}

    def unmask(tree: Tree) -> Plain:
        if str(tree) not in kept:
            raise ValidationError("A password can't be written here; keep what stands for it, or remove it")
        return kept[str(tree)]

    if not has_passwords(context.snapshot.schema, held.type):
        return text
    tree = parse(held.path, text, held.type.body)
    passwords = mask_values(context.snapshot.schema, held.type, tree, unmask)
    return change_text(held.path, text, held.type.body, passwords) if passwords else text


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
    return change_text(held.path, current, held.type.body, changes) if changes else current


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
