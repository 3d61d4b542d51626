"""Tests of the advice in problem messages: a user can write the suggested value, and it fixes the problem."""

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.documents.advice import advice, timestamp_advice
from server.documents.readers import READERS, InvalidValue
from server.formats.tree import Plain
from server.schema.model import Attribute
from tests.sites import INTEGER, STRING, collection, component, documents, load, make, relation

MISTAKES = {
    ("date", "31.01.2024"): "write it as YYYY-MM-DD: 2024-01-31",
    ("date", "01/31/2024"): "write it as YYYY-MM-DD: 2024-01-31",
    ("date", "5/6/2024"): "write it as YYYY-MM-DD: 2024-06-05 or 2024-05-06",
    ("date", "5 January 2024"): "write it as YYYY-MM-DD: 2024-01-05",
    ("date", "2024-02-30"): "this day does not exist; write it as YYYY-MM-DD",
    ("date", "soon"): "write it as YYYY-MM-DD",
    ("datetime", "31.01.2024 10:00"): "write 2024-01-31T10:00:00Z",
    ("datetime", "01/31/2024, 3:05 pm"): "write 2024-01-31T15:05:00Z",
    ("datetime", "31.01.2024"): "write 2024-01-31T00:00:00Z",
    ("datetime", "2024-01-01 25:00"): "write it as YYYY-MM-DDTHH:MM:SSZ",
    ("time", "10 am"): "write it as HH:MM: 10:00",
    ("time", "12 pm"): "write it as HH:MM: 12:00",
    ("time", "10.30"): "write it as HH:MM: 10:30",
    ("time", "25:00"): "write it as HH:MM, from 00:00 to 23:59",
    ("boolean", "ja"): "write true",
    ("boolean", "0"): "write false",
    ("boolean", "perhaps"): "",
    ("integer", "1,000"): "write 1000",
    ("integer", "1.000.000"): "write 1000000",
    ("integer", "12 px"): "write 12",
    ("integer", "1,5"): "write a whole number, without decimals",
    ("integer", "ten"): "write it in digits, such as 12",
    ("float", "1,5"): "write 1.5",
    ("float", "1,500"): "write 1500 or 1.500",
    ("decimal", "1.000,50 €"): "write 1000.50",
    ("decimal", "1 000"): "write 1000",
    ("decimal", "$5"): "write 5",
}


@pytest.mark.parametrize(("kind", "text"), MISTAKES)
def test_what_was_probably_meant_is_said(kind: str, text: str) -> None:
    attribute = Attribute("a", kind)
    with pytest.raises(InvalidValue):
        READERS[kind](Plain(text), attribute)
    assert advice(attribute, Plain(text)) == MISTAKES[kind, text]


@given(
    st.sampled_from(["date", "time", "datetime", "boolean", "integer", "float", "decimal"]),
    st.text("0123456789.,/-: apm+€'", max_size=20) | st.text(max_size=70),
)
def test_what_is_said_can_be_written(kind: str, text: str) -> None:
    attribute = Attribute("a", kind)
    said = advice(attribute, Plain(text))
    for value in re.findall(
        r"(?<![\w-])(?:[-+]?\d\S*|true|false)", said.removesuffix(", such as 12 or 12.5")
    ):
        if value != "23:59":
            READERS[kind](Plain(value), attribute)
    assert timestamp_advice(text).startswith("write ")


FILES = {
    **component("shared.card", {"name": STRING, "n": INTEGER}),
    **collection(
        "article",
        {
            "title": {"type": "string", "maxLength": 8},
            "slug": {"type": "uid", "targetField": "title"},
            "mail": "email",
            "kind": {"type": "enumeration", "enum": ["long", "short"]},
            "author": relation("manyToOne", "author"),
            "tags": relation("manyToMany", "tag"),
            "cover": {"type": "media", "multiple": False},
            "pictures": {"type": "media", "multiple": True},
            "card": {"type": "component", "component": "shared.card"},
            "zone": {"type": "dynamiczone", "components": ["shared.card"]},
            "day": "date",
        },
    ),
    **collection("author", {"name": STRING}),
    **collection("tag", {"name": STRING}),
    **documents(
        "authors", bo={"name": "Bo Second"}, ada={"name": "Ada"}, ida={"name": "Ida"}, eve={"name": "Ida"}
    ),
    **documents("tags", sea={"name": "The Sea"}, fog={"name": "Fog"}),
}
FIXES = {
    "author: Bo Second": 'did you mean "bo"?',
    "author: bo  second": 'did you mean "bo"?',
    "author: idda": 'did you mean "ida"?',
    "author: [bo, ada]": "write one of them, such as author: bo",
    "author: {id: 3}": "write only the documentId: the file's name without the extension, unless the "
    "file contains a documentId",
    "tags: sea, fog": "write a list: [sea, fog]",
    "tags: The Sea, Fog": "write a list: [sea, fog]",
    "tags: sea fog": "write a list: [sea, fog]",
    "tags: sea, moon": "write a list: [sea, moon]",
    "tags: seas": 'did you mean "sea"?',
    "tags: [[sea]]": "write each value as a separate entry of the list",
    "pictures: a.png, b.png": "write a list: [a.png, b.png]",
    "cover: https://example.org/a.png": "put the file into content/uploads/, and use its path in that folder",
    "slug: Über die See!": "write uber-die-see",
    "slug: [a]": "write a single value instead of a list: slug: a",
    "kind: [long]": "write a single value instead of a list: kind: long",
    "mail: foo": "write it as name@example.org",
    "title: a long title": "shorten it to 8 characters",
    "card: x": "write the attributes of shared.card below it: name: …, n: …",
    "zone: [{name: x}]": "set __component to one of shared.card",
    "documentId: a/b": 'remove the "/", or remove documentId',
    "createdAt: 31.01.2024": "write 2024-01-31T00:00:00Z",
}


def test_a_mistake_in_a_file_comes_with_what_to_write(tmp_path: Path) -> None:
    files = {f"content/articles/n{i:02d}.yaml": f"{line}\n" for i, line in enumerate(FIXES)}
    site = load(tmp_path, {**FILES, **files})
    fixes = {problem.path: problem.fix for problem in site.problems}
    assert [fixes.get(path) for path in files] == list(FIXES.values())


def test_a_password_is_not_quoted(tmp_path: Path) -> None:
    files = {
        **collection("safe", {"pin": {"type": "password"}}),
        "content/safes/a.yaml": "pin: [$argon2id$x, b]\n",
    }
    (problem,) = load(tmp_path, files).problems
    assert "argon2id" not in str(problem)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"day": "31.01.2024"}, "day must be a date, YYYY-MM-DD; write it as YYYY-MM-DD: 2024-01-31"),
        ({"kind": "Long"}, "kind must be one of the following values: long, short, "),
    ],
)
def test_a_mistake_in_a_request_does_too(tmp_path: Path, body: dict[str, Any], message: str) -> None:
    answer = make(tmp_path, FILES).post("/api/articles", body)
    assert (answer.status, answer.error["message"]) == (400, message)
