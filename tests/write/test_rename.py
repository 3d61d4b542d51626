"""Renaming a document or media file: its files and every reference are changed, and nothing else in any
file.
"""

import json
from pathlib import Path

import pytest

from server.errors import ApiError
from server.site.site import Site
from server.write.renaming.rename import RenameRequest, RenameResult, rename
from tests.sites import STRING, Files, collection, component, load, relation, write, write_to

PART = {
    "by": relation("oneToOne", "author"),
    "pic": {"type": "media", "multiple": False},
    "any": {"type": "relation", "relation": "morphToMany"},
}
AUTHOR = {"name": STRING, "friend": relation("manyToOne", "author")}
FILES: dict[str, str] = {
    "site.yaml": "locales: {available: [en, fr]}\n",
    **collection("author", AUTHOR, drafts=True, localized=True),
    **collection(
        "article",
        {
            "title": STRING,
            "author": relation("manyToOne", "author"),
            "others": relation("manyToMany", "author"),
            "cover": {"type": "media"},
            "part": {"type": "component", "component": "x.part"},
            "zone": {"type": "dynamiczone", "components": ["x.part"]},
            "any": {"type": "relation", "relation": "morphToMany"},
        },
        drafts=True,
    ),
    **collection("page", {"title": STRING}, files=["pages/{name}/index.md"]),
    **collection("home", {"author": relation("oneToOne", "author")}, single=True),
    **component("x.part", PART),
    "content/authors/ann.md": "---\nname: Ann   # the first\nfriend: ann\n---\n\nText of ann.\n",
    "content/authors/ann.fr.md": "---\nname: Anne\n---\n",
    "content/authors/ann.draft.md": "---\nname: Ann B.\n---\n",
    "content/authors/bob.json": '{"name": "Bob", "friend": "ann"}',
    "content/authors/own.yaml": "name: Own\ndocumentId: q1\n",
    "content/authors/2024/cleo.md": "---\nname: Cleo\n---\n",
}  # fmt: skip


def renamed(site: Site, old: str, new: str) -> RenameResult:
    return write_to(site, rename, RenameRequest(old, new))[1]


def texts(root: Path) -> dict[str, str]:
    found = (p for top in ("content", "pages") for p in (root / top).rglob("*") if p.is_file())
    return {str(p.relative_to(root)): p.read_bytes().decode() for p in found}


REFERRING = {
    "content/articles/yaml.yaml": (
        "# of ann\n"
        "title: ann\n"
        "author:   ann   # she\n"
        "others: [bob, ann, \"ann\"]   # all\n"
        "part:\n"
        "  by: /ann/\n"
        "zone:\n"
        "  - __component: x.part   # one\n"
        "    by: 'ann'\n"
        "    any:\n"
        "      - {__type: api::author.author, documentId: ann}\n"
        "      - {__type: api::article.article, documentId: ann}\n"
    ),
    "content/articles/md.md": "---\nauthor: ann\nothers:\n  - ann\n  - bob\n---\n\nauthor: ann\n",
    "content/articles/md.draft.md": "---\nauthor: ann\n---\n",
    "content/articles/toml.toml": 'title = "ann"\nauthor = "ann"   # she\nothers = ["bob", "ann"]\n',
    "content/articles/json.json": '{"author": {"documentId": "ann"},\n "others": ["ann",   "bob"]}',
    "content/articles/none.yaml": "title: ann\nauthor: anna\nothers: [bob, 2024/cleo]\n",
    "content/home.yaml": "author: ann\n",
}  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("author/ann", "author/zoe"),
        ("authors/ann", "zoe"),
        ("content/authors/ann.md", "content/authors/zoe.md"),
        ("content/authors/ann.fr.md", "content/authors/zoe.fr.md"),
        ("content/authors/ann.draft.md", "content/authors/zoe.draft"),
    ],
)
def test_a_document_and_all_that_refers_to_it(tmp_path: Path, old: str, new: str) -> None:
    site = load(tmp_path, {**FILES, **REFERRING})
    before = texts(tmp_path)
    found = renamed(site, old, new)
    after = texts(tmp_path)
    expected = {path.replace("/ann.", "/zoe."): text for path, text in before.items()}
    expected["content/authors/zoe.md"] = expected["content/authors/zoe.md"].replace(
        "friend: ann", "friend: zoe"
    )
    expected["content/authors/bob.json"] = '{"name": "Bob", "friend": "zoe"}'
    changes = {
        "yaml.yaml": [
            ("  ann   #", "  zoe   #"), ('bob, ann, "ann"', 'bob, zoe, "zoe"'), ("/ann/", "/zoe/"),
            ("'ann'", "'zoe'"), ("author.author, documentId: ann", "author.author, documentId: zoe"),
        ],
        "md.md": [("---\nauthor: ann", "---\nauthor: zoe"), ("- ann", "- zoe")],
        "md.draft.md": [("author: ann", "author: zoe")],
        "toml.toml": [('author = "ann"', 'author = "zoe"'), ('"bob", "ann"', '"bob", "zoe"')],
        "json.json": [('"documentId": "ann"', '"documentId": "zoe"'), ('["ann",', '["zoe",')],
    }  # fmt: skip
    for name, pairs in changes.items():
        for one, other in pairs:
            path = f"content/articles/{name}"
            assert one in expected[path]
            expected[path] = expected[path].replace(one, other)
    expected["content/home.yaml"] = "author: zoe\n"
    for path in expected:
        assert after[path] == expected[path]
    assert after == expected
    assert found.ids == ("ann", "zoe")
    assert sorted(found.references) == sorted(
        ["content/authors/ann.md", "content/authors/bob.json", "content/home.yaml"]
        + [f"content/articles/{name}" for name in changes]
    )
    assert site.state.snapshot.get(site.state.schema.subjects["author"], "zoe", "fr", "published")


