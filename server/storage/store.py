"""Reader of documents and media files."""

import logging
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from copy import copy
from dataclasses import replace
from pathlib import Path, PurePosixPath

from server.config.model import Settings
from server.documents.addresses import ALIAS_KEYS
from server.documents.advice import option_advice
from server.documents.constraints import REQUIRED_MESSAGE, errors_within
from server.documents.document import make_version
from server.documents.encode import (
    Mismatch,
    Reading,
    read_attributes,
    read_document_id,
    read_file_timestamp,
    warn_unknown,
)
from server.documents.file_keys import collect_other_keys, is_draft, unused_key, with_file_name_values
from server.documents.path_rules import MARKDOWN, Layout, PathClaim
from server.formats.frontmatter import TOML, split_front_matter
from server.formats.text_positions import DuplicateKey, Positions, nearest_position
from server.formats.tree import SyntaxProblem, Tree, is_null
from server.formats.yaml.reader import read_yaml
from server.problems import Problem, Severity
from server.schema.model import FILE_FIELDS, UPLOAD, Schema
from server.storage.bucket.stored import DESCRIPTION_KEY, STORED_MARK, is_stored, read_stored
from server.storage.entry import NO_FACTS, Entry, ImageFacts, Timestamps
from server.storage.files import MISSING_FILE_ERRORS, Signature, digest_of, signature
from server.storage.images.cache import ImageCache
from server.storage.links import link_problem
from server.storage.media import SIDECAR_SUFFIX, read_media, stored_media, upload_path
from server.storage.read import decode, parse, positions_of, read_bytes, refuse_empty
from server.storage.unreadable_files import find_own_id, problem_of, syntax_problem, unreadable_entry

log = logging.getLogger("bifolio")

DRAFT_MARK = ".draft."  # part of the file name of every draft
_FAR_S = 4_102_444_800.0  # The year 2100, later than any file's mtime.


