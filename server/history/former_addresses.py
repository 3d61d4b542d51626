"""Former public URLs of published documents, found in the git history."""

import re
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from server.config.model import Settings
from server.documents.addresses import fill, pattern_of, placeholders_in
from server.documents.document import Document
from server.documents.encode import Reading, read_document_id
from server.documents.file_keys import collect_other_keys, is_draft, with_file_name_values
from server.documents.path_rules import MARKDOWN, YAML, Layout, PathClaim
from server.documents.readers import READERS, InvalidValue
from server.formats.tree import SyntaxProblem, Tree, is_null
from server.formats.yaml.reader import read_yaml
from server.history.exposure import reveals_more
from server.history.former_layouts import FormerLayouts
from server.history.past import PastStates
from server.history.served_commits import ServedCommits
from server.schema.model import Schema, Type
from server.site.site import State
from server.storage.files import is_utf_8
from server.storage.git.log import CERTAIN_RENAME_PERCENT, Commit
from server.storage.git.tree import read_blob_ids, read_named
from server.storage.read import MAX_FILE_BYTES, decode, parse

MAX_VERSIONS = 200_000  # Older versions of files are not searched.
# If a batch contains at least this many versions from one commit, the commit's files are listed once, because
# git takes 0.25 ms to find a single path in a large folder.
MIN_LISTED_VERSIONS = 100
BATCH_VERSIONS = 500  # number of versions that are read between two calls of a checkpoint
_PATH_NAMES = frozenset(("name", "locale", "documentId"))  # fields that are derived from a file's path
_FIXED_NAMES = frozenset(("createdAt", "publishedAt"))  # fields that are assumed not to change
Key = tuple[str, str, str]  # uid, documentId and locale


class FormerVersion(NamedTuple):
    """A former version of the document `owner`, stored in the file `path` of a commit."""

    commit: str
    path: str
    owner: Document


def key_of(document: Document) -> Key:
    return document.type.uid, document.document_id, document.locale


class FormerAddresses:
    """Thread-safe cache of the former public URLs (addresses) of documents."""

    def __init__(self, past: PastStates) -> None:
        self.past = past
        self._former = FormerLayouts(past)
        self._lock = threading.Lock()
        self._rules: tuple[object, ...] = ()
        # addresses by commit and path; "" for a version without an address
        self._addresses: dict[tuple[str, str], str] = {}
        self._served = ServedCommits(past)

    def find(
        self,
        state: State,
        head: str,
        documents: Iterable[Document],
        types: Collection[Type],
        checkpoint: Callable[[], None],
    ) -> list[tuple[Document, str]]:
        """Return pairs of a document and one of its former addresses, newest address first.

        The same pair can occur more than once. `checkpoint` is called repeatedly while files are read. If it
        raises an error, the files that have been read are cached for the next call. Raises GitError.
        """
        if not head:
            return []
        with self._lock:
            self.past.log.update(head)
            uids = frozenset(type_.uid for type_ in types)
            reader = _Reader(state, self._former, uids, Layout(state.schema, state.settings))
            rules = (state.schema, state.settings.urls, state.settings.locales, reader.uids)
            if self._rules != rules:
                self._rules, self._addresses = rules, {}
            versions = list(islice(_versions(self._served.history_of(head), documents), MAX_VERSIONS))
            self._read(versions, reader, checkpoint)
            found = ((v.owner, self._addresses[v.commit, v.path]) for v in versions)
            return [(owner, address) for owner, address in found if address]

    def _read(
        self, versions: Sequence[FormerVersion], reader: "_Reader", checkpoint: Callable[[], None]
    ) -> None:
        known = self._addresses
        unread = (version for version in versions if (version.commit, version.path) not in known)
        while batch := list(islice(unread, BATCH_VERSIONS)):
            self._read_batch(batch, reader)
            checkpoint()
        self._addresses = {(v.commit, v.path): known[v.commit, v.path] for v in versions}

    def _read_batch(self, versions: Iterable[FormerVersion], reader: "_Reader") -> None:
        unread: list[tuple[FormerVersion, PathClaim, str]] = []
        found: dict[tuple[str, str], str] = {}
        for version in versions:
            key = (version.commit, version.path)
            found[key] = ""
            if (claimed := reader.claim(version)) is not None:
                claim, pattern = claimed
                if reader.needs_file(claim.type, pattern):
                    unread.append((version, claim, pattern))
                else:
                    found[key] = reader.address(version, claim, pattern, {})
        names = _names_of(self.past.site.root, [version for version, _, _ in unread])
        contents = read_named(self.past.site.root, names, MAX_FILE_BYTES)
        for (version, claim, pattern), data in zip(unread, contents, strict=False):
            if data is not None:
                found[version.commit, version.path] = reader.read(version, claim, pattern, data)
        self._addresses.update(found)


