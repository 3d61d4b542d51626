"""Changes to an attribute: only the lines of this attribute may change, no matter who wrote the file."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.sites import Api, collection, make

ATTRIBUTES = {
    "title": "string",
    "note": "text",
    "count": "integer",
    "ratio": "float",
    "open": "boolean",
    "day": "date",
    "kind": {"type": "enumeration", "enum": ["red", "green"]},
}
TEXTS = st.text(
    st.characters(codec="utf-8", categories=("L", "N", "P", "Zs"), exclude_characters="\u3000"), max_size=12
)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "title": TEXTS,
    "note": st.lists(TEXTS.filter(str.strip), min_size=1, max_size=3).map("\n".join),
    "count": st.integers(-(10**6), 10**6),
    "ratio": st.floats(-1e6, 1e6, allow_nan=False).map(lambda number: round(number, 3)),
    "open": st.booleans(),
    "day": st.dates().map(lambda day: f"{day.year:04d}-01-{day.day:02d}").filter(lambda day: day > "1000"),
    "kind": st.sampled_from(["red", "green"]),
}
UNKNOWN = st.sampled_from(["weight", "layout", "x-y", "Menu"])
ENDINGS = ("json", "yaml", "md", "toml")
STAMPS = {"createdAt": "2024-01-22T08:00:00.000Z", "updatedAt": "2024-01-22T08:00:00.000Z"}


@st.composite
def written(draw: st.DrawFn) -> tuple[str, str, dict[str, list[str]]]:
    """Draw a file as a person might write it. Return its file extension, its text, and the lines of each
    key.
    """
    ending = draw(st.sampled_from(ENDINGS))
    known = draw(st.lists(st.sampled_from(list(ATTRIBUTES)), min_size=1, unique=True))
    values = {name: draw(VALUES[name]) for name in known} | STAMPS
    values |= {name: draw(TEXTS) for name in draw(st.lists(UNKNOWN, unique=True))}
    keys = draw(st.permutations(list(values)))
    spaces = draw(st.lists(st.integers(1, 4), min_size=len(keys), max_size=len(keys)))
    lines: dict[str, list[str]] = {}
    for key, space in zip(keys, spaces, strict=True):
        last = key == keys[-1]
        lines[key] = [
            f"{entry(ending, key, values[key], ' ' * space)}{',' * (ending == 'json' and not last)}"
        ]
        if ending != "json" and draw(st.booleans()):
            lines[key][0] += f"  # about {key}"
    inside = [line for key in keys for line in lines[key]]
    opening, closing = {"json": (["{"], ["}"]), "md": (["---"], ["---", "", "The body."])}.get(
        ending, ([], [])
    )
    end = draw(st.sampled_from(["\n", "\r\n"]))
    return ending, end.join([*opening, *inside, *closing, ""]), lines


def entry(ending: str, key: str, value: Any, space: str) -> str:
    """Return the line for a key in the file format."""
    said = json.dumps(value, ensure_ascii=False)
    if ending == "json":
        return f'{space}"{key}":{space}{said}'
    return f"{key} ={space}{said}" if ending == "toml" else f"{key}:{space}{said}"


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    made = make(tmp_path_factory.mktemp("lines"), collection("note", ATTRIBUTES))
    (made.root / "content/notes").mkdir(parents=True)
    yield made
    made.accounts.close()


@settings(max_examples=examples(150), deadline=None)
@given(file=written(), data=st.data())
def test_one_attribute_changes_its_own_lines(
    api: Api, file: tuple[str, str, dict[str, list[str]]], data: st.DataObject
) -> None:
    ending, text, lines = file
    path = f"content/notes/one.{ending}"
    for other in (api.root / "content/notes").iterdir():
        other.unlink()
    (api.root / path).write_bytes(text.encode())
    api.site.refresh()
    name = data.draw(st.sampled_from([key for key in lines if key in ATTRIBUTES]))
    value = data.draw(VALUES[name])
    answer = api.ask("PUT", "/api/notes/one?dryRun=true", json={"data": {name: value}})
    for changed in answer.data["files"]:
        assert changed["path"] == path
        removed = [line[1:].removesuffix("\r") for line in changed["lines"] if line.startswith("-")]
        kept = [line for key in lines if key not in (name, "updatedAt") for line in lines[key]]
        assert [line for line in removed if line in kept] == []
        ends = {line.endswith("\r") for line in changed["lines"] if line[0] in "+-"}
        assert ends == {"\r\n" in text}
