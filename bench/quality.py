"""Benchmark of search ranking for questions with known results, compared with SQLite FTS5."""
# The pages are Astro's documentation, which is outside the repository (see `--docs` and BIFOLIO_ASTRO_DOCS).
# The questions were written before anything was measured.

import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from bench.archives import unpack_archive
from bench.tables import show
from server.documents.document import PUBLISHED
from server.jobs.job import Timing
from server.jobs.runner import Runner
from server.schema.model import title_of
from server.search.catalog import catalog, versions
from server.search.find import Scope, Search
from server.search.question import read_question
from server.search.sync import Sync
from server.search.texts import texts
from server.search.words import split
from server.site.site import Site

# (locale, query, page that should be found)
QUESTIONS: Sequence[tuple[str, str, str]] = (
    ("en", "deploy my site to netlify", "guides--deploy--netlify"),
    ("en", "github pages", "guides--deploy--github"),
    ("en", "optimize images", "guides--images"),
    ("en", "rss feed", "recipes--rss"),
    ("en", "environment variables", "guides--environment-variables"),
    ("en", "syntax highlighting code blocks", "guides--syntax-highlighting"),
    ("en", "custom fonts", "guides--fonts"),
    ("en", "google fonts", "guides--fonts"),
    ("en", "migrate from gatsby", "guides--migrate-to-astro--from-gatsby"),
    ("en", "moving from next.js", "guides--migrate-to-astro--from-nextjs"),
    ("en", "add a sitemap", "guides--integrations-guide--sitemap"),
    ("en", "page transitions", "guides--view-transitions"),
    ("en", "middleware", "guides--middleware"),
    ("en", "estimated reading time", "recipes--reading-time"),
    ("en", "last modified date", "recipes--modified-time"),
    ("en", "docker container", "recipes--docker"),
    ("en", "captcha form", "recipes--captcha"),
    ("en", "share state between islands", "recipes--sharing-state-islands"),
    ("en", "connect to supabase", "guides--backend--supabase"),
    ("en", "wordpress headless cms", "guides--cms--wordpress"),
    ("en", "remote image not allowed error", "reference--errors--remote-image-not-allowed"),
    ("en", "server islands", "guides--server-islands"),
    ("en", "islands architecture", "concepts--islands"),
    ("fr", "déployer sur vercel", "guides--deploy--vercel"),
    ("fr", "variables d'environnement", "guides--environment-variables"),
    ("fr", "temps de lecture", "recipes--reading-time"),
    ("fr", "flux rss", "recipes--rss"),
    ("fr", "polices personnalisees", "guides--fonts"),
    ("de", "YAML Unterstützung", "recipes--add-yaml-support"),
    ("de", "Editor einrichten", "editor-setup"),
)
DEPTH = 25  # Results below this rank are ignored.
_TYPE = {
    "kind": "collectionType",
    "info": {"singularName": "doc", "pluralName": "docs", "displayName": "Doc"},
    "options": {"files": "docs/{locale}/{name}.mdx"},
    "pluginOptions": {"i18n": {"localized": True}},
    "attributes": {
        "title": {"type": "string"},
        "description": {"type": "text"},
        "body": {"type": "richtext"},
    },
}


def measure(folder: Path, docs: Path) -> None:
    """Index the pages, and print the mean reciprocal rank for both search engines."""
    site = _make_site(folder, docs)
    sync = Sync(site, Timing())
    runner = Runner([sync])
    runner.start()
    sync.done.wait()
    runner.stop()
    database = fts5(site)
    ours, theirs = [list(_ranks(ask)) for ask in (_bifolio(site), _fts5(database))]
    rows = [
        [f"{locale}: {text}", *(str(r) if r else "-" for r in ranks)]
        for (locale, text, _), *ranks in zip(QUESTIONS, ours, theirs, strict=True)
    ]
    rows.append(["mean reciprocal rank", f"{_mrr(ours):.3f}", f"{_mrr(theirs):.3f}"])
    rows.append(["first", *(str(sum(r == 1 for r in ranks)) for ranks in (ours, theirs))])
    rows.append(["among the first three", *(str(sum(0 < r <= 3 for r in ranks)) for ranks in (ours, theirs))])
    print(f"\n{len(site.state.snapshot.tables['api::doc.doc'].versions):,} pages, {len(QUESTIONS)} questions")
    show("Rank of the page that was meant", ["question", "Bifolio", "FTS5"], rows)


def _make_site(folder: Path, docs: Path) -> Site:
    pages = folder / "docs"
    if docs.is_dir():
        pages.symlink_to(docs.resolve(), target_is_directory=True)
    else:
        unpack_archive(docs, folder / "unpacked")
        (top,) = (folder / "unpacked").iterdir()
        top.rename(pages)
    (folder / "content-types").mkdir()
    (folder / "content-types" / "doc.json").write_text(json.dumps(_TYPE))
    (folder / "site.yaml").write_text("locales: {default: en, available: [en, fr, de]}\n")
    site = Site(folder)
    site.load()
    return site


def fts5(site: Site, file: Path | None = None) -> sqlite3.Connection:
    """Return a database with the same texts in SQLite's full-text index, which uses stemming and ignores
    accents.
    """
    database = sqlite3.connect(file or ":memory:", check_same_thread=False)
    database.execute(
        "CREATE VIRTUAL TABLE pages USING fts5(key UNINDEXED, locale UNINDEXED, title, body,"
        " tokenize = 'porter unicode61 remove_diacritics 2')"
    )
    state = site.state
    for version in versions(catalog(state, {}), state.schema.types):
        document = version.document
        title: list[str] = []
        body: list[str] = []
        for text in texts(document, state.settings):
            (title if text.attribute == title_of(document.type) else body).extend(text.read())
        row = (document.document_id, document.locale, "\n".join(title), "\n".join(body))
        database.execute("INSERT INTO pages VALUES (?, ?, ?, ?)", row)
    database.commit()
    return database


# returns the documentIds for a locale and a query, best first
Ask = Callable[[str, str], list[str]]


def _bifolio(site: Site) -> Ask:
    engine, state = Search(site.root), site.state

    def ask(locale: str, text: str) -> list[str]:
        scope = Scope({"api::doc.doc": PUBLISHED}, None, locale)
        found = engine.find(state, read_question(text, ()), scope, 0, DEPTH)
        assert found.indexed
        return [document.document_id for _, document in found.documents]

    return ask


def match(text: str, *, every: bool = True) -> str:
    return (" AND " if every else " OR ").join(f'"{word}"' for word in split(text))


def _fts5(database: sqlite3.Connection) -> Ask:
    sql = (
        "SELECT key FROM pages WHERE pages MATCH ? AND locale = ?"
        f" ORDER BY bm25(pages, 0, 0, 6.0, 1.0) LIMIT {DEPTH}"
    )

    def ask(locale: str, text: str) -> list[str]:
        for every in (True, False):
            found = [key for (key,) in database.execute(sql, (match(text, every=every), locale))]
            if found:
                return found
        return []

    return ask


def _ranks(ask: Ask) -> Iterator[int]:
    for locale, text, wanted in QUESTIONS:
        found = ask(locale, text)
        yield found.index(wanted) + 1 if wanted in found else 0


def _mrr(ranks: Sequence[int]) -> float:
    return sum(1 / rank for rank in ranks if rank) / len(ranks)
