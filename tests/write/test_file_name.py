"""`options.fileName`: attributes whose values are in the file name, as in Jekyll posts."""

from pathlib import Path
from typing import Any

import pytest

from server.errors import SetupError
from server.schema.load import read_content_types
from tests.sites import STRING, Api, collection, load, write

POST = {"title": STRING, "date": "date", "slug": {"type": "uid"}}


@pytest.fixture
def api(tmp_path: Path) -> Api:
    types = collection("post", POST, files="_posts/{name}.md", fileName="{date}-{slug}")
    files = {
        "_posts/2024-01-31-hello-world.md": "---\ntitle: Hello\n---\n",
        "_posts/sea/2023-02-01-old.md": "---\ntitle: Old\ndate: 2023-02-03\nslug:\n---\n",
        "_posts/2024-02-31-no-day.md": "---\ntitle: No day\n---\n",
        "_posts/about.md": "---\ntitle: About\n---\n",
    }
    api = Api.of(load(tmp_path, {**types, **files}))
    assert api.site.problems == ()
    return api


def test_a_name_says_what_the_file_does_not(api: Api) -> None:
    found = {d["title"]: (d["date"], d["slug"]) for d in api.get("/api/posts").data}
    assert found == {
        "Hello": ("2024-01-31", "hello-world"),
        "Old": ("2023-02-03", "old"),
        "No day": (None, None),
        "About": (None, None),
    }
    assert api.get("/api/posts?filters[slug]=hello-world&sort=date:desc").ids == ["2024-01-31-hello-world"]
    api.accounts.close()


def test_a_write_says_only_what_changed(api: Api) -> None:
    api.put("/api/posts/2024-01-31-hello-world", {"title": "Hi", "slug": "hello-world", "date": "2024-01-31"})
    text = api.read("_posts/2024-01-31-hello-world.md")
    assert "title: Hi\n" in text
    assert "slug" not in text
    assert "\ndate" not in text
    assert api.put("/api/posts/2024-01-31-hello-world", {"slug": "hi"}).data["slug"] == "hi"
    assert "slug: hi\n" in api.read("_posts/2024-01-31-hello-world.md")
    api.accounts.close()


def test_a_new_document_is_named_so(api: Api) -> None:
    new = api.post("/api/posts", {"title": "New", "date": "2024-03-01", "slug": "new"}).data
    assert new["documentId"]
    assert (api.site.root / "_posts/2024-03-01-new.md").exists()
    api.post("/api/posts", {"title": "Other", "slug": "other"})
    assert (api.site.root / "_posts/other.md").exists()
    api.accounts.close()


def test_folders_are_named_after_the_date(tmp_path: Path) -> None:
    pattern = "{date.year}/{date.month}/{date}-{slug}"
    types = collection("post", POST, files="news/{name}.md", fileName=pattern)
    files = {"news/2024/01/2024-01-31-hello.md": "---\ntitle: Hello\n---\n"}
    api = Api.of(load(tmp_path, {**types, **files}))
    (old,) = api.get("/api/posts").data
    assert (old["documentId"], old["date"], old["slug"]) == (
        "2024--01--2024-01-31-hello",
        "2024-01-31",
        "hello",
    )
    new = api.post("/api/posts", {"title": "New", "date": "2025-03-01", "slug": "new"}).data
    assert "title: New\n" in api.read("news/2025/03/2025-03-01-new.md")
    assert api.get(f"/api/posts/{new['documentId']}").data["slug"] == "new"
    api.post("/api/posts", {"title": "Slug with a folder", "date": "2025-03-01", "slug": "a/b"})
    other = api.post("/api/posts", {"title": "No date", "slug": "other"})
    assert other.status == 201
    assert (tmp_path / "news/other.md").exists()
    assert {path.name for path in (tmp_path / "news/2025").rglob("*.md")} == {"2025-03-01-new.md"}
    api.accounts.close()


@pytest.mark.parametrize(
    "pattern",
    [
        "{date}/{slug}",
        "{slug.year}/{date}-{slug}",
        "{date.hour}/{date}-{slug}",
        "{other}",
        "posts",
        5,
        "{slug}{slug}",
        "{tags}",
    ],
)
def test_it_names_texts_and_dates(tmp_path: Path, pattern: Any) -> None:
    write(tmp_path, collection("post", {**POST, "tags": "json"}, fileName=pattern))
    with pytest.raises(SetupError, match="must contain placeholders for string, uid, date or datetime"):
        read_content_types(tmp_path)
