"""The site: the one mutable thing. It holds the current state and lets files change it.

Whoever wants to read takes `site.state` once and keeps it. Whatever changes the files, `refresh`
finds out what, and one assignment publishes the next state.
"""

import gc
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from server.content_types import read_content_types
from server.dangling import dangling
from server.documents import Document
from server.errors import ConflictError, SetupError, StorageError
from server.files import Walk, ignored, link_problem, needs_walk, signature, walk
from server.gallery import Gallery
from server.git import History, changed_paths, git_folder, read_history
from server.index import Snapshot, apply, build, empty
from server.journal import Journal, Write
from server.layout import UPLOADS
from server.media import upload_path
from server.moments import now
from server.pending import Pending
from server.problems import Problem
from server.schema import Schema
from server.settings import FILE, Settings, check_subjects, read_settings
from server.state import FOLDER, state_folder
from server.store import Entry, Store, parsed
from server.versions import Versions

Progress = Callable[[int, int], None]  # (files read, files in all)
TYPES = "content-types"
Result = TypeVar("Result")
TRIES = 4  # how often a write is prepared again because somebody changed a file meanwhile
FEW = 200  # so many changed paths are looked at one by one; for more, everything is walked


@dataclass(frozen=True, slots=True)
class State:
    """What a request sees: settings, schema and documents that belong together."""

    settings: Settings
    schema: Schema
    snapshot: Snapshot


@dataclass(frozen=True, slots=True)
class Change:
    """What a refresh came to: paths by what happened to them, and the problems that are new."""

    read: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    reloaded: bool = False

    def __bool__(self) -> bool:
        return bool(self.read or self.removed or self.problems or self.reloaded)


@dataclass(slots=True)
class _Held:
    """What the site knows of its files between two refreshes."""

    entries: dict[str, Entry] = field(default_factory=dict)
    walked: tuple[Problem, ...] = ()
    config: tuple[Problem, ...] = ()
    config_signature: object = None
    history: History = field(default_factory=History)


