"""`bifolio export`: the contents of the files, which must be the same as a running server's responses."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from server.commands.cli import main
from server.query import qs
from server.query.serialize import query_string
from tests.api.test_upload import picture
from tests.git import commit_all, git
from tests.service.public_site.sites import FILES as PUBLISHING_FILES
from tests.service.public_site.sites import SETTINGS as PUBLISHING_SETTINGS
from tests.sites import STRING, Api, collection, documents, load, opened, relation, schema, translated, write

ROOT = Path(__file__).parents[2]
SITE = """\
name: Test
locales: {default: en, available: [en, fr]}
api:
  page_size: {default: 3, max: 10}
  populate_with_pagination: allow
roles:
  public:
    article: [find, findOne]
    tag: [find, findOne]
    author: [find]
    diary: [findOne]
    home: [find]
  editor:
    article: [find, findOne, readDraft]
    secret: [find, findOne]
    home: [find]
    upload: [find, findOne]
export:
  types:
    article:
      populate:
        author: {fields: [name]}
        tags: {sort: "name:desc", filters: {name: {$ne: "B & C"}}}
        cover:
      sort: "title:desc"
      page_size: 4
    tag: {fields: [name], filters: {hidden: {$null: true}}}
  queries:
    first: /api/articles?sort=title&pagination[pageSize]=1&fields=title
    french: /api/articles/a1?locale=fr&populate=*
    front: /api/home?fields=title
"""
FILES: Mapping[str, str | bytes] = {
    "site.yaml": SITE,
    **collection(
        "article",
        {
            "title": translated(STRING),
            "body": translated({"type": "richtext"}),
            "note": {"type": "string", "private": True},
            "author": relation("manyToOne", "author"),
            "tags": relation("manyToMany", "tag"),
            "source": relation("manyToOne", "secret"),
            "cover": {"type": "media"},
        },
        drafts=True,
        localized=True,
    ),
    **collection("author", {"name": STRING}),
    **collection("tag", {"name": STRING, "hidden": {"type": "boolean"}}),
    **collection("secret", {"name": STRING}),
    **collection("diary", {"name": STRING}),
    **collection("home", {"title": STRING}, single=True, localized=True),
    **documents(
        "articles",
        **{
            f"a{i}": {
                "title": f"Title {i}",
                "body": f"Text {i}" + (" ![bay](/uploads/in%20text.png)" if i == 2 else ""),
                "note": "private words",
                "author": "ann",
                "tags": ["red", "b & c", "böse"],
                "source": "hush",
                "cover": "cover.png",
            }
            for i in range(1, 11)
        },
    ),
    "content/articles/a1.fr.json": '{"title": "Un"}',
    "content/articles/a3.draft.json": '{"title": "Draft words", "cover": "draft.png"}',
    "content/articles/new.draft.json": '{"title": "New draft words", "cover": "draft.png"}',
    **documents("authors", ann={"name": "Ann"}),
    **documents("tags", **{"red": {"name": "Red"}, "b & c": {"name": "B & C"}, "böse": {"name": "Böse"}}),
    "content/tags/hid.json": '{"name": "Hidden", "hidden": true}',
    **documents("secrets", hush={"name": "secret words"}),
    **documents("diarys", day={"name": "diary words"}),
    "content/home.yaml": "title: Home\n",
    "content/home.fr.yaml": "title: Accueil\n",
    "content/uploads/cover.png": picture(),
    "content/uploads/in text.png": picture(20, 20),
    "content/uploads/draft.png": picture(30, 30),
    "content/uploads/unused.pdf": b"%PDF-",
}


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site that no test changes."""
    root = tmp_path_factory.mktemp("site")
    write(root, FILES)
    return root


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(tmp_path / "site", FILES)
    return tmp_path / "site"


def run(root: Path, target: Path, *options: str) -> Result:
    arguments = ["export", str(target), "--site", str(root), *options]
    return CliRunner().invoke(main, arguments, catch_exceptions=False)


def exported(root: Path, target: Path, *options: str) -> dict[str, bytes]:
    """Run an export, which must succeed. Return its files by path."""
    done = run(root, target, *options)
    assert done.exit_code == 0, done.output
    return files_of(target)


def files_of(folder: Path) -> dict[str, bytes]:
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


def manifest(files: Mapping[str, bytes]) -> Any:
    return json.loads(files["bifolio-export.json"])


