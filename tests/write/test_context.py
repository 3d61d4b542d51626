"""Changes that are prepared on top of each other: each sees the result of the previous ones, and all are one
write.
"""

from collections.abc import Sequence
from pathlib import Path

import pytest

from server.auth.permissions import Actor
from server.errors import ValidationError
from server.formats.tree import Tree
from server.site.site import Site
from server.write import prepare
from server.write.context import Context
from server.write.request import Address, WriteRequest
from tests.sites import collection, documents, load, relation, write_to

FILES = {
    **collection("tag", {"name": {"type": "string", "unique": True}, "to": relation("manyToOne", "tag")}),
    **documents("tags", red={"name": "Red"}),
}
WRITER = Actor("test", everything=True)


def create_all(site: Site, bodies: Sequence[dict[str, Tree]]) -> list[str]:
    """Create documents in one write, and return their ids.

    In a body, "{previous}" stands for the id of the previous document.
    """
    type_ = site.state.schema.types["api::tag.tag"]

    def create(wanted: Sequence[dict[str, Tree]], context: Context) -> list[str]:
        made: list[str] = []
        for body in wanted:
            data = {k: made[-1] if v == "{previous}" else v for k, v in body.items()}
            address = Address(type_, None, "en", draft=False)
            made.append(prepare.create(WriteRequest(address, WRITER, data), context))
            context = context.for_next_change()
        return made

    return write_to(site, create, bodies)[1]


def test_a_relation_to_a_document_that_is_only_prepared(tmp_path: Path) -> None:
    site = load(tmp_path, FILES)
    first, second = create_all(site, [{"name": "Blue"}, {"name": "Navy", "to": "{previous}"}])
    snapshot, type_ = site.state.snapshot, site.state.schema.types["api::tag.tag"]
    made = snapshot.get(type_, second, "en", "published")
    assert made is not None
    assert made.get("to") == (first,)


def test_a_unique_value_that_was_prepared_before_is_taken(tmp_path: Path) -> None:
    site = load(tmp_path, FILES)
    with pytest.raises(ValidationError, match="must be unique"):
        create_all(site, [{"name": "Blue"}, {"name": "Blue"}])
    assert [path.name for path in (tmp_path / "content/tags").iterdir()] == ["red.json"]


def test_the_state_that_is_shown_stays_as_it_was_where_a_change_is_refused(tmp_path: Path) -> None:
    site = load(tmp_path, FILES)
    before = site.state
    with pytest.raises(ValidationError):
        create_all(site, [{"name": "Blue"}, {"name": "Red"}])
    assert site.state is before
    assert len(before.snapshot.list(before.schema.types["api::tag.tag"], "en", "published")) == 1
