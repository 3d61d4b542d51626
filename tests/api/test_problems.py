"""Tests of `/problems`: the problems in a site's files that each caller may see, and their safe fixes."""

import json
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from server.auth.accounts import Accounts
from server.auth.users import Users
from server.index.user_index import UserIndex
from server.schema.model import USER
from server.site.check.served import BackgroundChecks, DocumentProblem
from tests.conftest import MakeApi
from tests.git import commit_all, git
from tests.sites import STRING, Api, collection, component, relation, write
from tests.waiting import until

FILES = {
    **collection(
        "note",
        {
            "title": STRING,
            "count": "integer",
            "salary": {"type": "integer", "private": True},
            "author": relation("manyToOne", "author"),
            "parts": {"type": "component", "component": "shared.part", "repeatable": True},
        },
        drafts=True,
    ),
    **collection("author", {"name": STRING}),
    **component(
        "shared.part", {"by": relation("manyToOne", "author"), "code": {"type": "integer", "private": True}}
    ),
    "site.yaml": "roles: {public: {note: [find]}}\n",
    "content/authors/nell-trevanion.yaml": "name: Nell\n",
    "content/notes/good.yaml": "title: Good\nauthor: nell-trevanion\n",
}
BROKEN = {
    "content/notes/colon.yaml": "title: Lights: and lamps\n",
    "content/notes/count.yaml": "title: Count\ncount: ten\n",
    "content/notes/mistyped.yaml": "title: Odd   # kept\nauthor: nell-trevanoin\n",
    "content/notes/part.yaml": "title: Part\nparts:\n- by: Nell_Trevanion\n",
    "content/notes/plan.draft.yaml": "title: Plan\nauthor: nobody-at-all\n",
    "content/notes/secret.yaml": "title: Secret\nsalary: lots\n",
    "content/elsewhere/odd.yaml": "name: Odd\n",
}


def brief(answer: Any) -> list[tuple[str, str, str | None]]:
    return [(one["path"].removeprefix("content/"), one["rule"], one["attribute"]) for one in answer.data]


@pytest.fixture
def api(make_api: MakeApi) -> Api:
    return make_api({**FILES, **BROKEN})


def test_problems_say_where_they_are_and_of_what(api: Api) -> None:
    answer = api.get("/problems")
    assert brief(answer) == [
        ("elsewhere/odd.yaml", "unclaimed", None),
        ("notes/colon.yaml", "syntax", None),
        ("notes/count.yaml", "value", "count"),
        ("notes/mistyped.yaml", "dangling", "author"),
        ("notes/part.yaml", "dangling", "parts.0.by"),
        ("notes/plan.draft.yaml", "dangling", "author"),
        ("notes/secret.yaml", "value", "salary"),
    ]
    meta = answer.body["meta"]
    assert (meta["errors"], meta["warnings"], meta["fixable"], meta["current"]) == (3, 4, 2, True)
    assert meta["pagination"]["total"] == 7
    mistyped = answer.data[3]
    assert mistyped == {
        "path": "content/notes/mistyped.yaml",
        "line": 2,
        "column": 9,
        "severity": "warning",
        "rule": "dangling",
        "message": 'author: the document "nell-trevanoin" of type api::author.author does not exist',
        "fix": '--fix changes it to "nell-trevanion"',
        "type": "note",
        "documentId": "mistyped",
        "locale": "en",
        "status": "published",
        "title": "Odd",
        "attribute": "author",
        "change": {
            "path": "content/notes/mistyped.yaml",
            "key": "author",
            "before": "nell-trevanoin",
            "after": "nell-trevanion",
        },
    }
    broken = answer.data[1]
    assert (broken["type"], broken["documentId"], broken["title"]) == ("note", "colon", None)
    assert (broken["line"], broken["fix"]) == (
        1,
        "put strings that contain a colon in quotes, or check the indentation",
    )
    assert answer.data[5]["status"] == "draft"


