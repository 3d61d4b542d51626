"""`bifolio search`."""

import sys
from collections.abc import Iterator
from pathlib import Path

import click

from server.documents.document import DRAFT, PUBLISHED, Document
from server.errors import SetupError
from server.index.effective_version import edited_status
from server.jobs.job import Timing
from server.jobs.runner import Runner
from server.schema.model import title_of
from server.schema.spelling import suggestion
from server.search.find import Results, Scope, Search, total
from server.search.highlight import Fragment, WordFinder, WordFinders, highlights
from server.search.question import MAX_QUESTION_CHARS, Question, read_question
from server.search.sync import Sync
from server.search.texts import searchable
from server.service.opening import Mode, open_site
from server.site.site import Site, State
from server.tools.terminal import Part, check_site, one_line_errors, print_lines, progress_bar, site_option

MAX_FRAGMENTS = 2  # How many passages are printed for each document.


@click.command("search")
@click.argument("words", nargs=-1, required=True)
@site_option
@click.option(
    "--type", "types", multiple=True, metavar="TYPE", help="Search only this content type; can be repeated."
)
@click.option("--locale", help="Search only this locale.")
@click.option(
    "--draft", is_flag=True, help="Search drafts, and published versions of documents that have no draft."
)
@click.option(
    "--limit",
    default=10,
    show_default=True,
    type=click.IntRange(1, 1000),
    help="Show at most this number of hits.",
)
@click.option("--paths", is_flag=True, help="Print only the paths of the matching files.")
@one_line_errors
def search(
    words: tuple[str, ...],
    root: Path,
    types: tuple[str, ...],
    locale: str | None,
    draft: bool,
    limit: int,
    paths: bool,
) -> None:
    """Search documents and list the best matches first.

    Example: `bifolio search tide "slack water" title:harbour -ferry`
    """
    check_site(root)
    site = open_site(root, Mode.READ).site
    scope = _scope(site.state, types, locale, draft=draft)
    question = _question(words, site.state)
    _index(site)
    found = Search(site.root).find(site.state, question, scope, 0, limit)
    finders = WordFinders(question)
    for _, document in found.documents:
        if paths:
            click.echo(document.path)
        else:
            print_lines(_hit_lines(site, document, finders.finder_for(document)))
    if not paths:
        print_lines(_summary(found, total(found, scope)))
    if not found.documents:
        sys.exit(1)


def _scope(state: State, types: tuple[str, ...], locale: str | None, *, draft: bool) -> Scope:
    named = {name: t for t in state.schema.content_types for name in (t.singular, t.plural)}
    for name in types:
        if name not in named:
            raise SetupError(f"--type {name}", None, "no content type has this name", suggestion(name, named))
    if locale is not None and locale not in state.settings.locales.available:
        known = ", ".join(state.settings.locales.available)
        raise SetupError(
            f"--locale {locale}", None, "the site does not have this locale", f"use one of {known}"
        )
    shown = {t.uid: edited_status(t) if draft else PUBLISHED for t in state.schema.content_types}
    unlocalized = frozenset(t.uid for t in state.schema.content_types if not t.localized)
    return Scope(shown, frozenset(named[name].uid for name in types) or None, locale, unlocalized)


def _question(words: tuple[str, ...], state: State) -> Question:
    # Arguments with spaces are phrases.
    text = " ".join(f'"{word}"' if " " in word and '"' not in word else word for word in words)
    if len(text) > MAX_QUESTION_CHARS:
        raise SetupError("search", None, f"must have at most {MAX_QUESTION_CHARS} characters")
    fields = {a.name for t in state.schema.content_types for a in t.attributes.values() if searchable(a)}
    question = read_question(text, fields, is_incomplete=False)
    if not question.required:
        raise SetupError(
            "search", None, "the search only excludes words", "add at least one word to search for"
        )
    return question


def _index(site: Site) -> None:
    sync = Sync(site, Timing())
    runner = Runner([sync])
    runner.start()
    with progress_bar("Indexing") as progress:
        while not sync.done.wait(0.02):
            done, length = sync.progress
            if length:
                progress(done, length)
    runner.stop()


def _hit_lines(site: Site, document: Document, finder: WordFinder) -> Iterator[list[Part]]:
    # Many editors and terminals open `path:line`.
    line = _best_line(site.root / document.path, finder)
    title = str(document.get(title_of(document.type) or "documentId") or document.document_id)
    what = [document.type.singular, document.locale] + ([DRAFT] if document.status == DRAFT else [])
    yield [
        (document.path, {"fg": "magenta"}),
        (f":{line}  " if line else "  ", {}),
        *_parts(_whole(title, finder.spans(title)), bold=True),
        (f"  ({', '.join(what)})", {"dim": True}),
    ]
    for name, fragment in list(_fragments(site.state, document, finder))[:MAX_FRAGMENTS]:
        yield [(f"    {name}: ", {"dim": True}), *_parts(fragment, bold=False)]


def _whole(text: str, spans: list[tuple[int, int]]) -> Fragment:
    pieces: Fragment = []
    at = 0
    for start, end in spans:
        pieces += [(text[at:start], False), (text[start:end], True)]
        at = end
    return [*pieces, (text[at:], False)]


def _fragments(state: State, document: Document, finder: WordFinder) -> Iterator[tuple[str, Fragment]]:
    title = title_of(document.type)
    for name, fragments in highlights(document, state.settings, finder).items():
        if name != title:
            yield from ((name, fragment) for fragment in fragments)


def _parts(fragment: Fragment, *, bold: bool) -> list[Part]:
    return [(t, {"fg": "yellow", "bold": True} if found else {"bold": bold}) for t, found in fragment]


def _best_line(path: Path, finder: WordFinder) -> int:
    """Return the number of the line that contains the most distinct search words, or 0 if no line matches."""
    best, at = 0, 0
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            for number, line in enumerate(file, 1):
                words = len({line[a:b].casefold() for a, b in finder.spans(line)})
                if words > best:
                    best, at = words, number
    except OSError:
        return 0
    return at


def _summary(results: Results, count: int) -> Iterator[list[Part]]:
    shown = len(results.documents)
    said = "nothing found" if not count else f"{shown} of {count:,}" if shown < count else f"{count:,} found"
    said += "" if results.indexed else "; searched without an index"
    yield [(said, {"dim": True})]
    if results.suggestion:
        yield [("Did you mean ", {}), (results.suggestion, {"bold": True}), ("?", {})]
