"""Tests of merging two changes to a document, which succeeds unless both changed the same value."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.documents.three_way_merge import Conflict, MergeResult, merge
from server.documents.values import Component
from server.schema.model import Attribute, Type

QUOTE = Type(
    "shared.quote", "component", "quote", "", "Quote", {n: Attribute(n, "string") for n in ("text", "by")}
)
PART = Type(
    "shared.part",
    "component",
    "part",
    "",
    "Part",
    {
        "title": Attribute("title", "string"),
        "quotes": Attribute("quotes", "component", component="shared.quote", repeatable=True),
    },
)
PAGE = Type(
    "api::page.page",
    "collectionType",
    "page",
    "pages",
    "Page",
    {
        "title": Attribute("title", "string"),
        "count": Attribute("count", "integer"),
        "body": Attribute("body", "richtext"),
        "data": Attribute("data", "json"),
        "blocks": Attribute("blocks", "blocks"),
        "author": Attribute("author", "relation", relation="manyToOne", target="api::page.page"),
        "tags": Attribute("tags", "relation", relation="manyToMany", target="api::page.page"),
        "linking": Attribute(
            "linking", "relation", relation="manyToMany", target="api::page.page", mapped_by="tags"
        ),
        "files": Attribute("files", "media", multiple=True),
        "part": Attribute("part", "component", component="shared.part"),
        "quotes": Attribute("quotes", "component", component="shared.quote", repeatable=True),
        "zone": Attribute("zone", "dynamiczone", components=("shared.quote", "shared.part")),
    },
)
EMPTY: dict[str, Any] = {
    **dict.fromkeys(PAGE.attributes),
    **dict.fromkeys(("author", "tags", "linking", "files", "quotes", "zone"), ()),
}
Changes = Mapping[str, Any]


def merge_lines(base: str, ours: str, theirs: str) -> str | None:
    """A simplified line merge for texts with the same number of lines: each line is one value."""
    rows = list(zip(base.split("\n"), ours.split("\n"), theirs.split("\n"), strict=True))
    if any(o not in (b, t) and t != b for b, o, t in rows):
        return None
    return "\n".join(t if o == b else o for b, o, t in rows)


def merged(base: Changes, ours: Changes, theirs: Changes, *, by_id: bool = False) -> MergeResult:
    old = {**EMPTY, **base}
    return merge(PAGE, old, {**old, **ours}, {**old, **theirs}, merge_lines, ids_match=by_id)


def quote(text: str, by: str = "", number: int = 0) -> Component:
    return Component(QUOTE, (number, text, by))


def part(title: str, *quotes: Component, number: int = 0) -> Component:
    return Component(PART, (number, title, quotes))


def quotes(texts: str) -> tuple[Component, ...]:
    """Return a quote component for each letter in `texts`. Its id is its position."""
    return tuple(quote(text, "ann", number) for number, text in enumerate(texts))


CHANGED: Mapping[str, tuple[Any, Any]] = {
    "title": ("One", "Two"),
    "count": (1, 2),
    "body": ("a\nb", "a\nc"),
    "data": ({"a": 1}, {"a": True}),
    "blocks": ([{"type": "paragraph"}], [{"type": "quote"}]),
    "author": (("ann",), ("bob",)),
    "tags": (("a", "b"), ("b", "c")),
    "files": (("1", "2"), ("2",)),
    "part": (part("One", quote("x")), part("Two", quote("x"))),
    "quotes": (quotes("ab"), quotes("bc")),
    "zone": ((part("One"), quote("x")), (quote("x"),)),
}
VALUES = {**EMPTY, **{name: old for name, (old, _) in CHANGED.items()}}
NAMES = st.sets(st.sampled_from(sorted(CHANGED)))


@given(NAMES, NAMES)
def test_changes_of_different_attributes_are_both_there(mine: set[str], other: set[str]) -> None:
    ours = {**VALUES, **{name: CHANGED[name][1] for name in mine}}
    theirs = {**VALUES, **{name: CHANGED[name][1] for name in other}}
    both = {**VALUES, **{name: CHANGED[name][1] for name in mine | other}}
    for one, two in ((ours, theirs), (theirs, ours)):
        assert merge(PAGE, VALUES, one, two, merge_lines) == MergeResult(both)


@pytest.mark.parametrize("name", ["title", "count", "data", "blocks", "author"])
def test_a_value_that_both_have_changed_is_a_conflict(name: str) -> None:
    old, new = CHANGED[name]
    found = merged({name: new}, {name: old}, {name: EMPTY[name]})
    assert found.conflicts == (Conflict((name,), new, old, EMPTY[name]),)
    assert merged({name: new}, {name: old}, {name: old}).conflicts == ()


def test_true_is_not_one() -> None:
    assert merged({"data": 0}, {"data": 1}, {"data": True}).conflicts == (Conflict(("data",), 0, 1, True),)


def test_a_text_is_merged_by_line() -> None:
    found = merged({"body": "a\nb\nc"}, {"body": "A\nb\nc"}, {"body": "a\nb\nC"})
    assert found == MergeResult({**EMPTY, "body": "A\nb\nC"})
    assert merged({"body": "a\nb"}, {"body": "A\nb"}, {"body": "x\nb"}).conflicts
    assert merged({"body": "a\nb"}, {"body": "A\nb"}, {"body": None}).conflicts
    # a string is one value, so it can't be merged by line
    assert merged({"title": "a\nb"}, {"title": "A\nb"}, {"title": "a\nB"}).conflicts


def test_relations_and_media_are_merged_by_what_they_name() -> None:
    found = merged(
        {"tags": ("a", "b"), "files": ("1",)},
        {"tags": ("b", "x"), "files": ("1", "2")},
        {"tags": ("a", "b", "y"), "files": ()},
    )
    assert found == MergeResult({**EMPTY, "tags": ("b", "y", "x"), "files": ("2",)})
    moved = merged({"tags": ("a", "b", "c")}, {"tags": ("b", "c", "a")}, {"tags": ("c", "a", "b")})
    assert moved.conflicts == (Conflict(("tags",), ("a", "b", "c"), ("b", "c", "a"), ("c", "a", "b")),)


def test_relations_that_others_store_are_theirs() -> None:
    found = merged({"linking": ("a",)}, {"linking": ("b",)}, {"linking": ("c",)})
    assert found == MergeResult({**EMPTY, "linking": ("c",)})


def test_a_component_is_merged_by_attribute() -> None:
    base = part("One", quote("x", "ann"))
    found = merged(
        {"part": base}, {"part": part("Two", quote("x", "ann"))}, {"part": part("One", quote("x", "bob"))}
    )
    assert found == MergeResult({**EMPTY, "part": part("Two", quote("x", "bob"))})
    inner = merged(
        {"part": base}, {"part": part("One", quote("y", "ann"))}, {"part": part("One", quote("z", "ann"))}
    )
    assert [conflict.path for conflict in inner.conflicts] == [("part", "quotes", 0, "text")]
    gone = merged({"part": base}, {"part": None}, {"part": part("Two")})
    assert gone.conflicts == (Conflict(("part",), base, None, part("Two")),)


@pytest.mark.parametrize(
    ("ours", "theirs", "after"),
    [
        ("abcx", "abc", "abcx"),
        ("xabc", "abcy", "xabcy"),
        ("abcx", "abcx", "abcx"),  # both added the same
        ("ac", "bc", "c"),
        ("cab", "abcx", "cabx"),
        ("axc", "abcy", "axcy"),  # x replaces b
        ("", "abcx", "x"),
    ],
)
def test_lists_of_components_have_what_both_added(ours: str, theirs: str, after: str) -> None:
    found = merged({"quotes": quotes("abc")}, {"quotes": quotes(ours)}, {"quotes": quotes(theirs)})
    assert found == MergeResult({**EMPTY, "quotes": quotes(after)})


def test_a_component_that_moved_is_changed_where_it_is_now() -> None:
    base = (quote("a", "ann", 1), quote("b", "ann", 2), quote("c", "ann", 3))
    moved = (quote("c", "ann", 1), quote("a", "ann", 2), quote("b", "ann", 3))
    changed = (quote("a", "bob", 1), quote("b", "ann", 2), quote("c", "cy", 3))
    for ours, theirs in ((moved, changed), (changed, moved)):
        values = merged({"quotes": base}, {"quotes": ours}, {"quotes": theirs}).values
        assert values
        assert values["quotes"] == (quote("c", "cy"), quote("a", "bob"), quote("b", "ann"))


def test_ids_say_which_component_of_the_base_it_is() -> None:
    base = (quote("a", "x", 1), quote("b", "y", 2))
    ours = (quote("B", "Y", 2), quote("new", "", 99), quote("a", "x", 1))
    theirs = (quote("front", "", 1), quote("a", "z", 2), quote("b", "y", 3))
    found = merged({"quotes": base}, {"quotes": ours}, {"quotes": theirs}, by_id=True)
    assert found.conflicts == ()
    assert found.values
    after = found.values["quotes"]
    assert [(c.row[1], c.row[2]) for c in after] == [("front", ""), ("B", "Y"), ("new", ""), ("a", "z")]
    assert [c.id for c in after] == [1, 3, 99, 2]  # ids from their side, because their file is written


def test_a_component_that_one_deleted_and_the_other_changed_is_a_conflict() -> None:
    base, changed = quotes("ab"), (quote("a", "bob"), quote("b", "ann"))
    found = merged({"quotes": base}, {"quotes": base[1:]}, {"quotes": changed})
    assert found.conflicts == (Conflict(("quotes", 0), base[0], None, changed[0]),)
    found = merged({"quotes": base}, {"quotes": changed}, {"quotes": base[1:]})
    assert found.conflicts == (Conflict(("quotes", 0), base[0], changed[0], None),)


def test_entries_of_a_zone_are_merged_by_kind() -> None:
    base = (part("One"), quote("a", "ann"))
    ours = (part("Uno"), quote("a", "ann"))
    theirs = (quote("new", "cy"), part("One"), quote("a", "bob"))
    found = merged({"zone": base}, {"zone": ours}, {"zone": theirs})
    assert found == MergeResult({**EMPTY, "zone": (quote("new", "cy"), part("Uno"), quote("a", "bob"))})


def test_a_document_that_one_side_has_deleted_or_added() -> None:
    old, new = EMPTY, {**EMPTY, "title": "New"}
    assert merge(PAGE, old, None, old, merge_lines) == MergeResult(None)
    assert merge(PAGE, old, old, None, merge_lines) == MergeResult(None)
    assert merge(PAGE, old, None, None, merge_lines) == MergeResult(None)
    assert merge(PAGE, None, new, None, merge_lines) == MergeResult(new)
    assert merge(PAGE, None, None, new, merge_lines) == MergeResult(new)
    assert merge(PAGE, old, None, new, merge_lines) == MergeResult(new, (Conflict((), old, None, new),))
    assert merge(PAGE, old, new, None, merge_lines) == MergeResult(None, (Conflict((), old, new, None),))
    both = merge(PAGE, None, {**EMPTY, "title": "A"}, {**EMPTY, "count": 1}, merge_lines)
    assert both == MergeResult({**EMPTY, "title": "A", "count": 1})
    apart = merge(PAGE, None, {**EMPTY, "title": "A"}, {**EMPTY, "title": "B"}, merge_lines)
    assert apart.conflicts == (Conflict(("title",), None, "A", "B"),)


LISTS = st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from("xyz")), max_size=6)


def listed(rows: list[tuple[str, str]]) -> tuple[Component, ...]:
    return tuple(quote(text, by, number) for number, (text, by) in enumerate(rows))


@given(LISTS, LISTS, LISTS)
def test_no_component_is_made_up_or_lost(
    base: list[tuple[str, str]], ours: list[tuple[str, str]], theirs: list[tuple[str, str]]
) -> None:
    first, mine, other = listed(base), listed(ours), listed(theirs)
    found = merged({"quotes": first}, {"quotes": mine}, {"quotes": other})
    assert found.values
    after = found.values["quotes"]
    if mine == first or other == first:
        assert after == (other if mine == first else mine)
    if not found.conflicts:
        texts = {component.values[0] for component in (*first, *mine, *other)}
        assert {component.values[0] for component in after} <= texts
        # Each text or name that one side added must be in the result, unless the merge was rejected.
        for one in (mine, other):
            new = {c.values[0] for c in one} - {c.values[0] for c in first}
            assert new <= {c.values[0] for c in after}
