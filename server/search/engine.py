"""The index of words, on whoosh: the one module that knows it (docs/search.md says which and why).

One whoosh document is one version of a document of the site. Its words are in the field of its
language, `text_en`, where every word has its term, its places and what it counts. Every attribute
has its own stretch of places, REGION long, so that `title:tide` is a question about places.

The words as they are written, for what is still being typed and for did-you-mean, are a list beside:
`word_en` of documents that are nothing else, one for the words that were new in a commit.
"""

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from whoosh import __version__ as whoosh_version
from whoosh import columns, fields, formats, index, query, scoring
from whoosh.system import pack_uint

from server.search.question import Question
from server.search.whoosh_query import ALL, REGION, Asker
from server.search.words import PLAIN, STEMMERS, fold, terms
from server.search.words import spans as words_of

VERSION = f"2 whoosh {'.'.join(map(str, whoosh_version))}"
MOST_PLACES = REGION // 2  # more than the words of one paragraph (texts.MOST characters)
GAP = 8  # places between two paragraphs, so that no phrase goes across
MEMORY_MB = 128  # of postings, before they go to a temporary file
HEADING = 4.0  # what counts as much is a heading, which is scored for itself as well
LENGTH, TIMES = 0.3, 1.2  # of BM25: how much long documents are held back, and repeated words
LANGUAGES = (*STEMMERS, PLAIN)
_WORDS = "words\0"  # what the key of a list of words begins with
_POSITIONS = formats.Positions()


class _Postings(fields.FieldType):  # type: ignore[misc]
    """A whoosh field whose values are postings that have been made already."""

    def __init__(self, format_: Any, *, scored: bool) -> None:
        self.format, self.scorable = format_, scored
        self.analyzer = self.column_type = self.vector = None
        self.stored = self.unique = self.spelling = False

    def index(self, value: Any, **_: Any) -> Iterator[tuple[bytes, int, float, bytes]]:
        """The postings themselves: (term, how often, what it counts, places)."""
        return iter(value)


def _schema() -> Any:
    text = {f"text_{code}": _Postings(formats.Positions(), scored=True) for code in LANGUAGES}
    head = {f"head_{code}": _Postings(formats.Frequency(), scored=True) for code in LANGUAGES}
    word = {f"word_{code}": _Postings(formats.Existence(), scored=False) for code in LANGUAGES}
    key = fields.ID(unique=True, stored=True)
    group = fields.COLUMN(columns.RefBytesColumn())
    return fields.Schema(key=key, mark=fields.STORED, group=group, **text, **head, **word)


# --- writing -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Entry:
    """One version to be indexed: its key, a mark that changes with it, its group and its paragraphs.

    A group is what answers are narrowed by (type, locale, statuses). `paragraphs` are (attribute's
    number, what a word counts, text).
    """

    key: str
    mark: str
    group: str
    language: str
    paragraphs: Sequence[tuple[int, float, str]]


class Writer:
    """Changes an index; there must be one at a time. Nothing is there for readers until `commit`."""

    def __init__(self, folder: Path) -> None:
        """Open the index in a folder, or make it. Raises whatever a damaged one makes whoosh raise."""
        found = index.exists_in(str(folder))
        self._index = index.open_dir(str(folder)) if found else index.create_in(str(folder), _schema())
        self._writer: Any = None
        self._put: set[str] = set()
        self._fresh: dict[str, set[str]] = {}
        with self._index.reader() as reader:
            stored = {found["key"]: found["mark"] for found in reader.all_stored_fields()}
            self._words = {code: _lexicon(reader, f"word_{code}") for code in LANGUAGES}
        self.marks = {key: mark for key, mark in stored.items() if not key.startswith(_WORDS)}
        self._lists = len(stored) - len(self.marks)

    def put(self, entry: Entry) -> None:
        """Index one version in place of what there was under its key."""
        if entry.key in self._put:
            self.commit()  # whoosh replaces only what has been committed
        writer = self._open()
        text, head, words = postings(entry)
        code = entry.language
        self._fresh.setdefault(code, set()).update(words - self._words[code])
        add = writer.update_document if entry.key in self.marks else writer.add_document
        add(
            key=entry.key,
            mark=entry.mark,
            group=entry.group.encode(),
            **{f"text_{code}": text, f"head_{code}": head, f"word_{code}": [(ALL.encode(), 1, 1.0, b"")]},
        )
        self._put.add(entry.key)
        self.marks[entry.key] = entry.mark

    def drop(self, key: str) -> None:
        """Take one version out."""
        if self.marks.pop(key, None) is not None:
            if key in self._put:
                self.commit()
            self._open().delete_by_term("key", key)

    def commit(self) -> None:
        """Show readers everything up to here."""
        if self._writer is not None:
            for code, words in self._fresh.items():
                if words:
                    self._list(code, words)
            self._writer.commit()
            self._writer = None
            self._put.clear()
            self._fresh.clear()

    def _list(self, code: str, words: set[str]) -> None:
        self._lists += 1
        listed = [(word.encode(), 1, 1.0, b"") for word in words]
        self._writer.add_document(
            key=f"{_WORDS}{self._lists}", mark="", group=b"", **{f"word_{code}": listed}
        )
        self._words[code] |= words

    def close(self) -> None:
        """Drop what has not been committed."""
        if self._writer is not None:
            self._writer.cancel()
            self._writer = None
        self._index.close()

    def _open(self) -> Any:
        if self._writer is None:
            self._writer = self._index.writer(limitmb=MEMORY_MB)
        return self._writer


def _lexicon(reader: Any, field: str) -> set[str]:
    return {word.decode() for word in reader.lexicon(field)} - {ALL}


