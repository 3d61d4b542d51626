"""Lengths of strings: they are counted as in JavaScript, so that the studio's forms and the API agree."""

import pytest

from tests.conftest import MakeApi
from tests.sites import collection

FILES = collection("note", {"text": {"type": "string", "minLength": 2, "maxLength": 3}})


@pytest.mark.parametrize(
    ("text", "status"),
    [("🦊", 201), ("🦊a", 201), ("🦊🦊", 400), ("é", 400), ("éé", 201), ("ééé", 201), ("a", 400)],
)
def test_a_character_beyond_the_basic_plane_counts_twice(make_api: MakeApi, text: str, status: int) -> None:
    assert make_api(FILES).post("/api/notes", {"text": text}).status == status
