"""The site: the one mutable thing. It holds the current state and lets files change it.

Whoever wants to read takes `site.state` once and keeps it. Whatever changes the files, `refresh`
finds out what, and one assignment publishes the next state. Where several processes serve one site,
each has a Site of its own, and a Feed tells each what the others changed.
"""

import gc
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from server.config.model import Settings
from server.documents.layout import UPLOADS
from server.documents.timestamps import now
from server.errors import ConflictError, SetupError, StorageError
from server.index.dangling import dangling
from server.index.snapshot import Snapshot, apply, build, empty
from server.paths import FOLDER, cache_folder, state_folder
from server.problems import Problem
from server.schema.model import Schema
from server.site.configure import Configuration, configuration_mark, configure
from server.site.feed import Feed
from server.site.file_entries import Held, Taken, history_cache
from server.site.loading import Progress, read_all
from server.storage.changeset import Changeset
from server.storage.git import git_folder, head_mark, read_history
from server.storage.image_cache import ImageCache
from server.storage.journal import Journal, Write
from server.storage.media import upload_path
from server.storage.parse_cache import ParseCache
from server.storage.read import parsed
from server.storage.store import Store
from server.write.context import Context

Request = TypeVar("Request")
Result = TypeVar("Result")
FEW = 50  # so many files that changed on disk are worth waiting for, in every process
TRIES = 4  # how often a write is prepared again because somebody changed a file meanwhile


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


