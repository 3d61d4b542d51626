"""Names that a content type can't have, because another part of the API uses them."""

import re
from pathlib import Path

import pytest

from server.auth.permissions import SITE_SUBJECTS
from server.config.model import ACTIONS
from server.errors import SetupError
from server.schema.check import RESERVED_IDS
from server.site.site import Site
from tests.sites import STRING, collection, make, schema, write

# A type may be called `branch`. The permissions for `branch` then apply to its documents.
SUBJECTS = ACTIONS.keys() - {"", *SITE_SUBJECTS}
NAMES = sorted({*SUBJECTS, *RESERVED_IDS, "User", "ROLE", "Content-Type"})


@pytest.mark.parametrize("key", ["singularName", "pluralName"])
@pytest.mark.parametrize("name", NAMES)
def test_a_type_can_not_have_the_name_of_something_else(tmp_path: Path, name: str, key: str) -> None:
    text = re.sub(rf'"{key}": "[^"]*"', f'"{key}": "{name}"', schema("note", {"title": STRING}))
    write(tmp_path, {"content-types/note.json": text})
    with pytest.raises(
        SetupError, match=rf'^content-types/note.json:\d+:\d+: the API id "{name}" is reserved'
    ):
        Site(tmp_path)


def test_every_path_and_subject_of_the_api_is_reserved(tmp_path: Path) -> None:
    api = make(tmp_path, collection("note", {"title": STRING}))
    parts = {
        str(rule).split("/")[2] for rule in api.app.url_map.iter_rules() if str(rule).startswith("/api/")
    }
    named = {part for part in parts if part and not part.startswith("<")}
    assert {*named, *SUBJECTS} <= set(RESERVED_IDS)
    assert len(named) > 5
