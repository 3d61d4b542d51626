"""Reading and parsing of files that other programs may be writing."""

import os
import stat
import time
from pathlib import Path

from server.documents.path_rules import MARKDOWN, TOML
from server.errors import PayloadTooLargeError
from server.formats import frontmatter
from server.formats.conflicts import check_conflict, check_conflict_in_body
from server.formats.json import json_positions, read_json
from server.formats.text_positions import DuplicateKey, Positions, position_at
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
    repeats: list[DuplicateKey] | None = None,
) -> dict[str, Tree]:
    """Parse a document file. `body` names the attribute that contains the text below the front matter.

    Except for JSON, the positions of values are added to `positions`, and duplicate keys to `repeats`. Raises
    SyntaxProblem.
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
        raise SyntaxProblem(
            "a document must be a mapping", 1, "write each attribute as a key with a value", 1
        )
    return tree


def _split(text: str) -> frontmatter.MarkdownParts:
    try:
        parts = frontmatter.split_front_matter(text)
    except SyntaxProblem:
        check_conflict(text)  # If a git conflict caused the error, report the conflict instead.
        raise
    check_conflict_in_body(text, len(text) - len(parts.body_text))
    return parts


def read_data(
    path: str,
    text: str,
    positions: Positions | None = None,
    repeats: list[DuplicateKey] | None = None,
) -> Tree:
    """Parse a JSON, TOML or YAML file. Raises SyntaxProblem.

    Except for JSON, the positions of values are added to `positions`, and duplicate keys to `repeats`.
    """
    if path.endswith(".json"):
        return read_json(text)
    read = read_toml if path.endswith(TOML) else read_yaml
    return read(text, positions, repeats)


def read_text(root: Path, path: str) -> tuple[str, Signature]:
    """Return the text of a file without a byte order mark, and the file's signature.

    Raises OSError, or SyntaxProblem if the file is not UTF-8 or is too large.
    """
    data, signature_ = read_bytes(root, path)
    return decode(data), signature_


def read_bytes(root: Path, path: str, tries: int = 5) -> tuple[bytes, Signature]:
    """Return the bytes and the signature of a file. If another program is writing to it, read it again.

    Raises OSError, or SyntaxProblem if it is not a regular file or is too large.
    """
    for attempt in range(tries):
        with open(open_file(root, path), "rb") as file:
            before = os.fstat(file.fileno())
            if not stat.S_ISREG(before.st_mode):
                raise SyntaxProblem("is not a regular file", None, "remove it from the content folder")
            if before.st_size > MAX_FILE_BYTES:
                size, most = before.st_size // 1_000_000, MAX_FILE_BYTES // 1_000_000
                raise SyntaxProblem(
                    f"is {size} MB in size, but the limit is {most} MB", None, "split the file"
                )
            data = file.read()
            after = os.fstat(file.fileno())
        if signature(before) == signature(after) and len(data) == after.st_size:
            break
        time.sleep(0.01 * (attempt + 1))
    return data, signature(after)


def decode(data: bytes) -> str:
    """Decode UTF-8, and remove a byte order mark. Raises SyntaxProblem if the data is not text."""
    if b"\0" in data:
        line = data.count(b"\n", 0, data.index(b"\0")) + 1
        raise SyntaxProblem("is a binary file, not text", line, "move it to content/uploads, or remove it", 1)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8-sig")
        line, column, _ = position_at(before, len(before))
        message = f"is not UTF-8: byte 0x{data[error.start]:02x} at position {error.start}"
        raise SyntaxProblem(message, line, "save the file as UTF-8", column) from error


def refuse_empty(text: str) -> None:
    # Reject empty files: another program is probably writing the file, or a crash has truncated it.
    # Otherwise, the next write could discard the document's values.
    if not text:
        raise SyntaxProblem("the file is empty", 1, "write the document, or delete the file", 1)


def require_readable_size(path: str, text: str) -> None:
    """Raise PayloadTooLargeError if a file with this text would be too large to read."""
    if len(text) <= MAX_NODES:  # A value has at least one character, so short text can't exceed MAX_NODES.
        return
    try:
        if len(text.encode()) > MAX_FILE_BYTES:
            raise SyntaxProblem(f"the file would be larger than {MAX_FILE_BYTES // 1_000_000} MB", None)
        parse(path, text, None)
    except SyntaxProblem as error:
        raise PayloadTooLargeError(f"The document would become too large: {error.message}") from error


def positions_of(path: str, text: str) -> Positions:
    """Return the positions of the values in a file, or {} if the text can't be parsed."""
    positions: Positions = {}
    try:
        if path.endswith(".json"):
            return json_positions(text)
        parse(path, text, None, positions)
    except SyntaxProblem:
        return {}
    return positions


def parsed(root: Path, path: str) -> tuple[dict[str, Tree], Positions]:
    try:
        return parse_text(path, read_text(root, path)[0])
    except (OSError, SyntaxProblem):
        return {}, {}


def parse_text(path: str, text: str) -> tuple[dict[str, Tree], Positions]:
    """Parse a document file, and return its values and their positions. Raises SyntaxProblem."""
    positions: Positions = {}
    tree = parse(path, text, None, positions)
    return tree, positions_of(path, text) if path.endswith(".json") else positions
