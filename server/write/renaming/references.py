"""Editor for references to renamed documents and media files, and a search for outdated links."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from posixpath import dirname, join, normpath, relpath, splitext
from typing import Any
from urllib.parse import quote, unquote

from server.documents.document import Document
from server.documents.path_rules import MARKDOWN
from server.documents.readers import InvalidValue, read_target
from server.formats.tree import Plain, SyntaxProblem, Tree, is_null
from server.index.dangling import MEDIA, Key, key_of, pointing
from server.paths import UPLOADS, UPLOADS_URL
from server.schema.model import Attribute, Schema, Type
from server.storage.read import read_bytes
from server.write.context import Context

_PLAIN_PATH = re.compile(r"/?[A-Za-z][A-Za-z0-9_./-]*/?")


@dataclass(frozen=True, slots=True)
class ReferenceEditor:
    """Editor that replaces the references to a renamed document or media file.

    `new` is the new documentId or upload path.
    """

    schema: Schema
    key: Key
    new: str

    def apply(self, context: Context) -> tuple[str, ...]:
        changed = []
        for document in pointing(context.snapshot, {self.key}):
            changes = self.changes(document.type, context.tree(document))
            if changes:
                context.changeset.put(document.path, context.text_with_changes(document, changes))
                changed.append(document.path)
        return tuple(sorted(changed))

    def changes(self, type_: Type, tree: Mapping[str, Tree]) -> dict[str, Any]:
        changed = {}
        for name, attribute in type_.attributes.items():
            if name in tree and not attribute.derived:
                new = self._value(attribute, tree[name])
                if new is not tree[name]:
                    changed[name] = new
        return changed

    def _value(self, attribute: Attribute, value: Tree) -> Any:
        change = self._entry if attribute.has_targets else self._component
        if not attribute.has_targets and not attribute.holds_components:
            return value
        if not isinstance(value, list):
            return change(attribute, value)
        items = [change(attribute, item) for item in value]
        return value if all(new is old for new, old in zip(items, value, strict=True)) else items

    def _component(self, attribute: Attribute, value: Tree) -> Any:
        if not isinstance(value, dict):
            return value
        type_ = self.schema.types.get(str(attribute.component or value.get("__component")))
        changes = self.changes(type_, value) if type_ else {}
        return {**value, **changes} if changes else value

    def _entry(self, attribute: Attribute, value: Tree) -> Any:
        # The new value has the same form (such as id or path) as the old value.
        if is_null(value):
            return value
        try:
            if key_of(attribute, read_target(value, attribute)) != self.key:
                return value
        except InvalidValue:
            return value
        if isinstance(value, dict):
            return {**value, "documentId": self.new}
        text = str(value)
        name = self.key[1] if self.key[0] == MEDIA else text.strip().strip("/")
        new = self.new.replace("--", "/") if self.key[0] != MEDIA and "/" in name else self.new
        written = new.join(text.rpartition(name)[::2])
        # If the old text was not in quotes, the new text is written without quotes too, if possible.
        simple = _PLAIN_PATH.fullmatch(written) and not is_null(Plain(written))
        return Plain(written) if type(value) is Plain and simple else written


def documents_of(context: Context, uid: str) -> Iterator[Document]:
    for (of_type, *_), claiming in context.snapshot.claims.items():
        if of_type == uid:
            yield from claiming


# --- links ----------------------------------------------------------------------------------------

# Matches the targets of links and images: [text](HERE), [name]: HERE, src="HERE", href="HERE".
_DESTINATION = re.compile(
    r"""(?:\]\(\s*<?|^ {0,3}\[[^\]\n]+\]:\s*<?|\b(?:src|href)=["'])([^\s()<>"'#?]+)""", re.M
)


@dataclass(frozen=True, slots=True)
class RenamedFileLink:
    """An outdated link (`old`) to a renamed media file in a Markdown file, and the correct link (`new`)."""

    path: str
    line: int
    old: str
    new: str


def links_to_renamed_files(context: Context, files: Mapping[str, str]) -> tuple[RenamedFileLink, ...]:
    """Return the links in Markdown files to renamed media files. `files` maps old paths to new paths."""
    names = {splitext(old)[0].rpartition("/")[2] for old in files}
    links: list[RenamedFileLink] = []
    for document in _with_bodies(context):
        body = unquote(document.get(document.type.body or "") or "")
        if any(name in body for name in names):
            links += _links_of(context, document.path, files)
    return tuple(sorted(links, key=lambda link: (link.path, link.line)))


def _with_bodies(context: Context) -> Iterator[Document]:
    for claiming in context.snapshot.claims.values():
        for document in claiming:
            if document.type.body and document.path.endswith(MARKDOWN):
                yield document


def _links_of(context: Context, path: str, files: Mapping[str, str]) -> Iterator[RenamedFileLink]:
    try:
        text = read_bytes(context.changeset.root, path)[0].decode()
    # The file has changed since the snapshot was created.
    except (OSError, SyntaxProblem, UnicodeDecodeError):
        return
    for match in _DESTINATION.finditer(text):
        new = _renamed_link(match[1], path, files)
        if new:
            yield RenamedFileLink(
                files.get(path, path), text.count("\n", 0, match.start(1)) + 1, match[1], new
            )


def _renamed_link(link: str, path: str, files: Mapping[str, str]) -> str:
    # Returns "" if the link does not point to a renamed file.
    plain = unquote(link)
    absolute = plain.startswith(UPLOADS_URL)
    target = (
        UPLOADS + "/" + plain.removeprefix(UPLOADS_URL) if absolute else normpath(join(dirname(path), plain))
    )
    old = next((old for old in files if target in (old, splitext(old)[0])), "")
    if not old or (plain.startswith("/") and not absolute):
        return ""
    new = files[old] if target == old else splitext(files[old])[0]
    if absolute:
        new = UPLOADS_URL + new.removeprefix(f"{UPLOADS}/")
    else:
        new = relpath(new, dirname(files.get(path, path)))
    return quote(new) if plain != link or " " in new else new
