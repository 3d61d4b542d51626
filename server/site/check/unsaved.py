"""Check of a site that includes the unsaved texts of an editor."""

import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory

from server.config.model import FILE, Settings
from server.documents.document import Document
from server.errors import SetupError
from server.formats.tree import SyntaxProblem
from server.index.dangling import find_dangling, no_document
from server.index.snapshot import Snapshot, apply
from server.paths import TYPES
from server.problems import Problem, in_order
from server.schema.model import Schema
from server.site.check.audit import Audit
from server.site.check.fixes import FIXABLE_RULES
from server.site.check.levels import apply_severities
from server.site.check.readings import ProseCache
from server.site.check.survey import (
    Survey,
    broken_configuration,
    fixes_by_place,
    place_of,
    survey_audit,
    with_key_fixes,
    with_users,
)
from server.site.configure import configure, is_configuration
from server.site.problems import find_cross_file_problems
from server.site.site import Site
from server.storage.entry import NO_FACTS, Entry
from server.storage.files import digest_of, size_signature
from server.storage.git.times import CommitTimes
from server.storage.images.cache import ImageCache
from server.storage.media import SIDECAR_SUFFIX, upload_path
from server.storage.read import decode, parse
from server.storage.store import Store


@dataclass(frozen=True, eq=False)
class SavedSite:
    """A site as it is stored on disk. `other_problems` are problems that are not in content files."""

    root: Path
    settings: Settings
    schema: Schema
    snapshot: Snapshot
    entries: Mapping[str, Entry]
    committed: CommitTimes
    image_cache: ImageCache
    other_problems: tuple[Problem, ...]

    @classmethod
    def from_site(cls, site: Site) -> "SavedSite":
        state, _, committed, entries = site.basis()
        in_entries = {problem for entry in entries.values() for problem in entry.problems}
        others = tuple(problem for problem in site.problems_in_files if problem not in in_entries)
        stale = [entry.document for entry in entries.values() if entry.document and _is_invalid(entry)]
        snapshot = apply(state.snapshot, stale, ()) if stale else state.snapshot
        pictures = site.image_cache
        return cls(site.root, state.settings, state.schema, snapshot, entries, committed, pictures, others)

    def with_texts(self, texts: Mapping[str, str]) -> "UnsavedSite":
        """Return the site as if `texts` were saved. Unsaved changes to the configuration are left out."""
        texts = {path: text for path, text in texts.items() if not is_configuration(path)}
        committed = replace(self.committed, changed=self.committed.changed | texts.keys())
        store = Store(self.root, self.schema, self.settings, committed.timestamps, self.image_cache)
        entries: dict[str, Entry] = {}
        for path, text in texts.items():
            owner, data = self._owner(path), text.encode(errors="replace")
            before = self.entries.get(owner)
            if owner == path and before is not None and before.digest == digest_of(data):
                continue
            entry = _entry_with_description(store, before, data) if owner != path and before else None
            entry = entry or store.parse_file(path, data, size_signature(len(data), time.time_ns()))
            if entry is not None:
                entries[owner] = entry
        removed = [d for path in entries if (d := self._valid_document(path)) is not None]
        added = [entry.document for entry in entries.values() if entry.document]
        snapshot = apply(self.snapshot, removed, added) if removed or added else self.snapshot
        return UnsavedSite(self, snapshot, entries, texts)

    def _owner(self, path: str) -> str:
        described = path.removesuffix(SIDECAR_SUFFIX)
        return described if upload_path(path) and described in self.entries else path

    def _valid_document(self, path: str) -> Document | None:
        entry = self.entries.get(path)
        return entry.document if entry and not _is_invalid(entry) else None


@dataclass(frozen=True, eq=False)
class UnsavedSite:
    """A site as if the unsaved `texts` were saved."""

    saved: SavedSite
    snapshot: Snapshot
    entries: Mapping[str, Entry]
    texts: Mapping[str, str]

    @cached_property
    def audit(self) -> Audit:
        return Audit(self.saved.root, self.saved.settings, self.snapshot, self.texts)

    def document(self, path: str) -> Document | None:
        if path in self.entries:
            return self.entries[path].document
        return self.saved._valid_document(path)

    def problems_in_files(self) -> Iterator[Problem]:
        yield from self.saved.other_problems
        for entry in {**self.saved.entries, **self.entries}.values():
            yield from entry.problems


def _is_invalid(entry: Entry) -> bool:
    return any(problem.severity == "error" for problem in entry.problems)


