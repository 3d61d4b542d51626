"""Tests of limits in the work after a write: the response is shorter, but always a success, because a client
would repeat a write that seems to have failed.
"""

import io
import json
from typing import Any

import pytest

from server.api.environ import COSTLY
from server.index.budget import turns
from tests.git import commit_all, git
from tests.sites import INTEGER, STRING, Answer, Api, collection, documents, load, relation

USER = "plugin::users-permissions.user"
NAMES = [f"n{i:02d}" for i in range(60)]
LONG = "x" * 70_000  # exceeds the limit on the size of responses
FILES: dict[str, str | bytes] = {
    "site.yaml": "api: {limits: {steps: 5000, size: 60 kB}}\nsearch: {index: false}\n",
    **collection(
        "note",
        {
            "text": {"type": "text"},
            "rank": INTEGER,
            "group": relation("manyToOne", "group", inversedBy="notes"),
        },
    ),
    **collection("group", {"name": STRING, "notes": relation("oneToMany", "note", mappedBy="group")}),
    **collection(
        "letter",
        {
            "text": {"type": "text"},
            "author": {**relation("manyToOne", "x"), "target": USER, "inversedBy": "letters"},
        },
    ),
    **collection("post", {"body": {"type": "richtext"}}),
    **collection("page", {"text": {"type": "text"}}, drafts=True),
    **documents("groups", one={"name": "One"}),
    **documents(
        "notes", long={"text": LONG}, **{name: {"text": "x" * 1500, "group": "one"} for name in NAMES}
    ),
    **documents("pages", home={"text": "x"}),
    "content/posts/tide.md": "Tide",
}
SIZE = "The response would be larger than 60,000 bytes; request less data."
STEPS = "The response would need more than 5,000 steps; request less data."
# Each note of the group has the group again, with all of its notes.
ALL_NOTES, DEEP = (
    "populate=notes",
    "populate[notes][fields]=rank&populate[notes][populate][group][populate][notes][count]=true",
)


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Api:
    root = tmp_path_factory.mktemp("site")
    site = load(root, FILES)
    commit_all(root)
    git(root, "branch", "next")
    git(root, "tag", "first")
    site.refresh()
    return Api.of(site)


def has_only_ids(answer: Answer, document_id: str, reason: str) -> bool:
    note = f"The document was written, but the response contains only its ids. {reason}"
    return answer.body == {
        "data": {"id": answer.data["id"], "documentId": document_id},
        "meta": {"note": note},
    }


@pytest.mark.parametrize(("query", "reason"), [(ALL_NOTES, SIZE), (DEEP, STEPS)])
@pytest.mark.parametrize("branch", ["", "&branch=next"])
def test_a_written_document_is_shortened_to_its_ids(api: Api, query: str, reason: str, branch: str) -> None:
    name = f"{query} {branch}"
    answer = api.put(f"/api/groups/one?{query}{branch}", {"name": name})
    assert answer.status == 200
    assert has_only_ids(answer, "one", reason)
    at = branch.replace("branch", "at")
    assert api.get(f"/api/groups/one?fields=name{at}").data["name"] == name
    tag = {"If-Match": answer.headers["ETag"]}
    assert api.put(f"/api/groups/one?{branch}", {"name": "One"}, headers=tag).status == 200


def test_a_created_document_is_shortened_to_its_ids_in_both_formats(api: Api) -> None:
    made = api.post("/api/notes", {"text": LONG})
    assert made.status == 201
    assert has_only_ids(made, made.data["documentId"], SIZE)
    made = api.post("/api/notes", {"text": LONG}, headers={"Strapi-Response-Format": "v4"})
    assert (made.status, made.data["attributes"]) == (201, {})
    assert made.body["meta"]["note"].endswith(SIZE)


def test_an_action_and_a_restored_version_are_shortened_to_their_ids(api: Api) -> None:
    for query in ("", "?status=draft"):
        assert has_only_ids(api.put(f"/api/pages/home{query}", {"text": f"{LONG}{query}"}), "home", SIZE)
    assert has_only_ids(api.ask("POST", "/api/pages/home/actions/discard"), "home", SIZE)
    assert has_only_ids(api.ask("POST", "/api/pages/home/actions/unpublish"), "home", SIZE)
    restored = api.ask("POST", "/history/notes/long/restore", json={"at": "first", "fields": ["text"]})
    assert (restored.status, has_only_ids(restored, "long", SIZE)) == (200, True)


