"""What `bifolio types --python` writes for the repository's own site. This script is checked with
`mypy --strict` and pyright, then run. Each `type: ignore` marks a mistake that both must find.
"""

import os
from datetime import date

import pytest
from bifolio_client import (
    AccessError,
    ApiError,
    Article,
    ArticleInput,
    Client,
    NotFoundError,
    ValidationError,
)

client = Client(os.environ["BIFOLIO_URL"], os.environ["BIFOLIO_TOKEN"])

# --- lists ----------------------------------------------------------------------------------------

page = client.articles.find(
    filters={
        "category": {"slug": "tides"},
        "readingMinutes": {"$lte": 60},
        "$or": [{"title": {"$notNull": True}}],
    },
    sort=["publishedOn:desc"],
    populate=["author", "sections"],
)
assert page.page == 1
assert len(page) == len(page.items) > 0
for article in page:
    title: str = article["title"]
    assert title
    author = article.get("author")
    if author:
        assert author["name"]
    for section in article.get("sections", []):
        if section["__component"] == "shared.quote":
            assert section["body"]
every = [one["documentId"] for one in client.articles.find_all(page_size=3, sort="documentId")]
assert every == sorted(set(every))
assert len(every) == client.articles.find().total > 3
since = client.articles.find(filters={"publishedOn": {"$gte": date(2024, 1, 1)}}, page=2, page_size=2)
assert (since.page, since.page_size) == (2, 2)
several = client.articles.find(filters={"documentId": {"$in": every[:2]}})
assert several.total == 2
colours = [tag["colour"] for tag in client.categories.find()]
assert "amber" in colours

# --- one document ---------------------------------------------------------------------------------

found: Article = client.articles.find_one(
    "2024--the-knot-count", populate={"author": {"populate": ["avatar"]}}
)
assert found["title"] == "The knot count"
part = client.articles.find_one("2024--the-knot-count", fields=["title"])
assert set(part) == {"id", "documentId", "title"}
home = client.home.find(populate="*")
assert home["documentId"]
french = client.articles.find(locale="fr")
assert all(one["locale"] == "fr" for one in french)

# --- writes ---------------------------------------------------------------------------------------

data: ArticleInput = {
    "title": "Typed",
    "slug": "typed",
    "tags": {"connect": [every and "fog"]},
    "author": "nell-trevanion",
    "publishedOn": date(2026, 1, 2),
    "sections": [{"__component": "shared.quote", "body": "Long foretold"}],
}
made = client.articles.create(data, populate="*")
assert made["publishedOn"] == "2026-01-02"
assert [tag["documentId"] for tag in made.get("tags", [])] == ["fog"]
assert [section["__component"] for section in made.get("sections", [])] == ["shared.quote"]
changed = client.articles.update(made["documentId"], {"title": "Typed twice", "summary": None})
assert changed["title"] == "Typed twice"
draft = client.articles.create_draft({"slug": "a-draft"})
assert draft.get("title") is None
redrafted = client.articles.update(draft["documentId"], {"title": "Ü & ü?"}, status="draft")
assert redrafted.get("title") == "Ü & ü?"
assert client.articles.find(filters={"title": "Ü & ü?"}, status="draft").total == 1
for document in (made, draft):
    client.articles.delete(document["documentId"])

# --- errors ---------------------------------------------------------------------------------------

with pytest.raises(NotFoundError) as missing:
    client.articles.find_one(made["documentId"])
assert (missing.value.status, missing.value.name) == (404, "NotFoundError")
with pytest.raises(ValidationError, match="title") as wrong:
    client.articles.create({"title": "x" * 500, "slug": "y"})
assert wrong.value.details["errors"]
with pytest.raises(AccessError) as refused:
    Client(os.environ["BIFOLIO_URL"], "wrong").articles.create(data)
assert refused.value.status == 401
with pytest.raises(ApiError) as elsewhere:
    Client(os.environ["BIFOLIO_URL"] + "/nothing").articles.find()
assert elsewhere.value.status == 404
with pytest.raises(OSError, match="refused"):
    Client("http://127.0.0.1:9", timeout_s=5).articles.find()


def make_mistakes() -> None:
    """Contain the mistakes that the checkers must find. This function is not called."""
    client.articles.find(filters={"titel": "x"})  # type: ignore[call-overload]
    client.articles.find(fields=["titel"])  # type: ignore[list-item]
    client.articles.find(populate=["title"])  # type: ignore[list-item]
    client.articles.create({"slug": "x"})  # type: ignore[typeddict-item]
    client.articles.update("x", {"titel": "x"})  # type: ignore[call-overload]
    client.articles.find(fields=["title"]).items[0]["title"].upper()  # type: ignore[union-attr]
    found["author"]["nam"]  # type: ignore[index, typeddict-item]


print("typed")
