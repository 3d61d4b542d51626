"""Which words of a document a question found, and the lines around them."""

from collections.abc import Iterator

from server.config.model import Settings
from server.documents.document import Document
from server.search.question import Question
from server.search.texts import Text, texts
from server.search.words import beginning, fold, language_of, terms

WIDTH = 180  # characters of a fragment
FRAGMENTS = 2  # of an attribute
MOST = 200_000  # characters of an attribute that are looked through

Fragment = list[tuple[str, bool]]  # a text in pieces, each with whether it was asked for


class Finder:
    """Says whether a word is one that a question asks for, in a language."""

    def __init__(self, question: Question, language: str) -> None:
        self.language = language
        words = [
            (word, clause.open and word is clause.words[-1])
            for clause in question.wanted
            for word in clause.words
        ]
        self._terms = {term for word, _ in words for term in terms(word, language)}
        self._begun = tuple(fold(word) for word, begun in words if begun and len(word) > 1)
        # No stemmer changes how a word begins by more than this; most words are told by it.
        starts = {found[:1] for found in (*self._terms, *self._begun, *(fold(w) for w, _ in words))}
        self._pattern = beginning(starts)
        self._known: dict[str, bool] = {}

    def finds(self, word: str) -> bool:
        """Whether a word, as it is written, is asked for."""
        known = self._known.get(word)
        if known is None:
            known = self._known[word] = self._finds(word)
        return known

    def _finds(self, word: str) -> bool:
        return fold(word).startswith(self._begun) or not self._terms.isdisjoint(terms(word, self.language))

    def places(self, text: str) -> list[tuple[int, int]]:
        """Where in a text the words are that are asked for."""
        return [found.span() for found in self._pattern.finditer(text) if self.finds(found[0])]


def highlights(document: Document, settings: Settings, finder: Finder) -> dict[str, list[Fragment]]:
    """The fragments of a document with words that are asked for, by attribute; the best come first."""
    found: dict[str, list[Fragment]] = {}
    ranked: dict[str, list[tuple[int, str]]] = {}
    for text in texts(document, settings):
        if text.kind == "uid":
            continue  # the title says it better
        for paragraph in _paragraphs(text):
            words = {fold(paragraph[a:b]) for a, b in finder.places(paragraph)}
            if words:
                ranked.setdefault(text.attribute, []).append((len(words), paragraph))
    for attribute, paragraphs in ranked.items():
        paragraphs.sort(key=lambda pair: -pair[0])
        shown = (
            stripped for _, raw in paragraphs for stripped in _stripped(raw, attribute, document, finder)
        )
        found[attribute] = [fragment for fragment, _ in zip(shown, range(FRAGMENTS), strict=False)]
    return {attribute: fragments for attribute, fragments in found.items() if fragments}


def finder_of(document: Document, question: Question, finders: dict[str, Finder]) -> Finder:
    """The finder for a document's language; `finders` keeps those of one question."""
    language = language_of(document.locale)
    if language not in finders:
        finders[language] = Finder(question, language)
    return finders[language]


def _paragraphs(text: Text) -> Iterator[str]:
    """The paragraphs of a text, those of Markdown with their markup: most are only looked at."""
    if text.kind == "richtext":
        yield from text.value[:MOST].split("\n\n")
    else:
        yield from text.read()


def _stripped(raw: str, attribute: str, document: Document, finder: Finder) -> Iterator[Fragment]:
    kind = document.type.attributes[attribute].type
    inner = "text" if kind in ("string", "text") else "richtext"
    for paragraph in Text(attribute, 1, inner, raw).read():
        places = finder.places(paragraph)
        if places:
            yield fragment(paragraph, places)


def fragment(text: str, places: list[tuple[int, int]]) -> Fragment:
    """A text in pieces, cut to WIDTH around the first of the places."""
    start, end = 0, len(text)
    if len(text) > WIDTH:
        start = max(0, places[0][0] - WIDTH // 3)
        start = text.find(" ", start, places[0][0]) + 1 if start else 0
        end = min(len(text), start + WIDTH)
        end = max(text.rfind(" ", start, end), places[0][1]) if end < len(text) else end
    pieces: Fragment = [("… ", False)] if start else []
    for a, b in places:
        if a >= start and b <= end:
            pieces += [(text[start:a], False), (text[a:b], True)]
            start = b
    pieces.append((text[start:end], False))
    if end < len(text):
        pieces.append((" …", False))
    return [(piece, marked) for piece, marked in pieces if piece]
