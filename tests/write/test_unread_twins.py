"""Small twin sites that differ only in content that the caller may not read: a write must have the same
visible results on both.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.sites import STRING, Api, collection, make, relation

Files = Mapping[str, str | bytes]
PRIVATE = {**STRING, "private": True}
TAGS = relation("manyToMany", "tag")
READ = ["post.find", "post.findOne", "tag.find", "tag.findOne"]
OLD = dict.fromkeys(("createdAt", "updatedAt", "publishedAt"), "2024-02-29T10:20:30.000Z")
TAG: Files = collection("tag", {"name": STRING})


def document(**values: object) -> str:
    return json.dumps({**values, **OLD}, indent=1)


def posts(attributes: Mapping[str, Any], *, drafts: bool = False) -> Files:
    types = {**TAG, **collection("post", {"title": STRING, **attributes}, drafts=drafts)}
    return {**types, "content/tags/t.json": document(name="t")}


@pytest.fixture
def twins(tmp_path: Path) -> Callable[..., list[Api]]:
    """Return a function that makes two sites, whose files depend on a number, and a token "me"."""

    def build(files: Callable[[int], Files], *may: str) -> list[Api]:
        apis = [make(tmp_path / str(number), dict(files(number))) for number in (0, 1)]
        for api in apis:
            api.token("me", may=[*READ, *may])
        return apis

    return build


Build = Callable[..., list[Api]]


# --- errors ---------------------------------------------------------------------------------------


def test_an_error_quotes_no_stored_value_that_one_may_not_read(twins: Build) -> None:
    rule = {"regex": "^[a-z]+$"}

    def files(number: int) -> Files:
        draft = document(title="A", secret=f"SECRET{number}", name="SHOWN")
        types = posts({"secret": {**PRIVATE, **rule}, "name": {**STRING, **rule}}, drafts=True)
        return {**types, "content/posts/a.draft.json": draft}

    apis = twins(files, "post.update", "post.readDraft")
    refused = [api.put("/api/posts/a", {"title": "x"}, "me") for api in apis]
    assert refused[0].text == refused[1].text
    secret, name = refused[0].error["details"]["errors"]
    assert (secret["path"], name["path"], name["value"]) == (["secret"], ["name"], "SHOWN")
    assert "value" not in secret
    full = apis[0].put("/api/posts/a", {"title": "x"}).error["details"]["errors"][0]
    assert full["value"] == "SECRET0"
