"""`bifolio init`: creating a new site, and proposing content types for existing files."""

import json
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st

from server.commands.cli import main
from server.config.reader import read_settings
from server.documents.encode import Reading, read_value
from server.formats.tree import Plain
from server.schema.model import Attribute
from server.site.check.survey import survey
from server.site.site import Site
from server.tools.init.groups import PageGroup, PageMember
from server.tools.init.infer import propose_attributes
from server.tools.init.naming import choose_api_ids, display_name
from server.tools.init.scan import MarkdownPage
from tests.examples import examples
from tests.git import git
from tests.sites import STRING, Api, Files, collection, load, opened, write
from tests.tools.trees import (
    ASTRO,
    DOCUSAURUS,
    ELEVENTY,
    ELEVENTY_BASE_BLOG,
    ELEVENTY_SRC,
    HUGO,
    HUGO_BUNDLES,
    JEKYLL,
    MKDOCS,
    PLAIN,
    TREES,
    VITEPRESS,
    VITEPRESS_TOP,
    directory,
    page,
    ruby_site,
    rust_blog,
)

MARKDOWN = (".md", ".mdx", ".markdown")


def init(root: Path, *options: str) -> Result:
    return CliRunner().invoke(main, ["init", str(root), *options], catch_exceptions=False)


def made(root: Path, files: Files, *options: str) -> Site:
    """Run init in a folder with the given files, and return the loaded site. It must have no errors."""
    write(root, files)
    done = init(root, *options)
    assert done.exit_code == 0, done.output
    found = survey(root, lambda: opened(root))
    assert [str(problem) for problem in found.problems if problem.severity == "error"] == []
    assert found.site
    return found.site


def attributes(root: Path, singular: str) -> dict[str, Any]:
    """Return the attributes of a proposed content type, without their setting for locales."""
    schema = json.loads((root / f"content-types/{singular}.json").read_text())
    for attribute in schema["attributes"].values():
        attribute.pop("pluginOptions", None)
    return dict(schema["attributes"])


def patterns(root: Path, singular: str) -> Any:
    return json.loads((root / f"content-types/{singular}.json").read_text())["options"]["files"]


def ids(site: Site, singular: str, locale: str) -> set[str]:
    type_ = site.state.schema.subjects[singular]
    return {d.document_id for d in site.state.snapshot.list(type_, locale, "published")}


def served(site: Site) -> set[str]:
    return {d.path for table in site.state.snapshot.tables.values() for d in table.versions.values()}


# --- a new site ----------------------------------------------------------------------------------


def test_a_new_site_works(tmp_path: Path) -> None:
    root = tmp_path / "new" / "my-notes"
    done = init(root)
    assert done.exit_code == 0
    assert CliRunner().invoke(main, ["check", "--strict", "--site", str(root)]).exit_code == 0
    api = Api.of(opened(root))
    (article,) = api.get("/api/articles?populate=author", "public").data
    assert (article["title"], article["author"]["name"]) == ("Welcome", "Ada Example")
    assert api.get("/api/home", "public").data["headline"] == "My Notes"
    assert api.get("/api/authors/ada?populate=articles", "public").data["articles"][0]["slug"] == "welcome"
    assert api.post("/api/articles", {"title": "Second", "author": "ada"}).status == 201
    api.accounts.close()
    assert "bifolio serve" in done.stdout


def test_a_site_in_no_repository_is_told_to_begin_one(tmp_path: Path) -> None:
    root = tmp_path / "my site"
    told = re.search(r"^Commit it: (.*)$", init(root).output, re.MULTILINE)
    assert told is not None
    settings = {"GIT_CONFIG_GLOBAL": os.devnull, "EMAIL": "ada@example.org"}
    subprocess.run(told[1], shell=True, check=True, env={**os.environ, **settings}, capture_output=True)
    assert "content-types/article.json" in git(root, "ls-files")
    # The branch name that the documentation uses.
    assert git(root, "symbolic-ref", "--short", "HEAD") == "main\n"
    assert "Commit it" not in init(root / "inner").output


def test_flags_say_what_a_terminal_would_ask(tmp_path: Path) -> None:
    init(tmp_path, "--name", 'Say: "hi"', "--locale", "fr", "--locale", "pt-BR", "--no-example")
    settings = read_settings(tmp_path)
    assert (settings.name, settings.locales.available) == ('Say: "hi"', ("fr", "pt-BR"))
    assert not (tmp_path / "content").exists()
    site = Site(tmp_path)
    assert site.state.schema.subjects["article"].localized
    assert site.state.schema.subjects["article"].attributes["title"].localized


def test_it_asks_on_a_terminal(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "server", "init", str(tmp_path / "site")]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    for question, answer in (
        ("Name", "Tides"),
        ("Locales", "fr!"),
        ("not a locale code", "fr, en"),
        ("first", "n"),
    ):
        _wait_for(ours, question)
        os.write(ours, f"{answer}\n".encode())
    _wait_for(ours, "Serve it")
    assert process.wait(20) == 0
    os.close(ours)
    settings = read_settings(tmp_path / "site")
    assert (settings.name, settings.locales.available) == ("Tides", ("fr", "en"))
    assert not (tmp_path / "site/content").exists()


def _wait_for(terminal: int, text: str) -> None:
    """Read the output of a terminal until it contains the given text. Its questions end with a colon or a
    bracket.
    """
    shown, end = "", time.monotonic() + 20
    output = select.poll()  # unlike select(), accepts file descriptors with any number
    output.register(terminal, select.POLLIN)
    while text not in shown and time.monotonic() < end:
        if output.poll(200):
            shown += os.read(terminal, 4096).decode()
    assert text in shown


def test_nothing_that_is_there_is_changed(tmp_path: Path) -> None:
    there = {
        "site.yaml": "name: Mine # really\n",
        "content/notes.txt": "mine",
        "README.md": "# Mine\n",
    }
    write(tmp_path, there)
    done = init(tmp_path, "--name", "Other")
    assert {path: (tmp_path / path).read_text() for path in there} == there
    assert "kept site.yaml: it already exists; you may need to add\n" in done.stdout
    assert "wrote content-types/article.json\n" in done.stdout


def test_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    assert "would write site.yaml" in init(tmp_path / "new", "--dry-run").stdout
    assert not (tmp_path / "new").exists()
    write(tmp_path, PLAIN)
    before = sorted(tmp_path.rglob("*"))
    assert "would write content-types/person.json" in init(tmp_path, "--dry-run").stdout
    assert sorted(tmp_path.rglob("*")) == before


def test_a_site_is_not_made_twice(tmp_path: Path) -> None:
    init(tmp_path)
    again = init(tmp_path)
    assert again.exit_code == 0
    kept = "this folder is already a site: its content types have 3 documents; nothing new to add\n"
    assert again.stdout == kept


def test_a_tree_is_not_taken_twice(tmp_path: Path) -> None:
    tree = {f"content/posts/{i}.md": page("title: A") for i in range(2)}
    write(tmp_path, {**tree, "content/posts/1.fr.md": page("title: B"), "config/README.md": "# Settings\n"})
    assert init(tmp_path).exit_code == 0
    before = sorted(tmp_path.rglob("*"))
    again = init(tmp_path)
    assert (again.exit_code, again.stderr) == (0, "")
    assert "Left out: config/README.md  describes its folder" in again.stdout
    assert (
        "this folder is already a site: its content types have 2 documents; nothing new to add\n"
        in again.stdout
    )
    assert sorted(tmp_path.rglob("*")) == before


def test_a_site_without_documents_is_not_made_twice(tmp_path: Path) -> None:
    write(tmp_path, collection("article", {"title": STRING}))
    assert "its content types have 0 documents; nothing new to add" in init(tmp_path).stdout
    assert not (tmp_path / "site.yaml").exists()


@pytest.mark.parametrize("code", ["english!", "e", "../en"])
def test_a_locale_has_a_code(tmp_path: Path, code: str) -> None:
    done = init(tmp_path, "--locale", code)
    assert done.exit_code == 1
    assert "must be a locale code" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a")
    assert "is not a folder" in init(tmp_path / "a").stderr


def test_a_folder_that_can_not_be_written(tmp_path: Path) -> None:
    (tmp_path / "content-types").write_text("a file")
    done = init(tmp_path)
    assert done.exit_code == 1
    assert (
        done.stderr
        == "bifolio: content-types: is a file, but must be a folder. Move the file to a different path.\n"
    )
    assert (tmp_path / "content-types").read_text() == "a file"


# --- existing files -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", TREES)
def test_what_is_taken_is_served_and_nothing_else_is_touched(tmp_path: Path, name: str) -> None:
    site = made(tmp_path, TREES[name])
    left = {
        "README.md",
        "archetypes/default.md",
        "themes/some/README.md",
        "_includes/head.md",
        "_drafts/later.md",
    }
    pages = {path for path in TREES[name] if path.endswith(MARKDOWN) and not path.startswith("node_modules")}
    assert {path for path in served(site) if path.endswith(MARKDOWN)} == pages - left
    for path, text in TREES[name].items():
        assert (tmp_path / path).read_bytes() == (text if isinstance(text, bytes) else text.encode())
    problems = survey(tmp_path, lambda: opened(tmp_path)).problems
    assert [str(problem) for problem in problems] == []
    assert "wrote" in init_output(tmp_path)
    new = {p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*") if p.is_file()} - TREES[
        name
    ].keys()
    assert {path for path in new if not path.startswith("content-types/")} == {"site.yaml"}