@pytest.mark.parametrize(
    ("old", "new", "path", "id_"),
    [
        ("author/2024--cleo", "author/2025--cleo", "content/authors/2025/cleo.md", "2025--cleo"),
        ("author/2024/cleo", "author/cleo", "content/authors/cleo.md", "cleo"),
        ("content/authors/2024/cleo.md", "content/authors/", "content/authors/cleo.md", "cleo"),
        ("content/authors/2024/cleo.md", "content/authors/a/b/c", "content/authors/a/b/c.md", "a--b--c"),
    ],
)
def test_names_with_folders(tmp_path: Path, old: str, new: str, path: str, id_: str) -> None:
    text = "author: 2024/cleo\nothers: [2024--cleo]\n"
    site = load(tmp_path, {**FILES, "content/articles/a.yaml": text})
    renamed(site, old, new)
    assert path in texts(tmp_path)
    expected = f"author: {id_.replace('--', '/')}\nothers: [{id_}]\n"
    assert (tmp_path / "content/articles/a.yaml").read_text() == expected


def test_an_id_that_the_file_says_itself(tmp_path: Path) -> None:
    site = load(tmp_path, {**FILES, "content/articles/a.yaml": "author: q1\n"})
    found = renamed(site, "content/authors/own.yaml", "content/authors/mine.yaml")
    assert found == RenameResult({"content/authors/own.yaml": "content/authors/mine.yaml"})
    assert (tmp_path / "content/authors/mine.yaml").read_text() == "name: Own\ndocumentId: q1\n"
    renamed(site, "author/q1", "author/q2")
    assert (tmp_path / "content/authors/mine.yaml").read_text() == "name: Own\ndocumentId: q2\n"
    assert (tmp_path / "content/articles/a.yaml").read_text() == "author: q2\n"


def test_the_document_of_a_single_type_says_its_id(tmp_path: Path) -> None:
    site = load(tmp_path, {**FILES, "content/home.yaml": "author: ann\n"})
    renamed(site, "home/home", "home/start")
    assert (tmp_path / "content/home.yaml").read_text() == "author: ann\ndocumentId: start\n"


def test_what_lies_in_the_folder_of_a_document(tmp_path: Path) -> None:
    bundle = {
        "pages/about/index.md": "---\ntitle: About\n---\n",
        "pages/about/map.png": "\x00\x01",
        "pages/about/more/a.txt": "a",
        "pages/about/us/index.md": "---\ntitle: Us\n---\n",
        "pages/about/us/face.png": "\x00",
    }
    site = load(tmp_path, {**FILES, **bundle})
    renamed(site, "page/about", "page/who")
    names = {path for path in texts(tmp_path) if path.startswith("pages/")}
    assert names == {
        "pages/who/index.md",
        "pages/who/map.png",
        "pages/who/more/a.txt",
        "pages/about/us/index.md",
        "pages/about/us/face.png",
    }


