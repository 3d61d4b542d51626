"""Relations in a request body: how they change the existing targets."""

from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.errors import ValidationError
from server.schema.model import Attribute
from server.write.relation_input import POSITIONS, Connect, Links, read_links
from tests.waiting import computing_less_than


def resolve(attribute: Attribute, item: Any, path: Any, existing: bool) -> Any:
    return item["documentId"] if isinstance(item, dict) else item


def change(value: Any, current: str = "abc", *, to_many: bool = True) -> str:
    links = read_links(Attribute("a", "relation"), value, ("a",), resolve)
    return "".join(links.apply(tuple(current), to_many=to_many))


def placed(target: str, **position: Any) -> dict[str, Any]:
    return {"documentId": target, "position": position}


@pytest.mark.parametrize(
    ("value", "targets"),
    [
        ({"set": ["d"], "connect": ["e"]}, "d"),  # if there is `set`, everything else is ignored
        ({"set": ["d", "e"], "disconnect": ["d"]}, "de"),
        ({"set": [], "connect": ["e"]}, ""),
        ({"set": None, "connect": ["e"]}, "abce"),
        ({"set": None}, "abc"),
        ({}, "abc"),
        ({"connect": ["a"]}, "bca"),  # a target that is connected again moves to the end
        ({"connect": ["e"], "disconnect": ["e"]}, "abce"),
        ({"connect": ["a"], "disconnect": ["a"]}, "bca"),
        ({"connect": [placed("d", before="e"), "e"]}, "abcde"),
        ({"connect": [placed("d", after="e"), placed("e", start=True)]}, "edabc"),
        ({"connect": [placed("d", before="a"), placed("e", before="a")]}, "deabc"),
        ({"connect": [placed("d", after="a")], "disconnect": ["a"]}, "dbc"),
        ({"connect": [placed("c", start=True)]}, "cab"),
        ({"connect": [placed("a", end=True)]}, "bca"),
        ({"connect": [placed("d")]}, "abcd"),
        ([None], ""),
        (["d", None], "d"),
        ({"connect": [None]}, "abc"),
        (None, ""),
    ],
)
def test_many(value: Any, targets: str) -> None:
    assert change(value) == targets


@pytest.mark.parametrize(
    ("value", "target"),
    [
        ({"connect": [placed("w", before="v")]}, "w"),  # a to-one relation has only one position
        ({"connect": [placed("w", start=True)]}, "w"),
        ({"connect": ["w", "x"]}, "x"),
        ({"set": ["w"], "connect": ["x"]}, "w"),
        ({"disconnect": ["v"]}, ""),
        ({"disconnect": ["w"]}, "v"),
        ({"connect": ["v"], "disconnect": ["v"]}, "v"),
        ({"set": None}, "v"),
        ([None], ""),
    ],
)
def test_one(value: Any, target: str) -> None:
    assert change(value, "v", to_many=False) == target


@pytest.mark.parametrize(
    "connect",
    [
        [placed("d", before="e")],
        [placed("d", before="e"), placed("e", before="d")],
        [placed("a", after="a")],
        [placed("d", befor="a")],
    ],
)
def test_a_place_next_to_nothing_is_refused(connect: Any) -> None:
    with pytest.raises(ValidationError):
        change({"connect": connect})


@pytest.mark.parametrize(
    ("connect", "message"),
    [
        ([placed("d", before="e")], '"d" can\'t be placed next to "e", which is not connected'),
        ([placed("d", before="e"), placed("e", before="f")], '"e" can\'t be placed next to "f"'),
        ([placed("d", before="e"), placed("e", before="d")], "A circular reference was found"),
        ([placed("d", before="e"), placed("e", after="f"), placed("f", after="e")], "A circular reference"),
        ([placed("d", before="d")], "A circular reference was found"),
    ],
)
def test_an_error_tells_a_circle_from_what_is_missing(connect: Any, message: str) -> None:
    with pytest.raises(ValidationError, match=f"^{message}"):
        change({"connect": connect})


TARGETS = st.sampled_from("abcdefgh")
CONNECTS = st.lists(st.builds(Connect, TARGETS, st.sampled_from(POSITIONS), TARGETS), max_size=8)


def plainly(current: str, connects: list[Connect], gone: str) -> str | None:
    """Apply a change in the simplest way, as a specification.

    Return the resulting targets, or None if a position refers to a target that does not exist.
    """
    targets, waiting = list(current), connects
    while waiting:
        there = set(targets)
        ready = [c for c in waiting if c.position in ("start", "end") or c.neighbor in there]
        if not ready:
            return None
        for connect in ready:
            if connect.target in targets:
                targets.remove(connect.target)
            beside = targets.index(connect.neighbor) if connect.position in ("before", "after") else 0
            places = {"start": 0, "end": len(targets), "before": beside, "after": beside + 1}
            targets.insert(places[connect.position], connect.target)
        waiting = [c for c in waiting if c not in ready]
    return "".join(t for t in targets if t not in gone or t in {c.target for c in connects})


@given(st.sets(TARGETS), CONNECTS)
def test_without_errors_each_target_is_connected_wherever_the_neighbours_are(
    current: set[str], said: list[Connect]
) -> None:
    connects = [c for c in said if c.target != c.neighbor]
    before = tuple(sorted(current))
    links = Links(None, tuple(connects), strict=False)
    after = links.apply(before, to_many=True)
    assert {*after} == {*before, *(connect.target for connect in connects)}
    assert len({*after}) == len(after)
    with suppress(ValidationError):
        assert after == replace(links, strict=True).apply(before, to_many=True)


@given(st.sets(TARGETS), CONNECTS, st.sets(TARGETS))
def test_any_change_comes_to_what_the_rules_say(
    current: set[str], said: list[Connect], gone: set[str]
) -> None:
    connects = [c for c in said if c.position in ("start", "end") or c.target != c.neighbor]
    before, disconnected = "".join(sorted(current)), "".join(gone)
    links = Links(None, tuple(connects), tuple(gone))
    expected = plainly(before, connects, disconnected)
    if expected is None:
        with pytest.raises(ValidationError):
            links.apply(tuple(before), to_many=True)
    else:
        assert "".join(links.apply(tuple(before), to_many=True)) == expected


COUNT = 20_000
LARGE = {
    "at the end": Links(None, tuple(Connect(str(i)) for i in range(COUNT))),
    "each before the next": Links(
        None, (*(Connect(f"x{i}", "before", f"x{i + 1}") for i in range(COUNT)), Connect(f"x{COUNT}"))
    ),
    "each before a missing one": Links(
        None, tuple(Connect(str(i), "before", f"{i + 1}") for i in range(1, COUNT)), strict=False
    ),
    "all after one": Links(None, tuple(Connect(str(i), "after", "0") for i in range(1, COUNT))),
    "disconnected": Links(disconnect=tuple(map(str, range(1, COUNT)))),
}


@pytest.mark.parametrize("links", LARGE.values(), ids=LARGE.keys())
def test_a_large_change_costs_little(links: Links) -> None:
    with computing_less_than(1):
        links.apply(tuple(map(str, range(0, COUNT, 2))), to_many=True)
