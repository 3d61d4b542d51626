"""The file store: bytes of one file → a document version, or the problems that keep it from being one.

A file is read whole, once; a stat before and after tells whether someone was writing it meanwhile.
"""

import logging
import os
import stat
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from server.config.model import Settings
from server.documents.constraints import broken_within
from server.documents.document import Document, make
from server.documents.layout import MARKDOWN, Claim, Layout
from server.documents.timestamps import read_timestamp
from server.documents.values import Mismatch, Reading, read_attributes, warn_unknown
from server.formats import frontmatter
from server.formats.json_reader import json_positions, read_json
from server.formats.positions import Positions, nearest, position_at
from server.formats.scalars import is_null
from server.formats.tree import SyntaxProblem, Tree
from server.formats.yaml_reader import read_yaml
from server.problems import Problem, Severity
from server.schema.model import UPLOAD, Schema
from server.storage.files import Signature, digest_of, link_problem, signature
from server.storage.image_cache import ImageCache
from server.storage.media import DESCRIPTION, read_media, upload_path

log = logging.getLogger("quire")

MAX_BYTES = 16 * 1024 * 1024
OURS = ("documentId", "createdAt", "updatedAt", "publishedAt", "locale")

# (path, modified in seconds since 1970) → (createdAt, updatedAt)
Timestamps = Callable[[str, float], tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Entry:
    """What one file came to: its document, if it holds one, and what is wrong with it.

    `digest` is of a document's file, and `derived` has the timestamps that it took from git or from the
    file system, having none of its own.
    """

    path: str
    signature: Signature | None
    document: Document | None = None
    problems: tuple[Problem, ...] = ()
    digest: bytes = b""
    derived: tuple[str, str] | None = None

    @property
    def broken(self) -> bool:
        """Whether the file is there and can't be served: its last good version is, if there was one."""
        return self.document is None and any(p.severity == "error" for p in self.problems)


class Store:
    """Reads the documents of one site under one schema; it holds no content."""

    def __init__(
        self,
        root: Path,
        schema: Schema,
        settings: Settings,
        timestamps: Timestamps,
        image_cache: ImageCache | None = None,
    ) -> None:
        self.root, self.schema, self.settings, self.timestamps = root, schema, settings, timestamps
        self.image_cache = image_cache
        self.layout = Layout(schema, settings)

    def owner(self, path: str, exists: Callable[[str], bool]) -> str:
        """The path whose entry a path belongs to: a description belongs to the file beside it."""
        if upload_path(path) and path.endswith(DESCRIPTION):
            described = path.removesuffix(DESCRIPTION)
            if exists(described):
                return described
        return path

    def claimed(self, path: str) -> bool:
        """Whether a path is a document's or a media file's."""
        return upload_path(path) is not None or self.layout.claim(path) is not None

    def read(self, path: str) -> Entry | None:
        """The entry of a path, or None where no file is there or no type claims it."""
        try:
            if upload_path(path):
                return self._read_media(path)
            claim = self.layout.claim(path)
            return self._read_document(path, claim) if claim else None
        except FileNotFoundError:
            return None
        except SyntaxProblem as error:
            return self.unreadable(path, syntax_problem(path, error))
        except OSError as error:
            problem = Problem(path, None, f"can't be read: {error.strerror}", "look at its permissions")
            return self.unreadable(path, problem)
        except Exception as error:  # whatever is in a file, it takes nothing else down
            log.exception("%s can't be read", path)
            what = f"can't be read: {type(error).__name__}: {error}"
            return self.unreadable(path, Problem(path, None, what, "take out what is unusual in it"))

    def unreadable(self, path: str, problem: Problem) -> Entry:
        """The entry of a file that is there and can't be read."""
        try:
            found = signature(os.stat(self.root / path))
        except OSError:
            found = None
        return Entry(path, found, None, (problem,))

    def _read_media(self, path: str) -> Entry:
        status = os.stat(self.root / path)
        created, updated = self.timestamps(path, status.st_mtime)
        sidecar, positions = path + DESCRIPTION, Positions()
        description: Tree = None
        problems: list[Problem] = []
        try:
            if link_problem(str(self.root / sidecar), sidecar, str(self.root)) is None:
                description = read_yaml(read_text(self.root, sidecar)[0], positions)
            written = self.timestamps(sidecar, os.stat(self.root / sidecar).st_mtime)
            created, updated = min(created, written[0]), max(updated, written[1])
        except FileNotFoundError:
            pass
        except SyntaxProblem as error:
            problems.append(syntax_problem(sidecar, error, "warning"))
        if not isinstance(description, dict):
            description = {}
        reading = Reading(self.schema.types, path)
        created, updated = self._written_timestamps(description, (created, updated), reading)
        document = read_media(
            self.schema.types[UPLOAD],
            path,
            status.st_size,
            description,
            (created, updated),
            self.settings.default_locale,
            reading,
            *(self.image_cache.facts(upload_path(path) or "") if self.image_cache else (None, None)),
        )
        problems += [_problem(sidecar, wrong, positions, "warning") for wrong in reading.wrong]
        return Entry(path, signature(status), document, tuple(problems))

    def _read_document(self, path: str, claim: Claim) -> Entry:
        data, found = read_bytes(self.root, path)
        text, digest = decode(data), digest_of(data)
        tree = parse(path, text, claim.type.body)
        document_id, reading = self._document_id(claim, tree)
        values = read_attributes(claim.type, tree, (), reading)
        warn_unknown(claim.type, tree, (), reading, allowed=OURS)
        if not claim.draft:
            unread = {wrong.path for wrong in reading.wrong}
            for at, sentence in broken_within(claim.type, values):
                if at not in unread:
                    reading.fail(at, sentence, warning=True, rule="option")
        written = not (is_null(tree.get("createdAt")) or is_null(tree.get("updatedAt")))
        derived = None if written else self.timestamps(path, found[0] / 1e9)
        created, updated = self._written_timestamps(tree, derived or ("", ""), reading)
        if not (created and updated):  # written, and no timestamps
            derived = self.timestamps(path, found[0] / 1e9)
            created, updated = created or derived[0], updated or derived[1]
        published = None if claim.draft else self._timestamp(tree, "publishedAt", updated, reading)
        problems: tuple[Problem, ...] = ()
        if reading.wrong:
            problems = problems_of(path, text, reading.wrong)
        if any(not wrong.warning for wrong in reading.wrong):
            return Entry(path, found, None, problems, digest, derived)
        timestamps = (created, updated, published)
        document = make(claim.type, document_id, values, timestamps, claim.locale, path)
        return Entry(path, found, document, problems, digest, derived)

    def _document_id(self, claim: Claim, tree: Mapping[str, Tree]) -> tuple[str, Reading]:
        written = tree.get("documentId")
        good = isinstance(written, str) and not is_null(written) and "/" not in written
        document_id = str(written) if good else claim.document_id
        reading = Reading(self.schema.types, "\0".join((claim.type.uid, document_id, claim.locale)))
        if not good and not is_null(written):
            reading.fail(("documentId",), "a documentId is text without /", "put it in quotes or remove it")
        return document_id, reading

    def _written_timestamps(
        self, tree: Mapping[str, Tree], derived: tuple[str, str], reading: Reading
    ) -> tuple[str, str]:
        created = self._timestamp(tree, "createdAt", derived[0], reading)
        updated = self._timestamp(tree, "updatedAt", derived[1], reading)
        return created, updated

    def _timestamp(self, tree: Mapping[str, Tree], name: str, derived: str, reading: Reading) -> str:
        written = tree.get(name)
        if is_null(written):
            return derived
        try:
            return read_timestamp(str(written))
        except ValueError:
            fix = "write it as 2024-02-29T10:20:30Z"
            reading.fail((name,), f'"{written}" is no timestamp', fix, warning=True)
            return derived


def parse(path: str, text: str, body: str | None, positions: Positions | None = None) -> dict[str, Tree]:
    """The text of a document file → its attributes' trees by name. Raises SyntaxProblem."""
    if path.endswith(MARKDOWN):
        parts = frontmatter.split(text)
        tree = parts.load(positions)
        if body and (text_below := parts.body):
            tree[body] = text_below
        return tree
    tree = read_json(text) if path.endswith(".json") else read_yaml(text, positions)
    if is_null(tree):
        return {}
    if not isinstance(tree, dict):
        raise SyntaxProblem("a document must be a mapping", 1, "write it as attributes and values", 1)
    return tree


def read_text(root: Path, path: str) -> tuple[str, Signature]:
    """A file's text without its byte order mark, and the signature that it had while it was read.

    Raises OSError, and SyntaxProblem for what is no text, no UTF-8, or larger than MAX_BYTES.
    """
    data, found = read_bytes(root, path)
    return decode(data), found


def read_bytes(root: Path, path: str, tries: int = 5) -> tuple[bytes, Signature]:
    """A file's bytes, and the signature that it had while they were read.

    Raises OSError, and SyntaxProblem for what is no file, or larger than MAX_BYTES.
    """
    for again in range(tries):
        with open(root / path, "rb", opener=_open_without_waiting) as file:
            before = os.fstat(file.fileno())
            if not stat.S_ISREG(before.st_mode):
                raise SyntaxProblem("is no ordinary file", None, "remove it from the content")
            if before.st_size > MAX_BYTES:
                size, most = before.st_size // 1_000_000, MAX_BYTES // 1_000_000
                raise SyntaxProblem(f"has {size} MB; at most {most} MB are read", None, "split it")
            data = file.read()
            after = os.fstat(file.fileno())
        if signature(before) == signature(after) and len(data) == after.st_size:
            break
        time.sleep(0.01 * (again + 1))
    return data, signature(after)


def _open_without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)