def refused(root: Path, target: Path, *options: str) -> str:
    done = run(root, target, *options)
    assert (done.exit_code, done.stdout) == (1, "")
    return done.stderr.splitlines()[-1]


def change(root: Path, old: str, new: str) -> None:
    assert old in SITE
    (root / "site.yaml").write_text(SITE.replace(old, new))


# --- files identical to responses ---------------------------------------------------------------


def assert_live(root: Path, files: Mapping[str, bytes], who: str = "public") -> int:
    """Assert that every file in the manifest is the same as a running server's response to its request.

    Return the number of files.
    """
    (root / ".bifolio" / "accounts.db").unlink(missing_ok=True)
    api = Api.of(load(root, {}))
    headers = {"Authorization": f"Bearer {api.token(who, who)}"} if who != "public" else {}
    try:
        for path, entry in manifest(files)["files"].items():
            answer = api.client.get(entry["request"], headers=headers)
            assert (answer.status_code, answer.get_data()) == (200, files[path]), entry["request"]
            answer.close()
        return len(files) - 1
    finally:
        api.accounts.close()


def test_the_files_are_the_answers_of_a_running_server(kept: Path, tmp_path: Path) -> None:
    files = exported(kept, tmp_path / "out")
    assert assert_live(kept, files) == len(manifest(files)["files"]) > 30


def test_every_list_page_document_single_type_and_locale_is_there(kept: Path, tmp_path: Path) -> None:
    files = exported(kept, tmp_path / "out")
    ids = [f"a{i}" for i in range(1, 11)]
    assert sorted(path for path in files if not path.startswith("uploads/")) == sorted(
        [
            "bifolio-export.json",
            "api/articles.json",
            *(f"api/articles/page/{n}.json" for n in (1, 2, 3)),
            *(f"api/articles/{i}.json" for i in ids),
            "locale/fr/api/articles.json",
            "locale/fr/api/articles/page/1.json",
            "locale/fr/api/articles/a1.json",
            "api/authors.json",  # lists of authors may be read, but not single authors
            "api/authors/page/1.json",
            "api/tags.json",
            "api/tags/page/1.json",
            "api/tags/red.json",
            "api/tags/b & c.json",
            "api/tags/böse.json",
            "api/home.json",
            "locale/fr/api/home.json",
            "queries/first.json",
            "queries/french.json",
            "queries/front.json",
        ]
    )
    second = json.loads(files["api/articles/page/2.json"])
    assert second["meta"]["pagination"] == {"page": 2, "pageSize": 4, "pageCount": 3, "total": 10}
    assert [d["title"] for d in second["data"]] == ["Title 5", "Title 4", "Title 3", "Title 2"]
    first = second["data"][0]
    assert first["author"]["name"] == "Ann"
    assert [tag["name"] for tag in first["tags"]] == ["Red", "Böse"]
    assert files["api/articles.json"] == files["api/articles/page/1.json"]
    assert json.loads(files["queries/first.json"])["data"][0]["title"] == "Title 1"


def test_pages_of_populated_lists_are_there_where_requests_may_not_ask_for_both(
    root: Path, tmp_path: Path
) -> None:
    before = exported(root, tmp_path / "a")
    change(root, "populate_with_pagination: allow", "populate_with_pagination: reject")
    assert exported(root, tmp_path / "b") == before


def test_two_exports_have_the_same_bytes_whatever_the_machine(tmp_path: Path) -> None:
    one = tmp_path / "one" / "site"
    write(one, FILES)
    commit_all(one)
    git(tmp_path, "clone", "-q", str(one), str(tmp_path / "two"))
    for path in (tmp_path / "two").rglob("*.png"):
        os.utime(path, (1, 1))
    first, second = exported(one, tmp_path / "a"), exported(tmp_path / "two", tmp_path / "b")
    assert first == second


def test_a_shallow_clone_is_named(root: Path, tmp_path: Path) -> None:
    commit_all(root)
    git(root, "commit", "-q", "--allow-empty", "-m", "two")
    git(tmp_path, "clone", "-q", "--depth", "1", root.as_uri(), str(tmp_path / "clone"))
    assert "git fetch --unshallow" in run(tmp_path / "clone", tmp_path / "out").stdout
    assert "unshallow" not in run(root, tmp_path / "out2").stdout


# --- permissions --------------------------------------------------------------------------------


