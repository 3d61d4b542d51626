"""Values in a request body: which values each attribute type accepts, and how they are returned."""

from typing import Any

import pytest

from server.documents.email import is_valid
from server.documents.readers import InvalidValue
from server.formats.json import read_json
from server.schema.model import Attribute
from server.write.body_values import read_scalar


def read(kind: str, json: str) -> Any:
    return read_scalar(Attribute("a", kind), read_json(json))


@pytest.mark.parametrize(
    ("kind", "json", "value"),
    [
        ("boolean", "true", True),
        ("boolean", '"TRUE"', True),
        ("boolean", '"0"', False),
        ("boolean", "1", True),
        ("boolean", "0.0", False),
        ("datetime", "5", "1970-01-01T00:00:00.005Z"),
        ("datetime", "-5", "1969-12-31T23:59:59.995Z"),
        ("datetime", '"5"', "1970-01-01T00:00:00.005Z"),
        ("datetime", "1700000000000.0", "2023-11-14T22:13:20.000Z"),
        ("datetime", '"2024"', "2024-01-01T00:00:00.000Z"),
        ("timestamp", '"2024-02"', "2024-02-01T00:00:00.000Z"),
        ("date", '"2024-02-03T10:00:00Z"', "2024-02-03"),
        ("biginteger", '" 5 "', 5),
        ("json", '"{\\"a\\": [1]}"', {"a": [1]}),
        ("json", '"[not json"', "[not json"),
        ("json", '"5"', "5"),
    ],
)
def test_what_a_type_takes(kind: str, json: str, value: Any) -> None:
    assert read(kind, json) == value
    assert type(read(kind, json)) is type(value)


@pytest.mark.parametrize(
    ("kind", "json"),
    [
        *(("boolean", json) for json in ('"t"', '"yes"', '""', "2", "[]", "0.5")),
        *(("datetime", json) for json in ("1.5", "true", '""', '"soon"')),
        *(("date", json) for json in ('"2024-2-3"', "5", '""')),
        *(("biginteger", json) for json in ('"5.0"', '"1e3"', '""', "true")),
    ],
)
def test_what_a_type_refuses(kind: str, json: str) -> None:
    with pytest.raises(InvalidValue):
        read(kind, json)


@pytest.mark.parametrize("address", ["ann@example.org", "ann@b.example.org", "a+b@x.org", "é@x.org"])
def test_addresses(address: str) -> None:
    assert is_valid(address)


@pytest.mark.parametrize(
    "address", ["ann", "ann@localhost", "ann@127.0.0.1", "a b@x.org", "ann@x.o1", "@x.org"]
)
def test_what_is_no_address(address: str) -> None:
    assert not is_valid(address)