def decode(data: bytes) -> str:
    """The text of a file without its byte order mark. Raises SyntaxProblem for what is none."""
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


def positions_of(path: str, text: str) -> Positions:
    """Where everything in a document's text stands, as far as it can be told."""
    positions: Positions = {}
    try:
        if path.endswith(".json"):
            return json_positions(text)
        parse(path, text, None, positions)
    except SyntaxProblem:
        return {}
    return positions


def parsed(root: Path, path: str) -> tuple[dict[str, Tree], Positions]:
    """The tree of a document's file and where all of it stands; both empty where it can't be read."""
    positions: Positions = {}
    try:
        text = read_text(root, path)[0]
        tree = parse(path, text, None, positions)
    except (OSError, SyntaxProblem):
        return {}, {}
    return tree, positions_of(path, text) if path.endswith(".json") else positions


def problems_of(path: str, text: str, wrong: list[Mismatch]) -> tuple[Problem, ...]:
    """The problems of a document's mismatches, with the place of each."""
    positions = positions_of(path, text)
    return tuple(_problem(path, w, positions, "warning" if w.warning else "error") for w in wrong)


def syntax_problem(path: str, error: SyntaxProblem, severity: Severity = "error") -> Problem:
    """The problem of a file whose text can't be read."""
    return Problem(path, error.line, error.message, error.fix, severity, error.column, "syntax")


def _problem(path: str, wrong: Mismatch, positions: Positions, severity: Severity) -> Problem:
    position = nearest(positions, wrong.path)
    name = ".".join(map(str, wrong.path))
    quoted = wrong.message if wrong.message.startswith('"') else f"{name}: {wrong.message}"
    line, column = (position.line, position.column) if position else (None, None)
    if position and wrong.rule != "unknown-key" and wrong.path in positions:
        column = position.value or column
    return Problem(path, line, quoted, wrong.fix, severity, column, wrong.rule)