def test_the_public_export_has_nothing_that_is_private_or_a_draft(kept: Path, tmp_path: Path) -> None:
    files = exported(kept, tmp_path / "out")
    for words in (b"private words", b"secret words", b"diary words", b"raft words", b"hush", b"Hidden"):
        assert [path for path, body in files.items() if words in body] == []
    assert [path for path in files if "secret" in path or "diary" in path or "new" in path] == []


def test_media_that_may_not_be_listed_is_there_only_where_an_answer_names_it(
    kept: Path, tmp_path: Path
) -> None:
    files = exported(kept, tmp_path / "out")
    assert sorted(path for path in files if path.startswith("uploads/")) == [
        "uploads/cover.png",
        "uploads/in text.png",
        "uploads/small_cover.png",
        "uploads/thumbnail_cover.png",
    ]
    assert files["uploads/cover.png"] == FILES["content/uploads/cover.png"]


def test_a_role_is_exported_with_what_it_may_find(kept: Path, tmp_path: Path) -> None:
    files = exported(kept, tmp_path / "out", "--role", "editor")
    assert manifest(files)["role"] == "editor"
    assert b"secret words" in files["api/secrets/hush.json"]
    assert "api/tags.json" not in files
    assert "uploads/unused.pdf" in files
    listed = json.loads(files["api/upload/files.json"])
    assert f"api/upload/files/{listed[0]['id']}.json" in files
    assert not any(b"private words" in body or b"raft words" in body for body in files.values())


def test_drafts_are_exported_where_they_are_asked_for(kept: Path, tmp_path: Path) -> None:
    files = exported(kept, tmp_path / "out", "--role", "editor", "--drafts")
    assert json.loads(files["api/articles/a3.json"])["data"]["title"] == "Draft words"
    assert b"New draft words" in files["api/articles/new.json"]
    assert "status=draft" in manifest(files)["files"]["api/articles/new.json"]["request"]


def test_drafts_need_the_permission(kept: Path, tmp_path: Path) -> None:
    assert "public does not have the permission readDraft" in refused(kept, tmp_path / "out", "--drafts")
    assert not (tmp_path / "out").exists()


def test_everything_is_what_a_read_only_token_sees(kept: Path, tmp_path: Path) -> None:
    files = exported(kept, tmp_path / "out", "--everything", "--drafts")
    assert b"diary words" in files["api/diarys/day.json"]
    assert not any(b"private words" in body for body in files.values())
    assert_live(kept, files, who="read-only")


def test_a_folder_of_one_role_does_not_become_one_of_another(kept: Path, tmp_path: Path) -> None:
    before = exported(kept, tmp_path / "out")
    assert "contains an earlier export for public, which has other permissions" in refused(
        kept, tmp_path / "out", "--everything"
    )
    assert files_of(tmp_path / "out") == before
    assert "api/diarys/day.json" in exported(kept, tmp_path / "out", "--everything", "--force")


def test_what_was_left_out_is_said(kept: Path, tmp_path: Path) -> None:
    done = run(kept, tmp_path / "out")
    assert "left out, because the permission find is missing: diary, secret" in done.stdout
    assert "10 articles, 1 author, 1 home, 3 tags, 4 media files" in done.stdout


# --- options and settings -------------------------------------------------------------------------


def test_a_base_url_is_put_before_the_addresses_of_media(kept: Path, tmp_path: Path) -> None:
    plain = exported(kept, tmp_path / "a")
    files = exported(kept, tmp_path / "b", "--base-url", "https://cdn.example.org/x/")
    cover = json.loads(files["api/articles/a1.json"])["data"]["cover"]
    assert cover["url"] == "https://cdn.example.org/x/uploads/cover.png"
    assert cover["formats"]["small"]["url"] == "https://cdn.example.org/x/uploads/small_cover.png"
    assert files.keys() == plain.keys()
    assert {p for p in files if files[p] == plain[p]} >= {"api/tags.json", "uploads/cover.png"}


@pytest.mark.parametrize("url", ["example.org", "ftp://example.org", "https://", "https://example.org/?x=1"])
def test_a_base_url_that_is_none(kept: Path, tmp_path: Path, url: str) -> None:
    assert "is not the URL of a website" in refused(kept, tmp_path / "out", "--base-url", url)