def postings(entry: Entry) -> tuple[list[Any], list[Any], set[str]]:
    """The postings of an entry, of its terms with places and of those in headings; and its words."""
    places: dict[str, list[int]] = {}
    counts: dict[str, float] = {}
    heads: Counter[str] = Counter()
    words: set[str] = set()
    ends: dict[int, int] = {}
    for attribute, weight, text in entry.paragraphs:
        start = place = ends.get(attribute, attribute * REGION)
        for place, found in enumerate(words_of(text), start):
            words.add(fold(found[0]))
            for term in terms(found[0], entry.language):
                places.setdefault(term, []).append(place)
                counts[term] = counts.get(term, 0) + weight
                heads[term] += weight >= HEADING
        ends[attribute] = min(place + GAP, (attribute + 1) * REGION - MOST_PLACES)
    encode = _POSITIONS.encode
    text_ = [(t.encode(), len(at), counts[t], encode(sorted(at))) for t, at in places.items()]
    head = [(t.encode(), n, float(n), pack_uint(n)) for t, n in heads.items() if n]
    return text_, head, words


# --- reading -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Hits:
    """The best keys with their scores, how many there are by group, and the words that nothing has."""

    best: list[tuple[float, str]]
    counts: Counter[str]
    unknown: tuple[str, ...] = ()


class Reader:
    """Asks an index. Not to be used by two threads at a time."""

    def __init__(self, folder: Path) -> None:
        """Raises whatever a missing or damaged index makes whoosh raise.

        A reader shows what was committed when it was made. Make another for what came since: whoosh's
        own `refresh` brings back versions that were replaced (docs/search.md).
        """
        self._searcher = index.open_dir(str(folder)).searcher(weighting=scoring.BM25F(B=LENGTH, K1=TIMES))

    def close(self) -> None:
        """Let the files go."""
        self._searcher.close()

    def search(
        self,
        question: Question,
        languages: Iterable[str],
        numbers: dict[str, int],
        counted: Callable[[str], bool],
        wanted: Callable[[str], bool],
        limit: int,
    ) -> Hits:
        """The best `limit` versions whose group is `wanted`, and the counts of groups `counted`.

        All words must be there; where no version has all of them, some are enough. `numbers` has the
        number of every attribute that the index knows.
        """
        languages = list(languages)
        hits = Hits([], Counter())
        asker = Asker(self._searcher.reader(), numbers)
        for every in (True, False) if len(question.wanted) > 1 else (True,):
            parts = [asker.query(question, language, every=every) for language in languages]
            asked = [part for part in parts if part is not None]
            if asked:  # of a language at least
                hits = self._collect(query.Or(asked) if len(asked) > 1 else asked[0], counted, wanted, limit)
            if hits.counts:
                break
        return Hits(hits.best, hits.counts, self._unknown(asker, question, languages, counted))

    def suggest(self, word: str, languages: Iterable[str], counted: Callable[[str], bool]) -> str | None:
        """The word that a mistyped one most likely stands for, of those in groups `counted`."""
        folded, reader = fold(word), self._searcher.reader()
        found: list[tuple[int, int, str, str]] = []
        for language in languages:
            for distance in range(1, 2 if len(folded) < 5 else 3):
                near = set(reader.terms_within(f"word_{language}", folded, distance, prefix=1))
                for other in near - {folded, ALL}:
                    having = reader.doc_frequency(f"text_{language}", terms(other, language)[0])
                    found.append((distance, -having, other, language))
                if found:
                    break
        return next((other for *_, other, code in sorted(found) if self._shows(other, code, counted)), None)

    def _shows(self, word: str, language: str, counted: Callable[[str], bool]) -> bool:
        """Whether a version of the groups `counted` has a word: what others have is not told."""
        return any(self._has(f"text_{language}", term, counted) for term in terms(word, language))

    def _has(self, field: str, term: str, counted: Callable[[str], bool]) -> bool:
        for leaf, _ in self._searcher.leaf_searchers():
            groups, reader = leaf.reader().column_reader("group"), leaf.reader()
            if (field, term.encode()) in reader:
                ids = reader.postings(field, term.encode()).all_ids()
                if any(counted(groups[number].decode()) for number in ids):
                    return True
        return False

    def _collect(
        self, asked: Any, counted: Callable[[str], bool], wanted: Callable[[str], bool], limit: int
    ) -> Hits:
        counts: Counter[str] = Counter()
        best: list[tuple[float, int]] = []
        judged: dict[bytes, tuple[str, bool, bool]] = {}
        context = self._searcher.context()
        for leaf, offset in self._searcher.leaf_searchers():
            groups = leaf.reader().column_reader("group")
            matcher = asked.matcher(leaf, context)
            while matcher.is_active():
                number = matcher.id()
                group = groups[number]
                verdict = judged.get(group)
                if verdict is None:
                    name = group.decode()
                    verdict = judged[group] = (name, counted(name), wanted(name))
                if verdict[1]:
                    counts[verdict[0]] += 1
                if verdict[2]:
                    item = (matcher.score(), -(offset + number))
                    if len(best) < limit:
                        heapq.heappush(best, item)
                    else:
                        heapq.heappushpop(best, item)
                matcher.next()
        ranked = sorted(best, reverse=True)
        return Hits([(s, self._searcher.stored_fields(-n)["key"]) for s, n in ranked], counts)

    def _unknown(
        self, asker: Asker, question: Question, languages: list[str], counted: Callable[[str], bool]
    ) -> tuple[str, ...]:
        """The words that nothing has which may be told."""
        found = []
        for clause in question.wanted:
            for i, word in enumerate(clause.words):
                begun = clause.open and i == len(clause.words) - 1
                there = (
                    self._has(f"text_{language}", term, counted)
                    for language in languages
                    for term in asker.terms(word, language, begun=begun)
                )
                if not any(there):
                    found.append(word)
        return tuple(found)
