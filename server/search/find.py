"""Full-text search. It uses the index or, until the index is complete, a scan of all versions."""

import logging
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from traceback import walk_tb
from typing import TYPE_CHECKING, Any

from server.bounded import BoundedMutex
from server.config.model import Settings
from server.documents.document import Document
from server.errors import BifolioError
from server.index.budget import Budget
from server.paths import STATE_FOLDER
from server.search.catalog import Catalog, IndexedVersion, VersionGroup, catalog, document_of, versions
from server.search.question import Clause, Question, apply_corrections, required_matches
from server.search.status import DAMAGED_FILE, SEARCH_FOLDER, Status, read_status, signature
from server.search.texts import Text, shape, texts
from server.search.words import fold, language_of, terms
from server.site.site import State

# --- scan -----------------------------------------------------------------------------------------

Ranked = list[tuple[float, Document]]  # (score, document), best first
_SPACE = re.compile(r"\s+")
_STEPS_PER_VERSION = 20  # number of steps for reading a version's texts
_LOG2_CHARS_PER_STEP = 6  # For each clause, searching 64 characters costs one step.


def scan(
    question: Question,
    versions: Iterable[IndexedVersion],
    settings: Settings,
    is_requested_group: Callable[[VersionGroup], bool],
    budget: Budget,
) -> tuple[Ranked, Counter[VersionGroup]]:
    """Search without the index, by reading all `versions`.

    Return the matches in requested groups, best first, and the number of matches in every group. If no
    version contains enough of the words, versions that contain any of them match.
    """
    patterns: dict[str, list[_ClausePattern]] = {}
    excluded_patterns: dict[str, list[_ClausePattern]] = {}
    rated: list[tuple[bool, float, IndexedVersion]] = []
    clauses = len(question.required) + len(question.excluded)
    for version in versions:
        language = language_of(version.group.locale)
        if language not in patterns:
            patterns[language] = [_ClausePattern(clause, language) for clause in question.required]
            excluded_patterns[language] = [_ClausePattern(clause, language) for clause in question.excluded]
        folded = [(text, _fold(text)) for text in texts(version.document, settings)]
        budget.spend(
            _STEPS_PER_VERSION
            + ((clauses + 1) * sum(len(folded_text) for _, folded_text in folded) >> _LOG2_CHARS_PER_STEP)
        )
        if any(needle.rate(folded) for needle in excluded_patterns[language]):
            continue
        rates = [needle.rate(folded) for needle in patterns[language]]
        if any(rates):
            rated.append((_is_enough(question, rates), sum(rates) * sum(map(bool, rates)), version))
    every = [item for item in rated if item[0]] or rated
    every.sort(key=lambda item: (-item[1], _place(item[2])))
    counts = Counter(version.group for _, _, version in every)
    return [(rate, v.document) for _, rate, v in every if is_requested_group(v.group)], counts


def _place(version: IndexedVersion) -> tuple[str, str, str]:
    return version.group.uid, version.document.document_id, version.group.locale


def _is_enough(question: Question, rates: list[float]) -> bool:
    words = [rate for clause, rate in zip(question.required, rates, strict=True) if not clause.strict]
    strict = [rate for clause, rate in zip(question.required, rates, strict=True) if clause.strict]
    return all(strict) and sum(map(bool, words)) >= required_matches(len(words))


class _ClausePattern:
    """Regular expression that finds one search clause in texts of one language."""

    def __init__(self, clause: Clause, language: str) -> None:
        self.field, self.phrase = clause.field, len(clause.words) > 1
        last = clause.words[-1]
        starts = [fold(last)] if clause.is_prefix else [_start(last, language)]
        words = [re.escape(fold(word)) for word in clause.words[:-1]]
        self.start = fold(clause.words[0]) if self.phrase else starts[0]
        self.pattern = re.compile(r"(?<![^\W_])" + r"[\W_]+".join([*words, re.escape(starts[0])]))

    def rate(self, folded: list[tuple[Text, str]]) -> float:
        """Return the score of a document, or 0 if it does not match.

        `folded` pairs each text with its lower-case form without accents.
        """
        best = total = 0.0
        for text, folded_text in folded:
            if (self.field is None or text.attribute == self.field) and self.start in folded_text:
                times = len(self.pattern.findall(folded_text))
                if times:
                    best = max(best, text.weight)
                    total += text.weight * times / (times + 2)
        return best and best + total


