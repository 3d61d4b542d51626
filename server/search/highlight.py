"""Text fragments of search results, with the matching words marked."""

from collections.abc import Iterator

from server.config.model import Settings
from server.documents.document import Document
from server.index.budget import Budget
from server.search.question import Question
from server.search.texts import Text, texts
from server.search.words import fold, language_of, terms, words_starting_with

MAX_FRAGMENT_CHARS = 180
MAX_FRAGMENTS = 2  # for each attribute
MAX_SEARCHED_CHARS = 200_000  # for each attribute
# limit for each response, which allows about 12,000 distinct words
MAX_STEPS = 150_000
_STEPS_PER_WORD = 12  # number of steps for stemming a word
_LOG2_CHARS_PER_STEP = 5  # Reading 32 characters costs one step.

Fragment = list[tuple[str, bool]]  # (piece of text, whether it matches)


class StepLimit:
    """Limit on the number of steps for highlighting. Each step also counts towards the request's budget."""

    def __init__(self, budget: Budget | None = None, steps: int = MAX_STEPS) -> None:
        self._budget, self._left = budget or Budget(), steps

    def spend(self, steps: int) -> None:
        self._left -= steps
        self._budget.spend(steps)

    def is_used_up(self) -> bool:
        return self._left <= 0


class WordFinder:
    """Finder for words that match a search, in texts of one language. It stops after `step_limit` steps."""

    def __init__(self, question: Question, language: str, step_limit: StepLimit | None = None) -> None:
        self.language, self.step_limit = language, step_limit or StepLimit()
        words = [
            (word, clause.is_prefix and word is clause.words[-1])
            for clause in question.required
            for word in clause.words
        ]
        self._terms = {term for word, _ in words for term in terms(word, language)}
        self._begun = tuple(fold(word) for word, begun in words if begun and len(word) > 1)
        # Testing a word's first letter is fast, and already rejects most words.
        starts = {text[:1] for text in (*self._terms, *self._begun, *(fold(w) for w, _ in words))}
        self._pattern = words_starting_with(starts)
        self._known: dict[str, bool] = {}

    def matches(self, word: str) -> bool:
        known = self._known.get(word)
        if known is None:
            if self.step_limit.is_used_up():
                return False
            self.step_limit.spend(_STEPS_PER_WORD)
            known = self._known[word] = self._matches(word)
        return known

    def _matches(self, word: str) -> bool:
        return fold(word).startswith(self._begun) or not self._terms.isdisjoint(terms(word, self.language))

    def spans(self, text: str) -> list[tuple[int, int]]:
        self.step_limit.spend(1 + (len(text) >> _LOG2_CHARS_PER_STEP))
        return [found.span() for found in self._pattern.finditer(text) if self.matches(found[0])]


def highlights(document: Document, settings: Settings, finder: WordFinder) -> dict[str, list[Fragment]]:
    """Return the best text fragments of each attribute that contains matching words.

    Fragments can be missing if the finder reaches its step limit.
    """
    found: dict[str, list[Fragment]] = {}
    ranked: dict[str, list[tuple[int, str]]] = {}
    for text in texts(document, settings):
        if finder.step_limit.is_used_up():
            break
        if text.kind == "uid":
            continue  # A uid is generated from the title, which is displayed anyway.
        for paragraph in _paragraphs(text):
            if finder.step_limit.is_used_up():
                break
            words = {fold(paragraph[a:b]) for a, b in finder.spans(paragraph)}
            if words:
                ranked.setdefault(text.attribute, []).append((len(words), paragraph))
    for attribute, paragraphs in ranked.items():
        paragraphs.sort(key=lambda pair: -pair[0])
        shown = (
            stripped for _, raw in paragraphs for stripped in _strip_markup(raw, attribute, document, finder)
        )
        found[attribute] = [fragment for fragment, _ in zip(shown, range(MAX_FRAGMENTS), strict=False)]
    return {attribute: fragments for attribute, fragments in found.items() if fragments}


class WordFinders:
    """Word finders for one search, by language. They share a single step limit."""

    def __init__(self, question: Question, budget: Budget | None = None) -> None:
        self._question, self._effort = question, StepLimit(budget)
        self._made: dict[str, WordFinder] = {}

    def finder_for(self, document: Document) -> WordFinder:
        language = language_of(document.locale)
        if language not in self._made:
            self._made[language] = WordFinder(self._question, language, self._effort)
        return self._made[language]


def _paragraphs(text: Text) -> Iterator[str]:
    # Markdown markup is removed only from the few paragraphs that are displayed.
    if text.kind == "richtext":
        yield from text.value[:MAX_SEARCHED_CHARS].split("\n\n")
    else:
        yield from text.read()


def _strip_markup(raw: str, attribute: str, document: Document, finder: WordFinder) -> Iterator[Fragment]:
    kind = document.type.attributes[attribute].type
    inner = "text" if kind in ("string", "text") else "richtext"
    for paragraph in Text(attribute, 1, inner, raw).read():
        spans = finder.spans(paragraph)
        if spans:
            yield fragment(paragraph, spans)


def fragment(text: str, spans: list[tuple[int, int]]) -> Fragment:
    """Return an excerpt of about MAX_FRAGMENT_CHARS characters around the first matching word.

    `spans` contains the start and end of each matching word in `text`.
    """
    start, end = 0, len(text)
    if len(text) > MAX_FRAGMENT_CHARS:
        start = max(0, spans[0][0] - MAX_FRAGMENT_CHARS // 3)
        start = text.find(" ", start, spans[0][0]) + 1 if start else 0
        end = min(len(text), start + MAX_FRAGMENT_CHARS)
        end = max(text.rfind(" ", start, end), spans[0][1]) if end < len(text) else end
    pieces: Fragment = [("… ", False)] if start else []
    for a, b in spans:
        if a >= start and b <= end:
            pieces += [(text[start:a], False), (text[a:b], True)]
            start = b
    pieces.append((text[start:end], False))
    if end < len(text):
        pieces.append((" …", False))
    return [(piece, marked) for piece, marked in pieces if piece]
