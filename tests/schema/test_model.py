"""Uses of attributes: which can be selected, filtered, sorted and populated."""

import pytest

from server.schema.model import Attribute, Type

SEEN = {
    "title": Attribute("title", "string"),
    "data": Attribute("data", "json"),
    "author": Attribute("author", "relation", relation="manyToOne", target="api::author.author"),
    "about": Attribute("about", "relation", relation="morphToOne"),
    "cover": Attribute("cover", "media"),
    "seo": Attribute("seo", "component", component="shared.seo"),
    "zone": Attribute("zone", "dynamiczone", components=("shared.seo",)),
}
HIDDEN = {
    "note": Attribute("note", "string", private=True),
    "secret": Attribute("secret", "password"),
    "editor": Attribute("editor", "relation", private=True, relation="oneToOne", target="api::author.author"),
}
# The parameters that may name each attribute.
USES: dict[str, set[str]] = {
    "title": {"selectable", "queryable"},
    "data": {"selectable", "queryable"},
    "author": {"populatable", "queryable"},
    "about": {"populatable", "queryable"},
    "cover": {"populatable", "queryable"},
    "seo": {"populatable", "queryable"},
    "zone": {"populatable"},
    **{name: set() for name in HIDDEN},
}


@pytest.mark.parametrize("name", USES)
def test_what_may_name_an_attribute(name: str) -> None:
    attribute = (SEEN | HIDDEN)[name]
    uses = {use for use in ("selectable", "populatable", "queryable") if getattr(attribute, use)}
    assert uses == USES[name]
    assert attribute.visible is (name in SEEN)


def test_a_type_lists_what_answers_show_and_populate_takes() -> None:
    made = Type("api::a.a", "collectionType", "a", "as", "A", {**SEEN, **HIDDEN}, localized=True)
    assert made.default_fields == ("title", "data", "createdAt", "updatedAt", "publishedAt", "locale")
    assert made.populatable == ("author", "about", "cover", "seo", "zone", "localizations")


def test_only_scalar_attributes_have_defaults() -> None:
    assert Attribute("a", "string", default="").has_default
    assert Attribute("a", "boolean", default=False).has_default
    assert not Attribute("a", "string").has_default
    assert not Attribute("a", "component", default={}).has_default


def test_targets_say_their_type_on_the_side_that_is_stored() -> None:
    assert SEEN["about"].polymorphic
    assert not Attribute(
        "a", "relation", relation="morphMany", target="api::b.b", mapped_by="about"
    ).polymorphic
    assert not SEEN["author"].polymorphic
