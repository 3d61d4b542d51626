"""Tests of names with accents: NFC (one character) and NFD (two characters, as on macOS) are the
same name.
"""

from pathlib import Path
from unicodedata import normalize
from urllib.parse import quote

import pytest
from click.testing import CliRunner

from server.commands.cli import main
from tests.sites import STRING, Api, collection, load, make, relation
from tests.tools.importer.content import picture

ONE, TWO = normalize("NFC", "müller"), normalize("NFD", "müller")
TYPES = {
    **collection("author", {"name": STRING}),
    **collection("post", {"author": relation("manyToOne", "author")}),
}


def test_a_document_is_found_under_both(tmp_path: Path) -> None:
    assert ONE != TWO
    files = {
        f"content/authors/{TWO}.md": "---\nname: M\n---\n",
        "content/posts/a.md": f"---\nauthor: {ONE}\n---\n",
        "content/posts/b.md": f"---\nauthor: {TWO}\n---\n",
        "content/posts/c.yaml": f"documentId: {TWO}-post\nauthor: /{TWO}/\n",
    }
    settings = {"site.yaml": "roles: {public: {author: [find, findOne]}}\n"}
    api = Api.of(load(tmp_path, {**TYPES, **files, **settings}))
    assert api.site.problems == ()
    for name in (ONE, TWO):
        assert api.get(f"/api/authors/{quote(name)}", "public").data["name"] == "M"
    for post in ("a", "b", quote(f"{ONE}-post")):
        assert api.get(f"/api/posts/{post}?populate=author").data["author"]["documentId"] == ONE
    api.accounts.close()


def test_two_names_that_look_the_same(tmp_path: Path) -> None:
    files = {f"content/authors/{name}.md": "---\nname: M\n---\n" for name in (ONE, TWO)}
    (problem,) = load(tmp_path, {**TYPES, **files}).problems
    assert problem.rule == "duplicate-id"
    assert "differ only in how their accents are encoded" in problem.message


def test_a_document_is_written_under_both(tmp_path: Path) -> None:
    files = {f"content/authors/{ONE}.md": "---\nname: M\n---\n", "content/posts/a.md": "---\n---\n"}
    api = make(tmp_path, {**TYPES, **files})
    assert api.put(f"/api/authors/{quote(TWO)}", {"name": "Neo"}).status == 200
    assert api.put("/api/posts/a", {"author": TWO}).status == 200
    operation = {"method": "PUT", "path": f"/api/authors/{TWO}", "body": {"data": {"name": "Ole"}}}
    assert api.ask("POST", "/batch", json={"operations": [operation]}).status == 200
    assert api.files == {f"authors/{ONE}.md", "posts/a.md"}
    assert "name: Ole\n" in api.read(f"content/authors/{ONE}.md")
    for name in (ONE, TWO):
        assert api.get(f"/api/posts?filters[author]={quote(name)}").ids == ["a"]
        assert api.get(f"/api/authors?filters[documentId][$in]={quote(name)}").ids == [ONE]
    assert api.ask("DELETE", f"/api/authors/{quote(TWO)}").status == 204


# --- media -----------------------------------------------------------------------------------------

COVERED = collection("post", {"cover": {"type": "media"}})


@pytest.mark.parametrize("stored", [ONE, TWO])
def test_a_media_file_is_found_under_both(tmp_path: Path, stored: str) -> None:
    files: dict[str, str | bytes] = {
        **COVERED,
        f"content/uploads/{stored}/{stored}.png": picture(800, 600, "PNG", 90),
        f"content/uploads/{stored}/{stored}.png.yaml": "caption: Ferry\n",
        "content/posts/a.md": f"---\ncover: {ONE}/{ONE}.png\n---\n",
        "content/posts/b.md": f"---\ncover: /uploads/{TWO}/{TWO}.png\n---\n",
    }
    api = make(tmp_path, files)
    assert api.site.problems == ()
    for path in api.site.incomplete_images():
        api.site.scale(path)
    for post in ("a", "b"):
        cover = api.get(f"/api/posts/{post}?populate=cover").data["cover"]
        assert (cover["name"], cover["caption"]) == (f"{ONE}.png", "Ferry")
        assert cover["url"] == quote(f"/uploads/{ONE}/{ONE}.png")
        assert api.get(cover["formats"]["small"]["url"]).status == 200
    for name in (ONE, TWO):
        assert api.get(quote(f"/uploads/{name}/{name}.png")).status == 200
        assert api.get(quote(f"/uploads/{name}/small_{name}.png")).status == 200
        assert api.get(f"/api/posts?filters[cover][name]={quote(name)}.png").ids == ["a", "b"]
        assert api.get(f"/api/posts?filters[cover]={quote(f'{name}--{name}.png')}").ids == ["a", "b"]
        assert api.put("/api/posts/a", {"cover": f"{name}--{name}.png"}).status == 200
        assert api.read("content/posts/a.md") == f"---\ncover: {ONE}/{ONE}.png\n---\n"
    [file] = api.get("/api/upload/files").body
    assert api.ask("DELETE", f"/api/upload/files/{file['id']}").status == 200
    assert not [path for path in api.files if "uploads" in path]
    assert len(api.site.problems) == 2


def test_two_media_files_that_look_the_same(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        **COVERED,
        **{f"content/uploads/{name}.txt": name for name in (ONE, TWO)},
        f"content/uploads/{ONE}.txt.yaml": "documentId: one\n",
        f"content/uploads/{TWO}.txt.yaml": "documentId: two\n",
    }
    api = make(tmp_path, files)
    first, second = sorted(f"content/uploads/{name}.txt" for name in (ONE, TWO))
    [problem] = api.site.problems
    assert (problem.path, problem.rule) == (second, "duplicate-id")
    assert "differ only in how their accents are encoded" in problem.message
    (tmp_path / first).unlink()
    (tmp_path / f"{first}.yaml").unlink()
    api.site.refresh()
    assert api.site.problems == ()
    assert api.get(quote(f"/uploads/{ONE}.txt")).text == (tmp_path / second).read_text()


def test_an_export_has_a_media_file_under_the_name_in_its_url(tmp_path: Path) -> None:
    settings = "roles: {public: {post: [find], upload: [find]}}\n"
    files = {"site.yaml": settings, **COVERED, f"content/uploads/{TWO}.txt": "ahoy"}
    load(tmp_path / "site", files)
    command = ["export", str(tmp_path / "out"), "--site", str(tmp_path / "site")]
    result = CliRunner().invoke(main, command)
    assert result.exit_code == 0, result.output
    assert (tmp_path / f"out/uploads/{ONE}.txt").read_text() == "ahoy"
