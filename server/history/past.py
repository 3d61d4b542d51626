"""A site's states at past commits (docs/history.md)."""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path

from server.bounded import Cache
from server.config.model import Settings, value_of, with_values
from server.documents.path_rules import Layout
from server.errors import ConflictError, SetupError
from server.history.commit_files import (
    Blobs,
    KnownEntries,
    configuration_files,
    read_configuration,
    read_entries,
)
from server.history.pictures import CommitImages
from server.history.resolve_commit import no_repository, require_head, resolve_commit_name
from server.index.fragments import Fragments
from server.index.snapshot import Snapshot, apply, build
from server.index.text_search import SearchResults
from server.paths import SETTINGS, TYPES, cache_folder
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
    parse_time,
    refs_cache_key,
)
from server.storage.git.times import CommitTimes, with_commit_times
from server.storage.git.tree import Blob, read_tree
from server.storage.media import with_formats
from server.storage.store import Store

log = logging.getLogger("bifolio")

# for all cached states in a process, except the current state and one large state
MAX_BYTES = 128 * 1024 * 1024
CACHE_BYTES = 2 * 1024 * 1024  # limit in each state, separately for rendered responses and search results
_BYTES_PER_FILE = 600  # approximate memory for each file in a state, in addition to its text
_MAX_CANDIDATES = 4  # A new state is built from the most similar of this many recent states.
_MAX_NAMES = 256  # size of the caches for resolved names and for configurations
_BACKOFF_S = 1.0  # pause after an attempt in which no format could be generated
# These settings affect parsing and rendering, so a past state uses their values at its commit.
HISTORIC_KEYS = (
    "name", "locales.default", "locales.available", "api.page_size.default", "api.page_size.max",
    "api.populate_with_pagination", "api.populate", "api.format", "urls", "feeds",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class PastState:
    """The state of a site at one commit. `size` is its approximate size in bytes.

    `unscaled_images` contains the paths of the images whose resized variants do not exist yet.
    """

    commit: str
    state: State
    configuration: Configuration
    known: KnownEntries
    size: int
    unscaled_images: frozenset[str] = frozenset()
    image_cache_mark: int = 0


class PastStates:
    """Thread-safe cache of a site's states at past commits."""

    def __init__(self, site: Site, max_bytes: int = MAX_BYTES) -> None:
        self.site = site
        self.log = CommitLog(site.root, cache_folder(site.root))
        # Saves 43 ms per read at a commit, on a site with 2,000 articles.
        self._cache: Cache[str, PastState] = Cache(max_bytes, lambda _, past: past.size)
        self._large: PastState | None = None  # the last state that was too large for the cache
        # Saves 9 ms when a state is built.
        self._configurations: dict[frozenset[tuple[str, str]], Configuration] = {}
        # Saves 0.08 ms per read at a commit.
        self._request_states: dict[str, tuple[PastState, Settings, State]] = {}
        # Saves 0.07 ms per read at a branch, and a git process per read at a tag or time.
        self._names: dict[str, tuple[object, str]] = {}
        self._fragments = Fragments()  # for documents that are not in the current state
        self._head: tuple[str, Blobs] = ("", {})  # the checked-out commit and its files
        self._lock = threading.Lock()
        self.pictures = CommitImages(site.root, site.image_cache)
        self._scaling: threading.Thread | None = None
        self._deleted = set[tuple[str, Blob]]()  # images whose deleted formats were requested by clients
        self.pinned: PastState | None = None  # the only state that is served, with `serve --at`

    def resolve(self, name: str) -> str:
        """Return the id of the commit that `name` refers to.

        Caches the results of `resolve_commit_name`, and raises the same errors.
        """
        if COMMIT_ID.fullmatch(name) and self._find_known(name):
            return name
        return self._resolve(name, self._find)

    def branch(self, name: str) -> str:
        """Return the id of the last commit on a branch, or "" if there is no such branch.

        Raises ConflictError if the site has no commits.
        """
        return self._resolve(name, self._find_branch, BRANCH_PREFIX)

    def _resolve(self, name: str, find: Callable[[str], str], prefix: str = "") -> str:
        """Return the result of `find(name)`. The result is cached until a git ref changes."""
        folder, key = self.site.git.folder, prefix + name
        if folder is None:
            raise ConflictError(no_repository(self.site.root))
        if "\0" in name:  # Neither a ref name nor a file path can contain NUL.
            return find(name)
        mark, cached = refs_cache_key(folder, name), self._names.get(key)
        if cached is None or cached[0] != mark:
            if len(self._names) >= _MAX_NAMES:
                self._names.clear()
            cached = self._names[key] = (mark, find(name))
        return cached[1]

    def _find_branch(self, name: str) -> str:
        self.require_commits()
        return branch_commit(self.site.root, name)

    def _find(self, name: str) -> str:
        return resolve_commit_name(self.site.root, self.log, name)

    def changed_between(self, first: str, last: str = "") -> set[str]:
        """Return the paths of the files that differ between two commits.

        If `last` is "", compare the commit `first` with the files on disk.
        """
        root = self.site.root
        before = read_tree(root, first)
        if last:
            after = read_tree(root, last)
            return {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
        _, _, committed, entries = self.site.basis()
        current = {p for p in entries if p not in before or p in committed.changed}
        deleted = {p for p in before if not (root / p).is_file()}
        committed_changes = (
            self.changed_between(first, committed.commit) if committed.commit != first else set()
        )
        return current | deleted | committed_changes

    def pin(self, commit: str) -> PastState:
        """Return the state at a commit, and keep it in memory permanently. Raises the same errors as `at`."""
        self.pinned = self.at(commit)
        return self.pinned

    def is_kept(self, commit: str) -> bool:
        past = self._find_known(commit)
        return past is not None and not self._is_outdated(past)

    def _find_known(self, commit: str) -> PastState | None:
        pinned = (past for past in (self.pinned, self._large) if past and past.commit == commit)
        return next(pinned, None) or self._cache.get(commit)

    def _all_known(self) -> list[PastState]:
        # least recently used first, then the permanent states
        return [*(past for _, past in self._cache.items()), *filter(None, (self.pinned, self._large))]

    def at(self, commit: str) -> PastState:
        """Return the state at a commit.

        Raises ConflictError if the configuration in the commit is invalid.
        """
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
        if self.pinned and self.pinned.commit == past.commit:
            self.pinned = past
        if past.size > self._cache.most:
            self._large = past
        else:
            self._cache.put(past.commit, past)

    def state_for_request(self, commit: str, current_settings: Settings) -> State:
        """Return the state at a commit, but with `current_settings` instead of the settings in the commit.

        Only the settings in HISTORIC_KEYS keep their values from the commit.
        """
        past, cached = self.at(commit), self._request_states.get(commit)
        if past.unscaled_images:
            self._begin_scaling()
        if cached is None or cached[0] is not past or cached[1] is not current_settings:
            historic = {key: value_of(past.state.settings, key) for key in HISTORIC_KEYS}
            state = replace(past.state, settings=with_values(current_settings, historic))
            # Drop evicted states, to limit the memory.
            kept_commits = {past_state.commit for past_state in self._all_known()}
            others = {id_: answered for id_, answered in self._request_states.items() if id_ in kept_commits}
            self._request_states = {**others, commit: (past, current_settings, state)}
            return state
        return cached[2]

    def require_commits(self) -> str:
        return require_head(self.site.root)

    def _make(self, commit: str) -> PastState:
        root = self.site.root
        blobs = read_tree(root, commit)
        self.log.update(commit)
        times = CommitTimes(commit, with_commit_times({}, self.log.history_of(commit)))
        current = self._current()
        configuration = self._configuration(commit, blobs, current)
        base = self._reusable_state(configuration.schema, blobs, current)
        known = base.known if base else KnownEntries({}, {})
        store = Store(
            root, configuration.schema, configuration.settings, times.timestamps, self.site.image_cache
        )
        mark, lacking = self.pictures.mark(), set[str]()

        def facts(path: str, blob: Blob) -> ImageFacts:
            entry = current.known.entries.get(path) if current.known.blobs.get(path) == blob else None
            picture = self.pictures.read(path, blob, entry.signature if entry else None)
            formats, placeholder = self.pictures.facts(path, picture)
            if formats is None and picture.key:
                lacking.add(path)
            return picture.size, formats, placeholder

        entries, size = read_entries(store, blobs, known, facts)
        snapshot = self._snapshot(configuration.schema, base, entries)
        state = State(configuration.settings, configuration.schema, snapshot)
        size += CACHE_BYTES + _BYTES_PER_FILE * len(entries)
        known = KnownEntries(blobs, entries)
        return PastState(commit, state, configuration, known, size, frozenset(lacking), mark)

    # --- formats of images -------------------------------------------------------------------

    def _is_outdated(self, past: PastState) -> bool:
        # Formats may have been generated since the last check.
        return bool(past.unscaled_images) and past.image_cache_mark != self.pictures.mark()

    def _with_new_formats(self, past: PastState) -> PastState:
        """Return the state, updated with the image variants that have been created since it was built.

        The caller must hold the lock.
        """
        mark, blobs, entries = self.pictures.mark(), past.known.blobs, dict(past.known.entries)
        lacking = set(past.unscaled_images)
        for path in past.unscaled_images:
            picture = self.pictures.read(path, blobs[path])
            (formats, placeholder), entry = self.pictures.facts(path, picture), entries[path]
            if formats and entry.document:
                entries[path] = entry._replace(document=with_formats(entry.document, formats, placeholder))
            if formats is not None or not picture.key:
                lacking.discard(path)
        if len(lacking) == len(past.unscaled_images):
            return replace(past, image_cache_mark=mark)
        state = replace(past.state, snapshot=self._snapshot(past.state.schema, past, entries))
        return replace(
            past,
            state=state,
            known=KnownEntries(blobs, entries),
            unscaled_images=frozenset(lacking),
            image_cache_mark=mark,
        )

    def picture_file(self, path: str, blob: Blob, name: str) -> Path | None:
        """Return the file that contains the resized variant `name` of an image.

        If the file was deleted, return None and create the file again in the background.
        """
        file = self.pictures.file(path, blob, name)
        if file is None and self.pictures.can_generate(path, blob):
            with self._lock:
                self._deleted.add((path, blob))
            self._begin_scaling()
        return file

    def _begin_scaling(self) -> None:
        if self._scaling is not None and self._scaling.is_alive():
            return
        with self._lock:
            if self._scaling is None or not self._scaling.is_alive():
                self._scaling = threading.Thread(target=self._scale, name="past pictures", daemon=True)
                self._scaling.start()

    def _scale(self) -> None:
        try:
            while pending := self._pending_pictures():
                done = [self.pictures.generate(path, blob) for path, blob in pending]
                if not any(done):
                    time.sleep(_BACKOFF_S)
                with self._lock:
                    for past in filter(attrgetter("unscaled_images"), self._all_known()):
                        self._keep(self._with_new_formats(past))
        except Exception:
            log.exception("the images in past commits can't be scaled; the next request will try again")

    def _pending_pictures(self) -> list[tuple[str, Blob]]:
        candidates = {
            (path, past.known.blobs[path]) for past in self._all_known() for path in past.unscaled_images
        }
        with self._lock:
            candidates |= self._deleted
        pending = [candidate for candidate in candidates if self.pictures.can_generate(*candidate)]
        with self._lock:
            self._deleted -= candidates.difference(pending)
        return pending

    def is_unchanged_on_disk(self, path: str, blob: Blob) -> bool:
        _, _, committed, entries = self.site.basis()
        if path in committed.changed or self._blobs_of(committed.commit).get(path) != blob:
            return False
        entry = entries.get(path)
        return entry is not None and entry.signature == signature_of(self.site.root / path)

    def _current(self) -> PastState:
        # `known.blobs` contains only files without uncommitted changes.
        state, configuration, committed, entries = self.site.basis()
        blobs = self._blobs_of(committed.commit)
        same = {path: blob for path, blob in blobs.items() if path not in committed.changed}
        return PastState(committed.commit, state, configuration, KnownEntries(same, entries), 0)

    def _blobs_of(self, head: str) -> Blobs:
        if self._head[0] != head:
            self._head = head, read_tree(self.site.root, head) if head else {}
        return self._head[1]

    def schema(self, commit: str) -> Schema:
        return self._configuration_at(commit).schema

    def layout(self, commit: str) -> Layout:
        configuration = self._configuration_at(commit)
        return Layout(configuration.schema, configuration.settings)

    def _configuration_at(self, commit: str) -> Configuration:
        past = self._find_known(commit)
        if past is not None:
            return past.configuration
        return self._configuration(commit, read_tree(self.site.root, commit, (SETTINGS, TYPES)))

    def _configuration(self, commit: str, blobs: Blobs, current: PastState | None = None) -> Configuration:
        ids = frozenset((path, blob.id) for path, blob in configuration_files(blobs).items())
        configuration = self._configurations.get(ids)
        if configuration is None:
            try:
                configuration = read_configuration(self.site.root, blobs)
            except SetupError as error:
                raise ConflictError(
                    f"The site's configuration is invalid at commit {commit[:10]}: {error}"
                ) from error
            others = (current or self._current(), *self._all_known())
            same = (o.configuration for o in others if o.configuration.parse_key == configuration.parse_key)
            if (other := next(same, None)) is not None:
                configuration = replace(configuration, schema=other.schema)
            if len(self._configurations) >= _MAX_NAMES:
                self._configurations.clear()
            self._configurations[ids] = configuration
        return configuration

    def _reusable_state(self, schema: Schema, blobs: Blobs, current: PastState) -> PastState | None:
        recent = self._all_known()[-_MAX_CANDIDATES:]
        candidates = [past for past in (current, *recent) if past.configuration.schema is schema]

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
                base_snapshot = replace(
                    base.state.snapshot, fragments=Fragments(0), search_results=SearchResults(0)
                )
                return self._with_caches(apply(base_snapshot, removed, added))
        return self._with_caches(build(schema, documents.values()))

    def _with_caches(self, snapshot: Snapshot) -> Snapshot:
        # Fragments are shared by all past states.
        rendered, search_results = Fragments(CACHE_BYTES), SearchResults(CACHE_BYTES)
        return replace(snapshot, fragments=self._fragments, rendered=rendered, search_results=search_results)


# --- uploads --------------------------------------------------------------------------------------


def replaced_file(past: PastStates, commit: str, path: str) -> Blob | None:
    # The current file is served from disk.
    blob = past.at(commit).known.blobs.get(path)
    return None if blob is None or past.is_unchanged_on_disk(path, blob) else blob


# --- selection ------------------------------------------------------------------------------------


def commit_filter(past: PastStates, since: str = "", author: str = "") -> Callable[[Commit], bool]:
    """Return a function that tells whether a commit was made after `since` and by `author`.

    `since` is a time or a commit, and `author` is an email address or part of a name. An empty string matches
    every commit. Raises ValidationError if `since` is neither a time nor a commit.
    """
    time, word = parse_time(since, end=False), author.casefold()
    before: frozenset[str] = frozenset()
    if since and time is None:
        commit = past.resolve(since)
        past.log.update(commit)
        before = frozenset(earlier.id for earlier in past.log.history_of(commit))

    def is_selected(commit: Commit) -> bool:
        if commit.id in before or (time is not None and commit.authored < time):
            return False
        return not word or word in commit.author.casefold() or word == commit.email.casefold()

    return is_selected