class Store:
    """Reader of a site's document and media files."""

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

    def timed(self, timestamps: Timestamps) -> "Store":
        other = copy(self)
        other.timestamps = timestamps
        return other

    def derived_timestamps(self, path: str, modified: float) -> tuple[str, str]:
        """Return createdAt and updatedAt for a file that does not contain them.

        `modified` is the file's modification time in seconds since 1970.
        """
        derived = self.timestamps(path, modified)
        if DRAFT_MARK in path and (published := self.layout.sibling(path, draft=False)) not in (None, path):
            return min(derived[0], self.timestamps(str(published), _FAR_S)[0]), derived[1]
        return derived

    def owning_file(self, path: str, exists: Callable[[str], bool]) -> str:
        if path.endswith(SIDECAR_SUFFIX) and upload_path(path):
            described = path.removesuffix(SIDECAR_SUFFIX)
            if exists(described):
                return described
        return path

    def claimed(self, path: str) -> bool:
        return upload_path(path) is not None or self.layout.claim(path) is not None

    def read(self, path: str) -> Entry | None:
        """Read a file. Return None if it is missing or does not belong to a content type."""
        try:
            if upload_path(path):
                return self._read_media(path)
            return self.parse_file(path, *read_bytes(self.root, path)) if self.layout.claim(path) else None
        except (*MISSING_FILE_ERRORS, IsADirectoryError):
            return None
        except Exception as error:  # A broken file must not prevent other files from being served.
            return unreadable_entry(self.root, path, problem_of(path, error))

    def parse_file(self, path: str, data: bytes, signature_: Signature) -> Entry | None:
        """Parse the bytes of a file. Return None if the file does not belong to a content type.

        In content/uploads/, this parses only the description files of media files in a bucket.
        """
        claim = self.layout.claim(path)
        try:
            if upload_path(path):
                return self._stored_media(path, data, signature_)
            return self._document(path, claim, data, signature_) if claim else None
        except Exception as error:
            entry = unreadable_entry(self.root, path, problem_of(path, error))
            return entry._replace(document_id=find_own_id(data))

    def _read_media(self, path: str) -> Entry:
        if path.endswith(SIDECAR_SUFFIX) and (stored := self.parse_file(path, *read_bytes(self.root, path))):
            return stored
        status, facts = os.stat(self.root / path), NO_FACTS
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(path)
        signature_ = signature(status)
        if self.image_cache:
            facts = self.image_cache.describe_image(upload_path(path) or "")
        sidecar = path + SIDECAR_SUFFIX
        if link_problem(str(self.root / sidecar), sidecar, str(self.root)):
            return self.media_entry(path, signature_, facts)
        try:
            beside = signature(os.stat(self.root / sidecar))
        except MISSING_FILE_ERRORS:
            return self.media_entry(path, signature_, facts)
        try:
            return self.media_entry(path, signature_, facts, read_bytes(self.root, sidecar)[0], beside)
        except MISSING_FILE_ERRORS:
            return self.media_entry(path, signature_, facts)
        except SyntaxProblem as error:
            entry = self.media_entry(path, signature_, facts, b"", beside)
            return entry._replace(problems=(syntax_problem(sidecar, error, "warning"),))

    def media_entry(
        self,
        path: str,
        signature_: Signature,
        facts: ImageFacts,
        described: bytes = b"",
        beside: Signature | None = None,
    ) -> Entry:
        """Return the entry of a media file.

        `described` and `beside` are the bytes and the signature of its description file.
        """
        created, updated = self.timestamps(path, signature_[0] / 1e9)
        sidecar, positions = path + SIDECAR_SUFFIX, Positions()
        description: Tree = None
        problems: list[Problem] = []
        if beside:
            written = self.timestamps(sidecar, beside[0] / 1e9)
            created, updated = min(created, written[0]), max(updated, written[1])
        try:
            description = read_yaml(decode(described), positions)
        except SyntaxProblem as error:
            problems.append(syntax_problem(sidecar, error, "warning"))
        if not isinstance(description, dict):
            description = {}
        reading = Reading(self.schema.types, path)
        created, updated = _timestamps(description, (created, updated), reading)
        document = read_media(
            self.schema.types[UPLOAD],
            path,
            signature_[1],
            description,
            (created, updated),
            self.settings.locales.default,
            reading,
            *facts,
        )
        problems += [_problem(sidecar, wrong, positions, "warning") for wrong in reading.mismatches]
        return Entry(path, signature_, document, tuple(problems), beside=beside)

    def _stored_media(self, path: str, data: bytes, signature_: Signature) -> Entry | None:
        """Parse the description file of a media file in the bucket. Return None for other files."""
        described = path.removesuffix(SIDECAR_SUFFIX)
        if described == path or not STORED_MARK.search(data):
            return None
        positions = Positions()
        description = read_yaml(decode(data), positions)
        if not is_stored(description):
            return None
        try:
            stored = read_stored(description)
        except ValueError as error:
            raise SyntaxProblem(
                str(error), positions[DESCRIPTION_KEY,].line, "restore the description from git"
            ) from error
        written = not (is_null(description.get("createdAt")) or is_null(description.get("updatedAt")))
        derived = None if written else self.timestamps(path, signature_[0] / 1e9)
        reading = Reading(self.schema.types, described)
        timestamps = _timestamps(description, derived or ("", ""), reading)
        if not all(timestamps):
            derived = self.timestamps(path, signature_[0] / 1e9)
            timestamps = timestamps[0] or derived[0], timestamps[1] or derived[1]
        document = stored_media(
            self.schema.types[UPLOAD],
            described,
            stored,
            description,
            timestamps,
            self.settings.locales.default,
            reading,
        )
        problems = tuple(_problem(path, wrong, positions, "warning") for wrong in reading.mismatches)
        return Entry(path, signature_, document, problems, digest_of(data), derived)

    def _document(self, path: str, claim: PathClaim, data: bytes, signature_: Signature) -> Entry:
        text, digest = decode(data), digest_of(data)
        refuse_empty(text)
        repeats: list[DuplicateKey] = []
        content = parse(path, text, claim.type.body, None, repeats)
        tree = collect_other_keys(claim.type, with_file_name_values(claim.type, claim.name, content))
        reading = Reading(self.schema.types, masks_hashes=b"$" in data or b"\\" in data)
        document_id = read_document_id(tree, claim.document_id, reading)
        reading.seed = "\0".join((claim.type.uid, document_id, claim.locale))
        values = read_attributes(claim.type, tree, (), reading)
        draft = claim.draft or is_draft(claim.type, tree)
        _warn_of_keys(path, text, claim, content, reading)
        if not draft:
            unread = {wrong.path for wrong in reading.mismatches}
            for at, sentence in errors_within(claim.type, values):
                if at not in unread:
                    name = str(at[0])
                    fix = option_advice(claim.type.attributes[name], tree.get(name)) if len(at) == 1 else ""
                    if not fix and sentence == REQUIRED_MESSAGE and _lacks_front_matter(path, text):
                        fix = "the file has no front matter; its first line should be ---"
                    reading.add_mismatch(at, sentence, fix, warning=True, rule="option")
        written = not (is_null(tree.get("createdAt")) or is_null(tree.get("updatedAt")))
        derived = None if written else self.derived_timestamps(path, signature_[0] / 1e9)
        created, updated = _timestamps(tree, derived or ("", ""), reading)
        if not (created and updated):  # The file contains an invalid timestamp.
            derived = self.derived_timestamps(path, signature_[0] / 1e9)
            created, updated = created or derived[0], updated or derived[1]
        # If a content type has no drafts, its documents are published when they are created.
        default = updated if claim.type.draft_publish else created
        published = None if draft else read_file_timestamp(tree, "publishedAt", default, reading)
        problems = tuple(_named_like_a_draft(path, claim, self.layout))
        problems += tuple(_repeated(path, key) for key in repeats)
        if reading.mismatches:
            problems += problems_of(path, text, reading.mismatches)
        if any(not wrong.warning for wrong in reading.mismatches):
            own_id = document_id if "documentId" in tree else ""
            return Entry(path, signature_, None, problems, digest, derived, document_id=own_id)
        timestamps = (created, updated, published)
        document = make_version(claim.type, document_id, values, timestamps, claim.locale, path)
        return Entry(path, signature_, document, problems, digest, derived)