def _names_of(root: Path, versions: Sequence[FormerVersion]) -> Iterator[str]:
    counts = Counter(version.commit for version in versions)
    listed = {
        commit: read_blob_ids(root, commit)
        for commit, count in counts.items()
        if count >= MIN_LISTED_VERSIONS
    }
    for commit, path, _ in versions:
        yield listed.get(commit, {}).get(path) or f"{commit}:./{path}"


def _versions(commits: Iterable[Commit], documents: Iterable[Document]) -> Iterator[FormerVersion]:
    """Yield the former versions of the documents, newest first.

    A rename is followed only if git detects it with certainty.
    """
    owners = {document.path: document for document in documents}
    for commit in commits:
        moved: dict[str, Document] = {}
        left: list[str] = []
        for change in commit.changes:
            owner = owners.get(change.path)
            if owner is None:
                continue
            if change.status != "D":
                yield FormerVersion(commit.id, change.path, owner)
            if change.status == "R":
                left.append(change.path)
                if change.similarity_percent >= CERTAIN_RENAME_PERCENT:
                    moved[change.before] = owner
        for path in left:
            del owners[path]
        owners.update(moved)


@dataclass(frozen=True)
class _Reader:
    """Reader of former addresses. It applies the current schema and URL patterns to former versions."""

    state: State
    former: FormerLayouts
    uids: frozenset[str]
    layout: Layout
    _may_reveal: dict[tuple[int, str], bool] = field(default_factory=dict)
    _claims: dict[str, PathClaim | None] = field(default_factory=dict)
    # addresses by path, current path, and relevant lines of the file
    _known: dict[tuple[str, str, str], str] = field(default_factory=dict)

    @property
    def settings(self) -> Settings:
        return self.state.settings

    def claim(self, version: FormerVersion) -> tuple[PathClaim, str] | None:
        """Return a version's `PathClaim` (content type, name and locale) and its URL pattern.

        Returns None if the version was not public or had no URL.
        """
        path = version.path
        if path not in self._claims:
            usable = is_utf_8(path) and "\n" not in path
            self._claims[path] = self.layout.claim(path) if usable else None
        claim = self._claims[path]
        if claim is None or claim.draft or claim.type.uid not in self.uids:
            return None
        if claim.locale != version.owner.locale or not self._was_public(version.commit, claim.type):
            return None
        pattern = pattern_of(claim.type, claim.locale, self.settings)
        return (claim, pattern) if pattern else None

    def _was_public(self, commit: str, type_: Type) -> bool:
        """Return whether everything that is now visible in `type_` was also public at a commit."""
        schema = self.former.schema(commit)
        if schema is None or schema is self.state.schema or type_.uid not in schema.types:
            return True
        key = (id(schema), type_.uid)
        if key not in self._may_reveal:
            self._may_reveal[key] = _reveals_nothing_new(self.state.schema, schema, type_.uid)
        return self._may_reveal[key]

    def needs_file(self, type_: Type, pattern: str) -> bool:
        return type_.draft_key is not None or not set(placeholders_in(pattern)) <= _PATH_NAMES | _FIXED_NAMES

    def address(
        self, version: FormerVersion, claim: PathClaim, pattern: str, values: Mapping[str, Any]
    ) -> str:
        owner = version.owner
        own = {"name": claim.name, "locale": claim.locale, **{name: owner.get(name) for name in _FIXED_NAMES}}
        if "{documentId}" in pattern:
            # An id that is set in the file does not depend on the path.
            current = self.layout.claim(owner.path)
            by_path = current is not None and current.document_id == owner.document_id
            own["documentId"] = claim.document_id if by_path else owner.document_id
        return fill(pattern, {**own, **values}.get) or ""

    def read(self, version: FormerVersion, claim: PathClaim, pattern: str, data: bytes) -> str:
        """Return the address of a version whose file contains `data`, or "" if it is a draft or invalid."""
        type_, path = claim.type, version.path
        names = [n for n in placeholders_in(pattern) if n in type_.attributes]
        keys = [*names, "documentId", *([type_.draft_key.name] if type_.draft_key else [])]
        lines = key_lines(path, data, keys)
        known = (path, version.owner.path, lines or "")
        if lines is not None and known in self._known:
            return self._known[known]
        try:
            tree = parse(path, decode(data), None) if lines is None else read_yaml(lines)
        except SyntaxProblem:
            return ""
        values = self._values(claim, names, tree)
        address = self.address(version, claim, pattern, values) if values is not None else ""
        if lines is not None:
            self._known[known] = address
        return address

    def _values(self, claim: PathClaim, names: list[str], tree: Tree) -> Mapping[str, Any] | None:
        type_ = claim.type
        tree = collect_other_keys(type_, with_file_name_values(type_, claim.name, tree or {}))
        if is_draft(type_, tree):
            return None
        reading = Reading(self.state.schema.types)
        own_id = read_document_id(tree, "", reading)
        values = {name: _value(type_, name, tree.get(name)) for name in names}
        return {**values, "documentId": own_id} if own_id else values


