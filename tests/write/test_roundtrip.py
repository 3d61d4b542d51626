"""Values of every type in every file format: reading returns what was written, also after a restart."""

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from server.site.site import Site
from tests.examples import examples
from tests.sites import Api, make, schema

ATTRIBUTES = {
    "line": "string",
    "lines": "text",
    "body": "richtext",
    "data": "json",
    "whole": "integer",
    "big": "biginteger",
    "price": "decimal",
    "number": "float",
    "flag": "boolean",
    "rows": {"type": "component", "component": "shared.row", "repeatable": True},
}
ROW = '{"attributes": {"text": {"type": "text"}, "data": {"type": "json"}, "at": {"type": "time"}}}'
FORMATS: dict[str, dict[str, str]] = {
    "md": {},
    "yaml": {"format": "yaml"},
    "json": {"format": "json"},
    "toml": {"format": "toml"},
    "plus": {"frontMatter": "toml"},
}
TRICKY = [
    "NO",
    "1.10",
    "~",
    "null",
    "0x1F",
    "2024-01-01",
    "---",
    "...",
    "a: b",
    "# x",
    " x ",
    "\n",
    "a\r\nb",
    "\u2028",
]

# All values that JSON can contain, except null characters and unpaired surrogates, which are rejected.
characters = st.characters(blacklist_categories=("Cs",), blacklist_characters="\x00")
texts = st.one_of(st.sampled_from(TRICKY), st.text(characters, max_size=40))
integers = st.integers(-(10**40), 10**40)
decimals = st.decimals(allow_nan=False, allow_infinity=False, places=4, min_value=-(10**9), max_value=10**9)
floats = st.floats(allow_nan=False, allow_infinity=False, width=64)
json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**60), 2**60), floats, texts),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)),
    max_leaves=6,
)
rows = st.lists(st.fixed_dictionaries({"text": texts, "data": json_values}), max_size=2)
documents = st.fixed_dictionaries(
    {},
    optional={
        "line": texts,
        "lines": texts,
        "body": texts,
        "data": json_values,
        "whole": st.integers(-(2**53), 2**53),
        "big": integers.map(str),
        "price": decimals.map(lambda d: format(d, "f")),
        "number": floats,
        "flag": st.booleans(),
        "rows": rows,
    },
)


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Api:
    files: dict[str, str | bytes] = {
        f"content-types/{format_}.json": schema(f"{format_}-note", ATTRIBUTES, drafts=True, **options)
        for format_, options in FORMATS.items()
    }
    return make(tmp_path_factory.mktemp("site"), {**files, "content-types/components/shared/row.json": ROW})


def without_null(value: Any) -> Any:
    """Return a value in which 0 replaces every null."""
    if isinstance(value, dict):
        return {key: without_null(item) for key, item in value.items()}
    if isinstance(value, list):
        return [without_null(item) for item in value]
    return 0 if value is None else value


def check(shown: dict[str, Any], wanted: dict[str, Any]) -> None:
    for name, value in wanted.items():
        found = shown[name]
        if name == "price":
            assert found == Decimal(value)
        elif name == "rows":
            assert [(row["text"], row["data"]) for row in found] == [(r["text"], r["data"]) for r in value]
        else:
            assert found == value, name


def read(api: Api, path: str) -> dict[str, Any]:
    answer = api.get(path)
    assert answer.status == 200
    data: dict[str, Any] = json.loads(answer.raw, parse_float=Number)["data"]
    return data


class Number(float):
    """A float that is also equal to the decimal number with the same digits."""

    def __new__(cls, text: str) -> "Number":
        made = super().__new__(cls, text)
        made.exact = Decimal(text)
        return made

    exact: Decimal

    def __eq__(self, other: object) -> bool:
        return self.exact == other if isinstance(other, Decimal) else float(self) == other

    __hash__ = float.__hash__


@pytest.mark.parametrize("format_", FORMATS)
@settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(first=documents, second=documents)
@example(first={"data": {"\n": None}}, second={"data": {"\n": False}})  # a key that needs its own line
def test_what_is_written_reads_back(api: Api, format_: str, first: Any, second: Any) -> None:
    if format_ in ("toml", "plus"):  # TOML has no null.
        first, second = without_null(first), without_null(second)
    path = f"/api/{format_}-notes"
    new = api.post(path, first).data["documentId"]
    check(read(api, f"{path}/{new}?populate=*"), first)
    assert api.put(f"{path}/{new}", second).status == 200
    wanted = {**first, **second}
    check(read(api, f"{path}/{new}?populate=*"), wanted)
    again = Site(api.root)
    again.load()
    type_ = again.state.schema.endpoints[f"{format_}-notes"]
    restarted = again.state.snapshot.get(type_, new, "en", "published")
    shown = api.site.state.snapshot.get(
        api.site.state.schema.endpoints[f"{format_}-notes"], new, "en", "published"
    )
    assert restarted is not None
    assert shown is not None
    assert repr(restarted.row) == repr(shown.row)
    assert api.ask("DELETE", f"{path}/{new}").status == 204
