"""Property test: `git merge` with the driver gives the same result as a merge of branches on the server."""

import json
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from server.storage.read import parse
from tests.examples import examples
from tests.sites import Api, make
from tests.tools.merge_driver.repository import SITE, create, run_git, save

pytestmark = pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")

WORDS = st.sampled_from([f"w{n}" for n in range(40)])
LINES = st.lists(WORDS, min_size=1, max_size=6).map("\n\n".join)
BLOCKS = st.lists(st.fixed_dictionaries({"heading": WORDS, "text": WORDS}), max_size=3)
DATA = st.one_of(
    WORDS, st.lists(WORDS, max_size=3), st.dictionaries(st.sampled_from("ab"), WORDS, max_size=2)
)
KEYS: Mapping[str, st.SearchStrategy[Any]] = {
    "title": WORDS,
    "summary": st.one_of(st.none(), WORDS),
    "number": st.integers(0, 3),
    "data": DATA,
    "tags": st.lists(st.sampled_from(["sea", "sky"]), unique=True),
    "blocks": BLOCKS,
    "mood": WORDS,  # not an attribute
    "body": LINES,
}
DOCUMENTS = st.fixed_dictionaries({"title": WORDS}, optional={k: v for k, v in KEYS.items() if k != "title"})


@st.composite
def three_versions(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Return a document and two versions in which up to three keys were changed."""
    base = draw(DOCUMENTS)
    return base, draw(_changed(base)), draw(_changed(base))


@st.composite
def _changed(draw: st.DrawFn, base: dict[str, Any]) -> dict[str, Any]:
    changed = dict(base)
    for key in draw(st.lists(st.sampled_from(list(KEYS)), min_size=1, max_size=3, unique=True)):
        if key != "title" and key in changed and draw(st.integers(0, 4)) == 0:
            del changed[key]
        else:
            changed[key] = draw(KEYS[key])
    return changed


def text_of(path: str, values: Mapping[str, Any]) -> str:
    if path.endswith(".json"):
        return json.dumps(values, indent=2) + "\n"
    if path.endswith(".yaml"):
        return yaml.safe_dump(values, sort_keys=False)
    matter = {key: value for key, value in values.items() if key != "body"}
    return f"---\n{yaml.safe_dump(matter, sort_keys=False)}---\n\n{values.get('body', '')}\n"


def resolved(marked: str, side: int) -> str:
    """Return the text in which each conflict is resolved with the lines of one side."""
    conflict = re.compile(r"^<{7} .*\n((?:.*\n)*?)={7}\n((?:.*\n)*?)>{7} .*\n", re.M)
    return conflict.sub(lambda found: str(found[side]), marked)


def of_server(api: Api, path: str) -> tuple[str, set[str]]:
    """Merge on the server. Return the merged file, and the names of the attributes in conflict."""
    answer = api.ask("POST", "/branches/next/merge", json={})
    if answer.status == 200:
        return api.read(path), set()
    details = answer.error["details"]
    names = {name for conflict in details["conflicts"] for name in conflict["attributes"]}
    return "", names | {"a key" for _ in details["files"]}


def of_git(folder: Path, path: str) -> str:
    run_git(folder, "merge", "-q", "next", status=None)
    return (folder / path).read_bytes().decode()


def words(values: Any) -> Iterator[str]:
    yield from re.findall(r"w\d+", json.dumps(values))


@given(versions=three_versions(), ending=st.sampled_from(["md", "yaml", "json"]))
@settings(max_examples=examples(40), deadline=None)
def test_git_merges_as_the_server_does(versions: Any, ending: str) -> None:
    path = f"content/notes/one.{ending}"
    base, ours, theirs = (text_of(path, values) for values in versions)
    with TemporaryDirectory(prefix="bifolio-test-") as place:
        served, laptop = Path(place, "served"), Path(place, "laptop")
        create(laptop, {**SITE, path: base})
        run_git(laptop, "checkout", "-qb", "next")
        save(laptop, {path: theirs, "theirs.txt": ""})
        run_git(laptop, "checkout", "-q", "main")
        save(laptop, {path: ours, "ours.txt": ""})
        run_git(laptop.parent, "clone", "-q", str(laptop), str(served))
        run_git(served, "branch", "-q", "next", "origin/next")
        api = make(served, {})
        expected, names = of_server(api, path)
        api.accounts.close()
        found = of_git(laptop, path)
    if not names:
        assert found == expected
        return
    one, two = (parse(path, resolved(found, side), "body") for side in (1, 2))
    different = {key for key in one.keys() | two.keys() if str(one.get(key)) != str(two.get(key))}
    in_conflict = {"a key" if key == "mood" else key for key in different}
    # The server reports keys that are not attributes only if there is no conflict in an attribute.
    assert in_conflict == names or in_conflict - {"a key"} == names, found
    known = set(words(versions[0]))
    for side in versions[1:]:
        assert set(words(side)) - known <= set(words(found)), found