def _start(word: str, language: str) -> str:
    folded, stem = fold(word), terms(word, language)[0]
    return stem if folded.startswith(stem) else folded


def _fold(text: Text) -> str:
    value = text.value if isinstance(text.value, str) else "\n".join(text.read())
    return value.lower() if value.isascii() else " ".join(fold(part) for part in _SPACE.split(value))


# --- find -----------------------------------------------------------------------------------------

if TYPE_CHECKING:
    from server.search.whoosh_index.reader import Hits, IndexReader

log = logging.getLogger("bifolio")

# how many searches can wait at the same time, and for how long
MAX_WAITING_SEARCHES, TURN_TIMEOUT_S = 12, 5.0
_STEPS_PER_SUGGESTION = 1000  # Finding a suggestion takes about as long as 1,000 steps.
REBUILD_INTERVAL_S = 600.0  # minimum time between rebuilds of a damaged index


@dataclass(frozen=True, slots=True)
class Scope:
    """Restrictions on the documents that a search can return.

    `statuses` maps each visible content type to the status to search in. If `types` or `locale` is set,
    results are limited to these content types or to this locale. `locale` does not restrict the types in
    `unlocalized`.
    """

    statuses: Mapping[str, str]
    types: frozenset[str] | None = None
    locale: str | None = None
    unlocalized: frozenset[str] = frozenset()

    def permits(self, group: VersionGroup) -> bool:
        return self.statuses.get(group.uid) in group.statuses

    def has_type(self, group: VersionGroup) -> bool:
        return self.types is None or group.uid in self.types

    def has_locale(self, group: VersionGroup) -> bool:
        # Content types that are not localized match every locale.
        return self.locale in (None, group.locale) or group.uid in self.unlocalized

    def includes(self, group: VersionGroup) -> bool:
        return self.permits(group) and self.has_type(group) and self.has_locale(group)


@dataclass(frozen=True, slots=True)
class Results:
    """One page of search results, as (score, document) pairs.

    `counts` contains the number of matches in each group. If `indexed` is False, the results come from a scan
    of all documents. If there is no index, `status` is None.
    """

    documents: list[tuple[float, Document]]
    counts: Mapping[VersionGroup, int]
    suggestion: str | None
    indexed: bool
    status: Status | None


