"""Reading and parsing of files. If another program is writing to a file, reading is retried."""

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
    """Parse the text of a document file. Return one parsed value (a tree) for each attribute. Raises
    SyntaxProblem.

    `body` is the name of the attribute that is stored below the front matter of a Markdown file. A byte order
    mark is ignored. If a key occurs several times in YAML or TOML, the last value is used, as most site
    generators do, and the repeated key is appended to `repeats`. The positions of values are stored in
    `positions`.
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


def _split(text: str) -> frontmatter.Parts:
    try:
        parts = frontmatter.split(text)
    except SyntaxProblem:
        check_conflict(text)  # If the cause is a git conflict, report the conflict instead.
        raise
    check_conflict_in_body(text, len(text) - len(parts.rest))
    return parts


def read_data(
    path: str,
    text: str,
    positions: Positions | None = None,
    repeats: list[RepeatedKey] | None = None,
) -> Tree:
    """Parse a JSON, TOML or YAML file. The file name extension determines the format.

    In JSON, a repeated key raises SyntaxProblem. In the other formats, a repeated key is appended to
    `repeats`, and the positions of values are stored in `positions`.
    """
    if path.endswith(".json"):
        return read_json(text)
    read = read_toml if path.endswith(TOML) else read_yaml
    return read(text, positions, repeats)


def read_text(root: Path, path: str) -> tuple[str, Signature]:
    """Read a text file. Return its text without a byte order mark, and the signature that the file had.

    Raises OSError. Raises SyntaxProblem if the file is not UTF-8 or is larger than MAX_FILE_BYTES.
    """
    data, signature_ = read_bytes(root, path)
    return decode(data), signature_


def read_bytes(root: Path, path: str, tries: int = 5) -> tuple[bytes, Signature]:
    """Read a file. Return its bytes, and the signature that the file had when it was read.

    If another program is writing to the file at the same time, reading is retried, with up to `tries`
    attempts in total. Raises OSError. Raises SyntaxProblem for a special file, or for a file larger than
    MAX_FILE_BYTES.
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
    """Decode bytes as UTF-8 text, and remove the byte order mark.

    Raises SyntaxProblem if the bytes are binary data or have a different encoding.
    """
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
    """Raise SyntaxProblem if the text of a document file is empty.

    A document file is usually empty because another program is still writing it, or because a crash has
    truncated it. If the file were served as an empty document, the next write would overwrite the document's
    values.
    """
    if not text:
        raise SyntaxProblem("the file is empty", 1, "write the document, or delete the file", 1)


def refuse_unreadable(path: str, text: str) -> None:
    """Raise PayloadTooLargeError if a text for the file at `path` is so large that Bifolio could not read it
    again.
    """
    if len(text) <= MAX_NODES:  # A value has at least one character, so a short text can't exceed MAX_NODES.
        return
    try:
        if len(text.encode()) > MAX_FILE_BYTES:
            raise SyntaxProblem(f"the file would be larger than {MAX_FILE_BYTES // 1_000_000} MB", None)
        parse(path, text, None)
    except SyntaxProblem as error:
        raise PayloadTooLargeError(f"The document would become too large: {error.message}") from error


def positions_of(path: str, text: str) -> Positions:
    """Return the positions of the values in the text of a document file.

    If the text can't be parsed, return an empty mapping.
    """
    positions: Positions = {}
    try:
        if path.endswith(".json"):
            return json_positions(text)
        parse(path, text, None, positions)
    except SyntaxProblem:
        return {}
    return positions


def parsed(root: Path, path: str) -> tuple[dict[str, Tree], Positions]:
    """Read and parse a document file. Return its values and their positions.

    Both are empty if the file can't be read or parsed.
    """
    try:
        return parsed_text(path, read_text(root, path)[0])
    except (OSError, SyntaxProblem):
        return {}, {}


def parsed_text(path: str, text: str) -> tuple[dict[str, Tree], Positions]:
    """Parse the text of a document file. Return its values and their positions. Raises SyntaxProblem."""
    positions: Positions = {}
    tree = parse(path, text, None, positions)
    return tree, positions_of(path, text) if path.endswith(".json") else positions
