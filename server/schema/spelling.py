"""Suggestions for misspelled words ("did you mean …")."""

import math
import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from functools import cached_property
from itertools import chain, pairwise
from pathlib import Path
from typing import Any
from unicodedata import combining

from server.errors import SetupError
from server.formats.config_file import read_config_file
from server.formats.normal_form import normalize
from server.formats.text_positions import line_and_column, nearest_position
from server.problems import Problem
from server.schema.model import ATTRIBUTE_TYPES, RELATIONS, Type

MIN_SIMILARITY = 0.65  # "tga" is similar to "tag", but "date" is not similar to "name"
MAX_CPU_S = 1.0  # limit on processor time for all suggestions in one report
_SEPARATORS = "-_./: "
_SEPARATED = re.compile(r"[\s_./-]+")
_MIN_REST_SIMILARITY = 0.55  # minimum similarity of two words after their common start and end are removed
_WORDS_PER_CLOCK_READ = 100


def suggestion(word: str, known: Iterable[str], min_similarity: float = MIN_SIMILARITY) -> str:
    """Return a hint such as `did you mean "title"?`, or "" if no known word is similar enough.

    `min_similarity` is between 0 and 1.
    """
    return Suggestions(math.inf).suggest(word, known, min_similarity)


class Suggestions:
    """Spelling suggestions with a limit on their total CPU time."""

    def __init__(self, max_cpu_s: float = MAX_CPU_S) -> None:
        self._left = max_cpu_s

    def suggest(self, word: str, known: Iterable[str], min_similarity: float = MIN_SIMILARITY) -> str:
        """Return a hint such as `did you mean "title"?`.

        Return "" if no known word is similar enough, or if the CPU time is used up.
        """
        near = self.nearest(word, known, min_similarity)
        return f'did you mean "{near}"?' if near else ""

    def nearest(self, word: str, known: Iterable[str], min_similarity: float = MIN_SIMILARITY) -> str:
        """Return the most similar known word.

        Return "" if no known word is similar enough, or if the CPU time is used up.
        """
        if self._left <= 0:
            return ""
        began = time.thread_time()
        near = _nearest(word, known, min_similarity, began + self._left)
        self._left -= time.thread_time() - began
        return near


def _nearest(word: str, known: Iterable[str], min_similarity: float, deadline: float) -> str:
    best, matching = (min_similarity, ""), None
    for number, other in enumerate(known):
        if number % _WORDS_PER_CLOCK_READ == 0 and time.thread_time() > deadline:
            return ""
        if _max_similarity_of_lengths(len(word), len(other)) < best[0]:
            continue
        if matching is None:  # Created only now, because this is slow for a long word.
            matching = _matcher(word), list(Counter(word).items())
        matcher, counts = matching
        if _max_similarity(len(word), counts, other) < best[0]:
            continue
        matcher.set_seq1(other)
        found = (matcher.ratio(), other)
        if found > best and _differs_a_little(word, other):
            best = found
    return best[1]


def _matcher(word: str) -> SequenceMatcher[str]:
    matcher = SequenceMatcher[str]()
    matcher.set_seq2(word)
    return matcher


def _max_similarity_of_lengths(length: int, other: int) -> float:
    return 2 * min(length, other) / (length + other) if length + other else 1.0


def _max_similarity(length: int, counts: list[tuple[str, int]], other: str) -> float:
    """Return an upper bound for `SequenceMatcher.ratio`."""
    if not length + len(other):
        return 1.0
    same = 0
    for char, count in counts:
        found = other.count(char)
        same += found if found < count else count
    return 2 * same / (length + len(other))


def _differs_a_little(word: str, other: str) -> bool:
    # Without this, all uids would be similar, because they begin with `api::`.
    word, other = _without_shared_start(word, other)
    word, other = (text[::-1] for text in _without_shared_start(word[::-1], other[::-1]))
    return not (word and other) or SequenceMatcher(None, word, other).ratio() >= _MIN_REST_SIMILARITY


def _without_shared_start(word: str, other: str) -> tuple[str, str]:
    same = next((i for i, (a, b) in enumerate(zip(word, other, strict=False)) if a != b), None)
    shared = word[:same] if same is not None else min(word, other, key=len)
    end = max(shared.rfind(mark) for mark in _SEPARATORS) + 1
    return word[end:], other[end:]


def unambiguous_suggestion(word: str, known: Iterable[str]) -> str | None:
    return SpellingCorrector(known).correct(word)


class SpellingCorrector:
    """Corrector for misspelled words, whose speed does not depend on the number of known words."""

    def __init__(self, known: Iterable[str]) -> None:
        self._known = frozenset(known)

    def correct(self, word: str) -> str | None:
        """Return the known word that differs from `word` only in case, accents or separators.

        If there is none, return the known word that results from swapping two adjacent letters. Return None
        if neither exists, or if several words fit.
        """
        found = self._by_fold.get(_fold(word), [])
        if not found and len(word) <= self._longest:
            found = [other for other in _swap_letters(word) if other in self._known]
        return found[0] if len(found) == 1 else None

    @cached_property
    def _by_fold(self) -> Mapping[str, Sequence[str]]:
        found: dict[str, list[str]] = {}
        for word in self._known:
            found.setdefault(_fold(word), []).append(word)
        return found

    @cached_property
    def _longest(self) -> int:
        return max(map(len, self._known), default=0)


