"""Entries that are reused after a schema change: they must be the same as if the files were read again."""

import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from server.site import loading
from server.site.site import Site
from tests.examples import examples
from tests.sites import component, schema, write

ATTRIBUTES: dict[str, list[dict[str, Any]]] = {
    "title": [{"type": "string"}, {"type": "string", "required": True}, {"type": "text", "private": True}],
    "count": [
        {"type": "integer"},
        {"type": "integer", "default": 7},
        {"type": "integer", "default": "many"},
        {"type": "integer", "default": 7, "min": 8},
        {"type": "biginteger"},
        {"type": "string", "default": "é"},
    ],
    "body": [{"type": "richtext"}, {"type": "string"}],
    "data": [{"type": "json"}, {"type": "json", "default": {"a": 1}}],
    "part": [
        {"type": "component", "component": "a.part"},
        {"type": "component", "component": "a.part", "repeatable": True},
        {"type": "component", "component": "a.part", "required": True},
    ],
    "draft": [{"type": "boolean"}, {"type": "boolean", "unique": True, "default": True}],
    "notes": [{"type": "relation", "relation": "oneToMany", "target": "api::note.note"}],
}
PARTS: list[dict[str, Any]] = [
    {"count": {"type": "integer"}},
    {"count": {"type": "string"}},
    {"count": {"type": "integer"}, "part": {"type": "component", "component": "a.part"}},
]
OPTIONS: list[dict[str, Any]] = [
    {},
    {},
    {"drafts": True},
    {"drafts": True, "draftWhen": {"draft": True}},
    {"otherKeys": "data"},
    {"localized": True},
    {"files": ["content/{name}.md"]},
    {"body": "body"},
]
CHANGED_OPTIONS: list[dict[str, Any]] = [
    {},
    {"draftAndPublish": True},
    {"files": ["content/{name}.md"]},
    {"files": ["content/notes/{name}.md", "content/others/{name}.md"]},
]
FRONT = st.fixed_dictionaries(
    {},
    optional={
        "title": st.sampled_from(["A", "B", None]),
        "count": st.sampled_from([1, "x", None]),
        "data": st.sampled_from([{"a": 2}, []]),
        "part": st.sampled_from([{"count": 1}, {"count": 1, "part": {"count": 2}}, [{"count": 3}]]),
        "draft": st.booleans(),
        "notes": st.just(["a"]),
        "odd": st.just(1),
    },
)
NAMES = st.sampled_from(["a", "b", "c.fr", "d.draft", "e"])


@st.composite
def types(draw: st.DrawFn) -> dict[str, str | bytes]:
    """Draw the schema files of two content types and of a component that both use."""
    files: dict[str, str | bytes] = {**component("a.part", draw(st.sampled_from(PARTS)))}
    for name in ("note", "other"):
        names = draw(st.lists(st.sampled_from(sorted(ATTRIBUTES)), unique=True, min_size=1))
        attributes = {each: draw(st.sampled_from(ATTRIBUTES[each])) for each in names}
        options = draw(st.sampled_from(OPTIONS))
        files[f"content-types/{name}.json"] = schema(name, attributes, **options)
    return files


@st.composite
def more(draw: st.DrawFn, before: dict[str, str | bytes]) -> dict[str, str | bytes]:
    """Draw the same schema files, possibly with changed attributes or options."""
    files = dict(before)
    name = draw(st.sampled_from(["note", "other"]))
    described = json.loads(files[f"content-types/{name}.json"])
    for each in draw(st.lists(st.sampled_from(sorted(ATTRIBUTES)), unique=True, min_size=1, max_size=2)):
        described["attributes"][each] = draw(st.sampled_from(ATTRIBUTES[each]))
    files[f"content-types/{name}.json"] = json.dumps(described)
    if draw(st.booleans()):
        files |= component("a.part", draw(st.sampled_from(PARTS)))
    if draw(st.booleans()):
        described["options"] = {"draftAndPublish": False} | draw(st.sampled_from(CHANGED_OPTIONS))
        files[f"content-types/{name}.json"] = json.dumps(described)
    return files