def test_a_hugo_tree(tmp_path: Path) -> None:
    site = made(tmp_path, HUGO)
    assert site.state.settings.locales.available == ("en", "fr")
    assert ids(site, "post", "en") == {f"post-{i}" for i in range(8)}  # bundle/index.md is a draft
    assert ids(site, "post", "fr") == {"post-1", "bundle"}
    assert ids(site, "section", "en") == {"posts", "authors"}
    assert ids(site, "about", "fr") == ids(site, "about", "en")
    assert attributes(tmp_path, "place").keys() == {"title"}
    assert attributes(tmp_path, "post") == {
        "title": {"type": "string", "required": True},
        "date": {"type": "date", "required": True},
        "weight": {"type": "integer", "required": True},
        "version": {"type": "string", "required": True},
        "tags": {"type": "array", "required": True},
        "kind": {"type": "enumeration", "enum": ["essay", "note"], "required": True},
        "author": {
            "type": "relation",
            "relation": "manyToOne",
            "target": "api::author.author",
            "required": True,
        },
        "body": {"type": "richtext"},
    }
    assert attributes(tmp_path, "author") == {
        "name": {"type": "string", "required": True},
        "email": {"type": "email", "required": True},
        "country": {"type": "string", "required": True},
        "zip": {"type": "string", "required": True},
        "body": {"type": "richtext"},
    }
    api = Api.of(site)
    assert api.get("/api/authors/nell", "public").data["zip"] == "01234"
    assert api.get("/api/posts/post-1", "public").status == 200
    assert api.get("/api/posts/bundle", "public").status == 404
    assert api.get("/api/posts/bundle?status=draft").data["title"] == "Post 8"
    assert api.get("/api/posts/bundle?populate=author&locale=fr").data["author"]["name"] == "Ida"
    api.accounts.close()


def test_taxonomies_of_hugo_are_types(tmp_path: Path) -> None:
    authors = {
        f"content/authors/{name}/_index.md": page(f"display_name: {name}") for name in ("ida", "nell", "tom")
    }
    topics = {f"content/topics/{name}/_index.md": page(f"title: {name}") for name in ("sea", "fog", "tides")}
    posts = {
        f"content/news/2024/a{i}.md": page(f"title: {i}\nauthors: [{name}]\ntopics: [sea, fog]")
        for i, name in enumerate(("ida", "nell", "tom"))
    }
    sections = {
        f"content/{name}_index.md": page("title: S") for name in ("", "authors/", "news/", "guides/a/")
    }
    site = made(tmp_path, {"hugo.toml": "", **authors, **topics, **posts, **sections})
    assert set(served(site)) == {*authors, *topics, *posts, *sections}
    assert patterns(tmp_path, "author") == "content/authors/{name}/_index.md"
    assert ids(site, "author", "en") == {"ida", "nell", "tom"}
    assert ids(site, "section", "en") == {"authors", "news", "guides--a"}
    assert attributes(tmp_path, "news-item")["topics"]["target"] == "api::topic.topic"
    api = Api.of(site)
    (found,) = api.get("/api/news?populate=authors&filters[title]=1", "public").data
    assert [author["display_name"] for author in found["authors"]] == ["nell"]
    api.accounts.close()


def test_taxonomies_below_folders_for_locales(tmp_path: Path) -> None:
    tree = {
        f"content/{code}/topics/{name}/_index.md": page(f"title: {name} {code}")
        for code in ("en", "fr")
        for name in ("sea", "fog", "tides")
    }
    site = made(tmp_path, {"hugo.toml": "", **tree, "content/en/posts/a.md": page("title: A")})
    assert patterns(tmp_path, "topic") == "content/{locale}/topics/{name}/_index.md"
    assert ids(site, "topic", "fr") == {"sea", "fog", "tides"}


def test_a_tree_of_zola_with_toml(tmp_path: Path) -> None:
    tree = rust_blog()
    site = made(tmp_path, tree)
    assert {d.path for d in documents(site)} == {path for path in tree if path.endswith(".md")}
    assert attributes(tmp_path, "post") == {
        "path": {"type": "string", "required": True},
        "title": {"type": "string", "required": True},
        "authors": {"type": "array", "required": True},
        "extra": {"type": "json", "required": True},
        "aliases": {"type": "array"},
        "date": {"type": "date"},  # from the file name, as Zola does
        "slug": {"type": "uid"},
        "taxonomies": {"type": "json"},
        "body": {"type": "richtext"},
    }
    schema = json.loads((tmp_path / "content-types/post.json").read_text())
    assert schema["options"] == {
        "draftAndPublish": True,
        "draftWhen": {"draft": True},
        "files": "content/{name}.md",
        "fileName": "{date}-{slug}",
        "frontMatter": "toml",
    }
    api = Api.of(site)
    listed = api.get("/api/posts?fields=title,extra&sort=path&pagination[pageSize]=2", "public")
    assert listed.body["meta"]["pagination"]["total"] == 559 - 1  # one document is a draft
    path = "content/2016-02-02-post-1.md"
    before = api.read(path)
    assert api.put("/api/posts/2016-02-02-post-1", {"title": "Rust 1.1"}).status == 200
    gone = set(before.splitlines()) - set(api.read(path).splitlines())
    assert gone == {'title = "Announcing Rust 1.1.0"'}
    new = api.post("/api/posts?status=draft", {"title": "Rust 2"}).data["documentId"]
    assert api.read(f"content/{new}.md").startswith('+++\ntitle = "Rust 2"\n')
    api.accounts.close()


def test_a_docusaurus_tree(tmp_path: Path) -> None:
    site = made(tmp_path, DOCUSAURUS)
    assert site.state.settings.locales.available == ("fr", "en")
    assert ids(site, "doc", "fr") == ids(site, "doc", "en") == {"intro", "guide--start"}
    assert ids(site, "post", "fr") == ids(site, "post", "en") == {"2024-01-01-hello"}
    assert {t.singular for t in site.state.schema.content_types} == {"doc", "post"}
    api = Api.of(site)
    assert api.get("/api/docs/intro?locale=en", "public").data["body"] == "Hello."
    api.accounts.close()


def test_other_generators(tmp_path: Path) -> None:
    vitepress = made(tmp_path / "vitepress", VITEPRESS)
    assert ids(vitepress, "doc", "en") == ids(vitepress, "doc", "fr") == {"index", "guide--start"}
    assert ids(made(tmp_path / "mkdocs", MKDOCS), "doc", "en") == {"index", "about--license"}
    eleventy = made(tmp_path / "eleventy", ELEVENTY)
    assert ids(eleventy, "post", "en") == {"first", "second"}
    assert attributes(tmp_path / "eleventy", "post").keys() == {"title", "body"}


def test_a_page_alone_in_its_folder_is_a_single_type(tmp_path: Path) -> None:
    site = made(tmp_path / "hugo", HUGO_BUNDLES)
    kinds = {t.singular: (t.kind, t.files) for t in site.state.schema.content_types}
    assert kinds["about"] == ("singleType", ("content/about/index.md",))
    assert kinds["contact"][0] == "singleType"
    assert ids(site, "post", "en") == {"foo", "2023--bar", "plain"}
    assert ids(site, "section", "en") == {"posts"}
    api = Api.of(site)
    assert api.get("/api/about", "public").data["title"] == "About"
    assert api.get("/api/contact?locale=fr", "public").data["title"] == "Contactez-nous"
    api.accounts.close()
    assert patterns(tmp_path / "hugo", "home") == "content/_index.md"
    base = made(tmp_path / "base", ELEVENTY_BASE_BLOG)
    assert {t.singular for t in base.state.schema.content_types} == {"post", "about", "home"}
    src = made(tmp_path / "src", ELEVENTY_SRC)
    assert {t.singular for t in src.state.schema.content_types} == {"post", "home"}
    top = made(tmp_path / "top", VITEPRESS_TOP)
    assert {t.singular for t in top.state.schema.content_types} == {"markdown-examples", "home"}


def test_many_pages_alone_in_their_folders_are_one_type(tmp_path: Path) -> None:
    tree = {f"content/page-{i}/index.md": page(f"title: Page {i}") for i in range(6)}
    site = made(tmp_path, {**tree, "content/posts/a/index.md": page("title: A"), "hugo.toml": ""})
    assert ids(site, "page", "en") == {f"page-{i}" for i in range(6)}
    assert ids(site, "post", "en") == {"a"}


