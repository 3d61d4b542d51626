"""Arbitrary values in an archive: each is imported unchanged, or one line reports why it is not."""

import copy
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from server.errors import SetupError
from server.site.site import Site
from server.tools.importer.importing import ImportOptions, import_source
from server.tools.importer.readers.archive import Archive
from tests.examples import examples
from tests.tools.importer.archives import TIMESTAMPS, link, small

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
odd = st.sampled_from(
    ["no", "1.10", "---", "a: b", "#", "\n\n", " x ", "a\r\nb", "\t", "12:30", "~", "é", "𝄞", "\0"]
)
words = st.none() | text | odd
json_value = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=6,
)
PART = {"label": {"type": "string"}, "long": {"type": "text"}}
ATTRIBUTES: dict[str, Any] = {
    "title": {"type": "string"},
    "long": {"type": "text"},
    "body": {"type": "richtext"},
    "count": {"type": "integer"},
    "ratio": {"type": "float"},
    "yes": {"type": "boolean", "default": True},
    "colour": {"type": "enumeration", "enum": ["red", "no"], "default": "red"},
    "data": {"type": "json"},
    "one": {"type": "component", "component": "a.part", "repeatable": False},
    "many": {"type": "component", "component": "a.part", "repeatable": True},
    "zone": {"type": "dynamiczone", "components": ["a.part"]},
    "tags": {"type": "relation", "relation": "manyToMany", "target": "api::note.note"},
}
SCHEMAS = {
    "a.part": {"attributes": PART, "info": {"displayName": "part"}, "collectionName": "parts"},
    "api::note.note": ATTRIBUTES,
}
part = st.fixed_dictionaries({"id": st.integers(1, 9), "label": words, "long": words})
row = st.fixed_dictionaries(
    {
        "title": words,
        "long": words,
        "body": words,
        "count": st.none() | st.integers(-(2**53), 2**53),
        "ratio": st.none() | st.floats(allow_nan=False, allow_infinity=False),
        "yes": st.none() | st.booleans(),
        "colour": st.sampled_from([None, "red", "no"]),
        "data": json_value,
        "one": st.none() | part,
        "many": st.lists(part, max_size=3),
        "zone": st.lists(part.map(lambda p: {**p, "__component": "a.part"}), max_size=3),
    }
)
slowly = settings(
    max_examples=examples(25), suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


@slowly
@given(st.lists(row, min_size=1, max_size=3))
def test_what_is_said_there_is_said_here(rows: list[dict[str, Any]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "site")
        root.mkdir()
        entities = [("api::note.note", i, {"documentId": f"n{i}", **data}) for i, data in enumerate(rows, 1)]
        path = small(Path(folder, "a.tar.gz"), SCHEMAS, entities)
        first = import_source(root, Archive(path), ImportOptions(), lambda *_: None)
        assert list(first.source.notes) == []
        site = Site(root)
        site.load()
        assert [p for p in site.problems if p.severity == "error"] == []
        found = {d.document_id: d for d in site.state.snapshot.tables["api::note.note"].versions.values()}
        for i, data in enumerate(rows, 1):
            for name in ("title", "long", "body", "count", "yes", "colour", "data"):
                assert found[f"n{i}"].get(name) == data[name], name
            assert found[f"n{i}"].get("ratio") == data["ratio"]
            assert _parts(found[f"n{i}"].get("many")) == [[p["label"], p["long"]] for p in data["many"]]
            assert _parts(found[f"n{i}"].get("zone")) == [[p["label"], p["long"]] for p in data["zone"]]
            assert found[f"n{i}"].get("createdAt") == TIMESTAMPS["createdAt"]
        assert import_source(root, Archive(path), ImportOptions(), lambda *_: None).file_count == 0


def _parts(components: Any) -> list[Any]:
    return [list(component.values) for component in components]


anything = st.none() | st.booleans() | st.integers(-3, 3) | text | odd | st.lists(text, max_size=2)
anything |= st.dictionaries(st.sampled_from(["id", "type", "documentId", "ref", "x"]), text, max_size=2)


@settings(slowly, max_examples=examples(60))
@given(st.data())
def test_an_archive_that_says_anything_is_refused_or_read(data: st.DataObject) -> None:
    said: dict[str, Any] = {
        "schemas": copy.deepcopy(SCHEMAS),
        "rows": [
            ("api::note.note", 1, {"documentId": "n1", "title": "x", "one": {"id": 1, "label": "a"}}),
            ("plugin::upload.file", 2, {"hash": "h", "ext": ".txt", "name": "n", "formats": {}, "size": 1}),
            ("plugin::i18n.locale", 3, {"code": "fr"}),
            ("plugin::users-permissions.role", 4, {"type": "public"}),
            ("plugin::users-permissions.permission", 5, {"action": "api::note.note.find"}),
        ],
        "links": [
            link(("api::note.note", 1, "tags"), ("api::note.note", 1, None)),
            link(
                ("plugin::users-permissions.permission", 5, "role"),
                ("plugin::users-permissions.role", 4, None),
            ),
        ],
    }
    for _ in range(data.draw(st.integers(1, 3))):
        _spoil(said, data)
    with tempfile.TemporaryDirectory() as folder:
        path = small(Path(folder, "a.tar.gz"), said["schemas"], said["rows"], said["links"], {"h.txt": b"x"})
        root = Path(folder, "site")
        root.mkdir()
        try:
            import_source(root, Archive(path), ImportOptions(), lambda *_: None)
        except SetupError as error:
            assert "\n" not in str(error)  # noqa: PT017
            assert not (root / "content").exists()


def _spoil(said: dict[str, Any], data: st.DataObject) -> None:
    """Replace a random part of an archive with a random value."""
    parts = [said["schemas"], *(row[2] for row in said["rows"]), *said["links"]]
    places = [place for part in parts for place in _places(part)]
    container, key = data.draw(st.sampled_from(places))
    container[key] = data.draw(anything)


def _places(inside: Any) -> Iterator[tuple[Any, Any]]:
    keys = inside if isinstance(inside, dict) else range(len(inside))
    for key in keys:
        yield inside, key
        if isinstance(inside[key], dict | list):
            yield from _places(inside[key])
