"""Comparison of the source marks in responses with Strapi's own implementation and with `@vercel/stega`.

`make test-clients` runs this module. It fetches Strapi's packages (the reference) from npm.
"""

import json
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from bench.archives import unpack_archive
from server.api.source_maps import FILE_TEXT_FIELDS, HEADER, encode_mark
from server.schema.model import UPLOAD
from tests.ci import IN_CI
from tests.clients.npm import install, missing_node
from tests.clients.source_maps.site import FILES, POPULATE
from tests.sites import Api, bracketed, make

HERE = Path(__file__).parent
VERSION = "5.54.0"
PACK_S, RUN_S = 120, 60

Run = Callable[[str, Any], Any]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Return a function that runs a script from this folder with the reference's packages and JSON input."""
    reason = missing_node((20, 0)) or install(HERE)
    if reason:
        if IN_CI:
            pytest.fail(reason)
        pytest.skip(reason)
    folders = [_unpacked(name, tmp_path_factory.mktemp(name)) for name in ("core", "utils")]

    def run(script: str, value: Any) -> Any:
        command, text = ["node", script, *map(str, folders)], json.dumps(value)
        return json.loads(subprocess.check_output(command, cwd=HERE, input=text, text=True, timeout=RUN_S))

    return run


def _unpacked(name: str, folder: Path) -> Path:
    """Unpack a package of the reference implementation without its dependencies, and return its folder."""
    command = ["npm", "pack", f"@strapi/{name}@{VERSION}", "--loglevel=error"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=PACK_S)
    [packed] = folder.glob("*.tgz")
    unpack_archive(packed, folder)
    return folder / "package"


def test_the_reference_makes_the_same_marks_of_the_same_documents(tmp_path: Path, run: Run) -> None:
    api = make(tmp_path, FILES)
    for asked in ({}, {"status": "draft"}, {"locale": "fr"}):
        path = "/api/posts?" + bracketed({"populate": POPULATE, **asked})
        plain = api.get(path).data
        ours = api.get(path, headers={HEADER: "true"}).data
        given = {"schemas": schemas(api), "type": "api::post.post", "documents": plain}
        theirs = run("reference.mjs", given)
        assert without_authors(ours) == without_authors(theirs)
        assert ours != plain


def test_the_decoder_finds_what_was_encoded(run: Run) -> None:
    sources: list[dict[str, str]] = [
        {"documentId": "a", "type": "string", "path": "title", "locale": "pt-BR"},
        {"documentId": 'été~ *+&=%"\\', "type": "blocks", "path": "x.0.y", "fieldPath": "x.0.y"},
    ]
    read = run("decode.mjs", ["Text" + encode_mark(source) for source in sources])
    assert [found["text"] for found in read] == ["Text", "Text"]
    assert read[0]["source"] == "documentId=a&type=string&path=title&locale=pt-BR"
    escaped = "%C3%A9t%C3%A9%7E+*%2B%26%3D%25%22%5C"
    assert read[1]["source"] == f"documentId={escaped}&type=blocks&path=x.0.y&fieldPath=x.0.y"


def schemas(api: Api) -> Mapping[str, Any]:
    """Return a site's schemas in Strapi's structure. The schema of files contains only the texts that Bifolio
    marks.
    """
    described = {}
    for uid, type_ in api.site.state.schema.types.items():
        kind = {} if type_.kind == "component" else {"kind": type_.kind}
        described[uid] = {"uid": uid, **kind, "attributes": type_.raw.get("attributes", {})}
    of_files = {name: {"type": "string" if name == "name" else "text"} for name in FILE_TEXT_FIELDS}
    described[UPLOAD] = {"uid": UPLOAD, "kind": "collectionType", "attributes": of_files}
    return described


def without_authors(value: Any) -> Any:
    """Return a JSON value without related authors, because Strapi's marks for authors name the wrong
    document.
    """
    if isinstance(value, list):
        return [without_authors(inner) for inner in value]
    if not isinstance(value, dict):
        return value
    return {name: without_authors(inner) for name, inner in value.items() if name != "author"}