def test_a_page_alone_below_folders_for_locales(tmp_path: Path) -> None:
    tree = {f"content/{locale}/about/index.md": page(f"title: {locale}") for locale in ("de", "fr")}
    more = {f"content/{locale}/posts/a.md": page(f"title: {locale}") for locale in ("de", "fr")}
    site = made(tmp_path, {**tree, **more, "hugo.yaml": "defaultContentLanguage: fr\n"})
    assert patterns(tmp_path, "about") == "content/{locale}/about/index.md"
    assert site.state.schema.subjects["about"].kind == "singleType"
    api = Api.of(site)
    assert api.get("/api/about?locale=de", "public").data["title"] == "de"
    api.accounts.close()


def test_org_files_are_named(tmp_path: Path) -> None:
    write(tmp_path, {"content/posts/a.md": page("title: A"), "content/posts/b.org": "#+title: B\n"})
    assert "Can't be read: content/posts/b.org  Org files are not supported" in init(tmp_path).stdout


def documents(site: Site) -> list[Any]:
    return [d for claim in site.state.snapshot.claims.values() for d in claim]


SECTION_NAMES = [
    "archetypes",
    "build",
    "dist",
    "layouts",
    "public",
    "resources",
    "static",
    "target",
    "vendor",
]


@pytest.mark.parametrize(
    ("base", "config"),
    [
        ("content", {"hugo.toml": ""}),
        ("content", {}),
        ("src/content", {"astro.config.mjs": ""}),
        ("web/content", {"web/hugo.toml": ""}),
        ("docs", {"mkdocs.yml": ""}),
        ("_posts", {"_config.yml": ""}),
    ],
)
def test_sections_may_be_named_like_folders_of_templates(tmp_path: Path, base: str, config: Files) -> None:
    pages = {f"{base}/{name}/{i}.md": page(f"title: {i}") for name in SECTION_NAMES for i in range(3)}
    site = made(tmp_path, {**config, **pages, f"{base}/news/a.md": page("title: A")})
    assert pages.keys() <= set(served(site))


def test_skipped_folders_are_listed_with_their_number_of_files(tmp_path: Path) -> None:
    skipped = {
        **{f"static/docs/{i}.md": page(f"title: Post {i}") for i in range(3)},
        **{f"sites/{i}/hugo.toml": "" for i in range(9)},
        **{f"sites/{i}/vendor/a.md": page("title: A") for i in range(9)},
        "themes/some/content/a.md": "---\n: [\n---\n",
        "content/_includes/a.md": page("title: A"),
        "content/uploads/a.md": page("title: A"),
        "public/index.html": "built",
    }
    write(tmp_path, {**skipped, "content/posts/a.md": page("title: A")})
    shown = init(tmp_path).stdout
    why = "folders with this name usually contain templates, packages or build output"
    assert f"Left out: static/  3 Markdown files; outside content/, {why}\n" in shown
    assert f"Left out: content/_includes/  1 Markdown file; {why}\n" in shown
    for folder in (
        "themes",
        "content/_includes",
        "content/uploads",
        *(f"sites/{i}/vendor" for i in range(9)),
    ):
        assert f"Left out: {folder}/  1 Markdown file; " in shown
    assert "public/" not in shown
    assert not any(path in shown for path in skipped)


def test_a_folder_is_skipped_by_its_name_only_where_a_generator_makes_it(tmp_path: Path) -> None:
    taken = {f"notes/{name}/a.md": page("title: A") for name in (*SECTION_NAMES, "coverage", "themes")}
    site = made(tmp_path, {**taken, "public/a.md": page("title: A"), "notes/b.md": page("title: B")})
    assert set(served(site)) == {*taken, "notes/b.md"}


