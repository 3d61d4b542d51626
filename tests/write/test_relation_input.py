"""What a body says of a relation, as a change of the targets that there are."""

from typing import Any

import pytest

from server.errors import ValidationError
from server.schema.model import Attribute
from server.write.relation_input import read_links


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
        ({"set": ["d"], "connect": ["e"]}, "d"),  # set is all that counts
        ({"set": ["d", "e"], "disconnect": ["d"]}, "de"),
        ({"set": [], "connect": ["e"]}, ""),
        ({"set": None, "connect": ["e"]}, "abce"),
        ({"set": None}, "abc"),
        ({}, "abc"),
        ({"connect": ["a"]}, "bca"),  # what is connected again goes to the end
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
        ({"connect": [placed("w", before="v")]}, "w"),  # there is only one place
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