class Site:
    """One site, from its folder. Make it, `load` it, then `refresh` it whenever files changed."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self.git = git_folder(self.root)
        self._lock = threading.RLock()
        self._held = _Held()
        self.started = now()
        self.gallery = Gallery(self.root / UPLOADS, self.root / FOLDER / "formats")
        self._journal: Journal | None = None
        self._loaded = False
        settings = read_settings(self.root)
        schema = read_content_types(self.root)
        self.state = State(settings, schema, empty(schema))
        self._store = self._make_store(settings, schema)

    @property
    def roots(self) -> tuple[str, ...]:
        """The folders that documents can be in, relative to the site."""
        return self._store.layout.roots

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Everything that is wrong with the site's files now, by path and line."""
        with self._lock:
            held = self._held
            snapshot = self.state.snapshot
            found = {
                *held.config,
                *held.walked,
                *_contested(snapshot),
                *dangling(snapshot, partial(parsed, self.root)),
            }
            for entry in held.entries.values():
                found.update(entry.problems)
        return tuple(sorted(found, key=lambda p: (p.path, p.line or 0, p.column or 0, p.message)))

    def load(self, progress: Progress | None = None) -> None:
        """Read the whole site. Raises SetupError for a broken site.yaml or schema."""
        with self._lock, _uncollected():
            settings, schema = read_settings(self.root), read_content_types(self.root)
            before = self._config_signature()
            self._held.config = self._subject_problems(settings, schema)
            self._load(settings, schema, progress)
            self._held.config_signature = before
            self._loaded = True

    def refresh(self, hints: Iterable[str] | None = None) -> Change:
        """Take over what changed in the files; `hints` are paths that may have, None is all.

        Publishes at most one new state, when all of the change has been read.
        """
        with self._lock:
            if self._config_signature() != self._held.config_signature:
                return self._reconfigure()
            paths = self._changed_paths(hints)
            moved = self._follow_git(paths)
            return self._take_over(paths | moved)

    def write(self, prepare: Callable[[State, Versions], Result]) -> tuple[State, Result]:
        """Let `prepare` change files, in one step that is done or not done (docs/files.md).

        It is called under the site's write lock, and again where a file was changed by somebody
        else meanwhile. Returns the state that shows the change, and what `prepare` returned.
        """
        with self._writing() as journal, self._lock:
            for left in reversed(range(TRIES)):
                versions = self._versions()
                try:
                    result = prepare(self.state, versions)
                    writes = versions.pending.writes()
                    stale = {w.path for w in writes if self._is_stale(w)}
                    if stale:
                        raise ConflictError(f"{min(stale)} was changed meanwhile; try again")
                    journal.commit(writes)
                except ConflictError:
                    if not left:
                        raise
                    self.refresh(versions.pending.paths)
                else:
                    self._take_over({self._store.owner(w.path, self._exists) for w in writes})
                    return self.state, result
        raise AssertionError("unreachable")

    def scale(self, path: str) -> None:
        """Make the formats of a picture that has none yet, and show them."""
        inside = upload_path(path) or ""
        if self.gallery.missing(inside) and self.gallery.make(inside):
            self.refresh([path])

    def unscaled(self) -> list[str]:
        """The paths of the pictures whose formats are still to be made."""
        media = self.state.snapshot.media
        return [document.path for inside, document in media.items() if self.gallery.missing(inside)]

    def recover(self) -> int:
        """Finish or drop what a crash left of a write; returns how many files that changed."""
        if not (self.root / FOLDER / "journal").is_dir():
            return 0
        with self._writing() as journal:
            return journal.recover()

    @contextmanager
    def _writing(self) -> Iterator[Journal]:
        try:
            if self._journal is None:
                self._journal = Journal(self.root, state_folder(self.root))
        except OSError as error:
            raise StorageError(f"The site can't be written to: {error.strerror}") from error
        with self._journal.writing() as others:
            if others and self._loaded:
                self._journal.recover()
                self.refresh()
            yield self._journal

    def _versions(self) -> Versions:
        state = self.state
        return Versions(state.snapshot, state.settings, self._store.layout, Pending(self.root), now())

    def _is_stale(self, write: Write) -> bool:
        """Whether a file is not as the index knows it; a description has no entry of its own."""
        if self._store.owner(write.path, self._exists) != write.path:
            return False
        entry = self._held.entries.get(write.path)
        return write.before != (entry.signature if entry else None)

    # --- configuration -------------------------------------------------------------------------

    def _make_store(self, settings: Settings, schema: Schema) -> Store:
        def moments(path: str, modified: float) -> tuple[str, str]:
            return self._held.history.moments(path, modified)

        return Store(self.root, schema, settings, moments, self.gallery)

    def _config_signature(self) -> object:
        """Changes whenever site.yaml or a schema file does."""
        found: list[object] = []
        try:
            found.append(signature(os.stat(self.root / FILE)))
        except OSError:
            found.append(None)
        found.extend(sorted(walk(self.root, [TYPES]).files.items()))
        return found

    def _reconfigure(self) -> Change:
        """site.yaml or a schema changed: use it if it is sound, else keep what there was and say so."""
        before = self._config_signature()
        self._held.config_signature = before
        try:
            settings, schema = read_settings(self.root), read_content_types(self.root)
        except SetupError as error:
            mend = error.mend + ("; " if error.mend else "") + "until then the last good one is used"
            problem = Problem(error.path, error.line, error.message, mend, column=error.column)
            self._held.config = (problem,)
            return Change(problems=(problem,))
        self._held.config = self._subject_problems(settings, schema)
        if _shape(settings, schema) == _shape(self.state.settings, self.state.schema):
            self.state = replace(self.state, settings=settings)
        else:
            self._load(settings, schema, None)
        return Change(problems=self._held.config, reloaded=True)

    def _subject_problems(self, settings: Settings, schema: Schema) -> tuple[Problem, ...]:
        return tuple(check_subjects(settings, schema.subjects))

    def _load(self, settings: Settings, schema: Schema, progress: Progress | None) -> None:
        store = self._make_store(settings, schema)
        self._held.history = read_history(self.root, self._history_cache())
        found = walk(self.root, store.layout.roots)
        entries: dict[str, Entry] = {}
        paths = {store.owner(path, found.files.__contains__) for path in found.files}
        for done, path in enumerate(sorted(paths)):
            if progress and done % 100 == 0:
                progress(done, len(paths))
            entry = store.read(path)
            if entry is not None:
                entries[path] = entry
        if progress:
            progress(len(paths), len(paths))
        documents = [entry.document for entry in entries.values() if entry.document]
        snapshot = replace(build(schema, documents), number=self.state.snapshot.number + 1)
        self._held.entries, self._held.walked, self._store = entries, tuple(found.problems), store
        self.state = State(settings, schema, snapshot)

    def _history_cache(self) -> Path | None:
        try:
            return state_folder(self.root) / "cache" / "git.json"
        except OSError:
            return None

    # --- content -------------------------------------------------------------------------------

    def _changed_paths(self, hints: Iterable[str] | None) -> set[str]:
        """The paths, of those hinted at or of all, whose file is not as it was read."""
        hinted = None if hints is None else {h for h in hints if not any(map(ignored, h.split("/")))}
        if hinted is None or len(hinted) > FEW or needs_walk(self.root, hinted, self._held.walked):
            return self._compare_all()
        changed: set[str] = set()
        for path in hinted:
            below = path + "/"
            changed.update(p for p in self._held.entries if p == path or p.startswith(below))
            if (self.root / path).is_dir():
                found = walk(self.root, [path])
                if found.problems:
                    return self._compare_all()
                changed.update(self._store.owner(p, self._exists) for p in found.files)
            else:
                known = self._exists if self._exists(path) else self._held.entries.__contains__
                changed.add(self._store.owner(path, known))
        return changed

    def _exists(self, path: str) -> bool:
        return (self.root / path).is_file()

    def _compare_all(self) -> set[str]:
        found: Walk = walk(self.root, self.roots)
        self._held.walked = tuple(found.problems)
        held = self._held.entries
        owners = {path: self._store.owner(path, found.files.__contains__) for path in found.files}
        changed = {
            owner
            for path, owner in owners.items()
            if owner != path or owner not in held or held[owner].signature != found.files[path]
        }
        unread = tuple(f"{folder}/" for folder in found.unread)
        changed.update(path for path in held if path not in found.files and not path.startswith(unread))
        # A path that no type claims is never held; reading it again costs nothing but a look.
        return {path for path in changed if path in held or self._store.claimed(path)}

    def _follow_git(self, paths: set[str]) -> set[str]:
        """Take over new commits; returns the held paths whose moments they changed."""
        if self.git is None:
            return set()
        before = self._held.history
        after = read_history(self.root, self._history_cache(), before)
        if after.commit == before.commit:
            dirty = before.changed - paths | changed_paths(self.root, paths)
            self._held.history = replace(before, changed=dirty)
            return set()
        self._held.history = after
        held = self._held.entries
        return {
            p
            for p in held
            if after.times.get(p) != before.times.get(p) or (p in after.changed) != (p in before.changed)
        }

    def _take_over(self, paths: set[str]) -> Change:
        """Read some paths again and publish what came of it, in one step."""
        entries = self._held.entries
        replaced: list[tuple[Document | None, Document | None]] = []
        read: list[str] = []
        gone: list[str] = []
        problems: list[Problem] = []
        for path in sorted(paths):
            before, after = entries.get(path), self._read(path)
            if after is None:
                if entries.pop(path, None):
                    gone.append(path)
            else:
                after = entries[path] = _keep_good(before, after)
                known = before.problems if before else ()
                problems.extend(p for p in after.problems if p not in known)
                if before is None or after.document is not before.document or after.problems != known:
                    read.append(path)
            replaced.append((before.document if before else None, after.document if after else None))
        self._publish([pair for pair in replaced if pair[0] is not pair[1]])
        return Change(tuple(read), tuple(gone), tuple(problems))

    def _read(self, path: str) -> Entry | None:
        wrong = link_problem(str(self.root / path), path, str(self.root))
        return self._store.unreadable(path, wrong) if wrong else self._store.read(path)

    def _publish(self, replaced: list[tuple[Document | None, Document | None]]) -> None:
        removed = [old for old, _ in replaced if old]
        added = [new for _, new in replaced if new]
        if removed or added:
            snapshot = apply(self.state.snapshot, removed, added)
            self.state = replace(self.state, snapshot=snapshot)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Keep the garbage collector from looking at a growing site again and again; none of it is garbage."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
        gc.freeze()
    finally:
        if enabled:
            gc.enable()


def _keep_good(before: Entry | None, after: Entry) -> Entry:
    """An entry as it is held: broken, or the same as before, it keeps the document there was."""
    if before is None or before.document is None:
        return after
    if after.broken or (after.document and _equal(before.document, after.document)):
        return replace(after, document=before.document)
    return after


def _equal(old: Document, new: Document) -> bool:
    return old.row == new.row and old.status == new.status and old.type is new.type


def _shape(settings: Settings, schema: Schema) -> object:
    """What the reading of documents depends on: where it is the same, no file need be read again."""
    types = sorted((uid, t.path, repr(t.raw)) for uid, t in schema.types.items())
    return (settings.default_locale, settings.locales, types)


def _contested(snapshot: Snapshot) -> Iterable[Problem]:
    """The problems of files that claim a document which another file has."""
    for key in snapshot.contested:
        first, *others = snapshot.claims.get(key, ())
        for other in others:
            what = f'claims the document "{key[1]}" ({key[2]}), which {first.path} has'
            mend = "give it another documentId or name, or remove it"
            yield Problem(other.path, None, what, mend, rule="duplicate-id")