@pytest.mark.parametrize("branch", ["", "&branch=next"])
def test_a_batch_whose_diff_is_too_large_is_a_success_without_the_diff(api: Api, branch: str) -> None:
    head = git(api.root, "rev-parse", "next")
    operation = {"method": "PUT", "path": "/api/posts/tide", "body": {"data": {"body": "x\n" * 6000}}}
    answer = api.ask("POST", f"/batch?diff=true{branch}", json={"operations": [operation]})
    assert answer.status == 200
    assert [one["status"] for one in answer.body["data"]] == [200]
    assert answer.body["files"] is None
    note = f"Everything was written, but the response does not contain the diff. {STEPS}"
    assert answer.body["meta"] == {"note": note}
    at = branch.replace("branch", "at")
    assert len(api.get(f"/api/posts/tide?{at}").data["body"]) > 10_000
    assert len(git(api.root, "rev-list", f"{head.strip()}..next").split()) == bool(branch)


def test_a_busy_server_shortens_the_response_to_a_write(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = turns(max_waiting=0)
    monkeypatch.setattr(api.app.wsgi_app, "turns", taken)
    busy = {"environ_overrides": {COSTLY: True}}
    operation = {"method": "PUT", "path": f"/api/groups/one?{DEEP}", "body": {"data": {"name": "Busy"}}}
    with taken:
        answer = api.put(f"/api/groups/one?{DEEP}", {"name": "Busy"}, **busy)
        batch = api.ask("POST", "/batch", json={"operations": [operation]}, **busy)
        branch = api.ask("POST", "/branches", json={"name": "spring"})
    assert (answer.status, batch.status, branch.status) == (200, 200, 201)
    assert answer.data.keys() == {"id", "documentId"}
    assert "Too many requests" in answer.body["meta"]["note"]
    assert batch.body["data"][0] == {"status": 200, "documentId": "one", "etag": None, "body": None}
    assert (branch.data["name"], branch.data["documents"]) == ("spring", None)


def test_files_are_described_in_full_after_a_write(api: Api) -> None:
    def send(query: str, info: dict[str, Any], **form: Any) -> Answer:
        data = {"fileInfo": json.dumps(info), **form}
        return api.ask("POST", f"/api/upload{query}", data=data, content_type="multipart/form-data")

    made = send("", {"caption": LONG}, files=(io.BytesIO(b"b"), "b.txt"))
    assert (made.status, made.body[0]["caption"]) == (201, LONG)
    changed = send(f"?id={made.body[0]['documentId']}", {"caption": f"{LONG}y"})
    assert (changed.status, changed.body["caption"]) == (200, f"{LONG}y")
    moved = api.ask("POST", f"/api/upload/files/{made.body[0]['documentId']}/move", json={"folder": "new"})
    assert (moved.status, moved.data["caption"]) == (200, f"{LONG}y")


def test_a_replaced_source_is_returned_in_full(api: Api) -> None:
    etag = api.get("/source/notes/n01").headers["ETag"]
    text = json.dumps({"text": LONG})
    answer = api.ask("PUT", "/source/notes/n01", json={"data": {"text": text}}, headers={"If-Match": etag})
    assert (answer.status, answer.data["text"]) == (200, text)


def test_a_written_user_has_no_populated_relations_if_they_are_too_large(api: Api) -> None:
    user = {"username": "ann", "email": "ann@example.org", "password": "secret12", "role": 1}
    ann = api.ask("POST", "/api/users", json=user).body
    for _ in range(2):
        made = api.post("/api/letters?fields=id", {"text": "x" * 50_000, "author": ann["documentId"]})
        assert made.status == 201
    answer = api.ask("DELETE", f"/api/users/{ann['id']}?populate=letters")
    assert (answer.status, answer.body["username"], "letters" in answer.body) == (200, "ann", False)
    assert api.get(f"/api/users/{ann['id']}").status == 404
