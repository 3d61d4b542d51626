"""Did you mean: suggests the known word that is most like a mistyped one."""

import math
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from functools import cached_property
from itertools import chain, pairwise
from pathlib import Path
from typing import Any
from unicodedata import combining, normalize

from server.errors import SetupError
from server.formats.config_file import read_config_file
from server.formats.text_positions import line_and_column, nearest
from server.problems import Problem
from server.schema.model import ATTRIBUTE_TYPES, RELATIONS, Type

MIN_SIMILARITY = 0.65  # "tga" is similar to "tag"; "date" is not similar to "name".
MAX_CPU_S = 1.0  # For all suggestions of one report.
_SEPARATORS = "-_./: "
_MIN_REST_SIMILARITY = 0.55  # of what two words have besides the parts that are the same in both
_WORDS_PER_CLOCK_READ = 100


def suggestion(word: str, known: Iterable[str], likeness: float = MIN_SIMILARITY) -> str:
    """`did you mean "title"?`, or "" if no known word is similar.

    `likeness` is how like it has to be: from 0, which all words are, to 1 for the word itself.
    """
    return Suggestions(math.inf).of(word, known, likeness)


class Suggestions:
    """The suggestions of one report, which may have thousands of mistyped words, each like any of thousands.

    They take a bounded time in all: the first words get one, those after them none.
    """

    def __init__(self, seconds: float = MAX_CPU_S) -> None:
        self._left = seconds

    def of(self, word: str, known: Iterable[str], likeness: float = MIN_SIMILARITY) -> str:
        """What `suggestion` says, or "" once the time is over."""
        if self._left <= 0:
            return ""
        began = time.thread_time()
        near = _nearest(word, known, likeness, began + self._left)
        self._left -= time.thread_time() - began
        return f'did you mean "{near}"?' if near else ""


def _nearest(word: str, known: Iterable[str], likeness: float, until: float) -> str:
    """The known word that is most like another, "" where none is like it enough or the time is over."""
    matcher = SequenceMatcher()
    matcher.set_seq2(word)
    best = likeness, ""
    for number, other in enumerate(known):
        if number % _WORDS_PER_CLOCK_READ == 0 and time.thread_time() > until:
            return ""
        matcher.set_seq1(other)
        # Each of these is an upper bound of the next, which takes longer.
        if matcher.real_quick_ratio() >= best[0] and matcher.quick_ratio() >= best[0]:
            found = (matcher.ratio(), other)
            if found > best and _differs_a_little(word, other):
                best = found
    return best[1]


def _differs_a_little(word: str, other: str) -> bool:
    """Whether two words are like each other also without the parts that both begin and end with.

    All uids begin with `api::` and many names with a date, which says nothing of what was meant.
    """
    word, other = _without_shared_start(word, other)
    word, other = (text[::-1] for text in _without_shared_start(word[::-1], other[::-1]))
    return not (word and other) or SequenceMatcher(None, word, other).ratio() >= _MIN_REST_SIMILARITY


def _without_shared_start(word: str, other: str) -> tuple[str, str]:
    """Two words without the parts, each up to a separator, with which both begin."""
    same = next((i for i, (a, b) in enumerate(zip(word, other, strict=False)) if a != b), None)
    shared = word[:same] if same is not None else min(word, other, key=len)
    end = max(shared.rfind(mark) for mark in _SEPARATORS) + 1
    return word[end:], other[end:]


def certain_suggestion(word: str, known: Iterable[str]) -> str | None:
    """The one known word that a mistyped one certainly stands for, or None; see `KnownWords`."""
    return KnownWords(known).meant(word)