def test_what_git_ignores_is_skipped(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    files = {"out/a.md": page("title: A"), "site/content/posts/b.md": page("title: B"), "site/docs/x": ""}
    write(tmp_path, {"site/hugo.toml": ""})
    write(tmp_path, {".gitignore": "out/\nbuilt/\n", "site/docs/built/c.md": page("title: C"), **files})
    shown = init(tmp_path, "--dry-run").stdout
    for folder in ("out", "site/docs/built"):
        assert f"Left out: {folder}/  1 Markdown file; ignored by git\n" in shown
    assert shown.count("/api/") == 1
    (tmp_path / ".gitignore").write_text("*\n")
    inner = tmp_path / "inner"
    write(inner, {"notes/a.md": page("title: A"), "notes/b.md": page("title: B")})
    assert "note  /api/notes  2 documents" in init(inner, "--dry-run").stdout


def test_data_of_tests_is_no_content(tmp_path: Path) -> None:
    tree = {
        "eleventy.config.js": "export default {}\n",
        "test/stubs/post.md": page("title: A stub"),
        "packages/feed/feed.js": "export {}\n",
        "packages/feed/fixtures/post.md": page("title: A stub"),
        "src/posts/a.md": page("title: A"),
        "src/posts/tests/b.md": page("title: A test"),
    }
    site = made(tmp_path, tree)
    assert set(served(site)) == {"src/posts/a.md", "src/posts/tests/b.md"}
    assert (
        "Left out: test/  1 Markdown file; next to code, folders with this name usually contain tests"
        in init_output(tmp_path)
    )
    sport = made(tmp_path / "sport", {f"{name}/a.md": page("title: A") for name in ("fixtures", "tests")})
    assert {t.plural for t in sport.state.schema.content_types} == {"fixtures", "tests"}


def test_english_is_the_default_locale_beside_files_that_name_none(tmp_path: Path) -> None:
    posts = {
        f"{code}/news/_posts/2024-01-0{i}-a.md": page("title: A") for code in ("en", "fr") for i in (1, 2)
    }
    about = {f"{code}/about.md": page("title: About") for code in ("de", "en", "fr")}
    write(tmp_path, {**posts, **about})
    assert "Default locale: en; choose another with --locale\n" in init(tmp_path).stdout
    assert read_settings(tmp_path).locales.available == ("en", "de", "fr")


def test_the_locale_with_the_most_documents_is_the_default_one(tmp_path: Path) -> None:
    tree = {
        f"content/{code}/posts/{i}.md": page("title: A")
        for code, n in (("de", 2), ("fr", 3))
        for i in range(n)
    }
    write(tmp_path, tree)
    assert "Default locale: fr; choose another with --locale\n" in init(tmp_path, "--dry-run").stdout
    assert "Default locale" not in init(tmp_path, "--locale", "de").stdout
    assert read_settings(tmp_path).locales.available == ("de", "fr")


def test_files_that_name_no_locale_beside_english_ones_of_the_same_documents(tmp_path: Path) -> None:
    site = made(tmp_path, {f"posts/a{ending}.md": page("title: A") for ending in ("", ".en", ".fr")})
    assert site.state.settings.locales.available == ("und", "en", "fr")
    assert len(served(site)) == 3


def test_a_tree_of_data_files(tmp_path: Path) -> None:
    tree = directory()
    site = made(tmp_path, tree)
    assert set(served(site)) == {path for path in tree if path.endswith(".yaml")}
    kinds = {t.singular: t.plural for t in site.state.schema.content_types}
    assert kinds == {"project": "projects", "collection": "collections"}
    assert attributes(tmp_path, "project") == {
        "version": {"type": "integer", "required": True},
        "name": {"type": "string", "required": True},
        "display_name": {"type": "string", "required": True},
        "github": {"type": "json"},
        "websites": {"type": "json"},
        "token": {"type": "string"},
    }
    assert patterns(tmp_path, "project") == "data/projects/{initial}/{name}.yaml"
    assert ids(site, "project", "en") == {"aave", "across", "babel", "1inch", "deno"}
    relation = attributes(tmp_path, "collection")["projects"]
    assert (relation["relation"], relation["target"]) == ("manyToMany", "api::project.project")
    assert survey(tmp_path, lambda: opened(tmp_path)).problems == ()
    assert read_settings(tmp_path).name == "OSS Directory"
    shown = init_output(tmp_path)
    assert "Left out: data/projects/README.md  describes its folder" in shown
    api = Api.of(site)
    (found,) = api.get("/api/projects?filters[name]=1inch", "public").data
    assert found["display_name"] == "1inch"
    path = "data/projects/1/1inch.yaml"
    before = api.read(path)
    assert api.put(f"/api/projects/{found['documentId']}", {"display_name": "One inch"}).status == 200
    assert set(before.splitlines()) - set(api.read(path).splitlines()) == {"display_name: 1inch"}
    body = {"version": 7, "name": "x", "display_name": "X"}
    new = api.post("/api/projects", body).data["documentId"]
    assert "display_name: X" in api.read(f"data/projects/{new[0]}/{new}.yaml")
    listed = api.get("/api/collections/defi?populate=projects", "public").data["projects"]
    assert [project["documentId"] for project in listed] == ["aave", "across"]
    api.accounts.close()


def test_files_that_are_not_below_their_letter_keep_their_folder(tmp_path: Path) -> None:
    names = [f"{letter}/{letter}{i}" for letter in "abc" for i in range(4)]
    tree = {f"data/words/{name}.yaml": "n: 1\n" for name in [*names, "z/odd"]}
    site = made(tmp_path, tree)
    assert patterns(tmp_path, "word") == ["data/words/{initial}/{name}.yaml", "data/words/{name}.yaml"]
    assert ids(site, "word", "en") == {*(name[2:] for name in names), "z--odd"}
    assert set(served(site)) == tree.keys()


@pytest.mark.parametrize(
    ("files", "types"),
    [
        # Folders that mostly contain data, next to code and its settings.
        (
            {"recipes/a.json": '{"name": "A"}', "recipes/b.json": '{"name": "B"}', "package.json": "{}"},
            {"recipe": "recipes/{name}.json"},
        ),
        # A folder for data. Files outside it are settings.
        (
            {"data/geo/a.toml": "x = 1\n", "data/geo/b.toml": "x = 2\n", "ci/x.yml": "a: 1\n"},
            {"geo-entry": "data/geo/{name}.toml"},
        ),
        # If the files in a folder have the same structure, they are a collection type. Otherwise, each is a
        # single type.
        ({"data/a.yaml": "n: 1\nm: 2\n", "data/b.yaml": "n: 3\n"}, {"entry": "data/{name}.yaml"}),
        (
            {"data/team.yml": "boss: Ida\n", "data/sea.json": '{"deep": 1}'},
            {"sea": "data/sea.json", "team": "data/team.yml"},
        ),
        # The root folder contains only data.
        (
            {"ida.yaml": "rank: 1\n", "nell.yaml": "rank: 2\n", "README.md": "# People\n"},
            {"entry": "{name}.yaml"},
        ),
        # Locales.
        (
            {"data/en/words/a.yaml": "n: 1\n", "data/fr/words/a.yaml": "n: 2\n"},
            {"word": "data/{locale}/words/{name}.yaml"},
        ),
    ],
)
def test_which_data_files_are_documents(tmp_path: Path, files: Files, types: dict[str, str]) -> None:
    made(tmp_path, files)
    found = {path.stem for path in (tmp_path / "content-types").iterdir()}
    assert {singular: patterns(tmp_path, singular) for singular in found} == types


def test_settings_and_code_are_no_documents(tmp_path: Path) -> None:
    tree = {
        "package.json": "{}",
        "tsconfig.json": "{}",
        "src/a.ts": "",
        "src/b.ts": "",
        "src/words.json": "{}",
    }
    write(tmp_path, tree)
    # A new site next to the existing files.
    assert "wrote content/articles/welcome.md" in init(tmp_path).stdout


def test_data_beside_markdown_is_left_to_the_generator(tmp_path: Path) -> None:
    site = made(
        tmp_path, {"hugo.toml": "", "content/posts/a.md": page("title: A"), "data/x/a.yaml": "n: 1\n"}
    )
    assert served(site) == {"content/posts/a.md"}


def test_data_that_can_not_be_taken(tmp_path: Path) -> None:
    write(tmp_path, {"data/README.md": "# Data\n", "data/a.yaml": "- 1\n", "data/b.json": "[]"})
    done = init(tmp_path)
    assert done.exit_code == 1
    assert "Can't be read: data/a.yaml  line 1: a document must be a mapping" in done.stdout
    hint = (
        "none of the files can be used as a document. The list above gives the reasons; "
        "2 YAML or JSON files found, see docs/existing-sites.md"
    )
    assert hint in done.stderr
    (tmp_path / "data/a.yaml").unlink()
    (tmp_path / "data/b.json").unlink()
    assert (
        "none of the files can be used as a document. The list above gives the reasons"
        in init(tmp_path).stderr
    )


def test_what_matters_most_comes_first(tmp_path: Path) -> None:
    tree = {f"zebras/{i}.md": page(f"title: Post {i}") for i in range(3)} | {
        "ants/a.md": page("title: A"),
        "config/README.md": "# How this is set up\n",
    }
    write(tmp_path, tree)
    shown = init(tmp_path).stdout
    assert shown.index("zebra  /api/zebras") < shown.index("ant  /api/ants")
    assert "curl 'http://localhost:1337/api/zebras'" in shown
    assert "Left out: config/README.md  describes its folder" in shown
    assert not (tmp_path / "content-types/config.json").exists()
    assert read_settings(tmp_path).api.populate_with_pagination


def test_attributes_are_shared_where_locales_say_the_same(tmp_path: Path) -> None:
    post = made(tmp_path, HUGO).state.schema.subjects["post"]
    own = {name for name, a in post.attributes.items() if a.localized}
    assert own == {"title", "body", "author"}  # a relation always has a value for each locale


def test_a_jekyll_tree(tmp_path: Path) -> None:
    site = made(tmp_path, JEKYLL)
    assert len(ids(site, "post", "en")) == 6  # one document has published: false
    assert "2024-01-02-post-1" in ids(site, "post", "en")
    assert {name: a["type"] for name, a in attributes(tmp_path, "post").items()} == {
        "layout": "string",
        "title": "string",
        "date": "datetime",
        "categories": "json",
        "tags": "array",
        "rating": "float",
        "slug": "uid",
        "body": "richtext",
    }
    assert ids(site, "recipe", "en") == {"bread", "soup"}
    api = Api.of(site)
    assert api.get("/api/home", "public").data["title"] == "Home"
    assert api.get("/api/about", "public").data["permalink"] == "/about/"
    assert api.get("/api/posts/2024-01-02-post-1").data["date"] == "2024-01-02T09:00:00.000Z"
    assert api.get("/api/posts?filters[slug]=post-1").ids == ["2024-01-02-post-1"]
    api.accounts.close()


def test_dates_and_slugs_of_file_names(tmp_path: Path) -> None:
    """If a Jekyll post has no date or slug, both come from its file name. Other file names stay as they
    are.
    """
    tree = {
        "_config.yml": "title: Tides\n",
        "_posts/2024-01-31-hello.md": page("title: Hello"),
        "_posts/sea/2024-02-01-fog.md": page("title: Fog\ndate: 2024-02-01 10:00:00 +0100"),
        "_events/2024-03-01-meet.md": page("title: Meet\ndate: soon"),
        "_events/2024-04-01-meet.md": page("title: Meet\ndate: later"),
        "_talks/2024-03-01-sea.md": page("title: Sea"),
        "_talks/2024-04-01-sea.md": page("title: Sea again"),
        "_notes/2024-03-01-a.md": page("title: A"),
        "_notes/b.md": page("title: B"),
    }
    site = made(tmp_path, tree)
    assert survey(tmp_path, lambda: opened(tmp_path)).problems == ()
    assert attributes(tmp_path, "post")["date"] == {"type": "datetime"}
    assert attributes(tmp_path, "post")["slug"] == {"type": "uid"}
    assert attributes(tmp_path, "talk")["slug"] == {"type": "string"}  # two talks have the same slug
    assert "slug" not in attributes(tmp_path, "note")
    assert site.state.schema.subjects["note"].file_name is None
    assert attributes(tmp_path, "event")["date"] == {"type": "string", "required": True}
    api = Api.of(site)
    posts = api.get("/api/posts?sort=date:asc&fields=date,slug", "public").data
    assert [(post["date"], post["slug"]) for post in posts] == [
        ("2024-01-31T00:00:00.000Z", "hello"),
        ("2024-02-01T09:00:00.000Z", "fog"),
    ]
    api.accounts.close()


def test_new_files_are_named_like_those_that_are_there(tmp_path: Path) -> None:
    """Files in folders for years and months have the date and slug in their names, but one page has no
    date.
    """
    posts = {
        f"content/news/2024/0{i}/2024-0{i}-0{i}-post-{i}.md": page(
            f"title: Post {i}\ndate: 2024-0{i}-0{i} 10:00:00 -0500\nslug: post-{i}"
        )
        for i in range(1, 10)
    }
    tree = {
        "hugo.toml": "title = 'News'\n",
        "content/news/about.md": page("title: About us"),
        "content/events/2024/2024-01-01-meet.md": page("title: Meet"),
        "content/events/2024/2024-02-02-sail.md": page("title: Sail"),
        "content/guides/reef.md": page("title: Reef"),
        "content/guides/knots.md": page("title: Knots"),
        **posts,
    }
    api = Api.of(made(tmp_path, tree))
    assert attributes(tmp_path, "news-item")["date"] == {"type": "datetime"}
    new = {"title": "New", "date": "2025-11-05T12:00:00Z", "slug": "new"}
    assert api.post("/api/news", new).status == 201
    assert (tmp_path / "content/news/2025/11/2025-11-05-new.md").exists()
    assert api.post("/api/events", {"title": "Row", "date": "2025-03-04", "slug": "row"}).status == 201
    assert (tmp_path / "content/events/2025/2025-03-04-row.md").exists()
    api.accounts.close()
    said = init_output(tmp_path)
    assert "  new files: {date.year}/{date.month}/{date}-{slug}\n" in said
    assert (
        "Types with random names for new files: guide\n"
        "  to choose the names, add a uid attribute or set options.fileName\n"
    ) in said


def test_init_says_what_is_not_as_one_would_think(tmp_path: Path) -> None:
    """The output mentions unexpected decisions: keys that are almost relations, types without drafts, and
    unused data.
    """
    pages = {
        f"content/pages/page-{i}.md": page(
            f"title: {i}\nslug: page-{i}\ntopics: [{'tide' if i < 8 else f'T {i}'}, sea]"
        )
        for i in range(10)
    }
    topics = {
        f"content/topics/{name}.md": page(f"title: {name}\nslug: {name}\ndraft: {str(name == 'sea').lower()}")
        for name in ("sea", "tide")
    }
    data = {f"data/people/{i}.yml": f"name: {i}\n" for i in range(3)}
    made(tmp_path, {"hugo.toml": "", **pages, **topics, **data})
    assert attributes(tmp_path, "page")["topics"] == {"type": "array", "required": True}
    said = init_output(tmp_path)
    assert "all 10  required; remains a list of strings: 2 of 20 values match no topic" in said
    assert (
        "Types without drafts: page\n"
        "  new documents are public immediately; to use drafts, set options.draftAndPublish\n"
    ) in said
    assert (
        "Left out: data/  3 YAML, JSON or TOML files; to serve them, see docs/existing-sites.md\n"
    ) in said
    assert "Types with random names for new files" not in said


def test_a_key_without_a_value_in_any_file_is_no_attribute(tmp_path: Path) -> None:
    tree = {
        "hugo.toml": "",
        "content/posts/a.md": page("title: A\nauthor:\nzoom: null"),
        "content/posts/b.md": page("title: B\nauthor:\nkicker: Sea"),
    }
    made(tmp_path, tree)
    assert attributes(tmp_path, "post").keys() == {"title", "kicker", "body"}
    assert survey(tmp_path, lambda: opened(tmp_path)).problems == ()
    assert "  left out, because no file has a value: author, zoom\n" in init_output(tmp_path)


def test_a_plain_folder(tmp_path: Path) -> None:
    site = made(tmp_path, PLAIN)
    assert ids(site, "note", "en") == {"a", "deep--b", "deep--c"}
    related = attributes(tmp_path, "note")["related"]
    assert (related["relation"], related["target"]) == ("manyToMany", "api::note.note")
    assert attributes(tmp_path, "person")["born"] == {"type": "date", "required": True}
    api = Api.of(site)
    data = {"nick name": "I", "2nd": "x", "status": "gone"}
    assert api.get("/api/people/ida", "public").data["data"] == data  # keys that can't be names of attributes
    api.accounts.close()
    assert "3 keys that are not attributes: nick name, 2nd, status" in init_output(tmp_path)


def init_output(root: Path) -> str:
    """Run init in a folder, and return its output."""
    for path in [root / "site.yaml", *(root / "content-types").iterdir()]:
        path.unlink()
    shutil.rmtree(root / ".bifolio")
    return init(root).stdout


def test_an_astro_tree(tmp_path: Path) -> None:
    site = made(tmp_path, ASTRO)
    assert site.state.settings.locales.available == ("fr", "en")
    assert ids(site, "doc", "fr") == {"guides--start", "index"}
    assert ids(site, "doc", "en") == {"guides--start"}
    assert patterns(tmp_path, "post") == ["src/content/blog/{name}.md", "src/content/blog/{name}.mdx"]
    post = attributes(tmp_path, "post")
    assert post["author"]["target"] == "api::author.author"
    assert post["slug"] == {"type": "uid", "required": True}
    assert post["pubDate"]["type"] == "string"
    assert {name: a["type"] for name, a in attributes(tmp_path, "author").items()} == {
        "name": "string", "rank": "integer", "score": "float", "active": "boolean",
    }  # fmt: skip
    api = Api.of(site)
    assert api.get("/api/docs/guides--start?locale=en", "public").data["title"] == "Start"
    assert api.put("/api/docs/guides--start?locale=fr", {"title": "Partir"}).status == 200
    assert "title: Partir" in (tmp_path / "src/content/docs/guides/start.mdx").read_text()
    api.accounts.close()


def test_parts_of_pages_are_no_documents(tmp_path: Path) -> None:
    """In Astro, Docusaurus and other generators, names that begin with _ are parts of pages. But _index.md is
    a Hugo page.
    """
    tree = {
        "src/content/blog/a.mdx": page("title: A"),
        "src/content/blog/b/c.mdx": page("title: C"),
        "src/content/blog/b/_index.mdx": page("title: B"),
        "src/content/blog/_partial.mdx": "<Note />\n",
        "src/content/blog/b/_template.mdx": page("title: T\nother: x"),
    }
    site = made(tmp_path, tree)
    assert ids(site, "post", "en") == {"a", "b--c", "b--_index"}
    assert attributes(tmp_path, "post").keys() == {"title", "body"}
    assert "Left out: src/content/blog/_partial.mdx  its name starts with _" in init_output(tmp_path)
    assert CliRunner().invoke(main, ["check", "--strict", "--site", str(tmp_path)]).exit_code == 0


def test_a_document_is_never_made_as_a_part_of_pages(tmp_path: Path) -> None:
    attributes = {"title": {"type": "string"}, "slug": {"type": "uid"}}
    types = collection("post", attributes, files="blog/{name}.md")
    api = Api.of(load(tmp_path, types))
    document_id = api.post("/api/posts", {"title": "D", "slug": "_d"}).data["documentId"]
    assert (tmp_path / f"blog/{document_id}.md").is_file()
    api.accounts.close()


def test_paths_of_pictures_are_texts(tmp_path: Path) -> None:
    """Even if only a few paths are used many times, a new document may have another picture."""
    tree = {
        f"content/posts/{i}/index.md": page(f"title: P{i}\nhero: ./p{i % 2}.png", "![](beside.jpg)")
        for i in range(8)
    }
    made(tmp_path, tree)
    assert attributes(tmp_path, "post")["hero"]["type"] == "string"
    assert "all 8  required; paths of images, not media" in init_output(tmp_path)


@pytest.mark.parametrize("below", ["", "docs/", "src/content/docs/", "content/docs/"])
def test_folders_for_locales(tmp_path: Path, below: str) -> None:
    tree = {
        f"{below}{locale}/{name}.mdx": page(f"title: {name} {locale}")
        for locale in ("en", "fr", "zh-cn")
        for name in ("index", "guides/start")
    }
    site = made(tmp_path / "pages", tree)
    assert site.state.settings.locales.available == ("en", "fr", "zh-cn")
    (type_,) = site.state.schema.content_types
    for locale in ("en", "fr", "zh-cn"):
        assert ids(site, type_.singular, locale) == {"index", "guides--start"}


def test_posts_and_pages_below_locales_at_the_top(tmp_path: Path) -> None:
    tree = ruby_site()
    site = made(tmp_path, tree)
    kinds = {t.singular: t.files for t in site.state.schema.content_types}
    assert kinds == {"post": ("{locale}/news/_posts/{name}.md",), "page": ("{locale}/{name}.md",)}
    assert site.state.settings.locales.available == ("en", "ja", "zh_cn")
    assert ids(site, "post", "en") == {f"2013-02-0{day}-release" for day in (1, 2, 3)}
    assert ids(site, "post", "ja") == {"2013-02-01-release", "2013-02-09-rubykaigi"}
    assert ids(site, "page", "zh_cn") == {"about--index", "documentation--index"}
    assert set(served(site)) == {path for path in tree if path[:3] in ("en/", "ja/", "zh_")}
    shown = init_output(tmp_path)
    assert re.search(r" tags +string ", shown)
    api = Api.of(site)
    assert (
        api.get("/api/posts/2013-02-01-release?locale=ja", "public").data["title"] == "ja 2013-02-01-release"
    )
    api.accounts.close()


@pytest.mark.parametrize(
    ("parent", "inner", "more", "expected"),
    [
        # Files next to subfolders, deep in a folder tree.
        ("content/help/faq", "", {"content/help/a.md": page("title: A")}, {"faq": "{locale}/{name}.md"}),
        # Jekyll's collections.
        ("_i18n", "_posts/", {"_config.yml": ""}, {"post": "{locale}/_posts/{name}.md"}),
        # An MkDocs project in each folder.
        (
            "docs",
            "docs/",
            {"docs/en/mkdocs.yml": "", "docs/fr/mkdocs.yml": ""},
            {"doc": "{locale}/docs/{name}.md"},
        ),
        # Next to folders that are not projects.
        ("web", "guides/", {"web/drafts/x.md": page("title: X")}, {"page": "{locale}/{name}.md"}),
        # Sections of an Eleventy project.
        (
            "src",
            "blog/",
            {".eleventy.js": "", "src/en/me.md": page("title: Me")},
            {"post": "{locale}/blog/{name}.md"},
        ),
    ],
)
def test_folders_for_locales_at_any_level(
    tmp_path: Path, parent: str, inner: str, more: Files, expected: dict[str, str]
) -> None:
    tree = {
        f"{parent}/{code}/{inner}{name}.md": page(f"title: {code}") for code in ("en", "fr") for name in "abc"
    }
    site = made(tmp_path, {**tree, **more})
    found = {singular: patterns(tmp_path, singular) for singular in expected}
    assert found == {singular: f"{parent}/{pattern}" for singular, pattern in expected.items()}
    assert site.state.settings.locales.available == ("en", "fr")
    assert tree.keys() <= set(served(site))


def test_folders_that_the_user_names_are_locales(tmp_path: Path) -> None:
    tree = {
        "notes/cy/a.md": page("title: A"),
        "notes/gd/b.md": page("title: B"),
        "notes/work/c.md": page("title: C"),
    }
    assert "notes/{locale}" not in init_dry(tmp_path / "one", tree)
    assert "notes/{locale}/{name}.md" in init_dry(tmp_path / "two", tree, "--locale", "cy", "--locale", "gd")


def test_departments_are_no_locales(tmp_path: Path) -> None:
    tree = {f"teams/{name}/index.md": page(f"title: {name}") for name in ("hr", "it", "sales")}
    assert "{locale}" not in init_dry(tmp_path, tree)


def init_dry(root: Path, files: Files, *options: str) -> str:
    """Return what init prints for some files, without writing anything."""
    write(root, files)
    return init(root, "--dry-run", *options).stdout


def test_sections_below_folders_for_locales(tmp_path: Path) -> None:
    tree = {
        f"content/{locale}/{name}.md": page(f"title: {name} {locale}")
        for locale in ("de", "fr")
        for name in ("_index", "posts/_index", "posts/a", "posts/b/index", "events/c", "about")
    }
    site = made(tmp_path, {**tree, "hugo.yaml": "defaultContentLanguage: fr\n"})
    assert site.state.settings.locales.available == ("fr", "de")
    assert served(site) == tree.keys()
    assert ids(site, "post", "de") == ids(site, "post", "fr") == {"a", "b"}
    assert ids(site, "event", "de") == {"c"}


@pytest.mark.parametrize(
    ("settings", "folder", "kinds"),
    [
        ("website/hugo.yaml", "website/content/posts", {"post": "website/content/posts/{name}.md"}),
        ("docs/_config.yml", "docs/_posts", {"post": "docs/_posts/{name}.md"}),
        ("README.md", "docs/_posts", {"post": "docs/_posts/{name}.md"}),
        ("README.md", "apps/web/src/content/posts", {"post": "apps/web/src/content/posts/{name}.md"}),
        ("README.md", "docs/content/posts", {"doc": "docs/{name}.md"}),
    ],
)
def test_a_project_below_the_top(tmp_path: Path, settings: str, folder: str, kinds: dict[str, str]) -> None:
    made(tmp_path, {settings: "", f"{folder}/a.md": page("title: A"), f"{folder}/b/c.md": page("title: B")})
    assert {singular: patterns(tmp_path, singular) for singular in kinds} == kinds


def test_whatever_a_pattern_claims_is_looked_at(tmp_path: Path) -> None:
    """A pattern may also match files for which it was not proposed."""
    tree = {
        **{f"page-{i}.md": page("date: 2024-01-01\nweight: 1") for i in range(8)},
        "README.md": page("weight: {a: 1}\nstatus: x"),
        "NOTES.md": "no front matter\n",
        "_drafts/a.md": page("date: soon"),
    }
    site = made(tmp_path, tree)
    assert served(site) == tree.keys()
    assert {name: a["type"] for name, a in attributes(tmp_path, "page").items()} == {
        "date": "string",
        "weight": "json",
        "body": "richtext",
        "data": "json",  # for `status`, which can't be an attribute
    }
    api = Api.of(site)
    assert api.get("/api/pages", "public").status == 403  # one of the pages is a draft
    api.accounts.close()


def test_folders_that_only_look_like_locales(tmp_path: Path) -> None:
    tree = {"notes/it/a.md": page("title: A"), "notes/work/b.md": page("title: B")}
    site = made(tmp_path, tree)
    assert site.state.settings.locales.available == ("en",)
    assert ids(site, "note", "en") == {"it--a", "work--b"}


def test_files_at_the_top_of_a_folder_of_pages(tmp_path: Path) -> None:
    site = made(tmp_path / "recipes", {"bread.md": page("title: Bread"), "soup.md": page("title: Soup")})
    (type_,) = site.state.schema.content_types
    assert ids(site, type_.singular, "en") == {"bread", "soup"}
    assert survey(tmp_path / "recipes", lambda: opened(tmp_path / "recipes")).problems == ()


def test_types_that_are_there_stay_and_others_come(tmp_path: Path) -> None:
    person = collection("person", {"name": STRING}, files="people/{name}.md")
    write(tmp_path, {**PLAIN, **person, "site.yaml": "name: Mine\n"})
    done = init(tmp_path)
    assert "kept site.yaml: it already exists; you may need to add\n" in done.stdout
    assert "        note: [find, findOne]\n" in done.stdout
    assert "wrote content-types/note.json" in done.stdout
    assert (tmp_path / "content-types/person.json").read_text() == person["content-types/person.json"]
    assert (tmp_path / "content-types/note.json").exists()
    assert "nothing new to add" in init(tmp_path).stdout


def test_files_that_can_not_be_read_are_named(tmp_path: Path) -> None:
    tree = {
        "notes/a.md": page("title: A"),
        "notes/b.md": "+++\ntitle = B\n+++\n",
        "notes/c.md": page("title: a: b"),
        "notes/d.md": b"\0",
    }
    write(tmp_path, tree)
    done = init(tmp_path)
    assert done.exit_code == 0
    assert "notes/b.md  line 2: invalid TOML: Invalid value" in done.stdout
    assert "notes/c.md  line 2: invalid YAML" in done.stdout
    assert "notes/d.md  line 1: is a binary file" in done.stdout
    assert "3 errors" in done.stdout


def test_a_tree_is_read_from_inside_of_it_and_through_a_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "tree", {"notes/a.md": page("title: A")})
    (tmp_path / "link").symlink_to("tree")
    assert "note  /api/notes  1 document" in init(tmp_path / "link", "--dry-run").stdout
    monkeypatch.chdir(tmp_path / "tree")
    assert "note  /api/notes  1 document" in init(Path("."), "--dry-run").stdout


