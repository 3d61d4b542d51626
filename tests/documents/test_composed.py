"""Names with accents in one character (NFC) and in two (NFD, as macOS has some): they are one name."""

from pathlib import Path
from unicodedata import normalize
from urllib.parse import quote

from tests.sites import STRING, Api, collection, load, relation

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