def test_a_media_file(tmp_path: Path) -> None:
    media: Files = {
        "content/uploads/a.txt": "text",
        "content/uploads/a.txt.yaml": "caption: A   # text\n",
        "content/uploads/aa.txt": "other",
        "content/articles/a.yaml": "cover: a.txt   # A\npart:\n  pic: /uploads/a.txt\n",
        "content/articles/b.json": '{"cover": "uploads/a.txt", "part": {"pic": "aa.txt"}}',
    }
    site = load(tmp_path, {**FILES, **media})
    renamed(site, "content/uploads/a.txt", "content/uploads/notes/b.txt")
    after = texts(tmp_path)
    assert (
        after["content/articles/a.yaml"] == "cover: notes/b.txt   # A\npart:\n  pic: /uploads/notes/b.txt\n"
    )
    assert json.loads(after["content/articles/b.json"])["cover"] == "uploads/notes/b.txt"
    assert "aa.txt" in after["content/articles/b.json"]
    assert after["content/uploads/notes/b.txt"] == "text"
    assert after["content/uploads/notes/b.txt.yaml"] == "caption: A   # text\n"
    assert "content/uploads/a.txt" not in after
    assert site.state.snapshot.media["notes/b.txt"].get("caption") == "A"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("author/ann", "author/bob", 'author "bob" already exists: content/authors/bob.json'),
        ("content/authors/ann.md", "content/authors/bob.md", 'author "bob" already exists'),
        ("content/authors/own.yaml", "content/authors/own.txt.yaml", ""),
        ("author/an", "author/x", 'author "an" does not exist; did you mean "author/ann"?'),
        ("authr/ann", "x", '; write a document as TYPE/ID; did you mean "author/ann"?'),
        ("ann", "x", "No file or document has the name ann; write a document as TYPE/ID"),
        ("content/authors/none.md", "content/authors/x.md", "No file or document has the name content"),
        ("author/ann", "article/ann", "Can't rename to article/ann: the content type must stay author"),
        ("content/authors/ann.md", "content/articles/ann.md", "the content type must stay author"),
        ("content/authors/ann.md", "content/authors/zoe.fr.md", "the locale and status must stay the same"),
        ("content/authors/ann.md", "content/authors/zoe.json", "the file format must stay the same"),
        ("author/ann", "author/../x", '"../x" is not a valid file name for this content type'),
        ("author/ann", "author/.x", '".x" is not a valid file name for this content type'),
        ("author/ann", "author/x.fr", '"x.fr" is not a valid file name for this content type'),
        ("author/ann", "author/a//b", "is not a valid file name for this content type"),
        ("content/authors/ann.md", "../x/ann.md", "the content type must stay author"),
        ("content/uploads/none.png", "content/uploads/x.png", "content/uploads/none.png does not exist"),
        ("content/uploads/a.txt", "content/x.txt", "content/x.txt is not inside content/uploads"),
        ("content/uploads/a.txt", "content/uploads/../x.txt", "is not inside content/uploads"),
        ("content/uploads/a.txt", "content/uploads/nul.txt", "is not a valid name for a media file on every"),
        ("content/uploads/a.txt", "content/uploads/a.png", "would be image/png, and"),
        ("content/uploads/a.txt", "content/uploads/b.txt", "content/uploads/b.txt already exists"),
    ],
)  # fmt: skip
def test_what_is_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    media = {"content/uploads/a.txt": "a", "content/uploads/b.txt": "b"}
    site = load(tmp_path, {**FILES, **media})
    before = texts(tmp_path)
    if not message:
        assert renamed(site, old, new)
        return
    with pytest.raises(ApiError) as caught:
        renamed(site, old, new)
    assert message in caught.value.message
    assert texts(tmp_path) == before


def test_a_version_that_can_not_be_read(tmp_path: Path) -> None:
    site = load(tmp_path, {**FILES, "content/authors/ann.fr.md": "---\nname: [\n---\n"})
    for old, new in [("author/ann", "author/zoe"), ("content/authors/ann.md", "content/authors/zoe.md")]:
        with pytest.raises(ApiError, match=r"content/authors/ann\.fr\.md can't be read"):
            renamed(site, old, new)


def test_a_reference_in_a_file_with_a_conflict(tmp_path: Path) -> None:
    site = load(tmp_path, {**FILES, "content/articles/a.yaml": "author: ann\n"})
    conflict = "<<<<<<< HEAD\nauthor: ann\n=======\nauthor: bob\n>>>>>>> other\n"
    write(tmp_path, {"content/articles/a.yaml": conflict})
    with pytest.raises(ApiError, match=r"content/articles/a\.yaml"):
        renamed(site, "author/ann", "author/zoe")
    assert "content/authors/ann.md" in texts(tmp_path)
