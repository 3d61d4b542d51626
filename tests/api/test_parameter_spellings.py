"""Tests of the parameters `branch`, `dryRun` and `at`: every spelling of their names has an effect."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from server.api.entrance import AT_PARAMETER
from server.query import qs
from tests.branches import site_with_branch
from tests.examples import examples
from tests.sites import STRING, Api, collection

FILES = {
    "site.yaml": "search: {index: false}\n",
    **collection("note", {"title": STRING}),
    "content/notes/one.yaml": "title: One\n",
    ".gitignore": ".bifolio/\n",
}
BRANCH = (
    "branch=next",
    "%62ranch=next",
    "b%72anch=next",
    "[branch]=next",
    "%5Bbranch%5d=next",
    "x=1&%62ranch=next",
)
DRY_RUN = ("dryRun=true", "%64ryRun=true", "dry%52un=true", "[dryRun]=true", "x=1&%64%72%79Run=true")
AT = ("at=next", "%61t=next", "a%74=next", "[at]=next", "%5b%61t%5D=next", "fields=title&[at]=next")


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    api = site_with_branch(tmp_path, FILES)
    yield api
    api.accounts.close()


def test_a_write_goes_to_the_branch_however_the_parameter_is_spelled(api: Api) -> None:
    for number, query in enumerate(BRANCH):
        assert api.put(f"/api/notes/one?{query}", {"title": f"T{number}"}).status == 200
        assert api.get("/api/notes/one?at=next").data["title"] == f"T{number}", query
        assert api.get("/api/notes/one").data["title"] == "One", query
    for query in ("branch", "%62ranch", "branch=", "branch[]=next", "%62ranch[x]=next"):
        assert api.put(f"/api/notes/one?{query}", {"title": "x"}).status == 400, query
    for path in ("/api/upload?%62ranch=next", "/branches?[branch]=next", "/api/users?%62ranch"):
        error = api.ask("POST", path, json={}).error
        assert error["status"] == 400, path
    assert api.read("content/notes/one.yaml") == "title: One\n"


def test_a_dry_run_writes_nothing_however_the_parameter_is_spelled(api: Api) -> None:
    for query in DRY_RUN:
        answer = api.put(f"/api/notes/one?{query}", {"title": "x"})
        assert [one["path"] for one in answer.data["files"]] == ["content/notes/one.yaml"], query
    for query in ("%64ry_run=true", "%64ryRun", "[dry-run]=true", "%64ryRun=1"):
        assert api.put(f"/api/notes/one?{query}", {"title": "x"}).status == 400, query
    assert api.read("content/notes/one.yaml") == "title: One\n"


def test_a_read_is_of_the_commit_however_the_parameter_is_spelled(api: Api) -> None:
    assert api.put("/api/notes/one?branch=next", {"title": "Two"}).status == 200
    for query in AT:
        assert api.get(f"/api/notes/one?{query}").data["title"] == "Two", query
    for query in ("at", "%61t&fields=title", "at=", "at[]=next", "[at][0]=next"):
        assert api.get(f"/api/notes/one?{query}").status == 400, query
    assert api.get("/api/notes/one?at%5D=next&cat=next&%26at=next").data["title"] == "One"


SPELLINGS = st.tuples(
    st.sampled_from(["", "&", "x&", "cat=1&", "%26", "x"]),
    st.sampled_from(["", "[", "%5B", "%5b"]),
    st.sampled_from(["a", "%61", "%41"]),
    st.sampled_from(["t", "%74", "T"]),
    st.sampled_from(["", "]", "%5D", "%5d"]),
    st.sampled_from(["", "=x", "[]=x", "[x]=y", "%5B%5d=x", "&x", "%3D", "%26", "x=1"]),
)


@settings(max_examples=examples(400))
@given(SPELLINGS)
def test_each_spelling_of_at_is_recognized(parts: tuple[str, ...]) -> None:
    query = "".join(parts)
    assert AT_PARAMETER.search(query) or "at" not in qs.parse(query)
