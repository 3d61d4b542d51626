"""Answers a search: from the index where it is whole, by looking at every document until then."""

import logging
import threading
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from server.documents.document import Document
from server.paths import FOLDER as STATE_FOLDER
from server.search.catalog import Catalog, Group, catalog, document_of, versions
from server.search.question import Question, corrected
from server.search.scan import scan
from server.search.status import DAMAGED, FOLDER, Status, read_status, signature
from server.search.texts import shape
from server.search.words import language_of
from server.site.site import State

if TYPE_CHECKING:
    from server.search.engine import Hits, Reader

log = logging.getLogger("quire")

BLAME_S = 600.0  # an index that can't be read is thrown away, but not more often than this


@dataclass(frozen=True, slots=True)
class Scope:
    """What a search is about: `statuses` has the status in which its asker sees each type, by uid.

    Types that are not there may not be found. `types` and `locale` narrow the answer further, and
    the counts do not regard them, so that they say what another choice would find.
    """

    statuses: Mapping[str, str]
    types: frozenset[str] | None = None
    locale: str | None = None
    unlocalized: frozenset[str] = frozenset()

    def permits(self, group: Group) -> bool:
        """Whether the asker may find a group."""
        return self.statuses.get(group.uid) in group.statuses

    def has_type(self, group: Group) -> bool:
        """Whether a group is of a type that is asked for."""
        return self.types is None or group.uid in self.types

    def has_locale(self, group: Group) -> bool:
        """Whether a group is of the locale asked for; a type that is not localised is of every one."""
        return self.locale in (None, group.locale) or group.uid in self.unlocalized

    def wants(self, group: Group) -> bool:
        """Whether a group is part of the answer."""
        return self.permits(group) and self.has_type(group) and self.has_locale(group)


@dataclass(frozen=True, slots=True)
class Found:
    """The part of an answer that was asked for, how many there are by group, what may have been meant.

    `indexed` says whether it comes from the index; `status` how far that is, if there is one.
    """

    documents: list[tuple[float, Document]]
    counts: Mapping[Group, int]
    suggestion: str | None
    indexed: bool
    status: Status | None


class Search:
    """Searches a site. One for a process; threads take turns at the index."""

    def __init__(self, root: Path) -> None:
        self.folder = root / STATE_FOLDER / FOLDER
        self._lock = threading.Lock()
        self._reader: Reader | None = None
        self._status: Status | None = None
        self._signature: object = None
        self._catalog: Catalog = {}
        self._blamed = 0.0
        self._shape: tuple[object, object, str] = (None, None, "")

    def find(self, state: State, question: Question, scope: Scope, start: int, limit: int) -> Found:
        """The answers from `start` on to a question, as the asker may see them."""
        if not question.wanted:
            return Found([], {}, None, True, self._status)
        with self._lock:
            found = self._ask(state, question, scope, start + limit)
        if found is None:
            return self._scan(state, question, scope, start, limit)
        hits, suggestion, status = found
        documents = [(score, document_of(key, state)) for score, key in hits.best[start:]]
        counts = {Group.parse(name): count for name, count in hits.counts.items()}
        there = [(score, document) for score, document in documents if document is not None]
        return Found(there, counts, suggestion, True, status)

    def _ask(
        self, state: State, question: Question, scope: Scope, limit: int
    ) -> "tuple[Hits, str | None, Status] | None":
        """What the index answers; None where there is none that can be asked."""
        for attempt in (1, 2):
            try:
                reader = self._current(self._shape_of(state))
                if reader is None or self._status is None:
                    return None

                def counted(name: str) -> bool:
                    return scope.permits(Group.parse(name))

                languages = dict.fromkeys(language_of(locale) for locale in state.settings.locales)
                hits = reader.search(
                    question,
                    languages,
                    self._status.numbers,
                    counted,
                    lambda name: scope.wants(Group.parse(name)),
                    limit,
                )
                near = {word: reader.suggest(word, languages, counted) for word in hits.unknown}
            except Exception as error:  # whatever whoosh says of an index that is not as it wrote it
                self._close()
                if attempt == 2:
                    self._blame(error)
            else:
                words = {word: other for word, other in near.items() if other}
                return hits, corrected(question, words) if words else None, self._status
        return None

    def _shape_of(self, state: State) -> str:
        if self._shape[:2] != (state.schema, state.settings):
            self._shape = (state.schema, state.settings, shape(state.schema, state.settings))
        return self._shape[2]

    def _current(self, wanted: str) -> "Reader | None":
        """The index as it is now, if it is one for what may be searched now."""
        now = signature(self.folder)
        if now != self._signature or now is None:
            before, self._status = self._status, read_status(self.folder)
            self._signature = now
            status = self._status
            if status is None or before is None or _place(status) != _place(before):
                self._close(keep=True)
        status = self._status
        if status is None or status.shape != wanted:
            return None
        engine: Any = import_module("server.search.engine")  # not before there is an index: it loads slowly
        if status.version != engine.VERSION:
            return None
        if self._reader is None:
            self._reader = engine.Reader(self.folder)
        return self._reader

    def _close(self, *, keep: bool = False) -> None:
        if self._reader is not None:
            try:
                self._reader.close()
            except Exception:
                log.debug("the search index could not be closed", exc_info=True)
        self._reader = None
        if not keep:
            self._signature = None

    def _blame(self, error: Exception) -> None:
        """Have the index built anew."""
        if self._blamed and time.monotonic() - self._blamed < BLAME_S:
            return
        self._blamed = time.monotonic()
        log.warning("the search index can't be read (%s: %s)", type(error).__name__, error)
        try:
            (self.folder / DAMAGED).touch()
        except OSError:
            log.debug("nobody can be told", exc_info=True)

    def _scan(self, state: State, question: Question, scope: Scope, start: int, limit: int) -> Found:
        self._catalog = held = catalog(state, self._catalog)
        permitted = (v for v in versions(held, state.schema.types) if scope.permits(v.group))
        found, counts = scan(question, permitted, state.settings, scope.wants)
        return Found(found[start : start + limit], counts, None, False, read_status(self.folder))


def _place(status: Status) -> tuple[str, str, int]:
    """What a reader of the index shows."""
    return (status.version, status.build, status.commits)


def total(found: Found, scope: Scope) -> int:
    """How many there are in all."""
    return sum(count for group, count in found.counts.items() if scope.wants(group))


def facets(found: Found, scope: Scope) -> tuple[Counter[str], Counter[str]]:
    """How many there are by type (uid), whatever types are asked for, and by locale likewise."""
    types: Counter[str] = Counter()
    locales: Counter[str] = Counter()
    for group, count in found.counts.items():
        if scope.has_locale(group):
            types[group.uid] += count
        if scope.has_type(group):
            locales[group.locale] += count
    return types, locales