def test_nothing_but_files_that_can_not_be_read(tmp_path: Path) -> None:
    write(tmp_path, {"notes/b.md": "+++\ntitle = B\n+++\n"})
    done = init(tmp_path)
    assert done.exit_code == 1
    assert list(tmp_path.iterdir()) == [tmp_path / "notes"]


def test_names_that_are_taken_or_odd(tmp_path: Path) -> None:
    folders = (
        "users",
        "uploads",
        "Ünsere Häfen",
        "2024",
        "people",
        "series",
        "boxes",
        "stories",
        "glass",
        "auth",
    )
    site = made(tmp_path, {f"{folder}/a.md": page("title: A") for folder in folders})
    assert {(t.singular, t.plural) for t in site.state.schema.content_types} == {
        ("user-page", "user-pages"),
        ("upload-page", "upload-pages"),
        ("unsere-hafen-page", "unsere-hafen-pages"),
        ("page-2024", "pages-2024"),
        ("person", "people"),
        ("series-item", "series"),
        ("box", "boxes"),
        ("story", "stories"),
        ("glass-page", "glass-pages"),
        ("auth-page", "auth-pages"),
    }


# --- attributes ----------------------------------------------------------------------------------


def told(*values: Any, name: str = "mood", **names: frozenset[str]) -> dict[str, Any]:
    """Return the schema that is proposed for an attribute with these values, each in a separate file."""
    members = tuple(
        PageMember(MarkdownPage(f"n/{i}.md", {name: value}, False), str(i)) for i, value in enumerate(values)
    )
    known = {f"api::{key}.{key}": known for key, known in names.items()}
    (found,), rest = propose_attributes(PageGroup("n", ("n/{name}.md",), members), known, "api::n.n")
    assert rest is None
    return {key: value for key, value in found.schema.items() if key != "required"}