def _entry_with_description(store: Store, before: Entry, data: bytes) -> Entry | None:
    """Return the new entry of a media file after its description is replaced with `data`.

    Return None if the media file is in a bucket.
    """
    if before.signature is None or before.path.endswith(SIDECAR_SUFFIX):
        return None
    facts = (
        store.image_cache.describe_image(upload_path(before.path) or "") if store.image_cache else NO_FACTS
    )
    beside = size_signature(len(data), time.time_ns())
    return store.media_entry(before.path, before.signature, facts, data, beside)


# --- whole site -----------------------------------------------------------------------------------


def survey_unsaved(
    site: UnsavedSite, prose_cache: ProseCache | None = None, checkpoint: Callable[[], None] = lambda: None
) -> Survey:
    """Check all files, using the unsaved texts in place of those on disk.

    `checkpoint` is called before each document is checked. It can raise an exception to stop the check.
    """
    basis, prose_cache = site.saved, prose_cache or ProseCache()
    audit = Audit(basis.root, basis.settings, site.snapshot, site.texts, prose_cache, checkpoint)
    joined, unseen = with_users(audit)
    known = {*site.problems_in_files(), *find_cross_file_problems(audit.parse_file, site.snapshot)}
    found = survey_audit(audit, in_order(known), joined)
    prose_cache.drop_unused()
    return replace(with_key_fixes(audit.root, found), unchecked_relations=unseen)


# --- one file -------------------------------------------------------------------------------------


def problems_in_text(site: UnsavedSite, path: str) -> tuple[Problem, ...]:
    """Return the problems in one file. Other files are not read."""
    basis = site.saved
    entry = site.entries.get(path) or basis.entries.get(path)
    document = site.document(path) or _invalid_document(site, path)
    problems = list(entry.problems) if entry else []
    if document is not None:
        problems += find_dangling(site.snapshot, site.audit.parse_file, [document])
    lost = tuple(_lost(site)) if any(problem.rule == "dangling" for problem in problems) else ()
    shown = (p for p in apply_severities(site.audit, problems) if not p.message.endswith(lost))
    return in_order(set(shown))


def fixes_in_text(site: UnsavedSite, path: str, problems: Iterable[Problem]) -> Survey:
    audit, problems = site.audit, tuple(problems)
    possible = fixes_by_place(audit, {path} if any(p.rule in FIXABLE_RULES for p in problems) else ())
    found = {p: fix for p in problems if (fix := possible.get(place_of(p)))}
    fixes = {problem: fix for problem, fix in found.items() if fix.is_certain}
    suggestions = {problem: fix for problem, fix in found.items() if not fix.is_certain}
    return Survey(problems, fixes=fixes, suggestions=suggestions)


def _lost(site: UnsavedSite) -> Iterator[str]:
    # The invalid file itself is reported, so relations to its document are not.
    layout = site.audit.layout
    for path, entry in {**site.saved.entries, **site.entries}.items():
        if _is_invalid(entry) and (claim := layout.claim(path)):
            document = _invalid_document(site, path)
            yield no_document(claim.type.uid, document.document_id if document else claim.document_id)


def _invalid_document(site: UnsavedSite, path: str) -> Document | None:
    audit = site.audit
    claim, text = audit.layout.claim(path), site.texts.get(path)
    if claim is None or text is None:
        return None
    try:
        tree = parse(path, text, None)
    except SyntaxProblem:
        return None
    return audit.read_document(claim, path, tree)


# --- configuration --------------------------------------------------------------------------------


def configuration_problems(root: Path, texts: Mapping[str, str]) -> Survey:
    """Check site.yaml and the schemas. `texts` maps the paths of unsaved files to their texts."""
    changed = {path: text for path, text in texts.items() if is_configuration(path)}
    if not changed:
        return _configuration_survey(root)
    with TemporaryDirectory(prefix="bifolio-lsp-") as folder:
        copy = Path(folder)
        _copy_configuration(root, copy, changed)
        return _configuration_survey(copy)


def _configuration_survey(root: Path) -> Survey:
    problems: Iterable[Problem] = broken_configuration(root)
    if not problems:
        try:
            problems = configure(root).problems
        except SetupError:  # the files have changed since they were checked
            problems = ()
    return with_key_fixes(root, Survey(in_order(set(problems))))


def _copy_configuration(root: Path, copy: Path, texts: Mapping[str, str]) -> None:
    if (root / FILE).is_file():
        shutil.copyfile(root / FILE, copy / FILE)
    if (root / TYPES).is_dir():
        shutil.copytree(root / TYPES, copy / TYPES, symlinks=True)
    for path, text in texts.items():
        (copy / path).parent.mkdir(parents=True, exist_ok=True)
        (copy / path).write_bytes(text.encode(errors="replace"))


def decode_lossy(data: bytes) -> str:
    try:
        return decode(data)
    except SyntaxProblem:
        return data.decode(errors="replace")