def test_problems_are_chosen_and_paged(api: Api) -> None:
    assert len(api.get("/problems?severity=error").data) == 3
    assert brief(api.get("/problems?fixable=true")) == [
        ("notes/mistyped.yaml", "dangling", "author"),
        ("notes/part.yaml", "dangling", "parts.0.by"),
    ]
    assert brief(api.get("/problems?type=note&documentId=count")) == [("notes/count.yaml", "value", "count")]
    chosen = "path=content/notes/count.yaml&path=content/notes/none.yaml"
    assert brief(api.get(f"/problems?{chosen}")) == [("notes/count.yaml", "value", "count")]
    page = api.get("/problems?page=2&pageSize=3")
    assert [one["path"] for one in page.data] == [
        f"content/notes/{name}.yaml" for name in ("mistyped", "part", "plan.draft")
    ]
    assert page.body["meta"]["pagination"] == {"page": 2, "pageSize": 3, "pageCount": 3, "total": 7}
    many = "&".join(["path=a"] * 101)
    for wrong in ("severity=bad", "fixable=perhaps", "type[a]=b", "path[a]=b", many):
        assert api.get(f"/problems?{wrong}").error["status"] == 400


def test_nobody_is_told_of_what_they_may_not_see(api: Api) -> None:
    assert api.get("/problems", "public").status == 403
    find = ["problems.find", "note.find"]
    api.token("bare", may=["problems.find"])
    api.token("published", may=find)
    api.token("drafts", may=[*find, "note.readDraft"])
    api.token("authors", may=[*find, "note.readDraft", "author.find"])
    assert brief(api.get("/problems", "bare")) == brief(api.get("/problems", "published")) == []
    assert brief(api.get("/problems", "drafts")) == [
        ("notes/colon.yaml", "syntax", None),
        ("notes/count.yaml", "value", "count"),
    ]
    told = api.get("/problems", "authors")
    names = [path for path, _, _ in brief(told)]
    assert names == [f"notes/{n}.yaml" for n in ("colon", "count", "mistyped", "part", "plan.draft")]
    assert told.body["meta"]["errors"] + told.body["meta"]["warnings"] == 5
    assert told.body["meta"]["fixable"] == 0  # The caller has no permission to apply fixes.
    assert "lots" not in told.text
    assert "elsewhere" not in told.text


def test_advice_on_a_link_names_no_document_that_may_not_be_seen(make_api: MakeApi) -> None:
    api = make_api(
        {
            **collection("note", {"text": {"type": "richtext"}}),
            **collection("plan", {"text": {"type": "richtext"}}),
            "content/notes/a.yaml": "text: '[x](secret.md)'\n",
            "content/plans/secret.md": "# Plan\n",
        }
    )
    (owned,) = api.get("/problems").data
    assert (owned["rule"], owned["line"], owned["attribute"]) == ("broken-link", 1, "text")
    assert owned["fix"] == 'did you mean "../plans/secret.md"?'
    api.token("notes", may=["problems.find", "note.find"])
    (seen,) = api.get("/problems", "notes").data
    assert seen["fix"] == "correct the link"


def test_no_fix_spells_an_attribute_that_may_not_be_seen(make_api: MakeApi) -> None:
    api = make_api(
        {
            **FILES,
            "content/notes/a.yaml": "title: A\nsalery: 1\nauthr: x\ncuont: 1\n",
            "content/notes/b.yaml": "title: B\nparts:\n- coed: 1\n",
            "content/notes/c.yaml": "title: C\nparts:\n- some text\n",
        }
    )
    api.token("editor", may=["problems.find", "note.find", "note.readDraft"])
    add = "add the attribute to content-types/note.json, or remove the key"

    def fixes(who: str) -> list[str]:
        return [one["fix"] for one in api.get("/problems", who).data]

    assert fixes("full") == [
        'did you mean "salary"?',
        'did you mean "author"?',
        'did you mean "count"?',
        'did you mean "code"?',
        "write the attributes of shared.part below it: by: …, code: …",
    ]
    assert fixes("editor") == [
        add,
        add,
        'did you mean "count"?',
        "add the attribute to content-types/components/shared/part.json, or remove the key",
        "",
    ]


