"""Packed values: every worker shows the values that another worker has read or written, for all attribute
types.
"""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from server.schema.model import ATTRIBUTE_TYPES, POLYMORPHIC
from server.site.change_log import ChangeLog
from server.site.site import Site
from tests.examples import examples
from tests.site.cluster import show
from tests.sites import STRING, Api, collection, component, documents, load, write

# For each type: its options, values as JSON, and scalars that YAML allows without quotes.
VALUES: dict[str, tuple[dict[str, Any], list[Any], list[str]]] = {
    "string": ({}, ["", "a", "é", "𝄞", "1.10"], ["plain", "NO", "1.10", "~"]),
    "text": ({}, ["two\nlines"], ["plain", "0x10"]),
    "richtext": ({}, ["# One\n\n*two*"], ["plain"]),
    "blocks": (
        {},
        [[{"type": "paragraph", "children": [{"type": "text", "text": "a", "bold": True}]}]],
        ["[{type: heading, level: 2, children: [{type: text, text: 1.5}]}]"],
    ),
    "enumeration": ({"enum": ["a", "no", "one"]}, ["a", "no"], ["no", "one"]),
    "email": ({}, ["ann@example.org"], ["ann@example.org"]),
    "password": ({}, ["secret12"], ["$2b$04$" + "a" * 53]),
    "uid": ({}, ["a-b"], ["a-b", "12"]),
    "date": ({}, ["2024-02-29"], ["2024-02-29"]),
    "time": ({}, ["10:20:30"], ["10:20", "10:20:30.5"]),
    "datetime": ({}, ["2024-02-29T10:20:30Z"], ["2024-02-29", "2024-02-29T10:20:30Z"]),
    "timestamp": ({}, ["2024-02-29T10:20:30Z"], ["2024-02-29 10:20:30"]),
    "integer": ({}, [0, -7, 2**31 - 1], ["0x1F", "-7", "1e3"]),
    "biginteger": ({}, ["9007199254740993", 5], ["99999999999999999999", "5"]),
    "float": ({}, [0, 1.5, -1e300], ["1", ".5", "1e-3"]),
    "decimal": ({}, [1.5, 3], ["1.50", "3", "0.1000"]),
    "boolean": ({}, [True, False], ["yes", "false"]),
    "array": ({}, [[], [1, "a", None, [True]]], ["[1, a, 1.50, ~]"]),
    "json": (
        {},
        [{"a": [1, 1.5, None]}, "text", 0, [], True],
        ["{a: [1.50, yes, {b: plain}]}", "plain", "1.50"],
    ),
    "relation": (
        {"relation": "manyToMany", "target": "api::tag.tag"},
        [["red"], ["red", "blue"], []],
        ["[red, blue]"],
    ),
    "media": ({"multiple": True}, [], ["[a.txt]", "a.txt"]),
}
RED, BLUE = ({"__type": "api::tag.tag", "documentId": name} for name in ("red", "blue"))
MORPHS: dict[str, tuple[str, list[Any], list[str]]] = {
    "one": ("morphToOne", [RED], ["{__type: api::tag.tag, documentId: red}"]),
    "many": (
        "morphToMany",
        [[RED, BLUE], []],
        ["[{__type: api::tag.tag, documentId: red}]", "[{documentId: 12, __type: api::tag.tag}]"],
    ),
}
SCALAR = {name: {"type": name, **options} for name, (options, _, _) in VALUES.items()}
MORPH = {name: {"type": "relation", "relation": kind} for name, (kind, _, _) in MORPHS.items()}
INNER = {"inner": {"type": "component", "component": "part.inner", "repeatable": True}}
SITE: dict[str, str] = {
    **collection("tag", {"name": STRING}),
    **documents("tags", red={"name": "Red"}, blue={"name": "Blue"}, **{"12": {"name": "Twelve"}}),
    **component("part.inner", SCALAR),
    **component("part.outer", {**SCALAR, **INNER}),
    **collection(
        "note",
        {
            **SCALAR,
            **MORPH,
            "component": {"type": "component", "component": "part.outer"},
            "dynamiczone": {"type": "dynamiczone", "components": ["part.inner", "part.outer"]},
        },
        drafts=True,
    ),
    "content/uploads/a.txt": "text",
    "site.yaml": "search: {index: false}\n",
}


def in_json(name: str) -> st.SearchStrategy[Any]:
    """Return a strategy for an attribute's values, as in JSON."""
    values = VALUES[name][1] if name in VALUES else MORPHS[name][1]
    return st.sampled_from([None, *values])


def as_text(value: Any) -> str:
    """Return a value as JSON, which is valid YAML."""
    return json.dumps(value, ensure_ascii=False)