def plain(*texts: str) -> list[Plain]:
    return [Plain(text) for text in texts]


TYPED: dict[str, tuple[list[Any], str]] = {
    "whole numbers": (plain("1", "0", "-7"), "integer"),
    "numbers that begin with a nought": (plain("01234", "1"), "string"),
    "whole numbers in quotes": (["1", "2"], "string"),
    "versions": (plain("1.9", "1.10"), "string"),
    "numbers with a fraction": (plain("1.5", "2"), "float"),
    "numbers with an exponent": (plain("1e3", "2"), "string"),
    "a plus": (plain("+1", "2"), "string"),
    "very large numbers": (plain("123456789012345678901", "1"), "string"),
    "countries": (plain("NO", "SE"), "string"),
    "yes and no": (plain("yes", "no", "yes"), "string"),
    "true and false": (plain("true", "False", "TRUE"), "boolean"),
    "true and text": (plain("true", "maybe"), "string"),
    "true in quotes": (["true", "false"], "string"),
    "JSON's own": ([True, False], "boolean"),
    "JSON's numbers": ([1, 2], "integer"),
    "JSON's numbers with a fraction": ([1, Plain("2.5")], "float"),
    "numbers and truth": ([1, True], "json"),
    "days": (plain("2024-02-29", "2024-03-01"), "date"),
    "days in quotes": (["2024-02-29", "2024-03-01"], "date"),
    "days that there are not": (plain("2024-02-30", "2024-03-01"), "string"),
    "timestamps": (plain("2024-02-29T10:00:00Z", "2024-03-01 10:00", "2024-03-01"), "datetime"),
    "times of day": (plain("12:30", "13:30"), "string"),
    "years": (plain("2024", "2025"), "integer"),
    "e-mail addresses": (plain("a@example.org", "b@example.org"), "email"),
    "lists": ([plain("a", "b"), []], "array"),
    "lists and text": ([plain("a"), Plain("b")], "json"),
    "lists of mappings": ([[{"a": Plain("1")}]], "json"),
    "mappings": ([{"a": Plain("1")}, {}], "json"),
    "mappings and false": ([{"a": Plain("1")}, Plain("false")], "json"),
    "nothing": ([None, Plain("~"), Plain("")], "string"),
    "several lines": (["a\nb", "c"], "text"),
    "long text": (["a" * 300], "text"),
    "few values, often": (plain(*"aabbb"), "enumeration"),
    "few values, one of them once": (plain(*"aaaab"), "string"),
    "one value": (plain(*"aaaaa"), "string"),
    "many values": (plain(*"abcdefghijkl"), "string"),
}