def _lacks_front_matter(path: str, text: str) -> bool:
    return path.endswith(MARKDOWN) and split_front_matter(text).handler is None


def _repeated(path: str, key: DuplicateKey) -> Problem:
    message = f'the key "{key.path[-1]}" occurs again on line {key.last_line}; only its last value is served'
    return Problem(
        path, key.line, message, "remove one of the two", "warning", key.column, "repeated-key", key.path
    )


def _named_like_a_draft(path: str, claim: PathClaim, layout: Layout) -> Iterator[Problem]:
    if not claim.name.endswith(".draft"):
        return
    message = f'is named like a draft, but is served as the document "{claim.document_id}"'
    if claim.type.draft_publish:  # for example a.draft.fr.md: in the name of a draft, the locale comes first
        draft = replace(claim, name=claim.name.removesuffix(".draft"), draft=True)
        right = layout.path_of(draft, PurePosixPath(path).suffix, layout.pattern_of(path))
        yield Problem(path, None, message, f"rename the file to {right}", "warning", None, "file-name")
        return
    fix = f"set options.draftAndPublish to true in {claim.type.path}, or rename the file"
    yield Problem(path, None, message, fix, "warning", None, "file-name")


def _warn_of_keys(path: str, text: str, claim: PathClaim, tree: Mapping[str, Tree], reading: Reading) -> None:
    type_ = claim.type
    unused = unused_key(type_, tree)
    key = type_.draft_key or (None if claim.draft else unused)
    if type_.other_keys is None:
        allowed = (*FILE_FIELDS, *ALIAS_KEYS, *([key.name] if key else []))
        if type_.files:  # Files of site generators often contain keys without a value, so do not warn.
            allowed = (*allowed, *(name for name, value in tree.items() if is_null(value)))
        warn_unknown(type_, tree, (), reading, allowed=allowed)
    if unused and not claim.draft:
        value = str(unused.value).lower()
        written = _written(path, text, unused.name, value)
        message = f"{written} marks the document as a draft, but the document is served as published"
        fix = (
            f"in {type_.path}, set options.draftAndPublish to true, "
            f'and options.draftWhen to {{"{unused.name}": {value}}}'
        )
        reading.add_mismatch((unused.name,), message, fix, warning=True, rule="draft")


def _written(path: str, text: str, name: str, value: str) -> str:
    if path.endswith(".toml") or (path.endswith(MARKDOWN) and split_front_matter(text).handler is TOML):
        return f'"{name} = {value}"'
    return f'"{name}": {value}' if path.endswith(".json") else f'"{name}: {value}"'


def _timestamps(tree: Mapping[str, Tree], derived: tuple[str, str], reading: Reading) -> tuple[str, str]:
    created = read_file_timestamp(tree, "createdAt", derived[0], reading)
    return created, read_file_timestamp(tree, "updatedAt", derived[1], reading)


def problems_of(path: str, text: str, wrong: list[Mismatch]) -> tuple[Problem, ...]:
    positions = positions_of(path, text)
    return tuple(_problem(path, w, positions, "warning" if w.warning else "error") for w in wrong)


def _problem(path: str, wrong: Mismatch, positions: Positions, severity: Severity) -> Problem:
    position = nearest_position(positions, wrong.path)
    name = ".".join(map(str, wrong.path))
    between = " " if wrong.message.startswith("must ") else ": "
    is_whole = wrong.rule in ("unknown-key", "draft")
    message = wrong.message if is_whole else f"{name}{between}{wrong.message}"
    line, column = (position.line, position.column) if position else (None, None)
    if position and wrong.rule != "unknown-key" and wrong.path in positions:
        column = position.value_column or column
    return Problem(path, line, message, wrong.fix, severity, column, wrong.rule, wrong.path)
