"""Links in the bodies of Markdown files to a file that is renamed: told, and not changed.

What looks like a link may be an example of one, so that whoever wrote it has to decide.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from posixpath import dirname, join, normpath, relpath, splitext
from urllib.parse import quote, unquote

from server.documents.document import Document
from server.documents.path_rules import MARKDOWN
from server.formats.tree import SyntaxProblem
from server.paths import UPLOADS
from server.storage.read import read_bytes
from server.write.context import Context

_SERVED = "/uploads/"  # where the site has its media files
# The destinations of links and pictures: [text](HERE), [name]: HERE, and those of HTML.
_DESTINATION = re.compile(
    r"""(?:\]\(\s*<?|^ {0,3}\[[^\]\n]+\]:\s*<?|\b(?:src|href)=["'])([^\s()<>"'#?]+)""", re.M
)


@dataclass(frozen=True, slots=True)
class Link:
    """A link in a line of a file, and what it has to be, so that it leads to the same file as before."""

    path: str
    line: int
    old: str
    new: str


def links_to(context: Context, files: Mapping[str, str]) -> tuple[Link, ...]:
    """The links in Markdown files to those that get new paths, which are by the old ones."""
    names = {splitext(old)[0].rpartition("/")[2] for old in files}
    found: list[Link] = []
    for document in _with_bodies(context):
        body = unquote(document.get(document.type.body or "") or "")
        if any(name in body for name in names):
            found += _links_of(context, document.path, files)
    return tuple(sorted(found, key=lambda link: (link.path, link.line)))


def _with_bodies(context: Context) -> Iterator[Document]:
    for claiming in context.snapshot.claims.values():
        for document in claiming:
            if document.type.body and document.path.endswith(MARKDOWN):
                yield document


def _links_of(context: Context, path: str, files: Mapping[str, str]) -> Iterator[Link]:
    try:
        text = read_bytes(context.changeset.root, path)[0].decode()
    except (OSError, SyntaxProblem, UnicodeDecodeError):  # It was changed meanwhile.
        return
    for found in _DESTINATION.finditer(text):
        new = _renamed(found[1], path, files)
        if new:
            yield Link(files.get(path, path), text.count("\n", 0, found.start(1)) + 1, found[1], new)


def _renamed(link: str, path: str, files: Mapping[str, str]) -> str:
    """What a link in a file has to be; "" for one that leads to none of the files."""
    plain = unquote(link)
    absolute = plain.startswith(_SERVED)
    target = UPLOADS + "/" + plain.removeprefix(_SERVED) if absolute else normpath(join(dirname(path), plain))
    old = next((old for old in files if target in (old, splitext(old)[0])), "")
    if not old or (plain.startswith("/") and not absolute):
        return ""
    new = files[old] if target == old else splitext(files[old])[0]
    if absolute:
        new = _SERVED + new.removeprefix(f"{UPLOADS}/")
    else:
        new = relpath(new, dirname(files.get(path, path)))
    return quote(new) if plain != link or " " in new else new