def test_a_role_that_is_not_there(kept: Path, tmp_path: Path) -> None:
    assert 'Did you mean "editor"' in refused(kept, tmp_path / "out", "--role", "editr")


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("    tag: {fields", "    tga: {fields", 27, 'Did you mean "tag"'),
        ("    tag: {fields", "    tag: {feilds", 27, 'Did you mean "fields"'),
        ("fields: [name], filters", "fields: [nmae], filters", 27, "Invalid key nmae"),
        ("page_size: 4", "page_size: 40", 26, "greater than api.page_size.max, which is 10"),
        ("page_size: 4", "page_size: four", 26, "whole number"),
        ("{hidden: {$null: true}}", "{source: {name: x}}", 27, "Invalid key source"),
        ("first: /api/articles?sort=title", "first: /api/articles?sort=titel", 29, "Invalid key titel"),
        (
            "first: /api/articles",
            "first: /api/secrets",
            29,
            "requires the permission",
        ),
        ("first: /api/articles", "first: /api/nothing", 29, "not the path of an API request"),
        ("first: /api/articles", "fi/rst: /api/articles", 29, '"fi/rst" is not a valid name'),
        ("first: /api/articles", "first: articles", 29, "must be the path of an API request"),
        ("french: /api/articles/a1", "french: /api/articles/a2", 30, "there is no document at"),
        ("  queries:", "  qeries:", 28, 'Did you mean "queries"'),
    ],
)
def test_a_section_that_is_wrong_is_refused_with_its_line(
    root: Path, tmp_path: Path, old: str, new: str, line: int, words: str
) -> None:
    change(root, old, new)
    said = refused(root, tmp_path / "out")
    assert said.startswith(f"bifolio: site.yaml:{line}:")
    assert words in said
    assert not (tmp_path / "out").exists()


def test_a_file_that_cannot_be_read_stops_the_export(root: Path, tmp_path: Path) -> None:
    before = exported(root, tmp_path / "out")
    write(root, {"content/tags/red.json": '{"name": '})
    done = run(root, tmp_path / "out")
    assert done.exit_code == 1
    assert "content/tags/red.json" in done.stderr
    assert "--skip-broken" in done.stderr
    assert files_of(tmp_path / "out") == before
    assert "api/tags/red.json" not in exported(root, tmp_path / "out", "--skip-broken")


@pytest.mark.parametrize("name", ["x" * 300, "a\0b"])
def test_an_id_that_no_file_can_have(root: Path, tmp_path: Path, name: str) -> None:
    write(root, {"content/authors/odd.json": json.dumps({"documentId": name, "name": "odd"})})
    change(root, "author: [find]", "author: [find, findOne]")
    assert "Give the document a different documentId" in refused(root, tmp_path / "out")
    assert list((tmp_path / "out").glob("*")) == []


@pytest.mark.parametrize("name", ["..", ".", " ", "-rf", "a.json", "page", "100%", "a\\b", "*"])
def test_ids_that_look_odd_have_their_file(root: Path, tmp_path: Path, name: str) -> None:
    write(root, {"content/tags/odd.json": json.dumps({"documentId": name, "name": "Odd"})})
    files = exported(root, tmp_path / "out")
    assert json.loads(files[f"api/tags/{name}.json"])["data"]["name"] == "Odd"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "site"]