@pytest.mark.parametrize("name", TYPED)
def test_the_type_of_values(name: str) -> None:
    values, expected = TYPED[name]
    assert told(*values)["type"] == expected


def test_names_tell_what_only_looks_like_a_number() -> None:
    assert told(*plain("1.5", "1.6"), name="version")["type"] == "string"
    assert told(*plain("7", "7"), name="version")["type"] == "integer"
    assert told(*plain("12345", "54321"), name="zip")["type"] == "string"


def test_relations_are_told_by_names() -> None:
    names = frozenset({"nell", "team--ida", "1", "2"})
    found = told(*plain("nell", "team/ida", "nell"), author=names)
    assert found == {"type": "relation", "relation": "manyToOne", "target": "api::author.author"}
    assert told(plain("nell", "team/ida"), Plain("nell"), author=names)["relation"] == "manyToMany"
    assert told(*plain("nell", "mike"), author=names)["type"] == "string"
    assert told(*plain("nell"), author=names)["type"] == "string"
    assert told(*plain("nell"), name="authors", author=names)["type"] == "relation"
    assert told(*plain("1", "2"), author=names)["type"] == "integer"
    assert told(*plain("nell", "team/ida"), name="slug", author=names)["type"] != "relation"
    assert told(*plain("0", "1"), n=frozenset({"0", "1"}))["type"] == "integer"


SCALARS = st.one_of(
    st.from_regex(r"[-+]?[0-9.]{1,6}(e[0-9])?", fullmatch=True),
    st.sampled_from(
        ["true", "no", "NO", "~", "2024-01-02", "2024-01-02 10:00", "a@b.org", "x", "0x1f", ".inf"]
    ),
    st.text(max_size=8),
)


@given(
    st.lists(
        st.one_of(SCALARS.map(Plain), SCALARS, st.lists(SCALARS.map(Plain), max_size=3)),
        min_size=1,
        max_size=6,
    )
)
def test_what_is_proposed_reads_every_value_and_keeps_its_text(values: list[Any]) -> None:
    schema = told(*values)
    attribute = Attribute("mood", schema["type"], enum=tuple(schema.get("enum", ())))
    reading = Reading({}, "")
    read = [read_value(attribute, value, (), reading) for value in values]
    if schema["type"] != "json":
        assert reading.mismatches == []
    if schema["type"] in ("string", "text", "integer", "float", "enumeration"):
        assert [str(r) for r in read if r is not None] == [
            str(v) for v, r in zip(values, read, strict=True) if r is not None
        ]


def test_one_folder_for_english(tmp_path: Path) -> None:
    site = made(tmp_path, {"docs/en/a.md": page("title: A"), "docs/en/b/c.md": page("title: C")})
    assert ids(site, "doc", "en") == {"a", "b--c"}
    assert patterns(tmp_path, "doc") == "docs/{locale}/{name}.md"


def test_the_table_says_what_was_found(tmp_path: Path) -> None:
    write(tmp_path, HUGO)
    shown = init(tmp_path, "--dry-run").stdout
    assert "post  /api/posts  9 documents in 11 files, en, fr\n" in shown
    assert "  content/posts/{name}.md\n" in shown
    assert re.search(r"  kind +enumeration +all 11  required; essay, note\n", shown)
    assert re.search(r"  author +manyToOne +all 11  required; → author\n", shown)


FOLDERS = [
    "",
    "posts",
    "en",
    "fr",
    "docs",
    "docs/en",
    "content",
    "content/fr",
    "src/content/a b",
    "_posts",
    "Häfen",
    "x/y",
    "en/news/_posts",
    "fr/news/_posts",
    "docs/v1/en",
    "docs/v1/fr",
    "content/authors/ida",
    "content/authors/nell",
    "content/authors/tom",
    "data/sea",
    "data/en/sea",
]
NAMES = [
    "a.md",
    "b.mdx",
    "index.md",
    "_index.md",
    "a.fr.md",
    "a.draft.md",
    "README.md",
    "c d.markdown",
    "e.json",
]
VALUES = ["1", "1.10", "NO", "true", "2024-01-02", "a", "[a, 1.5]", "{x: 1}", "~", "'x: y'", "12:30"]
KEYS = ["title", "date", "draft", "tags", "slug", "og:x", "status", "locale", "body", "name"]
ANY_TREE = st.dictionaries(
    st.tuples(st.sampled_from(FOLDERS), st.sampled_from(NAMES)).map(lambda path: "/".join(path).lstrip("/")),
    st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES), max_size=4),
    min_size=1,
    max_size=8,
)


@settings(max_examples=examples(40))
@given(ANY_TREE)
def test_whatever_tree_there_is_the_site_has_no_errors_and_all_that_was_taken(
    tree: dict[str, dict[str, str]],
) -> None:
    files = {
        path: '{"title": 1}'
        if path.endswith(".json")
        else page("\n".join(f"{key}: {value}" for key, value in matter.items()))
        for path, matter in tree.items()
    }
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), files)
        done = init(Path(folder))
        if "none of the files can be used as a document" in done.stderr:
            assert done.exit_code == 1
            assert not Path(folder, "content-types").exists()
            return
        assert done.exit_code == 0, done.stderr
        found = survey(Path(folder), lambda: opened(Path(folder)))
        wrong = [str(p) for p in found.problems if p.severity == "error" and p.rule != "duplicate-id"]
        assert wrong == []
        assert found.site
        claimed = {d.path for claim in found.site.state.snapshot.claims.values() for d in claim}
        missing = {path for path in files if path.endswith(MARKDOWN) and path not in claimed}
        assert all(f"Left out: {path} " in done.stdout or path == "README.md" for path in missing)


BIFOLIO = "https://git.example.org/bifolio.git"


def test_a_new_site_is_served_by_docker_and_checked_by_ci(tmp_path: Path) -> None:
    done = init(tmp_path / "site", "--docker", "--ci", "--from", BIFOLIO)
    assert done.exit_code == 0, done.output
    (service,) = yaml.safe_load((tmp_path / "site/compose.yaml").read_text())["services"].values()
    assert service["build"] == BIFOLIO
    assert service["volumes"] == [".:/site"]
    assert service["user"] == f"{os.getuid()}:{os.getgid()}"
    workflow = yaml.safe_load((tmp_path / "site/.github/workflows/content.yaml").read_text())
    runs = [step["run"] for step in workflow["jobs"]["check"]["steps"] if "run" in step]
    assert runs == [f'pip install "bifolio @ git+{BIFOLIO}"', "bifolio check --format github"]
    checked = CliRunner().invoke(main, [*runs[1].split()[1:], "--site", str(tmp_path / "site")])
    assert (checked.exit_code, checked.output) == (0, "")


def test_a_site_that_is_there_gets_these_files_alone(tmp_path: Path) -> None:
    write(tmp_path, {**collection("note", {"title": STRING}), "content/notes/a.md": "---\ntitle: A\n---\n"})
    before = {path for path in tmp_path.rglob("*") if path.is_file()}
    done = init(tmp_path, "--docker", "--from", BIFOLIO)
    assert done.output.splitlines() == ["  wrote compose.yaml"]
    assert {path for path in tmp_path.rglob("*") if path.is_file()} - before == {tmp_path / "compose.yaml"}


def test_a_compose_file_that_is_there_is_kept(tmp_path: Path) -> None:
    write(tmp_path, {"compose.yaml": "services: {}\n"})
    done = init(tmp_path, "--docker", "--from", BIFOLIO)
    assert "kept compose.yaml: it already exists" in done.output
    assert (tmp_path / "compose.yaml").read_text() == "services: {}\n"


