"""Writer of the index. Only one writer can be open at a time."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from whoosh import formats, index
from whoosh.system import pack_uint

from server.search.whoosh_index.schema import ATTRIBUTE_POSITIONS, EVERY_DOCUMENT_TERM, LANGUAGES, make_schema
from server.search.words import fold, terms
from server.search.words import spans as words_of

# more than the maximum number of words in one paragraph (see texts.MAX_TEXT_CHARS)
MAX_PARAGRAPH_POSITIONS = ATTRIBUTE_POSITIONS // 2
PARAGRAPH_GAP_POSITIONS = 8  # gap between paragraphs, so that a phrase can't match across them
MAX_POSTINGS_MB = 128  # Postings that need more memory are written to a temporary file.
MIN_HEADING_WEIGHT = 4.0  # Attributes with at least this weight are also indexed as headings.
_WORDS_PREFIX = "words\0"  # prefix of the key of each list of words
_POSITIONS = formats.Positions()


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """A version to index. Each paragraph is a tuple: (attribute number, weight, text)."""

    key: str
    digest: str
    group: str
    language: str
    paragraphs: Sequence[tuple[int, float, str]]


class IndexWriter:
    """Writer of the index. Readers see its changes after `commit`."""

    def __init__(self, folder: Path) -> None:
        exists = index.exists_in(str(folder))
        self._index = index.open_dir(str(folder)) if exists else index.create_in(str(folder), make_schema())
        self._writer: Any = None
        self._put: set[str] = set()
        self._fresh: dict[str, set[str]] = {}
        with self._index.reader() as reader:
            stored = {found["key"]: found["digest"] for found in reader.all_stored_fields()}
            self._words = {code: _lexicon(reader, f"word_{code}") for code in LANGUAGES}
        self.digests = {key: mark for key, mark in stored.items() if not key.startswith(_WORDS_PREFIX)}
        self._lists = len(stored) - len(self.digests)

    def put(self, entry: IndexEntry) -> None:
        if entry.key in self._put:
            self.commit()  # Whoosh can only replace documents that have been committed.
        writer = self._open()
        text, head, words = postings(entry)
        code = entry.language
        self._fresh.setdefault(code, set()).update(words - self._words[code])
        add = writer.update_document if entry.key in self.digests else writer.add_document
        add(
            key=entry.key,
            digest=entry.digest,
            group=entry.group.encode(),
            **{
                f"text_{code}": text,
                f"head_{code}": head,
                f"word_{code}": [(EVERY_DOCUMENT_TERM.encode(), 1, 1.0, b"")],
            },
        )
        self._put.add(entry.key)
        self.digests[entry.key] = entry.digest

    def drop(self, key: str) -> None:
        if self.digests.pop(key, None) is not None:
            if key in self._put:
                self.commit()
            self._open().delete_by_term("key", key)

    def commit(self) -> None:
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
            key=f"{_WORDS_PREFIX}{self._lists}", digest="", group=b"", **{f"word_{code}": listed}
        )
        self._words[code] |= words

    def close(self) -> None:
        if self._writer is not None:
            self._writer.cancel()
            self._writer = None
        self._index.close()

    def _open(self) -> Any:
        if self._writer is None:
            self._writer = self._index.writer(limitmb=MAX_POSTINGS_MB)
        return self._writer


def _lexicon(reader: Any, field: str) -> set[str]:
    return {word.decode() for word in reader.lexicon(field)} - {EVERY_DOCUMENT_TERM}


def postings(entry: IndexEntry) -> tuple[list[Any], list[Any], set[str]]:
    """Return the postings of a version's texts, the postings of its headings, and its folded words."""
    positions: dict[str, list[int]] = {}
    counts: dict[str, float] = {}
    heads: Counter[str] = Counter()
    words: set[str] = set()
    ends: dict[int, int] = {}
    for attribute, weight, text in entry.paragraphs:
        start = position = ends.get(attribute, attribute * ATTRIBUTE_POSITIONS)
        for position, match in enumerate(words_of(text), start):
            words.add(fold(match[0]))
            for term in terms(match[0], entry.language):
                positions.setdefault(term, []).append(position)
                counts[term] = counts.get(term, 0) + weight
                heads[term] += weight >= MIN_HEADING_WEIGHT
        ends[attribute] = min(
            position + PARAGRAPH_GAP_POSITIONS,
            (attribute + 1) * ATTRIBUTE_POSITIONS - MAX_PARAGRAPH_POSITIONS,
        )
    encode = _POSITIONS.encode
    text_ = [(t.encode(), len(at), counts[t], encode(sorted(at))) for t, at in positions.items()]
    head = [(t.encode(), n, float(n), pack_uint(n)) for t, n in heads.items() if n]
    return text_, head, words