def test_the_advice_for_a_draft_that_is_named_wrong_is_its_right_name(make_api: MakeApi) -> None:
    files = collection("note", {"title": STRING}, drafts=True, localized=True)
    text = "title: Draft of A\n"
    api = make_api(
        {
            **files,
            "site.yaml": "locales: {available: [en, fr]}\n",
            "content/notes/a.fr.yaml": "title: A\n",
            "content/notes/a.draft.fr.yaml": text,
        }
    )
    (wrong,) = [one for one in api.get("/problems").data if one["rule"] == "file-name"]
    assert (wrong["path"], wrong["fix"]) == (
        "content/notes/a.draft.fr.yaml",
        "rename the file to content/notes/a.fr.draft.yaml",
    )
    (api.root / wrong["path"]).rename(api.root / wrong["fix"].rpartition(" ")[2])
    api.site.refresh()
    assert not [one for one in api.get("/problems").data if one["rule"] == "file-name"]
    assert api.get("/api/notes/a?locale=fr&status=draft").data["title"] == "Draft of A"


def test_the_advice_for_an_unknown_key_of_a_media_file_names_no_schema(make_api: MakeApi) -> None:
    api = make_api(
        {
            **FILES,
            "content/uploads/a.txt": "A",
            "content/uploads/a.txt.yaml": "caption: A\nphotographer: Nell\n",
        }
    )
    assert [one["fix"] for one in api.get("/problems").data] == ["remove the key"]


def test_a_change_of_the_files_shows_in_the_next_answer(api: Api) -> None:
    assert len(api.get("/problems").data) == 7
    write(api.root, {"content/notes/good.yaml": "title: [\n"})
    api.site.refresh()
    found = {one["path"]: one for one in current_problems(api)}
    good = found["content/notes/good.yaml"]  # the last valid version of this file is served
    assert (good["severity"], good["documentId"], good["title"]) == ("error", "good", "Good")
    write(api.root, {"content/notes/good.yaml": "title: Good\n"})
    api.site.refresh()
    assert len(current_problems(api)) == 7


def current_problems(api: Api) -> list[Any]:
    """Wait until the problems are those of the site's current state, and return them.

    Waiting is necessary because the server does not repeat a slow check immediately.
    """
    until(lambda: api.get("/problems").body["meta"]["current"])
    return list(api.get("/problems").data)


def fixes(api: Api, who: str = "full") -> list[Any]:
    return [one["change"] for one in api.get("/problems?fixable=true", who).data]


def fix(api: Api, chosen: Any, who: str = "full", **options: Any) -> Any:
    return api.ask("POST", "/problems/fix", who, json={"fixes": chosen}, **options)


def test_fixes_change_what_they_say_and_nothing_else(api: Api) -> None:
    first, second = fixes(api)
    assert fix(api, [first]).data == {"fixed": [first], "refused": []}
    assert api.read("content/notes/mistyped.yaml") == "title: Odd   # kept\nauthor: nell-trevanion\n"
    assert "Nell_Trevanion" in api.read("content/notes/part.yaml")
    assert fixes(api) == [second]
    again = fix(api, [first, second]).data
    assert (again["fixed"], [one["key"] for one in again["refused"]]) == ([second], ["author"])
    assert api.get("/api/notes/part?populate[parts][populate]=by").data["parts"][0]["by"]["name"] == "Nell"
    assert fixes(api) == []


def test_a_file_that_is_no_longer_as_it_was_looked_at_is_left_alone(api: Api) -> None:
    first, _ = fixes(api)
    write(api.root, {"content/notes/mistyped.yaml": "title: Odd\nauthor: nell-trevanion\n"})
    assert [one["path"] for one in fix(api, [first]).data["refused"]] == [first["path"]]
    write(api.root, {"content/notes/mistyped.yaml": "title: Odd\nauthor: [\n"})
    assert fix(api, [first]).data["fixed"] == []
    assert api.read("content/notes/mistyped.yaml") == "title: Odd\nauthor: [\n"


