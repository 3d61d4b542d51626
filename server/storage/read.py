"""Reads a file of a site: its bytes as they were at one time, its text, and the tree that it says."""

import os
import stat
import time
from pathlib import Path

from server.documents.path_rules import MARKDOWN, TOML
from server.errors import PayloadTooLargeError
from server.formats import frontmatter
from server.formats.conflicts import check_conflict, check_conflict_in_body
from server.formats.json import json_positions, read_json
from server.formats.text_positions import Positions, RepeatedKey, position_at
from server.formats.toml.reader import read_toml
from server.formats.tree import MAX_NODES, SyntaxProblem, Tree, is_null
from server.formats.yaml.reader import read_yaml
from server.storage.files import Signature, signature
from server.storage.links import open_file

MAX_FILE_BYTES = 16 * 1024 * 1024
BOM = "\ufeff"


def parse(
    path: str,
    text: str,
    body: str | None,
    positions: Positions | None = None,
    repeats: list[RepeatedKey] | None = None,
) -> dict[str, Tree]:
    """The text of a document file → the tree of each attribute by its name. Raises SyntaxProblem.

    A byte order mark at its beginning is no part of what it says. If YAML or TOML has a key twice, its
    last value counts, as for the generators whose files these are; `repeats` is told of it.
    """
    text = text.removeprefix(BOM)
    repeats = [] if repeats is None else repeats
    if path.endswith(MARKDOWN):
        parts = _split(text)
        tree = parts.load(positions, repeats)
        if body and (text_below := parts.body):
            tree[body] = text_below
        return tree
    check_conflict(text)
    tree = read_data(path, text, positions, repeats)
    if is_null(tree):
        return {}
    if not isinstance(tree, dict):
        raise SyntaxProblem("a document must be a mapping", 1, "write it as attributes and values", 1)
    return tree


def _split(text: str) -> frontmatter.Parts:
    """The parts of a Markdown text. Raises SyntaxProblem, also for an unresolved conflict."""
    try:
        parts = frontmatter.split(text)
    except SyntaxProblem:
        check_conflict(text)  # A conflict is why the front matter can't be told from the body.
        raise
    check_conflict_in_body(text, len(text) - len(parts.rest))
    return parts


def read_data(
    path: str,
    text: str,
    positions: Positions | None = None,
    repeats: list[RepeatedKey] | None = None,
) -> Tree:
    """The tree of a file that is no Markdown, by the ending of its path; JSON leaves `positions` empty.

    `repeats` as for `read_yaml`; JSON with a key twice is refused.
    """
    if path.endswith(".json"):
        return read_json(text)
    read = read_toml if path.endswith(TOML) else read_yaml
    return read(text, positions, repeats)


def read_text(root: Path, path: str) -> tuple[str, Signature]:
    """A file's text without its byte order mark, and the signature that it had while it was read.

    Raises OSError, and SyntaxProblem for a file that is not UTF-8 text or larger than MAX_FILE_BYTES.
    """
    data, found = read_bytes(root, path)
    return decode(data), found


def read_bytes(root: Path, path: str, tries: int = 5) -> tuple[bytes, Signature]:
    """A file's bytes, and the signature that it had while they were read.

    A stat before and after tells whether somebody was writing it; it is read again then, up to
    `tries` times. Raises OSError, and SyntaxProblem for something other than a file, or one larger
    than MAX_FILE_BYTES.
    """
    for again in range(tries):
        with open(open_file(root, path), "rb") as file:
            before = os.fstat(file.fileno())
            if not stat.S_ISREG(before.st_mode):
                raise SyntaxProblem("is no ordinary file", None, "remove it from the content")
            if before.st_size > MAX_FILE_BYTES:
                size, most = before.st_size // 1_000_000, MAX_FILE_BYTES // 1_000_000
                raise SyntaxProblem(f"has {size} MB; at most {most} MB are read", None, "split it")
            data = file.read()
            after = os.fstat(file.fileno())
        if signature(before) == signature(after) and len(data) == after.st_size:
            break
        time.sleep(0.01 * (again + 1))
    return data, signature(after)


def decode(data: bytes) -> str:
    """The text that bytes hold, without a byte order mark. Raises SyntaxProblem for binary data."""
    if b"\0" in data:
        line = data.count(b"\n", 0, data.index(b"\0")) + 1
        raise SyntaxProblem("is binary, not text", line, "move it to content/uploads or remove it", 1)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8-sig")
        line, column, _ = position_at(before, len(before))
        what = f"is not UTF-8: byte 0x{data[error.start]:02x} at position {error.start}"
        raise SyntaxProblem(what, line, "save it as UTF-8", column) from error


def refuse_empty(text: str) -> None:
    """Raise SyntaxProblem for the file of a document that has no text at all.

    Somebody is about to write it, or a crash has cut it off; a write then would make that what counts.
    """
    if not text:
        raise SyntaxProblem("the file is empty", 1, "write the document, or delete the file", 1)


def refuse_unreadable(path: str, text: str) -> None:
    """Raise PayloadTooLargeError for a new text of a file that says too much to be read again."""
    if len(text) <= MAX_NODES:  # A value takes a character at least.
        return
    try:
        if len(text.encode()) > MAX_FILE_BYTES:
            raise SyntaxProblem(f"more than {MAX_FILE_BYTES // 1_000_000} MB in one file", None)
        parse(path, text, None)
    except SyntaxProblem as error:
        raise PayloadTooLargeError(f"The document would be too large: {error.message}") from error


def positions_of(path: str, text: str) -> Positions:
    """The positions in a document's text; none where it can't be read."""
    positions: Positions = {}
    try:
        if path.endswith(".json"):
            return json_positions(text)
        parse(path, text, None, positions)
    except SyntaxProblem:
        return {}
    return positions


def parsed(root: Path, path: str) -> tuple[dict[str, Tree], Positions]:
    """The tree of a document's file and the positions in it; both empty where it can't be read."""
    positions: Positions = {}
    try:
        text = read_text(root, path)[0]
        tree = parse(path, text, None, positions)
    except (OSError, SyntaxProblem):
        return {}, {}
    return tree, positions_of(path, text) if path.endswith(".json") else positions