def _fold(word: str) -> str:
    if not word.isascii():
        word = "".join(c for c in normalize("NFKD", word) if not combining(c))
    return _SEPARATED.sub("-", word.casefold()).strip("-")


def _swap_letters(word: str) -> Iterator[str]:
    for i, (first, second) in enumerate(pairwise(word)):
        if first != second and first.isalpha() and second.isalpha():
            yield f"{word[:i]}{second}{first}{word[i + 2 :]}"


# --- misspelled keys -------------------------------------------------------------------------------------

# Keys in schema files, including those that only Strapi uses.
TOP_KEYS = (
    "kind", "info", "options", "attributes", "pluginOptions",
    "collectionName", "uid", "modelType", "modelName", "apiName", "globalId", "config", "connection",
    "indexes", "foreignKeys",
)  # fmt: skip
INFO_KEYS = ("singularName", "pluralName", "displayName", "description", "icon", "name", "mainField")
OPTION_KEYS = (
    "draftAndPublish", "files", "format", "frontMatter", "draftWhen", "body", "otherKeys", "fileName",
    "privateAttributes", "populateCreatorFields", "reviewWorkflows", "timestamps", "increments", "comment",
    "rules",
)  # fmt: skip
ATTRIBUTE_KEYS = (
    "type", "required", "unique", "private", "default", "min", "max", "minLength", "maxLength", "regex",
    "enum", "targetField", "relation", "target", "inversedBy", "mappedBy", "morphBy", "component",
    "components", "repeatable", "multiple", "allowedTypes", "pluginOptions", "customField", "options",
    "configurable", "writable", "visible", "searchable", "column", "columnType", "joinTable", "joinColumn",
    "useJoinTable", "morphColumn", "enumName", "conditions", "displayName", "description", "autoPopulate",
    "owner", "deprecated",
)  # fmt: skip
I18N_KEYS = ("localized",)
_KINDS = ("collectionType", "singleType")
# "option" is similar to "options", but "format" is not similar to "timestamps"
_MIN_SIMILARITY = 0.8


def find_mistyped_key(data: Mapping[str, Any], expected: str, known: Iterable[str]) -> str | None:
    others = (key for key in data if key not in known)
    return next((key for key in others if suggestion(key, [expected], _MIN_SIMILARITY)), None)


def find_mistyped_keys(root: Path, types: Iterable[Type]) -> Iterator[Problem]:
    """Yield a warning for each key in a schema file that seems misspelled."""
    for type_ in types:
        found = dict(_find_mistyped(type_.raw)) if type_.path else {}
        try:
            positions = read_config_file(root, type_.path).positions if found else {}
        # The file has changed since the schemas were read. They will be read again anyway.
        except SetupError:
            continue
        for at, hint in found.items():
            line, column = line_and_column(nearest_position(positions, at))
            what = f'unknown key "{".".join(at)}"'
            yield Problem(type_.path, line, what, hint, "warning", column, rule="schema")


def _find_mistyped(data: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], str]]:
    for at, known in unknown_schema_keys(data):
        near = unambiguous_suggestion(at[-1], known)
        hint = f'did you mean "{near}"?' if near else suggestion(at[-1], known, _MIN_SIMILARITY)
        if hint:
            yield at, hint


def unknown_schema_keys(data: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], Iterable[str]]]:
    """Yield the path of each unknown key in a schema, with the keys that are allowed there."""
    attributes = _mapping(data, "attributes")
    places: Iterable[tuple[tuple[str, ...], Iterable[str]]] = chain(
        (
            ((), TOP_KEYS),
            (("info",), INFO_KEYS),
            (("options",), OPTION_KEYS),
            (("pluginOptions", "i18n"), I18N_KEYS),
        ),
        ((("attributes", name), ATTRIBUTE_KEYS) for name in attributes),
        ((("attributes", name, "pluginOptions", "i18n"), I18N_KEYS) for name in attributes),
    )
    for at, known in places:
        for key in _mapping(data, *at):
            if key not in known:
                yield (*at, key), known


def unknown_words(data: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], Iterable[str]]]:
    """Yield the path of each unknown value of `kind`, `type` or `relation`, with the allowed values."""
    if isinstance(kind := data.get("kind"), str) and kind not in _KINDS:
        yield ("kind",), _KINDS
    for name in _mapping(data, "attributes"):
        for key, known in (("type", ATTRIBUTE_TYPES.keys()), ("relation", RELATIONS)):
            word = _mapping(data, "attributes", name).get(key)
            if isinstance(word, str) and word not in known:
                yield ("attributes", name, key), known


def _mapping(data: Mapping[str, Any], *key_path: str) -> Mapping[str, Any]:
    value: Any = data
    for key in key_path:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}