def test_fixes_take_the_right_to_write_the_document(api: Api) -> None:
    see = ["problems.find", "note.find", "note.readDraft", "author.find"]
    api.token("sees", may=[*see, "note.update"])
    api.token("fixes", may=[*see, "problems.fix"])
    api.token("drafts", may=[*see, "problems.fix", "note.updateDraft"])
    api.token("writes", may=[*see, "problems.fix", "note.update"])
    chosen = fixes(api)
    assert fix(api, chosen, "sees").status == fix(api, chosen, "public").status == 403
    for who in ("fixes", "drafts"):
        assert fixes(api, who) == []
        assert fix(api, chosen, who).data["fixed"] == []
    assert fixes(api, "writes") == chosen
    assert fix(api, chosen, "writes").data["fixed"] == chosen


@pytest.mark.parametrize(
    "body",
    [
        None,
        [],
        {},
        {"fixes": []},
        {"fixes": [1]},
        {"fixes": [{"path": "a"}]},
        {"fixes": [{}] * 1001},
        {"fixes": "all"},
        {"fixes": [{"path": "", "key": "", "before": None, "after": ""}], "dryRun": True},
    ],
)
def test_bodies_that_name_no_fix_are_refused(api: Api, body: Any) -> None:
    assert api.ask("POST", "/problems/fix", json=body).error["status"] == 400


def test_a_path_out_of_the_site_is_no_fix(api: Api) -> None:
    made = {"path": "../../etc/passwd", "key": "a", "before": None, "after": "b"}
    assert fix(api, [made]).data == {
        "fixed": [],
        "refused": [{**made, "reason": "the file no longer has this problem"}],
    }


@pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")
def test_fixes_are_committed_where_writes_are(make_api: MakeApi, tmp_path: Path) -> None:
    write(tmp_path, {**FILES, **BROKEN, "site.yaml": "git: {commit: each}\n"})
    commit_all(tmp_path)
    api = make_api({})
    assert fix(api, fixes(api)).headers["Bifolio-Commit"]
    told = git(tmp_path, "log", "-1", "--format=%an: %s", "--name-only").split()
    assert told[:4] == ["full:", "Fix", "2", "problems"]
    assert told[4:] == ["content/notes/mistyped.yaml", "content/notes/part.yaml"]


def test_a_large_site_is_checked_beside_the_requests(
    make_api: MakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = {f"content/notes/n{i}.yaml": f"title: N {i}\ncount: x\n" for i in range(400)}
    api = make_api({**FILES, **many, **{f"content/authors/a{i}.yaml": "name: A\n" for i in range(400)}})
    # On a busy machine, the server may first return 503.
    until(lambda: api.get("/problems?pageSize=1").status == 200)
    answer = api.get("/problems?pageSize=1")
    assert answer.body["meta"]["errors"] == 400
    assert answer.body["meta"]["current"]


def test_what_takes_too_long_is_not_waited_for(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(*_: Any) -> Any:
        time.sleep(0.5)
        return (), 0

    monkeypatch.setattr("server.site.check.served.check", slow)
    monkeypatch.setattr("server.api.routes.problems.CHECK_TIMEOUT_S", 0.05)
    refused = api.get("/problems")
    assert (refused.status, refused.error["name"]) == (503, "ServiceUnavailableError")
    checks = BackgroundChecks(api.site, lambda: api.site.state.snapshot)
    found, current = checks.current(5.0)
    assert (json.dumps(found.problems), current) == ("[]", True)


def test_a_check_in_its_own_process_finds_the_same(
    make_api: MakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = {"type": "relation", "relation": "manyToOne", "target": USER}
    files = {
        **collection("note", {"title": STRING, "owner": owner}),
        "content/notes/owned.yaml": "title: Owned\nowner: ann\n",
        "content/notes/lost.yaml": "owner: nobody\n",
    }
    api = make_api({**FILES, **BROKEN, **files})
    users = Users(Accounts(api.site.root))
    users.create("ann", "ann@example.org", None, role="authenticated", confirmed=True)
    index = UserIndex(users, api.site.root)

    def found() -> tuple[DocumentProblem, ...]:
        checks = BackgroundChecks(
            api.site, lambda: index.join(api.site.state.snapshot, api.site.state.settings)
        )
        return checks.current(60)[0].problems

    here = found()
    monkeypatch.setattr("server.site.check.served.MAX_LOCAL_DOCUMENTS", 0)
    assert found() == here
    assert any(one.problem.rule == "dangling" and "users" in one.problem.message for one in here)
