"""Files that are marked as drafts by a key (`options.draftWhen`): who may read them, and how writes change
them.
"""

from pathlib import Path
from typing import Any

import pytest

from server.errors import SetupError
from server.schema.load import read_content_types
from tests.sites import Api, collection, make, write

HUGO = {"draft": True}
JEKYLL = {"published": False}
PLUS = '+++\ntitle = "A"\ndraft = true # not yet\n+++\n\nText\n'


def site(root: Path, files: dict[str, str], when: dict[str, Any] = HUGO, **more: Any) -> Api:
    types = collection("post", {"title": "string"}, drafts=True, draftWhen=when, **more)
    return make(root, {**types, **files})


@pytest.mark.parametrize(
    ("when", "said", "draft"),
    [
        (HUGO, "draft: true", True),
        (HUGO, 'draft: "true"', True),
        (HUGO, "draft: TRUE", True),
        (HUGO, "draft: false", False),
        (HUGO, "draft:", False),
        (HUGO, "slug: x", False),
        (JEKYLL, "published: false", True),
        (JEKYLL, "published: true", False),
        (JEKYLL, "title: x", False),
        ({"status": "draft"}, "status: Draft", True),
        ({"status": "draft"}, "status: final", False),
    ],
)
def test_a_file_that_says_so_is_a_draft(tmp_path: Path, when: Any, said: str, draft: bool) -> None:
    api = site(tmp_path, {"content/posts/a.md": f"---\n{said}\n---\n"}, when)
    assert (api.get("/api/posts/a").status == 404) == draft
    assert api.get("/api/posts/a?status=draft").status == 200
    assert [p.message for p in api.site.problems if "draft" in p.message] == []


def test_publishing_changes_the_line_that_says_draft(tmp_path: Path) -> None:
    api = site(tmp_path, {"content/posts/a.md": PLUS})
    assert api.put("/api/posts/a?status=draft", {"title": "B"}).status == 200
    assert 'title = "B"\ndraft = true # not yet\n' in api.read("content/posts/a.md")
    assert api.get("/api/posts/a").status == 404
    assert api.put("/api/posts/a", {"title": "C"}).status == 200
    assert 'title = "C"\ndraft = false # not yet\n' in api.read("content/posts/a.md")
    assert api.get("/api/posts/a").data["title"] == "C"
    assert [path.name for path in (tmp_path / "content/posts").iterdir()] == ["a.md"]


def test_a_new_draft_says_so_in_a_file_of_its_name(tmp_path: Path) -> None:
    api = site(tmp_path, {}, JEKYLL, frontMatter="toml")
    new = api.post("/api/posts?status=draft", {"title": "A"}).data["documentId"]
    assert "published = false\n" in api.read(f"content/posts/{new}.md")
    assert api.get(f"/api/posts/{new}").status == 404
    assert api.put(f"/api/posts/{new}", {}).status == 200
    assert "published = true\n" in api.read(f"content/posts/{new}.md")
    assert api.get(f"/api/posts/{new}").data["title"] == "A"


def test_the_draft_of_what_is_published_is_a_file_beside_it_that_says_so(tmp_path: Path) -> None:
    api = site(tmp_path, {"content/posts/a.md": "---\ntitle: A\n---\n"})
    assert api.put("/api/posts/a?status=draft", {"title": "B"}).status == 200
    assert "draft: true\n" in api.read("content/posts/a.draft.md")
    assert api.get("/api/posts/a").data["title"] == "A"
    assert api.put("/api/posts/a", {}).status == 200
    assert api.get("/api/posts/a").data["title"] == "B"
    assert "draft: true" not in api.read("content/posts/a.md")
    assert not (tmp_path / "content/posts/a.draft.md").exists()


def test_a_text_is_taken_out_where_nothing_stands_for_published(tmp_path: Path) -> None:
    api = site(tmp_path, {"content/posts/a.md": "---\ntitle: A\nstatus: draft\n---\n"}, {"status": "draft"})
    assert api.put("/api/posts/a", {}).status == 200
    assert "status" not in api.read("content/posts/a.md")


def test_a_type_that_does_not_go_by_it_is_warned_of(tmp_path: Path) -> None:
    files = {
        "content/posts/a.md": "---\ntitle: A\ndraft: true\n---\n",
        "content/posts/b.md": "---\ntitle: A\ndraft: false\n---\n",
        "blog/c.md": "---\npublished: no\ndraft: true\n---\n",
        "content/books/d.md": "---\npublished: false\n---\n",
    }
    types = {
        **collection("post", {"title": "string"}),
        **collection("page", {"draft": "boolean", "published": "boolean"}, files="blog/{name}.md"),
        **collection("book", {"published": "boolean"}),
    }
    api = make(tmp_path, {**types, **files})
    assert [(p.path, p.line, p.severity) for p in api.site.problems if p.rule == "draft"] == [
        ("blog/c.md", 3, "warning"),
        ("content/posts/a.md", 3, "warning"),
    ]
    fix = next(p.fix for p in api.site.problems if p.rule == "draft")
    assert fix == (
        "in content-types/page.json, set options.draftAndPublish to true, "
        'and options.draftWhen to {"draft": true}'
    )


@pytest.mark.parametrize("when", ["draft", [], {}, {"a": 1}, {"a": True, "b": True}, {"documentId": "x"}])
def test_what_the_option_can_not_be(tmp_path: Path, when: Any) -> None:
    write(tmp_path, collection("post", {"title": "string"}, drafts=True, draftWhen=when))
    with pytest.raises(SetupError, match="draftWhen"):
        read_content_types(tmp_path)


def test_a_type_without_drafts_can_not_have_it(tmp_path: Path) -> None:
    write(tmp_path, collection("post", {"title": "string"}, draftWhen=HUGO))
    with pytest.raises(SetupError, match="requires options"):
        read_content_types(tmp_path)