def test_a_picture_that_cannot_be_scaled_is_exported_as_it_is_and_counted(root: Path, tmp_path: Path) -> None:
    whole = picture(900, 900, "JPEG")
    write(root, {"content/uploads/cut.jpg": whole[: len(whole) // 2]})
    done = run(root, tmp_path / "out", "--everything")
    assert "no resized variants could be created for 1 image" in done.stdout
    assert (tmp_path / "out/uploads/cut.jpg").read_bytes() == whole[: len(whole) // 2]


def test_a_terminal_sees_how_far_it_is(root: Path, tmp_path: Path) -> None:
    script = "import server.tools.terminal as t; t.PROGRESS_DELAY_S = 0; "
    script += "from server.commands.cli import main; main()"
    command = [sys.executable, "-c", script, "export", str(tmp_path / "out"), "--site", str(root)]
    here, terminal = os.openpty()
    try:
        subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=terminal, check=True)
        shown = os.read(here, 100_000).decode()
    finally:
        os.close(here)
        os.close(terminal)
    for label in ("Reading files", "Scaling images", "Exporting"):
        assert re.search(rf"{label}.*100%", shown)


_texts = st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), min_size=1, max_size=8)
_keys = st.from_regex(r"\$?[a-z]{1,6}", fullmatch=True)
_params = st.dictionaries(
    _keys,
    st.recursive(
        st.one_of(st.none(), _texts, st.lists(_texts, min_size=1, max_size=3)),
        lambda inner: st.dictionaries(_keys, inner, min_size=1, max_size=3),
        max_leaves=6,
    ),
    max_size=4,
)


@given(_params)
def test_a_query_that_is_written_is_read_as_it_was(params: dict[str, Any]) -> None:
    assert qs.parse(query_string(params)) == params


def test_feeds_and_sitemaps_are_the_same_as_a_server_s(tmp_path: Path) -> None:
    write(tmp_path / "site", PUBLISHING_FILES)
    files = exported(tmp_path / "site", tmp_path / "out")
    api = Api.of(opened(tmp_path / "site"))
    paths = [path for path in files if path.startswith(("feeds/", "sitemap"))]
    assert len(paths) == 3 * 3 + 1
    for path in paths:
        assert files[path] == api.get(f"/{path}", "public").raw
    assert (
        exported(tmp_path / "site", tmp_path / "other", "--everything", "--drafts")["feeds/news.rss"]
        == files["feeds/news.rss"]
    )


def test_markdown_is_the_same_as_a_server_s(tmp_path: Path) -> None:
    """With `llms.enabled`, there is a Markdown file for each JSON file of a list or document."""
    settings = PUBLISHING_FILES["site.yaml"] + "llms: {enabled: true}\napi: {page_size: {default: 2}}\n"
    settings += "export: {types: {article: {fields: slug, sort: slug, page_size: 5}}}\n"
    home = {"content-types/home.json": schema("home", {"title": "string"}, single=True)}
    site = {**PUBLISHING_FILES, **home, "content/home.yaml": "title: Start\n"}
    settings = settings.replace("public:\n", "public:\n    home: [find]\n")
    write(tmp_path / "site", {**site, "site.yaml": settings})
    files = exported(tmp_path / "site", tmp_path / "out")
    requests = json.loads((tmp_path / "out/bifolio-export.json").read_text())["files"]
    api = Api.of(opened(tmp_path / "site"))
    paths = {path for path in files if path.endswith((".md", "llms.txt"))}
    lists = ("api/pages", "api/authors", "api/articles", "locale/fr/api/articles")
    assert paths == {
        *("llms.txt", "api/home.md", "api/articles/page/2.md", "locale/fr/api/articles/fog.md"),
        *(f"{path}.md" for path in lists),
        *(f"{path}/page/1.md" for path in lists),
        *(f"api/articles/{name}.md" for name in ("fog", "ferry", "plain")),
    }
    for path in paths:
        answer = api.get(requests[path]["request"], "public")
        assert (answer.status, answer.raw) == (200, files[path]), path
    write(tmp_path / "site", {"site.yaml": settings.replace("enabled: true", "enabled: false")})
    assert not paths & exported(tmp_path / "site", tmp_path / "other").keys()


def test_a_sitemap_is_kept_unchanged_and_removed_like_other_files(tmp_path: Path) -> None:
    root, out = tmp_path / "site", tmp_path / "out"
    write(root, PUBLISHING_FILES)
    exported(root, out)
    assert ": 0 written" in run(root, out).stdout
    write(root, {"site.yaml": PUBLISHING_SETTINGS[: PUBLISHING_SETTINGS.index("urls:")]})
    assert not {"sitemap.xml", "feeds/news.rss"} & exported(root, out).keys()
    write(root, {"site.yaml": PUBLISHING_SETTINGS})
    (out / "sitemap.xml").write_text("mine")
    assert "was not created by an export" in refused(root, out)
    assert (out / "sitemap.xml").read_text() == "mine"


def test_a_feed_with_a_wrong_filter_stops_the_export(tmp_path: Path) -> None:
    settings = PUBLISHING_SETTINGS.replace("{slug: {$startsWith: red}}", "{note: x}")
    write(tmp_path / "site", {**PUBLISHING_FILES, "site.yaml": settings})
    done = run(tmp_path / "site", tmp_path / "out")
    assert done.exit_code == 1
    assert re.match(r"bifolio: site.yaml:18: feeds.red can't be exported: .*note", done.output)
