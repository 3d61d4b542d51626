"""Mistyped keys in schema files: the warning suggests the correct key."""

import json
from pathlib import Path

import pytest

from server.errors import SetupError
from server.schema.load import _OPTIONS
from server.schema.spelling import ATTRIBUTE_KEYS, OPTION_KEYS
from server.site.site import Site
from tests.sites import STRING, collection, relation, write

SCHEMA = json.loads(next(iter(collection("note", {"title": STRING}).values())))
PATH = "content-types/note.json"


def told(root: Path, **changed: object) -> list[str]:
    write(root, {PATH: json.dumps({**SCHEMA, **changed}, indent=2)})
    site = Site(root)
    site.load()
    return [str(problem) for problem in site.problems]


@pytest.mark.parametrize(
    ("changed", "key", "meant"),
    [
        ({"options": {"draftAndPublsih": True}}, "options.draftAndPublsih", "draftAndPublish"),
        ({"option": {"draftAndPublish": True}}, "option", "options"),
        ({"attributes": {"title": {**STRING, "requierd": True}}}, "attributes.title.requierd", "required"),
        ({"pluginOptions": {"i18n": {"localised": True}}}, "pluginOptions.i18n.localised", "localized"),
    ],
)
def test_a_mistyped_key_is_a_warning(
    tmp_path: Path, changed: dict[str, object], key: str, meant: str
) -> None:
    (problem,) = told(tmp_path, **changed)
    lines = (tmp_path / PATH).read_text().splitlines()
    line = next(n for n, text in enumerate(lines, 1) if f'"{key.split(".")[-1]}"' in text)
    place, _, sentence = problem.partition(": ")
    assert place.startswith(f"{PATH}:{line}:")
    assert sentence == f'unknown key "{key}". Did you mean "{meant}"?'


def test_a_key_of_somebody_else_is_none(tmp_path: Path) -> None:
    assert told(tmp_path, options={"myPlugin": 1}, collectionName="notes", owner="me") == []


def test_every_key_that_is_read_is_known() -> None:
    assert {theirs for _, theirs, _ in _OPTIONS} <= set(ATTRIBUTE_KEYS)
    assert "draftAndPublish" in OPTION_KEYS


def test_a_running_site_tells_of_a_key_that_was_mistyped_meanwhile(tmp_path: Path) -> None:
    write(tmp_path, {PATH: json.dumps(SCHEMA)})
    site = Site(tmp_path)
    site.load()
    write(tmp_path, {PATH: json.dumps({**SCHEMA, "options": {"draftAndPublsih": True}})})
    change = site.refresh()
    assert ["draftAndPublsih" in problem.message for problem in change.problems] == [True]


def test_mistyped_attributes_are_the_fault_of_their_own_file(tmp_path: Path) -> None:
    files = {
        **collection("author", {"notes": relation("oneToMany", "note", mappedBy="author")}),
        **collection("note", {"author": relation("manyToOne", "author", inversedBy="notes")}),
    }
    files["content-types/author.json"] = files["content-types/author.json"].replace("attributes", "atributes")
    write(tmp_path, files)
    with pytest.raises(SetupError, match=r'^content-types/author.json:\d+:\d+: unknown key "atributes"'):
        Site(tmp_path)
