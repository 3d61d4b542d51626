"""After an import, Bifolio's responses must be the same as Strapi's: this compares every recorded request.

All permitted differences are listed here, with the reason, and in docs/import.md. Numeric ids are not
compared, because Strapi has one for each row and Bifolio one for each document. The documentIds are compared.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from server.tools.importer.importing import ImportOptions, import_source
from server.tools.importer.readers.archive import Archive
from tests.sites import Api, opened

HERE = Path(__file__).parent
ANSWERS = json.loads((HERE / "answers.json").read_bytes())
# Lists without a sort parameter: Strapi sorts by id, Bifolio by creation time.
UNSORTED = ("/api/books", "/api/books?fields[0]=title&fields[1]=price")
# Bifolio creates the formats again: the same pictures with the same dimensions, but with another encoder.
MADE = ("size", "sizeInBytes")
# Strapi returns the numbers of a bigint column, Bifolio returns a normal timestamp.
TIMESTAMPS = {"stamp": ("1709202030000", "2024-02-29T10:20:30.000Z")}


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Api:
    root = tmp_path_factory.mktemp("imported")
    import_source(root, Archive(HERE / "export.tar.gz"), ImportOptions(), lambda *_: None)
    site = opened(root)
    for path in site.incomplete_images():
        site.scale(path)
    assert site.problems == ()
    return Api.of(site)


def test_there_are_enough_of_them() -> None:
    assert len(ANSWERS) >= 60
    assert len({answer["path"] for answer in ANSWERS}) == len(ANSWERS)


@pytest.mark.parametrize("recorded", ANSWERS, ids=[str(answer["path"]) for answer in ANSWERS])
def test_the_same_request_has_the_same_answer(api: Api, recorded: Any) -> None:
    path = recorded["path"]
    found = api.get(path)
    assert found.status == recorded["status"], found.body
    theirs, ours = recorded["body"], found.body
    if path in UNSORTED:
        theirs, ours = ({**body, "data": _sorted(body["data"], "documentId")} for body in (theirs, ours))
    assert list(_differences(theirs, ours, "")) == []


def _differences(theirs: Any, ours: Any, at: str) -> Iterator[str]:
    if isinstance(theirs, dict) and isinstance(ours, dict):
        yield from _different_objects(theirs, ours, at)
    elif isinstance(theirs, list) and isinstance(ours, list):
        theirs = _shown(theirs)
        if len(theirs) != len(ours):
            yield f"{at}: {len(theirs)} there, {len(ours)} here"
        for i, (their, our) in enumerate(zip(theirs, ours, strict=False)):
            yield from _differences(their, our, f"{at}[{i}]")
    elif theirs != ours:
        yield f"{at}: {theirs!r} there, {ours!r} here"


def _different_objects(theirs: dict[str, Any], ours: dict[str, Any], at: str) -> Iterator[str]:
    for key in theirs.keys() | ours.keys():
        if key not in theirs and key == "locale":
            continue  # in Bifolio, every document has a locale (spec.md 2.2)
        if key not in ours and key == "isUrlSigned" and theirs[key] is False:
            continue
        their, our = theirs.get(key, "missing"), ours.get(key, "missing")
        if key == "id":
            if not (isinstance(their, int) and isinstance(our, int)):
                yield f"{at}.id: {their!r} there, {our!r} here"
        elif key in MADE and ".formats." in at:
            if not (their > 0 and our > 0):
                yield f"{at}.{key}: {their!r} there, {our!r} here"
        elif key == "localizations":
            yield from _differences(_sorted(their, "locale"), _sorted(our, "locale"), f"{at}.{key}")
        elif (their, our) != TIMESTAMPS.get(key):
            yield from _differences(their, our, f"{at}.{key}")


def _sorted(found: list[dict[str, Any]], key: str) -> list[dict[str, Any]]:
    return sorted(found, key=lambda document: str(document[key]))


def _shown(targets: list[Any]) -> list[Any]:
    """Return the targets of a relation to any type.

    Strapi returns the draft and the published row of a target, Bifolio returns only one document.
    """
    if not all(isinstance(target, dict) and "__type" in target for target in targets):
        return targets
    live = {target["documentId"] for target in targets if target["publishedAt"]}
    return [t for t in targets if t["publishedAt"] or t["documentId"] not in live]