def test_a_workflow_is_at_the_top_of_the_repository(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    init(tmp_path / "docs site", "--ci", "--from", "git@git.example.org:us/bifolio.git")
    text = (tmp_path / ".github/workflows/content.yaml").read_text()
    assert "bifolio check --site 'docs site' --format github" in text
    assert "git+ssh://git@git.example.org/us/bifolio.git" in text


@pytest.mark.parametrize("told", ["bifolio", "/srv/bifolio", "https://x\nrun: rm"])
def test_what_is_no_address_of_bifolio_is_refused(tmp_path: Path, told: str) -> None:
    done = init(tmp_path, "--docker", "--from", told)
    assert done.exit_code == 1
    assert "is not the URL of a git repository. Use a URL such as https://…" in done.output
    assert list(tmp_path.iterdir()) == []


def test_data_whose_keys_all_differ_is_one_json_attribute(tmp_path: Path) -> None:
    """A folder of mappings whose keys are words or places, not attributes of a document."""
    tree = {
        "astro.config.mjs": "export default {}\n",
        "src/content/words/sea.yaml": "".join(f"sea word {i}: {i}\n" for i in range(200)),
        "src/content/words/sky.json": json.dumps({f"sky_{i}": {"n": i} for i in range(200)}),
        "src/content/words/titled.yaml": "title: Shore\nsand: true\n",
        "src/content/prices/all.json": json.dumps({f"article_{i}": i for i in range(101)}),
        "src/content/pages/a.md": page("title: A\n'og:image': a.png"),
    }
    site = made(tmp_path, tree)
    assert survey(tmp_path, lambda: opened(tmp_path)).problems == ()
    assert attributes(tmp_path, "word") == {"data": {"type": "json"}}
    assert attributes(tmp_path, "price") == {"data": {"type": "json"}}
    assert attributes(tmp_path, "page").keys() == {"title", "body", "data"}
    api = Api.of(site)
    assert api.get("/api/words/sky", "public").data["data"]["sky_7"] == {"n": 7}
    assert api.get("/api/pages/a", "public").data["data"] == {"og:image": "a.png"}
    changed = {**api.get("/api/words/sea").data["data"], "sea word 7": 70}
    assert api.put("/api/words/sea", {"data": changed}).status == 200
    lines = tree["src/content/words/sea.yaml"].splitlines()
    gone = set(lines) - set(api.read("src/content/words/sea.yaml").splitlines())
    assert gone == {"sea word 7: 7"}
    api.accounts.close()


FOLDER_NAMES = {
    "communities": ("community", "communities", "Community"),
    "src/apis": ("api", "apis", "API"),
    "news": ("news-item", "news", "News Item"),
    "media": ("media-item", "media", "Media Item"),
    "analyses": ("analysis", "analyses", "Analysis"),
    "case-studies": ("case-study", "case-studies", "Case Study"),
    "cookies": ("cookie", "cookies", "Cookie"),
    "archives": ("archive", "archives", "Archive"),
    "menus": ("menu", "menus", "Menu"),
    "status": ("status-page", "status-pages", "Status Page"),
    "security": ("security-page", "security-pages", "Security Page"),
    "_archived": ("archived-page", "archived-pages", "Archived Page"),
    "recipe": ("recipe", "recipes", "Recipe"),
    "src": ("page", "pages", "Page"),
    "_posts": ("post", "posts", "Post"),
}


@pytest.mark.parametrize("folder", FOLDER_NAMES)
def test_types_have_english_names(folder: str) -> None:
    singular, plural = choose_api_ids(folder, ())
    assert (singular, plural, display_name(singular)) == FOLDER_NAMES[folder]


def test_pages_of_an_author_or_a_day_are_posts(tmp_path: Path) -> None:
    files = {f"content/inside/{i}.md": page(f"title: {i}\nauthors: [Ida, Nell]") for i in range(3)}
    days = {f"content/2024-01-0{i + 1}-a{i}.md": page(f"title: {i}") for i in range(6)}
    site = made(tmp_path, {**files, **days, "hugo.toml": ""})
    assert {t.plural for t in site.state.schema.content_types} == {"inside-posts", "posts"}


def test_two_folders_of_one_name_have_the_name_of_the_folder_above(tmp_path: Path) -> None:
    assert choose_api_ids("news/_posts", {"post", "posts"}) == ("news-post", "news-posts")
    assert choose_api_ids("_posts", {"post", "posts"}) == ("post-page", "post-pages")
    assert choose_api_ids("sources", ()) == ("source-page", "source-pages")  # source.read is a permission


NAMED = {
    "hugo.toml": ('baseURL = "x"\ntitle = "Tide Tables"\n[params]\ntitle = "no"\n', "Tide Tables"),
    "config.toml": ("title = 'Tide Tables' # ours\n", "Tide Tables"),
    "hugo.yaml": ("baseURL: x\ntitle: Tide Tables\n", "Tide Tables"),
    "_config.yml": ('title: "Tides: a blog"\nemail: x\n', "Tides: a blog"),
    "mkdocs.yml": ("site_name: Tides\nemoji: !!python/name:material.x ''\nx: !ENV y\n", "Tides"),
    "docusaurus.config.js": (
        "module.exports = {\n  title: \"Ida's Tides\",\n  tagline: 'x',\n};",
        "Ida's Tides",
    ),
    ".vitepress/config.mts": ("export default defineConfig({ title: 'Tides' })", "Tides"),
    "src/consts.ts": ("export const SITE_TITLE = 'Tide Tables';\n", "Tide Tables"),
    "astro.config.mjs": ("export default defineConfig({integrations: [starlight({title: 'T'})]})", "T"),
    "book.toml": ('[book]\nauthors = ["Ida"]\ntitle = "Tides"\n', "Tides"),
    "config/_default/hugo.toml": ('[languages.en]\ntitle = "Tide Tables"\n', "Tide Tables"),
    "src/_data/metadata.js": ('export default {\n\ttitle: "Tides by 11ty",\n}', "Tides by 11ty"),
    "src/_data/site.yaml": ("name: 11ty\n", "11ty"),
    "src/config.ts": ('export const SITE = {\n  website: "x",\n  title: "AstroTides",\n};', "AstroTides"),
    "website/docusaurus.config.js": ("module.exports = {\n  title: 'Tides',\n};", "Tides"),
    "README.md": (
        "# OSS Directory [![License: Apache 2.0][badge]][license]\n\n[license]: x\n",
        "OSS Directory",
    ),
    "_data/metadata.json": ('{"title": "Tides", "url": "x"}', "Tides"),
}


@pytest.mark.parametrize("file", NAMED)
def test_the_settings_of_a_generator_name_the_site(tmp_path: Path, file: str) -> None:
    text, name = NAMED[file]
    below = "website/docs/a.md" if file.startswith("website/") else "content/posts/a.md"
    made(tmp_path / "folder", {file: text, below: page("title: A")})
    assert read_settings(tmp_path / "folder").name == name


def test_settings_that_say_no_name(tmp_path: Path) -> None:
    made(tmp_path / "my-tides", {"hugo.yml": "title: [\n", "content/posts/a.md": page("title: A")})
    assert read_settings(tmp_path / "my-tides").name == "My Tides"


@pytest.mark.parametrize(
    ("folder", "readme", "name"),
    [
        ("11ty-website", "Run `npm start`.\n", "11ty Website"),
        (
            "blog.rust-lang.org",
            "# Read this before you open an issue with us, please\n",
            "blog.rust-lang.org",
        ),
        ("x", "www.ruby-lang.org\n=================\n", "www.ruby-lang.org"),
        ("x", "# <img src='x'> [**Tides**](https://tides.example.org) :ocean:\n", "Tides"),
        ("AstroTides", "# README\n", "AstroTides"),
    ],
)
def test_a_site_without_settings_has_the_name_of_its_readme_or_folder(
    tmp_path: Path, folder: str, readme: str, name: str
) -> None:
    made(tmp_path / folder, {"README.md": readme, "content/posts/a.md": page("title: A")})
    assert read_settings(tmp_path / folder).name == name


def test_times_of_a_tree_with_history_stay_in_git(tmp_path: Path) -> None:
    for name in ("new", "old"):
        write(tmp_path / name, {f"content/posts/{i}.md": page(f"title: Post {i}") for i in range(3)})
        git(tmp_path / name, "init", "-q")
    git(tmp_path / "old", "add", "-A")
    git(tmp_path / "old", "commit", "-qm", "posts")
    assert init(tmp_path / "new").exit_code == init(tmp_path / "old").exit_code == 0
    assert read_settings(tmp_path / "new").timestamps == "file"
    assert read_settings(tmp_path / "old").timestamps == "git"
    api = Api.of(opened(tmp_path / "old"))
    assert api.put("/api/posts/1", {"title": "B"}).data["createdAt"] == "2024-01-01T00:00:00.000Z"
    assert (tmp_path / "old/content/posts/1.md").read_text() == page("title: B")
