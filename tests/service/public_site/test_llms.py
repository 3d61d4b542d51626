"""`/llms.txt`: what it lists, its size, and that it shows only what the public may find."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from server.formats.markdown import markdown_to_html
from server.service.opening import Mode, open_site
from server.service.public_site.llms import llms_text
from tests.conftest import MakeApi
from tests.service.markdown.test_syntax import TEXTS, Page
from tests.service.public_site.sites import FILES, SECRETS, SETTINGS
from tests.sites import STRING, Api, collection, load, schema, write

PUBLIC = "roles: {public: {note: [find, findOne]}}\n"
LINK = re.compile(r"^- \[.+\]\((\S+)\)", re.MULTILINE)


@pytest.fixture
def api(make_api: MakeApi) -> Api:
    return make_api(
        {
            **FILES,
            "site.yaml": SETTINGS.replace("public:\n", "public:\n    home: [find]\n")
            + 'llms: {enabled: true, summary: "# About\\nfog"}\n',
            "content-types/home.json": schema("home", {"title": "string"}, single=True),
            "content/home.yaml": "title: Start\n",
        }
    )


def test_public_documents_are_listed_with_links_to_markdown(api: Api) -> None:
    answer = api.get("/llms.txt", "public")
    assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert answer.raw.decode().split("\n") == [
        "# Tides & lights",
        "",
        r"> \# About fog",
        "",
        "The links lead to Markdown. Without `.md`, the same addresses return JSON.",
        "",
        "## Article",
        "",
        r"- [Fog & \<script>alert(1)\</script> ball](/api/articles/fog.md): It is thick.",
        "- [Ferry](/api/articles/ferry.md)",
        "- [Without a slug](/api/articles/plain.md)",
        "- [Article (fr)](/api/articles.md?locale=fr)",
        "",
        "## Author",
        "",
        "- [All 1](/api/authors.md)",  # The public may not request single authors.
        "",
        "## Home",
        "",
        "- [Start](/api/home.md)",
        "",
        "## Page",
        "",
        "- [All 1](/api/pages.md)",
        "",
    ]
    assert api.get("/llms.txt", "full").raw == answer.raw
    assert not [word for word in SECRETS if word in answer.raw.decode()]
    for path in LINK.findall(answer.raw.decode()):
        found = api.get(path, "public")
        assert (found.status, found.headers["Content-Type"]) == (200, "text/markdown; charset=utf-8"), path


def test_it_is_off_unless_a_setting_says_so(make_api: MakeApi) -> None:
    assert make_api(FILES).get("/llms.txt").status == 404


def test_it_is_cached_until_the_content_changes(api: Api) -> None:
    first = api.get("/llms.txt", "public")
    again = api.get("/llms.txt", "public", headers={"If-None-Match": first.headers["ETag"]})
    assert (again.status, first.headers["Cache-Control"]) == (304, "public, max-age=0, must-revalidate")
    assert api.put("/api/articles/plain", {"title": "Changed"}).status == 200
    assert b"- [Changed](/api/articles/plain.md)\n" in api.get("/llms.txt", "public").raw


def test_settings_choose_types_title_and_address(tmp_path: Path) -> None:
    settings = "llms: {enabled: true, title: 'About #', types: [page, article], url: https://x.org/}\n"
    text = llms_text(load(tmp_path, {**FILES, "site.yaml": SETTINGS + settings}).state).decode()
    assert text.startswith("# About \\#\n")
    assert re.findall("^## .*", text, re.MULTILINE) == ["## Page", "## Article"]
    assert "- [Ferry](https://x.org/api/articles/ferry.md)\n" in text


def test_the_size_is_limited_and_the_rest_is_linked(tmp_path: Path) -> None:
    site = load(
        tmp_path,
        {
            "site.yaml": PUBLIC + "llms: {enabled: true, max_size: 4000}\n",
            **collection("note", {"title": STRING, "summary": STRING}),
            **{
                f"content/notes/n{i:03}.json": json.dumps({"title": f"N {i}", "summary": "é" * 40})
                for i in range(100)
            },
        },
    )
    text = llms_text(site.state)
    shown = text.count(b"- [N ")
    assert 3800 < len(text) <= 4000
    assert 26 <= shown < 50
    assert f"\n- [{100 - shown} more](/api/notes.md?pagination[page]=2)\n" in text.decode()


@pytest.mark.parametrize("size", [1, 100, 150, 200, 300, 1000])
def test_it_is_never_larger_than_the_limit(tmp_path: Path, size: int) -> None:
    settings = SETTINGS + f"llms: {{enabled: true, max_size: {size}}}\n"
    text = llms_text(load(tmp_path, {**FILES, "site.yaml": settings}).state).decode()
    assert text.startswith("# Tides & lights\n")
    assert len(text.encode()) <= size or "##" not in text


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site without documents."""
    folder = tmp_path_factory.mktemp("site")
    notes = collection("note", {"title": STRING, "summary": {"type": "text"}})
    write(folder, {"site.yaml": PUBLIC + "llms: {enabled: true}\n", **notes})
    return folder


@given(titles=st.lists(TEXTS, min_size=1, max_size=3), summary=TEXTS)
@example(titles=["](https://evil.example) [x", "\n## Other\n"], summary="- [x](y)")
def test_no_title_breaks_out_of_its_line(root: Path, titles: list[str], summary: str) -> None:
    for name in root.glob("content/notes/*"):
        name.unlink()
    values = {f"n{i}": {"title": title, "summary": summary} for i, title in enumerate(titles)}
    write(root, {f"content/notes/{name}.json": json.dumps(value) for name, value in values.items()})
    text = llms_text(open_site(root, Mode.READ, records=False).site.state).decode()
    page = Page(markdown_to_html(text))
    tags = [tag for tag, _ in page.elements if tag != "code"]
    assert tags == ["h1", "p", "h2", "ul", *["li", "a"] * len(titles)]
    assert sorted(a["href"] or "" for tag, a in page.elements if tag == "a") == [
        f"/api/notes/{name}.md" for name in values
    ]