class KnownWords:
    """Words that others may stand for. To find one takes no longer where there are many of them."""

    def __init__(self, known: Iterable[str]) -> None:
        self._known = frozenset(known)

    def meant(self, word: str) -> str | None:
        """The one known word that a mistyped one certainly stands for, or None.

        It differs in case, accents and separators alone, or else in two neighbouring letters that changed
        places.
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
    """A word without what people write now in one form and then in another."""
    plain = "".join(c for c in normalize("NFKD", word) if not combining(c))
    return re.sub(r"[\s_./-]+", "-", plain.casefold()).strip("-")


def _swap_letters(word: str) -> Iterator[str]:
    """What a word becomes where two neighbouring letters of it change places."""
    for i, (first, second) in enumerate(pairwise(word)):
        if first != second and first.isalpha() and second.isalpha():
            yield f"{word[:i]}{second}{first}{word[i + 2 :]}"


# --- mistyped -------------------------------------------------------------------------------------

# The keys that Bifolio goes by, and those that schema files of Strapi have besides.
TOP_KEYS = (
    "kind", "info", "options", "attributes", "pluginOptions",
    "collectionName", "uid", "modelType", "modelName", "apiName", "globalId", "config", "connection",
    "indexes", "foreignKeys",
)  # fmt: skip
INFO_KEYS = ("singularName", "pluralName", "displayName", "description", "icon", "name", "mainField")
OPTION_KEYS = (
    "draftAndPublish", "files", "format", "frontMatter", "draftWhen", "body", "otherKeys", "fileName",
    "privateAttributes", "populateCreatorFields", "reviewWorkflows", "timestamps", "increments", "comment",
)  # fmt: skip
ATTRIBUTE_KEYS = (
    "type", "required", "unique", "private", "default", "min", "max", "minLength", "maxLength", "regex",
    "enum", "targetField", "relation", "target", "inversedBy", "mappedBy", "morphBy", "component",
    "components", "repeatable", "multiple", "allowedTypes", "pluginOptions", "customField", "options",
    "configurable", "writable", "visible", "searchable", "column", "columnType", "joinTable", "joinColumn",
    "useJoinTable", "morphColumn", "enumName", "conditions", "displayName", "description", "autoPopulate",
    "owner",
)  # fmt: skip
I18N_KEYS = ("localized",)
_KINDS = ("collectionType", "singleType")
_MIN_SIMILARITY = 0.8  # "option" is similar to "options"; "format" is not similar to "timestamps".


def find_mistyped_key(data: Mapping[str, Any], wanted: str, known: Iterable[str]) -> str | None:
    """The key of a mapping that is meant to be one which the mapping does not have."""
    others = (key for key in data if key not in known)
    return next((key for key in others if suggestion(key, [wanted], _MIN_SIMILARITY)), None)


def find_mistyped_keys(root: Path, types: Iterable[Type]) -> Iterator[Problem]:
    """A warning of each key in the files of content types and components that is like one of these tables."""
    for type_ in types:
        found = dict(_find_mistyped(type_.raw)) if type_.path else {}
        try:
            positions = read_config_file(root, type_.path).positions if found else {}
        except SetupError:  # It has changed since, and is read again.
            continue
        for at, hint in found.items():
            line, column = line_and_column(nearest(positions, at))
            what = f'unknown key "{".".join(at)}"'
            yield Problem(type_.path, line, what, hint, "warning", column, rule="schema")


def _find_mistyped(data: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], str]]:
    """The path of each mistyped key of a schema, with a suggestion."""
    for at, known in other_keys(data):
        near = certain_suggestion(at[-1], known)
        hint = f'did you mean "{near}"?' if near else suggestion(at[-1], known, _MIN_SIMILARITY)
        if hint:
            yield at, hint


def other_keys(data: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], Iterable[str]]]:
    """The path of each key of a schema that nothing goes by, with those that something does."""
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


def other_words(data: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], Iterable[str]]]:
    """The path of each word of a schema that is none of the words which there are for its key, with these."""
    if isinstance(kind := data.get("kind"), str) and kind not in _KINDS:
        yield ("kind",), _KINDS
    for name in _mapping(data, "attributes"):
        for key, known in (("type", ATTRIBUTE_TYPES.keys()), ("relation", RELATIONS)):
            word = _mapping(data, "attributes", name).get(key)
            if isinstance(word, str) and word not in known:
                yield ("attributes", name, key), known


def _mapping(data: Mapping[str, Any], *at: str) -> Mapping[str, Any]:
    value: Any = data
    for key in at:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}