def _value(type_: Type, name: str, tree: Tree) -> Any:
    attribute = type_.attributes[name]
    if is_null(tree):
        return attribute.default
    try:
        return READERS[attribute.type](tree, attribute)
    except (InvalidValue, KeyError):
        return None


def _reveals_nothing_new(schema: Schema, earlier: Schema, uid: str) -> bool:
    return not reveals_more(schema, earlier, uid)


# A key whose value is on the same line and does not continue on the next line.
_LINE = rb"^(%b:[ \t]+[^\s|>&*\[{#!%%@`][^\r\n]*)\r?\n(?=[^\s-]|\Z)"
_WORD = rb"(?<![A-Za-z0-9_])%b(?![A-Za-z0-9_])"
# Text with which single lines can't be parsed safely: the end of a YAML document, a tag or anchor before a
# bracket or quote, or quoted text that continues on the next line.
_OPEN = re.compile(
    rb"""^\.\.\.
    |[!&][^\s!&]*[ \t]+[\[{"']
    |(?:^|[:?,-][ \t]+|[\[{,][ \t]*)(?:"(?:[^"\\\r\n]|\\.)*|'(?:[^'\r\n]|'')*)\r?$""",
    re.MULTILINE | re.VERBOSE,
)
_BRACKET = re.compile(rb"(?:^|[:?-][ \t]+)([\[{][^\n]*)", re.MULTILINE)  # a bracket and the rest of its line
_QUOTED = re.compile(rb"""\"(?:[^"\\]|\\.)*+(?:"|\Z)|'[^']*+(?:'|\Z)""")
_ENDS_OF_MATTER = re.compile(rb"^---[ \t]*\r?$", re.MULTILINE)


def key_lines(path: str, data: bytes, names: Iterable[str]) -> str | None:
    """Return the lines of a file that contain the given keys, joined into one text.

    Returns None if the values of these keys could also depend on other lines.
    """
    if path.endswith(MARKDOWN):
        ends = [found.end() for found in islice(_ENDS_OF_MATTER.finditer(data), 2)]
        if len(ends) < 2 or not data.startswith(b"---"):
            return None
        data = data[ends[0] : ends[1]].rstrip(b"-\r\t ")
    elif not path.endswith(YAML):
        return None
    # A carriage return is a line break in YAML, but not in these patterns.
    if data.count(b"\r") != data.count(b"\r\n") or _OPEN.search(data):
        return None
    if any(_is_open(found[1]) for found in _BRACKET.finditer(data)):
        return None
    found: list[bytes] = []
    for name in dict.fromkeys(names):
        word = re.escape(name.encode())
        lines = re.findall(_LINE % word, data, re.MULTILINE)
        if len(lines) > 1 or len(re.findall(_WORD % word, data)) != len(lines):
            return None
        found += lines
    try:
        return b"\n".join(found).decode()
    except UnicodeDecodeError:
        return None


def _is_open(text: bytes) -> bool:
    """Return whether the list or mapping that begins in `text` may continue on the next line."""
    text = re.split(rb"[ \t]#", _QUOTED.sub(b"q", text), maxsplit=1)[0].rstrip(b" \t\r")
    opened, closed = text.count(b"[") + text.count(b"{"), text.count(b"]") + text.count(b"}")
    return opened != closed or not text.endswith((b"]", b"}"))