class Site:
    """One site, from its folder. Make it, `load` it, then `refresh` it whenever files changed."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self._lock = threading.RLock()
        self.started = now()
        self.image_cache = ImageCache(self.root / UPLOADS, self.root / FOLDER / "formats")
        self._journal: Journal | None = None
        self._number = -1  # of the last write, as far as this process knows
        self._loaded = False
        self._feed: Feed | None = None
        self._heard = 0  # the position in the feed up to which everything is known
        self._hints: list[tuple[str, ...] | None] = []  # heard, and not looked at yet
        self._odd: tuple[Problem, ...] = ()
        self._configuration = configure(self.root)
        settings, schema = self._configuration.settings, self._configuration.schema
        self.state = State(settings, schema, empty(schema))
        self._held = Held(self.root, git_folder(self.root), self._make_store(settings, schema))

    @property
    def git(self) -> Path | None:
        """The repository's folder whose HEAD and index belong to the site, or None."""
        return self._held.git

    @property
    def roots(self) -> tuple[str, ...]:
        """The folders that documents can be in, relative to the site."""
        return self._held.store.layout.roots

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Everything that is wrong with the site's files now, by path and line."""
        with self._lock:
            held, snapshot = self._held, self.state.snapshot
            found = {
                *self._odd,
                *held.walked,
                *_contested(snapshot),
                *dangling(snapshot, partial(parsed, self.root)),
            }
            for entry in held.entries.values():
                found.update(entry.problems)
        return tuple(sorted(found, key=lambda p: (p.path, p.line or 0, p.column or 0, p.message)))

    def load(self, progress: Progress | None = None, cores: int = 1) -> None:
        """Read the whole site, on several cores. Raises SetupError for a broken site.yaml or schema."""
        with self._lock, _uncollected():
            self._load(configure(self.root), progress, cores)
            self._loaded = True

    def refresh(self, hints: Iterable[str] | None = None, *, announce: bool = False) -> Change:
        """Take over what changed in the files; `hints` are paths that may have, None is all.

        Publishes at most one new state, when all of the change has been read. `announce` tells other
        processes: of a few files they answer nothing old once this one has answered the new.
        """
        with self._lock:
            if configuration_mark(self.root) != self._configuration.mark:
                self._tell(None, announce=announce)
                return self._reconfigure()
            paths = self._held.changed(hints)
            paths |= self._held.follow_git(paths)
            self._tell(paths, announce=announce)
            taken = self._publish(paths)
            return Change(tuple(taken.read), tuple(taken.gone), tuple(taken.problems))

    def write(self, prepare: Callable[[Request, Context], Result], request: Request) -> tuple[State, Result]:
        """Let `prepare` change files, in one step that is done or not done (docs/files.md).

        It is called with the request and a context to put the files into, under the site's write
        lock, and again with a new context where a file was changed by somebody else meanwhile.
        Returns the state that shows the change, and what `prepare` returned.
        """
        with self._writing() as (journal, changed), self._lock:
            for left in reversed(range(TRIES)):
                context = self._context()
                try:
                    result = prepare(request, context)
                    writes = context.changeset.writes()
                    stale = {w.path for w in writes if self._is_stale(w)}
                    if stale:
                        raise ConflictError(f"{min(stale)} was changed meanwhile; try again")
                    changed.update(w.path for w in writes)
                    journal.commit(writes)
                except ConflictError:
                    if not left:
                        raise
                    self.refresh(context.changeset.paths)
                else:
                    self._publish({self._held.owner(path) for path in changed})
                    return self.state, result
        raise AssertionError("unreachable")

    def scale(self, path: str) -> State:
        """Make the formats of a picture that has none yet. Returns the state that shows them."""
        inside = upload_path(path) or ""
        if self.image_cache.missing(inside) and self.image_cache.make(inside):
            with self._lock:
                self._tell({path})
                self._publish({path})
        return self.state

    def unscaled(self) -> list[str]:
        """The paths of the pictures whose formats are still to be made."""
        media = self.state.snapshot.media
        return [document.path for inside, document in media.items() if self.image_cache.missing(inside)]

    def recover(self) -> int:
        """Finish or drop what a crash left of a write; returns how many files that changed."""
        if not (self.root / FOLDER / "journal").is_dir():
            return 0
        with self._writing() as (journal, _):
            return journal.recover()

    # --- other processes -----------------------------------------------------------------------

    def join(self, feed: Feed) -> None:
        """Hear from now on what other processes change, and tell them what this one does."""
        with self._lock:
            self._feed, self._heard = feed, feed.position

    def current(self) -> State:
        """The state, with everything in it that any process has answered to have written."""
        if self._feed is not None and self._feed.demanded > self._heard:
            with self._lock:
                self._listen(self._feed)
        return self.state

    def follow(self) -> Change:
        """Take over what other processes said may have changed."""
        feed = self._feed
        if feed is None or (feed.position == self._heard and not self._hints):
            return Change()
        with self._lock:
            self._listen(feed)
            hints, self._hints = self._hints, []
            paths = None if None in hints else {path for told in hints for path in told or ()}
            return self.refresh(paths) if hints else Change()

    def _tell(self, paths: set[str] | None, *, announce: bool = True) -> None:
        """Tell other processes what changed on disk, before this one shows it."""
        if self._feed is not None and announce and paths != set():
            self._feed.tell(paths, urgent=paths is not None and len(paths) <= FEW)

    def _listen(self, feed: Feed) -> None:
        """Take over what others wrote; keep their hints, which may take longer, for `follow`."""
        heard, records = feed.since(self._heard)
        written: set[str] = set()
        edited: set[str] = set()
        for record in records or ():
            if record.worker == os.getpid():
                continue
            if record.urgent:
                (edited if record.write is None else written).update(record.paths or ())
            elif record.write is None:
                self._hints.append(record.paths)
            self._number += record.write == self._number + 1
        if records is None or any(record.urgent and record.paths is None for record in records):
            self.refresh()  # more was told than could be said or kept
        held = self._held
        moved = held.follow_git(edited) if edited else set()
        self._publish({held.owner(p) for p in written | edited if not held.is_current(p)} | moved)
        self._heard = heard  # last: until then, other threads wait for what they must know

    @contextmanager
    def _writing(self) -> Iterator[tuple[Journal, set[str]]]:
        """The journal, locked; and a set for the paths that are written, of which others are told."""
        try:
            if self._journal is None:
                self._journal = Journal(self.root, state_folder(self.root))
        except OSError as error:
            raise StorageError(f"The site can't be written to: {error.strerror}") from error
        changed: set[str] = set()
        with self._journal.writing() as number:
            self.current()
            if self._loaded and number != self._number + 1:  # somebody wrote who does not tell us
                self._journal.recover()
                self.refresh()
            self._number = number
            try:
                yield self._journal, changed
            finally:
                if self._feed is not None:
                    self._feed.tell(changed, number, urgent=bool(changed))

    def _context(self) -> Context:
        state = self.state
        return Context(state.snapshot, state.settings, self._held.store.layout, Changeset(self.root), now())

    def _is_stale(self, write: Write) -> bool:
        """Whether a file is not as the index knows it; a description has no entry of its own."""
        if self._held.owner(write.path) != write.path:
            return False
        entry = self._held.entries.get(write.path)
        return write.before != (entry.signature if entry else None)

    # --- configuration and content -------------------------------------------------------------

    def _make_store(self, settings: Settings, schema: Schema) -> Store:
        def timestamps(path: str, modified: float) -> tuple[str, str]:
            return self._held.history.timestamps(path, modified)

        return Store(self.root, schema, settings, timestamps, self.image_cache)

    def _reconfigure(self) -> Change:
        """site.yaml or a schema changed: use it if it is sound, else keep what there was and say so."""
        mark = configuration_mark(self.root)
        try:
            found = configure(self.root)
        except SetupError as error:
            fix = error.fix + ("; " if error.fix else "") + "until then the last good one is used"
            self._odd = (Problem(error.path, error.line, error.message, fix, column=error.column),)
            self._configuration = replace(self._configuration, mark=mark)
            return Change(problems=self._odd)
        if found.shape == self._configuration.shape:
            self._odd, self._configuration = found.problems, found
            self.state = replace(self.state, settings=found.settings)
        else:
            self._load(found, None, 1)
        return Change(problems=self._odd, reloaded=True)

    def _load(self, found: Configuration, progress: Progress | None, cores: int) -> None:
        held = Held(self.root, git_folder(self.root), self._make_store(found.settings, found.schema))
        held.head = head_mark(held.git) if held.git else None
        held.history = self._held.history = read_history(self.root, history_cache(self.root))
        folder = cache_folder(self.root)
        cache = ParseCache(folder / "documents", found.shape) if folder else None
        read_all(held, cache, progress, cores)
        documents = [entry.document for entry in held.entries.values() if entry.document]
        snapshot = replace(build(found.schema, documents), number=self.state.snapshot.number + 1)
        self._odd, self._configuration, self._held = found.problems, found, held
        self.state = State(found.settings, found.schema, snapshot)

    def _publish(self, paths: Iterable[str]) -> Taken:
        """Read some paths again and publish what came of it, in one step."""
        taken = self._held.take_over(paths)
        if taken.removed or taken.added:
            snapshot = apply(self.state.snapshot, taken.removed, taken.added)
            self.state = replace(self.state, snapshot=snapshot)
        return taken


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


def _contested(snapshot: Snapshot) -> Iterable[Problem]:
    """The problems of files that claim a document which another file has."""
    for key in snapshot.contested:
        first, *others = snapshot.claims.get(key, ())
        for other in others:
            what = f'claims the document "{key[1]}" ({key[2]}), which {first.path} has'
            fix = "give it another documentId or name, or remove it"
            yield Problem(other.path, None, what, fix, rule="duplicate-id")
