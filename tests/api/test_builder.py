"""Tests of the content types and components that the API lists for code generators."""

from pathlib import Path

import pytest

from tests.sites import Api, make, schema

SEO = '{"info": {"displayName": "SEO", "icon": "search"}, "attributes": {"pic": {"type": "media"}}}'
POST = schema(
    "post",
    {
        "title": {"type": "string", "required": True},
        "cover": {"type": "media", "allowedTypes": ["images"], "required": True, "default": 1},
        "author": {
            "type": "relation",
            "relation": "manyToOne",
            "target": "plugin::users-permissions.user",
            "inversedBy": "posts",
            "private": True,
        },
        "seo": {"type": "component", "component": "page.seo"},
    },
    drafts=True,
)


@pytest.fixture
def api(tmp_path: Path) -> Api:
    site = "roles: {public: {content-type: [find, findOne]}}\n"
    home = '{"kind": "singleType", "info": {"singularName": "home", "pluralName": "homes"}, "attributes": {}}'
    files: dict[str, str | bytes] = {
        "content-types/post.json": POST,
        "content-types/home.json": home,
        "content-types/components/page/seo.json": SEO,
        "site.yaml": site,
    }
    return make(tmp_path, files)


def test_media_and_relations_say_what_their_schemas_leave_out(api: Api) -> None:
    post = api.get("/api/content-type-builder/content-types/api::post.post", "public").data
    assert post["schema"]["draftAndPublish"] is True
    attributes = post["schema"]["attributes"]
    assert attributes["title"] == {"type": "string", "required": True}
    assert attributes["cover"] == {
        "type": "media",
        "multiple": False,
        "required": True,
        "private": False,
        "allowedTypes": ["images"],
    }
    author = attributes["author"]
    assert (author["targetAttribute"], author["required"], author["private"]) == ("posts", False, True)
    seo = api.get("/api/content-type-builder/components/page.seo").data
    assert (seo["category"], seo["schema"]["icon"]) == ("page", "search")
    assert seo["schema"]["attributes"]["pic"]["private"] is False


def test_the_types_of_plugins_are_told(api: Api) -> None:
    types = {type_["uid"]: type_ for type_ in api.get("/api/content-type-builder/content-types").data}
    plugins = {uid: type_["plugin"] for uid, type_ in types.items() if "plugin" in type_}
    assert sorted(plugins) == [
        "plugin::i18n.locale",
        "plugin::upload.file",
        "plugin::upload.folder",
        "plugin::users-permissions.permission",
        "plugin::users-permissions.role",
        "plugin::users-permissions.user",
    ]
    file = types["plugin::upload.file"]["schema"]
    assert (file["visible"], file["displayName"], file["restrictRelationsTo"]) == (False, "File", [])
    assert file["attributes"]["url"] == {"type": "text", "configurable": False, "required": True}
    user = types["plugin::users-permissions.user"]["schema"]
    assert user["attributes"]["role"]["targetAttribute"] == "users"
    assert user["attributes"]["password"]["private"] is True
    assert user["attributes"]["posts"]["mappedBy"] == "author"


def test_what_answers_have_is_told(api: Api) -> None:
    """Every attribute that responses contain for files and users must be listed in their content types."""
    for uid, type_ in api.site.current().schema.types.items():
        if uid.startswith("plugin::"):
            listed = api.get("/api/content-type-builder/content-types").data
            told = next(one for one in listed if one["uid"] == uid)["schema"]["attributes"]
            assert {
                name for name, attribute in type_.attributes.items() if not attribute.private
            } <= told.keys()
            for name, described in told.items():
                if name in type_.attributes:
                    assert bool(described.get("private")) is type_.attributes[name].private


def test_one_type_and_one_kind(api: Api) -> None:
    url = "/api/content-type-builder/content-types"
    assert api.get(f"{url}/plugin::users-permissions.user").data["uid"] == "plugin::users-permissions.user"
    for uid in ("plugin::upload.file", "api::nope.nope", "page.seo"):
        assert api.get(f"{url}/{uid}").error["message"] == "contentType.notFound"
    assert api.get("/api/content-type-builder/components/api::post.post").error["status"] == 404
    assert [type_["uid"] for type_ in api.get(f"{url}?kind=singleType").data] == ["api::home.home"]
    assert api.get(f"{url}?kind=nope").error["name"] == "ValidationError"