DOCUMENTS = st.dictionaries(
    st.tuples(st.sampled_from(["notes/", "notes/", "others/", ""]), NAMES),
    st.tuples(FRONT, st.sampled_from(["", "Text\n"])),
    min_size=3,
    max_size=8,
)


def told(root: Path) -> Any:
    """Return all documents and problems of a site, or None if its schema is rejected."""
    try:
        site = Site(root)
    except Exception as error:
        return str(error)
    site.load()
    tables = site.state.snapshot.tables
    rows = sorted((key, repr(d.row), d.path) for uid in tables for key, d in tables[uid].versions.items())
    return rows, site.problems


def age(root: Path) -> None:
    for path in root.rglob("*.md"):
        os.utime(path, (1_700_000_000, 1_700_000_000))


@settings(max_examples=examples(60), deadline=None)
@given(st.data(), types(), DOCUMENTS)
def test_what_is_used_again_is_what_would_be_read(
    data: st.DataObject, first: dict[str, str | bytes], documents: dict[tuple[str, str], tuple[Any, str]]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        texts = {
            f"content/{where}{name}.md": f"---\n{json.dumps(front)}\n---\n{text}"
            for (where, name), (front, text) in documents.items()
        }
        write(root, {"site.yaml": "locales: {available: [en, fr]}\n", **first, **texts})
        age(root)
        told(root)
        now = first
        for _ in range(3):
            now = data.draw(more(now))
            write(root, now)
            found = told(root)
            assert told(root) == found
            fresh = root / "fresh"
            shutil.copytree(root, fresh, ignore=shutil.ignore_patterns(".bifolio", "fresh"))
            assert told(fresh) == found
            shutil.rmtree(fresh)


NOTE = {"title": "string", "body": "richtext"}
FILES: dict[str, str | bytes] = {
    "content-types/note.json": schema("note", NOTE),
    "content-types/tag.json": schema("tag", {"name": "string"}),
    **{f"content/notes/{i}.md": f"---\ntitle: N{i}\n---\nText {i}\n" for i in range(10)},
    **{f"content/tags/{i}.md": f"---\nname: T{i}\n---\n" for i in range(10)},
    "content/notes/odd.md": "---\ntitle: Odd\nadded: 1\n---\n",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(tmp_path, FILES)
    age(tmp_path)
    told(tmp_path)
    return tmp_path


def read_by(root: Path, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Load a site, and return the paths of the files that are read."""
    found = set[str]()
    read = loading.Store.read

    def note(self: loading.Store, path: str) -> Any:
        found.add(path)
        return read(self, path)

    with monkeypatch.context() as patched:
        patched.setattr(loading.Store, "read", note)
        told(root)
    return {path.removeprefix("content/") for path in found}


@pytest.mark.parametrize(
    ("attributes", "read"),
    [
        (NOTE | {"added": {"type": "integer", "default": 3}}, {"notes/odd.md"}),
        ({"before": "string"} | NOTE | {"added": "integer"}, {"notes/odd.md"}),
        (NOTE | {"title": {"type": "string", "private": True, "unique": True}}, {"notes/odd.md"}),
        (NOTE | {"title": "text"}, {"notes/odd.md", *(f"notes/{i}.md" for i in range(10))}),
        ({"title": "string"}, {"notes/odd.md", *(f"notes/{i}.md" for i in range(10))}),
    ],
)
def test_only_what_another_schema_may_read_otherwise_is_read_again(
    root: Path, attributes: dict[str, Any], read: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "content-types/note.json").write_text(schema("note", attributes))
    assert read_by(root, monkeypatch) == read
    assert read_by(root, monkeypatch) == set()


def test_the_cache_does_not_grow_with_schemas_that_go_back_and_forth(root: Path) -> None:
    cache = root / ".bifolio/cache/documents"
    sizes = []
    for i in range(12):
        (root / "content-types/note.json").write_text(schema("note", NOTE if i % 2 else {"title": "text"}))
        told(root)
        sizes.append(cache.stat().st_size)
    assert max(sizes) < 4 * min(sizes)