def in_yaml(name: str) -> st.SearchStrategy[str]:
    """Return a strategy for the YAML text of an attribute's value: either without quotes, or as JSON."""
    plain = VALUES[name][2] if name in VALUES else MORPHS[name][2]
    return st.sampled_from(plain) | in_json(name).map(as_text)


def some_of(names: Iterator[str] | dict[str, Any], make: Any) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional={name: make(name) for name in names})


def nested(make: Any, listed: Any, mapped: Any) -> st.SearchStrategy[dict[str, Any]]:
    """Return a strategy for the values of a note with components.

    `listed` and `mapped` convert lists and mappings to the required form.
    """
    inner = some_of(SCALAR, make)
    outer = st.tuples(inner, st.lists(inner.map(mapped), max_size=2)).map(
        lambda both: mapped({**both[0], "inner": listed(both[1])})
    )
    zone = st.lists(
        inner.map(lambda values: mapped({"__component": "part.inner", **values}))
        | inner.map(lambda values: mapped({"__component": "part.outer", **values})),
        max_size=2,
    )
    parts = {"component": outer, "dynamiczone": zone.map(listed)}
    whole = st.tuples(some_of({**SCALAR, **MORPH}, make), st.fixed_dictionaries({}, optional=parts))
    return whole.map(lambda both: {**both[0], **both[1]})


def lines_of(values: dict[str, str]) -> str:
    return "".join(f"{name}: {text}\n" for name, text in values.items())


def flow(values: dict[str, str]) -> str:
    return "{" + ", ".join(f"{name}: {text}" for name, text in values.items()) + "}"


AS_JSON = nested(in_json, lambda values: values, lambda values: values)
AS_YAML = nested(in_yaml, lambda values: f"[{', '.join(values)}]", flow)
FILES = (
    AS_JSON.map(lambda values: ("json", json.dumps(values)))
    | AS_YAML.map(lambda values: ("yaml", lines_of(values) or "{}\n"))
    | AS_YAML.map(lambda values: ("md", f"---\n{lines_of(values)}---\nBody\n"))
)


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Api, Site]]:
    """Two workers of one server. The first one reads and writes."""
    root = tmp_path_factory.mktemp("site")
    write(root, SITE)
    one, other = load(root, {}), load(root, {})
    with closing(ChangeLog()) as log:
        one.share(log)
        other.share(log)
        api = Api.of(one)
        yield api, other
        api.accounts.close()


def assert_same(one: Site, other: Site) -> None:
    """Let one worker apply what the other has recorded. This must work without reading the files."""
    assert repr(show(other._replica.current())) == repr(show(one.state))
    assert other.problems == one.problems


def test_every_type_of_attribute_is_tried() -> None:
    assert {*VALUES, "component", "dynamiczone"} == set(ATTRIBUTE_TYPES)
    assert {kind for kind, _, _ in MORPHS.values()} == POLYMORPHIC


@settings(derandomize=True, max_examples=examples(150), database=None)
@given(file=FILES)
def test_what_is_read_from_a_file_is_shown_by_all(file: tuple[str, str], sites: tuple[Api, Site]) -> None:
    one, other = sites[0].site, sites[1]
    path = one.root / f"content/notes/read.{file[0]}"
    path.parent.mkdir(exist_ok=True)
    for before in path.parent.glob("read.*"):
        before.unlink()
    path.write_text(file[1])
    one.refresh()
    assert_same(one, other)


@pytest.mark.parametrize("ending", ["json", "yaml", "md"])
@settings(derandomize=True, max_examples=examples(60), database=None)
@given(data=AS_JSON)
def test_what_is_written_is_shown_by_all(ending: str, data: dict[str, Any], sites: tuple[Api, Site]) -> None:
    api, other = sites
    path = f"content/notes/{ending}.{ending}"
    if not (api.root / path).exists():
        write(api.root, {path: {"json": "{}", "yaml": "{}\n", "md": "---\n---\n"}[ending]})
        api.site.refresh()
    answer = api.put(f"/api/notes/{ending}?status=draft", data)
    assert answer.status == 200, answer.body
    assert_same(api.site, other)


def test_values_of_each_type_were_shown(tmp_path: Path) -> None:
    """Check that all sample values are valid. Otherwise, the tests above would have tested nothing."""
    for name, (_, values, plain) in {**VALUES, **{n: ({}, v, p) for n, (_, v, p) in MORPHS.items()}}.items():
        texts = [*plain, *map(as_text, values)]
        lines = {f"content/notes/{name}-{i}.yaml": f"{name}: {text}\n" for i, text in enumerate(texts)}
        write(tmp_path, {**SITE, **lines})
    site = load(tmp_path, {})
    assert [problem for problem in site.problems if problem.severity == "error"] == []
