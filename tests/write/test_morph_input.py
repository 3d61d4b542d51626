"""Relations to several types in request bodies: accepted forms, and errors for others, with Strapi's
messages.
"""

from typing import Any

import pytest

from tests.conftest import MakeApi
from tests.sites import STRING, Api, collection, component, documents, relation

TOWN = "api::town.town"
FILES = {
    **collection(
        "pin",
        {
            "name": STRING,
            "subject": {"type": "relation", "relation": "morphToOne"},
            "subjects": {"type": "relation", "relation": "morphToMany"},
            "part": {"type": "component", "component": "x.part"},
        },
    ),
    **collection("town", {"name": STRING, "pins": relation("morphMany", "pin", morphBy="subjects")}),
    **component("x.part", {"about": {"type": "relation", "relation": "morphToMany"}}),
    **documents("pins", one={"name": "One", "subjects": [{"__type": TOWN, "documentId": "ulm"}]}),
    **documents("towns", ulm={"name": "Ulm"}, bonn={"name": "Bonn"}),
}
ULM = {"__type": TOWN, "documentId": "ulm"}
BONN = {"__type": TOWN, "documentId": "bonn"}


@pytest.fixture
def api(make_api: MakeApi) -> Api:
    return make_api(FILES)


def refused(api: Api, path: str, data: dict[str, Any]) -> tuple[str, Any]:
    answer = api.put(path, data)
    assert answer.status == 400, answer.body
    return answer.error["message"], answer.error["details"]


@pytest.mark.parametrize("name", ["subject", "subjects"])
@pytest.mark.parametrize(
    "value",
    ["ulm", 5, {}, {"nope": []}, [{}], [{"documentId": "ulm"}], {"disconnect": [{}]}, {"__type": None}],
)
def test_a_target_that_does_not_name_its_type_is_an_invalid_key(api: Api, name: str, value: Any) -> None:
    assert refused(api, "/api/pins/one", {name: value}) == (
        f"Invalid key {name}",
        {"key": name, "path": name, "source": "body"},
    )


@pytest.mark.parametrize("value", [ULM, {"set": ULM}, {"connect": ULM}])
def test_a_relation_to_many_takes_lists(api: Api, value: Any) -> None:
    assert refused(api, "/api/pins/one", {"subjects": value})[0] == "Invalid key subjects"
    assert api.put("/api/pins/one", {"subject": value}).status == 200


def test_a_target_in_a_component_has_to_name_its_type_too(api: Api) -> None:
    message, details = refused(api, "/api/pins/one", {"part": {"about": [{"documentId": "ulm"}]}})
    assert (message, details["path"]) == ("Invalid key about at part.about", "part.about")


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ([BONN], ["bonn"]),
        ([], []),
        (None, []),
        ({"set": []}, []),
        ({"set": None}, ["ulm"]),
        ({"connect": []}, ["ulm"]),
        ({"connect": [{**BONN, "position": {"before": "ulm"}}]}, ["bonn", "ulm"]),
        ({"connect": [{**BONN, "position": {"before": "ulm", "__type": TOWN}}]}, ["bonn", "ulm"]),
        ([{**BONN, "name": "as populated", "id": 3}], ["bonn"]),
    ],
)
def test_what_a_relation_to_many_takes(api: Api, value: Any, found: list[str]) -> None:
    subjects = api.put("/api/pins/one?populate=subjects", {"subjects": value}).data["subjects"]
    assert [subject["documentId"] for subject in subjects] == found


@pytest.mark.parametrize("key", ["position", "nope"])
def test_a_target_of_a_list_has_only_what_its_type_has(api: Api, key: str) -> None:
    assert refused(api, "/api/pins/one", {"subjects": [{**BONN, key: {"start": True}}]})[0] == (
        f"Invalid key {key} at subjects"
    )


@pytest.mark.parametrize("value", [{}, {"nope": 1}, {"__type": "api::nope.nope"}])
def test_an_object_without_operations_changes_nothing_on_the_derived_side(api: Api, value: Any) -> None:
    pins = api.put("/api/towns/ulm?populate=pins", {"pins": value}).data["pins"]
    assert [pin["documentId"] for pin in pins] == ["one"]


@pytest.mark.parametrize("value", [{"__type": "api::pin.pin", "documentId": "one"}, [{"__type": TOWN}]])
def test_the_derived_side_names_no_types(api: Api, value: Any) -> None:
    assert refused(api, "/api/towns/ulm", {"pins": value}) == (
        "Invalid key __type at pins",
        {"key": "__type", "path": "pins", "source": "body"},
    )


@pytest.mark.parametrize(
    ("data", "key", "path"),
    [
        ({"nope": 1, "createdBy": 1}, "createdBy", "createdBy"),
        ({"subjects": "ulm", "localizations": []}, "localizations", "localizations"),
        ({"createdAt": "x", "nope": 1, "documentId": "x"}, "documentId", None),
        ({"part": {"nope": 1}, "updatedAt": None}, "updatedAt", "updatedAt"),
        ({"subjects": "ulm", "nope": 1}, "nope", None),
    ],
)
def test_keys_are_refused_in_the_order_of_strapi(api: Api, data: Any, key: str, path: str | None) -> None:
    message, details = refused(api, "/api/pins/one", data)
    assert (message, details.get("path")) == (f"Invalid key {key}", path)