class Search:
    """Search engine for one site. Searches in the index run one at a time."""

    def __init__(self, root: Path) -> None:
        self.folder = root / STATE_FOLDER / SEARCH_FOLDER
        self._turns = BoundedMutex("search", MAX_WAITING_SEARCHES, TURN_TIMEOUT_S)
        self._reader: IndexReader | None = None
        self._status: Status | None = None
        self._signature: object = None
        self._catalog: Catalog = {}
        self._asked = 0.0
        self._shape: tuple[object, object, str] = (None, None, "")

    def find(
        self,
        state: State,
        question: Question,
        scope: Scope,
        start: int,
        limit: int,
        budget: Budget | None = None,
        *,
        use_index: bool = True,
    ) -> Results:
        """Return at most `limit` results, after skipping the first `start` results.

        Raises LimitError if the search exceeds the budget, and BusyError if too many searches are waiting.
        """
        if not question.required:
            return Results([], {}, None, True, self._status)
        if not use_index:
            return self._scan(catalog(state, {}), state, question, scope, start, limit, budget or Budget())
        # To avoid a deadlock, the index search has a separate budget: spending the request's budget could
        # wait for a mutex while this thread already holds a different one.
        own = Budget(state.settings) if budget else Budget()
        with self._turns:
            found = self._search_index(state, question, scope, start + limit, own)
        if found is None:
            self._catalog = catalog(state, self._catalog)
            return self._scan(self._catalog, state, question, scope, start, limit, budget or Budget())
        hits, suggestion, status = found
        documents = [(score, document_of(key, state)) for score, key in hits.best[start:]]
        counts = {VersionGroup.parse(name): count for name, count in hits.counts.items()}
        there = [(score, document) for score, document in documents if document is not None]
        return Results(there, counts, suggestion, True, status)

    def _search_index(
        self, state: State, question: Question, scope: Scope, limit: int, budget: Budget
    ) -> "tuple[Hits, str | None, Status] | None":
        """Search the index. Return the matches, a corrected search input or None, and the index's status.

        If the index can't be used, return None.
        """
        for attempt in (1, 2):
            try:
                reader = self._current(self._shape_of(state))
                if reader is None or self._status is None:
                    return None

                def counted(name: str) -> bool:
                    return scope.permits(VersionGroup.parse(name))

                languages = dict.fromkeys(language_of(locale) for locale in state.settings.locales.available)
                hits = reader.search(
                    question,
                    languages,
                    self._status.numbers,
                    counted,
                    lambda name: scope.includes(VersionGroup.parse(name)),
                    limit,
                    _count_visible(state, scope),
                    budget,
                )
                near = {}
                for word in hits.unknown:
                    budget.spend(_STEPS_PER_SUGGESTION)
                    near[word] = reader.suggest(word, languages, counted, budget)
            except Exception as error:
                if not _may_be_damage(error):
                    raise
                self._close()
                if attempt == 2:
                    self._ask_for_rebuild(error)
            else:
                words = {word: other for word, other in near.items() if other}
                return hits, apply_corrections(question, words) if words else None, self._status
        return None

    def _shape_of(self, state: State) -> str:
        if self._shape[:2] != (state.schema, state.settings):
            self._shape = (state.schema, state.settings, shape(state.schema, state.settings))
        return self._shape[2]

    def _current(self, expected_shape: str) -> "IndexReader | None":
        now = signature(self.folder)
        if now != self._signature or now is None:
            before, self._status = self._status, read_status(self.folder)
            self._signature = now
            status = self._status
            if status is None or before is None or _visible_state(status) != _visible_state(before):
                self._close(keep=True)
        status = self._status
        if status is None or status.shape != expected_shape:
            return None
        module: Any = import_module("server.search.whoosh_index.reader")  # docs/packages.py, LAZY
        if status.version != module.VERSION:
            return None
        if self._reader is None:
            self._reader = module.IndexReader(self.folder)
        return self._reader

    def _close(self, *, keep: bool = False) -> None:
        if self._reader is not None:
            try:
                self._reader.close()
            except Exception:
                log.debug("the search index can't be closed", exc_info=True)
        self._reader = None
        if not keep:
            self._signature = None

    def _ask_for_rebuild(self, error: Exception) -> None:
        if self._asked and time.monotonic() - self._asked < REBUILD_INTERVAL_S:
            return
        self._asked = time.monotonic()
        log.warning("the search index can't be read (%s: %s)", type(error).__name__, error)
        try:
            (self.folder / DAMAGED_FILE).touch()
        except OSError:
            log.debug("the search index can't be marked as damaged", exc_info=True)

    def _scan(
        self,
        known: Catalog,
        state: State,
        question: Question,
        scope: Scope,
        start: int,
        limit: int,
        budget: Budget,
    ) -> Results:
        permitted = (v for v in versions(known, state.schema.types) if scope.permits(v.group))
        found, counts = scan(question, permitted, state.settings, scope.includes, budget)
        return Results(found[start : start + limit], counts, None, False, read_status(self.folder))


def _count_visible(state: State, scope: Scope) -> Mapping[str, int]:
    locales, count = state.settings.locales, Counter[str]()
    for type_ in state.schema.content_types:
        if status := scope.statuses.get(type_.uid):
            names = locales.available if type_.localized else (locales.default,)
            for name in names:
                count[language_of(name)] += len(state.snapshot.list(type_, name, status))
    return count


def _may_be_damage(error: Exception) -> bool:
    # If the index is damaged, whoosh can raise any exception, or return invalid text and keys.
    if isinstance(error, BifolioError | MemoryError):
        return False
    names = [str(frame.f_globals.get("__name__")) for frame, _ in walk_tb(error.__traceback__)]
    packages = [name.partition(".")[0] for name in names]
    ours = [package for package in packages if package in ("server", "whoosh")]
    return ours[-1:] == ["whoosh"] or isinstance(error, OSError | ValueError | LookupError)


def _visible_state(status: Status) -> tuple[str, str, int]:
    return (status.version, status.build, status.commits)


def total(results: Results, scope: Scope) -> int:
    return sum(count for group, count in results.counts.items() if scope.includes(group))


def facets(results: Results, scope: Scope) -> tuple[Counter[str], Counter[str]]:
    """Count the matches by content type and by locale.

    The counts by content type ignore the scope's `types`, and the counts by locale ignore its `locale`.
    """
    types: Counter[str] = Counter()
    locales: Counter[str] = Counter()
    for group, count in results.counts.items():
        if scope.has_locale(group):
            types[group.uid] += count
        if scope.has_type(group):
            locales[group.locale] += count
    return types, locales
