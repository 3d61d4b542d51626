"""The states of a site at its commits, for whoever asks how it was (docs/history.md).

A state is made from what differs to one that is known: the current state, or one that was asked for before.
"""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path

from server.bounded import Cache
from server.config.model import Settings, value_of, with_values
from server.errors import ConflictError, SetupError
from server.history.commit_files import (
    Blobs,
    KnownEntries,
    configuration_files,
    read_configuration,
    read_entries,
)
from server.history.pictures import Pictures
from server.history.resolve_commit import find_named, no_repository, require_head
from server.index.fragments import Fragments
from server.index.snapshot import Snapshot, apply, build
from server.index.text_search import Found
from server.paths import cache_folder
from server.schema.model import Schema
from server.site.configure import Configuration
from server.site.site import Site, State
from server.storage.entry import Entry, ImageFacts
from server.storage.files import signature_of
from server.storage.git.log import Commit, CommitLog
from server.storage.git.refs import (
    BRANCH_PREFIX,
    COMMIT_ID,
    branch_commit,
    read_time,
    refs_mark,
)
from server.storage.git.times import CommitTimes, with_commits
from server.storage.git.tree import Blob, read_tree
from server.storage.media import with_formats
from server.storage.store import Store

log = logging.getLogger("bifolio")

# Of the states that a process keeps, beside the current one and one that is larger.
MAX_BYTES = 128 * 1024 * 1024
CACHE_BYTES = 2 * 1024 * 1024  # Of rendered responses and results, in each state.
_BYTES_PER_FILE = 600  # What a file takes in a state, beside its text.
_MAX_CANDIDATES = 4  # The nearest state is searched among the last ones.
_MAX_NAMES = 256  # Names whose commit is cached.
_BACKOFF_S = 1.0  # After formats of which none could be made.
# Settings that a past state takes from its commit, since they decide how content is read and answered. The
# others, such as roles and limits, are those of today.
HISTORIC_KEYS = (
    "name", "locales.default", "locales.available", "api.page_size.default", "api.page_size.max",
    "api.populate_with_pagination", "api.populate", "api.format",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class PastState:
    """The state of the site at a commit, what it was made of, and how many bytes it takes, about.

    `lacking` are the paths of pictures whose formats are not made yet; `mark` is that of `Pictures` when they
    were looked for.
    """

    commit: str
    state: State
    configuration: Configuration
    known: KnownEntries
    size: int
    lacking: frozenset[str] = frozenset()
    mark: int = 0


class PastStates:
    """States of a site at commits; the last that were asked for are kept. Safe to use from many threads.

    Of those that take more than `most` bytes each, as of a large site, the last one is kept as well.
    """

    def __init__(self, site: Site, most: int = MAX_BYTES) -> None:
        self.site = site
        self.log = CommitLog(site.root, cache_folder(site.root))
        # Saves 43 ms of a read at a commit of a site of 2,000 articles.
        self._kept: Cache[str, PastState] = Cache(most, lambda _, past: past.size)
        self._large: PastState | None = None  # the last one made that is too large to be kept with others
        # Saves 9 ms of a commit that is not kept.
        self._configurations: dict[frozenset[tuple[str, str]], Configuration] = {}
        # Saves 0.08 ms of each read at a commit.
        self._answered: dict[str, tuple[PastState, Settings, State]] = {}
        # Saves 0.07 ms of a read at a branch; for a tag or a time, git is not asked.
        self._names: dict[str, tuple[object, str]] = {}
        self._fragments = Fragments()  # of documents that are in no current state
        self._head: tuple[str, Blobs] = ("", {})  # the commit that is checked out, and its files
        self._lock = threading.Lock()
        self.pictures = Pictures(site.root, site.image_cache)
        self._scaling: threading.Thread | None = None
        self._deleted = set[tuple[str, Blob]]()  # pictures that are shown with formats that are gone
        self.held: PastState | None = None  # the state that all requests are answered from, where one is

    def resolve(self, name: str) -> str:
        """The commit that somebody means: by an id, a tag, a branch or a time, such as `2026-11-01`.

        Raises ValidationError where it means none, ConflictError in a site without commits.
        """
        if COMMIT_ID.fullmatch(name) and self._find_known(name):
            return name
        return self._resolve(name, self._find)

    def branch(self, name: str) -> str:
        """The last commit of a branch; "" where no branch has that name.

        Raises ConflictError in a site without commits.
        """
        return self._resolve(name, self._find_branch, BRANCH_PREFIX)

    def _resolve(self, name: str, find: Callable[[str], str], kind: str = "") -> str:
        """What `find` says of a name, which is asked again when it may say otherwise."""
        folder, key = self.site.git.folder, kind + name
        if folder is None:
            raise ConflictError(no_repository(self.site.root))
        if "\0" in name:  # No file has such a name, that could be looked at for a change.
            return find(name)
        mark, known = refs_mark(folder, name), self._names.get(key)
        if known is None or known[0] != mark:
            if len(self._names) >= _MAX_NAMES:
                self._names.clear()
            known = self._names[key] = (mark, find(name))
        return known[1]

    def _find_branch(self, name: str) -> str:
        self.require_commits()
        return branch_commit(self.site.root, name)

    def _find(self, name: str) -> str:
        return find_named(self.site.root, self.log, name)

    def changed_between(self, first: str, last: str = "") -> set[str]:
        """The paths of the files that differ between two commits, or between one and what is there now."""
        root = self.site.root
        before = read_tree(root, first)
        if last:
            after = read_tree(root, last)
            return {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
        _, _, committed, entries = self.site.basis()
        now = {p for p in entries if p not in before or p in committed.changed}
        gone = {p for p in before if not (root / p).is_file()}
        moved = self.changed_between(first, committed.commit) if committed.commit != first else set()
        return now | gone | moved

    def hold(self, commit: str) -> PastState:
        """Make the state at a commit, and keep it whatever else is asked for. Raises ConflictError."""
        self.held = self.at(commit)
        return self.held

    def is_kept(self, commit: str) -> bool:
        """Return whether the state at a commit is there, with nothing to be done for it."""
        past = self._find_known(commit)
        return past is not None and not self._is_outdated(past)

    def _find_known(self, commit: str) -> PastState | None:
        alone = (past for past in (self.held, self._large) if past and past.commit == commit)
        return next(alone, None) or self._kept.get(commit)

    def _all_known(self) -> list[PastState]:
        """The states that are there; of those in the cache, the last used at the end."""
        return [*(past for _, past in self._kept.items()), *filter(None, (self.held, self._large))]

    def at(self, commit: str) -> PastState:
        """The state at a commit. Raises ConflictError where the configuration at that commit is broken."""
        past = self._find_known(commit)
        if past is not None and not self._is_outdated(past):
            return past
        with self._lock:
            past = self._find_known(commit)
            if past is None:
                past = self._make(commit)
                self._keep(past)
            elif self._is_outdated(past):
                past = self._with_new_formats(past)
                self._keep(past)
            return past

    def _keep(self, past: PastState) -> None:
        if self.held and self.held.commit == past.commit:
            self.held = past
        if past.size > self._kept.most:
            self._large = past
        else:
            self._kept.put(past.commit, past)

    def answered(self, commit: str, today: Settings) -> State:
        """The state at a commit as requests see it: who may do what, and how much, is as it is today."""
        past, known = self.at(commit), self._answered.get(commit)
        if past.lacking:
            self._begin_scaling()
        if known is None or known[0] is not past or known[1] is not today:
            then = {key: value_of(past.state.settings, key) for key in HISTORIC_KEYS}
            state = replace(past.state, settings=with_values(today, then))
            # What is kept here as well would take memory that nothing bounds.
            kept = {one.commit for one in self._all_known()}
            others = {id_: answered for id_, answered in self._answered.items() if id_ in kept}
            self._answered = {**others, commit: (past, today, state)}
            return state
        return known[2]

    def require_commits(self) -> str:
        """The id of the commit that is checked out. Raises ConflictError in a site without commits."""
        return require_head(self.site.root)

    def _make(self, commit: str) -> PastState:
        root = self.site.root
        blobs = read_tree(root, commit)
        self.log.update(commit)
        times = CommitTimes(commit, with_commits({}, self.log.before(commit)))
        current = self._current()
        configuration = self._configuration(commit, blobs, current)
        base = self._base(configuration.schema, blobs, current)
        known = base.known if base else KnownEntries({}, {})
        store = Store(
            root, configuration.schema, configuration.settings, times.timestamps, self.site.image_cache
        )
        mark, lacking = self.pictures.mark(), set[str]()

        def facts(path: str, blob: Blob) -> ImageFacts:
            entry = current.known.entries.get(path) if current.known.blobs.get(path) == blob else None
            picture = self.pictures.of(path, blob, entry.signature if entry else None)
            formats = self.pictures.formats(path, picture)
            if formats is None and picture.key:
                lacking.add(path)
            return picture.size, formats

        entries, size = read_entries(store, blobs, known, facts)
        snapshot = self._snapshot(configuration.schema, base, entries)
        state = State(configuration.settings, configuration.schema, snapshot)
        size += CACHE_BYTES + _BYTES_PER_FILE * len(entries)
        known = KnownEntries(blobs, entries)
        return PastState(commit, state, configuration, known, size, frozenset(lacking), mark)

    # --- formats of pictures -------------------------------------------------------------------

    def _is_outdated(self, past: PastState) -> bool:
        """Whether formats may have been made that a state lacks."""
        return bool(past.lacking) and past.mark != self.pictures.mark()

    def _with_new_formats(self, past: PastState) -> PastState:
        """The state with the formats that have been made since; call it under the lock."""
        mark, blobs, entries = self.pictures.mark(), past.known.blobs, dict(past.known.entries)
        lacking = set(past.lacking)
        for path in past.lacking:
            picture = self.pictures.of(path, blobs[path])
            formats, entry = self.pictures.formats(path, picture), entries[path]
            if formats and entry.document:
                entries[path] = replace(entry, document=with_formats(entry.document, formats))
            if formats is not None or not picture.key:
                lacking.discard(path)
        if len(lacking) == len(past.lacking):
            return replace(past, mark=mark)
        state = replace(past.state, snapshot=self._snapshot(past.state.schema, past, entries))
        return replace(
            past, state=state, known=KnownEntries(blobs, entries), lacking=frozenset(lacking), mark=mark
        )

    def picture_file(self, path: str, blob: Blob, name: str) -> Path | None:
        """Return the file of a format of a picture. One that was deleted is made again; None until then."""
        file = self.pictures.file(path, blob, name)
        if file is None and self.pictures.is_wanting(path, blob):
            with self._lock:
                self._deleted.add((path, blob))
            self._begin_scaling()
        return file

    def _begin_scaling(self) -> None:
        """Make the formats that states lack, in a thread of this process."""
        if self._scaling is not None and self._scaling.is_alive():
            return
        with self._lock:
            if self._scaling is None or not self._scaling.is_alive():
                self._scaling = threading.Thread(target=self._scale, name="past pictures", daemon=True)
                self._scaling.start()

    def _scale(self) -> None:
        try:
            while wanted := self._wanting():
                done = [self.pictures.make(path, blob) for path, blob in wanted]
                if not any(done):
                    time.sleep(_BACKOFF_S)
                with self._lock:
                    for past in filter(attrgetter("lacking"), self._all_known()):
                        self._keep(self._with_new_formats(past))
        except Exception:
            log.exception("the pictures of past commits can't be scaled; the next request tries again")

    def _wanting(self) -> list[tuple[str, Blob]]:
        """The pictures whose formats are to be made, with what they hold."""
        found = {(path, past.known.blobs[path]) for past in self._all_known() for path in past.lacking}
        with self._lock:
            found |= self._deleted
        wanted = [one for one in found if self.pictures.is_wanting(*one)]
        with self._lock:
            self._deleted -= found.difference(wanted)
        return wanted

    def is_as_today(self, path: str, blob: Blob) -> bool:
        """Whether a file of the site holds today what is in a blob."""
        _, _, committed, entries = self.site.basis()
        if path in committed.changed or self._blobs_of(committed.commit).get(path) != blob:
            return False
        entry = entries.get(path)
        return entry is not None and entry.signature == signature_of(self.site.root / path)

    def _current(self) -> PastState:
        """The current state, with the blobs of those files alone that do not differ from the last commit."""
        state, configuration, committed, entries = self.site.basis()
        blobs = self._blobs_of(committed.commit)
        same = {path: blob for path, blob in blobs.items() if path not in committed.changed}
        return PastState(committed.commit, state, configuration, KnownEntries(same, entries), 0)

    def _blobs_of(self, head: str) -> Blobs:
        """The files of the commit that is checked out; they are asked for once."""
        if self._head[0] != head:
            self._head = head, read_tree(self.site.root, head) if head else {}
        return self._head[1]

    def _configuration(self, commit: str, blobs: Blobs, current: PastState) -> Configuration:
        """The configuration of a commit, with the schema of one that is known where that says the same."""
        ids = frozenset((path, blob.id) for path, blob in configuration_files(blobs).items())
        found = self._configurations.get(ids)
        if found is None:
            try:
                found = read_configuration(self.site.root, blobs)
            except SetupError as error:
                raise ConflictError(f"The site was broken at commit {commit[:10]}: {error}") from error
            others = (current, *self._all_known())
            same = (o.configuration for o in others if o.configuration.shape == found.shape)
            if (other := next(same, None)) is not None:
                found = replace(found, schema=other.schema)
            if len(self._configurations) >= _MAX_NAMES:
                self._configurations.clear()
            self._configurations[ids] = found
        return found

    def _base(self, schema: Schema, blobs: Blobs, current: PastState) -> PastState | None:
        """The state to begin with: of those with the same schema, the one that has most files in common."""
        kept = self._all_known()[-_MAX_CANDIDATES:]
        candidates = [past for past in (current, *kept) if past.configuration.schema is schema]

        def in_common(past: PastState) -> int:
            return sum(past.known.blobs.get(path) == blob for path, blob in blobs.items())

        return max(candidates, key=in_common, default=None)

    def _snapshot(self, schema: Schema, base: PastState | None, entries: Mapping[str, Entry]) -> Snapshot:
        documents = {path: entry.document for path, entry in entries.items() if entry.document}
        if base is not None:
            before = {path: e.document for path, e in base.known.entries.items() if e.document}
            removed = [document for path, document in before.items() if documents.get(path) is not document]
            added = [document for path, document in documents.items() if before.get(path) is not document]
            if len(removed) + len(added) <= len(documents) // 2:
                begun = replace(base.state.snapshot, fragments=Fragments(0), found=Found(0))
                return self._with_caches(apply(begun, removed, added))
        return self._with_caches(build(schema, documents.values()))

    def _with_caches(self, snapshot: Snapshot) -> Snapshot:
        """A snapshot whose caches are small, beside one for the documents of all past states."""
        shown, found = Fragments(CACHE_BYTES), Found(CACHE_BYTES)
        return replace(snapshot, fragments=self._fragments, shown=shown, found=found)


# --- uploads --------------------------------------------------------------------------------------


def replaced_file(past: PastStates, commit: str, path: str) -> Blob | None:
    """What a media file of a commit held, if it was replaced or removed since; None if it is as it was."""
    blob = past.at(commit).known.blobs.get(path)
    return None if blob is None or past.is_as_today(path, blob) else blob


# --- selection ------------------------------------------------------------------------------------


def selection(past: PastStates, since: str = "", author: str = "") -> Callable[[Commit], bool]:
    """Whether a commit is one of those asked for; "" asks for all.

    `since` is a time, of a date its beginning, or a commit, which is left out with all before it; `author` is
    part of a name, or an e-mail address. Raises ValidationError where `since` means nothing.
    """
    time, word = read_time(since, end=False), author.casefold()
    before: frozenset[str] = frozenset()
    if since and time is None:
        commit = past.resolve(since)
        past.log.update(commit)
        before = frozenset(one.id for one in past.log.before(commit))

    def wanted(commit: Commit) -> bool:
        if commit.id in before or (time is not None and commit.authored < time):
            return False
        return not word or word in commit.author.casefold() or word == commit.email.casefold()

    return wanted
