"""Tests of the tools that write, and of where their writes go."""

import json
import tracemalloc
from base64 import b64encode
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from server.api.entrance import Entrance
from server.api.mcp.rest_client import Reply, RestClient
from server.api.mcp.tools.checking import PAGE_PROBLEMS
from server.api.mcp.tools.destination import branch_name
from server.api.mcp.tools.sources import select_lines
from server.index.budget import turns
from server.service.branch_problems import BranchChecks, BranchProblems
from server.storage.git import checkout_watch
from tests.git import commit_all, git
from tests.mcp.agents import Agent, retitle, valid, write
from tests.mcp.sites import EDITOR, GIF, Make
from tests.sites import STRING, Api, collection, documents
from tests.sites import write as write_files


@pytest.fixture
def api(make_site: Make) -> Api:
    return make_site()


@pytest.fixture
def agent(api: Api) -> Agent:
    return Agent(api)


# --- branches -------------------------------------------------------------------------------------


def test_a_write_goes_to_a_branch_and_tells_how_to_go_on(agent: Agent, api: Api) -> None:
    called = write(agent, retitle("Mist"), message="Retitle fog")
    content = called.content
    assert content["branch"] == "agent/full"
    assert content["review"] == {
        "mergeCommand": f"git merge {content['commit']}",
        "url": "http://localhost/studio/site/-/branches/agent/full",
    }
    assert content["documents"][0]["documentId"] == "fog"
    [file] = content["files"]
    assert file["path"] == "content/articles/fog.json"
    assert any(line.startswith("+") and "Mist" in line for line in file["lines"])
    assert content["problems"] == []
    assert api.get("/api/articles/fog").data["title"] == "Fog"
    assert agent.call("get", type="article", documentId="fog", at="agent/full").data["title"] == "Mist"
    assert git(api.root, "log", "-1", "--format=%H %an %s", "agent/full").split(" ", 1) == [
        content["commit"], "full Retitle fog\n",
    ]  # fmt: skip
    assert git(api.root, "status", "--short") == ""


def test_the_link_to_a_review_begins_with_the_public_url(agent: Agent, api: Api) -> None:
    settings = api.read("site.yaml")
    write_files(api.root, {"site.yaml": f"public_url: https://cms.example.org/\n{settings}"})
    api.site.refresh()
    review = write(agent, retitle("Mist")).content["review"]
    assert review["url"] == "https://cms.example.org/studio/site/-/branches/agent/full"


def test_the_branch_is_reused_until_it_is_merged(agent: Agent, api: Api) -> None:
    write(agent, retitle("Mist"))
    assert write(agent, retitle("Gale", "wind")).content["branch"] == "agent/full"
    git(api.root, "merge", "-q", "--no-ff", "-m", "Merge", "agent/full")
    api.site.refresh()
    second = write(agent, retitle("Haze")).content
    assert second["branch"] == "agent/full.2"
    assert api.get("/api/articles/fog").data["title"] == "Mist"
    assert write(agent, retitle("Smoke")).content["branch"] == "agent/full.2"
    api.ask("DELETE", "/branches/agent/full.2")
    assert agent.call("site_info").content["writes"] == {
        "mode": "branch", "branch": "agent/full.2", "exists": False,
    }  # fmt: skip


def test_writes_stay_on_the_last_branch_if_a_merged_one_is_deleted(agent: Agent, api: Api) -> None:
    write(agent, retitle("Mist"))
    git(api.root, "merge", "-q", "--no-ff", "-m", "Merge", "agent/full")
    api.site.refresh()
    assert write(agent, retitle("Haze")).content["branch"] == "agent/full.2"
    git(api.root, "branch", "-q", "-d", "agent/full")
    assert write(agent, retitle("Smoke")).content["branch"] == "agent/full.2"
    git(api.root, "merge", "-q", "--no-ff", "-m", "Merge", "agent/full.2")
    git(api.root, "branch", "-m", "agent/full.2", "agent/full.10")
    api.site.refresh()
    assert write(agent, retitle("Dust")).content["branch"] == "agent/full.11"


def test_a_branch_that_is_deleted_during_a_write_is_made_again(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(Agent(api), retitle("Mist"))
    send, deleted = RestClient.send, list[str]()

    def raced(self: RestClient, method: str, path: str, *arguments: Any, **more: Any) -> Any:
        if (method, path) == ("POST", "/batch") and not deleted:
            deleted.append(git(api.root, "branch", "-D", "agent/full"))
        return send(self, method, path, *arguments, **more)

    monkeypatch.setattr(RestClient, "send", raced)
    assert write(Agent(api), retitle("Gale", "wind")).content["branch"] == "agent/full"
    assert deleted
    assert "Gale" in git(api.root, "show", "agent/full:content/articles/wind.json")


def test_two_callers_have_two_branches(agent: Agent, api: Api) -> None:
    api.token("a b", "full-access")
    api.token("a-b", "full-access")
    branches = {write(Agent(api, who), retitle("Mist")).content["branch"] for who in ("full", "a b", "a-b")}
    assert len(branches) == 3
    names = {branch_name("{caller}", {"kind": kind, "name": "x"}) for kind in ("token", "user", "agent")}
    assert names == {"x", "user.x", "agent.x"}
    assert branch_name("{caller}", {"kind": "public", "name": ""}) == "public.anyone"
    hashed = branch_name("{caller}", {"kind": "token", "name": "jane.doe"})
    assert branch_name("{caller}", {"kind": "token", "name": hashed}) != hashed


def test_the_served_branch_is_out_of_reach(agent: Agent, api: Api) -> None:
    refused = agent.call("write", operations=[retitle("Mist")], branch="main")
    assert refused.error["status"] == 400
    assert "because this site has mcp: {write: branch}" in refused.line
    git(api.root, "checkout", "-qb", "agent/full")
    api.site.refresh()
    assert write(agent, retitle("Mist")).content["branch"] == "agent/full.2"
    assert api.get("/api/articles/fog").data["title"] == "Fog"


@pytest.mark.parametrize("is_new", [True, False])
def test_a_write_goes_to_a_new_branch_if_its_branch_is_checked_out_meanwhile(
    agent: Agent, api: Api, monkeypatch: pytest.MonkeyPatch, is_new: bool
) -> None:
    if not is_new:
        write(agent, retitle("Gale", "wind"))
    move, calls, before = checkout_watch.move_branch, [], git(api.root, "rev-parse", "HEAD")

    def moved(*arguments: Any) -> bool:
        calls.append(arguments)
        if len(calls) == 1:
            git(api.root, "checkout", "-q", "agent/full")
        return move(*arguments)

    monkeypatch.setattr(checkout_watch, "move_branch", moved)
    assert write(agent, retitle("Mist")).content["branch"] == "agent/full.2"
    assert git(api.root, "symbolic-ref", "HEAD").strip() == "refs/heads/agent/full"
    assert git(api.root, "status", "--porcelain", "-uno") == ""
    assert (git(api.root, "rev-parse", "agent/full") == before) is is_new


def test_a_write_does_not_follow_its_branch_into_the_served_files(
    agent: Agent, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(agent, retitle("Gale", "wind"))
    send, done = RestClient.send, list[str]()

    def sent(self: RestClient, method: str, path: str, *rest: Any, **options: Any) -> Reply:
        if path == "/batch" and not done:
            done.append(git(api.root, "checkout", "-q", "agent/full"))
            api.site.refresh()
        return send(self, method, path, *rest, **options)

    monkeypatch.setattr(RestClient, "send", sent)
    assert write(agent, retitle("Mist")).content["branch"] == "agent/full.2"
    assert git(api.root, "status", "--porcelain", "-uno") == ""


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("write", {"operations": [retitle("Mist")]}),
        ("restore", {"type": "article", "documentId": "fog", "version": "main"}),
        ("write_file", {"path": "content/articles/fog.json", "text": "{}", "ifMatch": "x"}),
        ("upload", {"data": b64encode(GIF).decode(), "name": "a.gif"}),
    ],
)
def test_an_agent_can_not_write_to_the_branches_of_others(
    agent: Agent, api: Api, tool: str, arguments: dict[str, Any]
) -> None:
    others = ("spring", "agent/full.x", "agent/full.1", "agent/full.02", "agent/full2", "agent/other")
    for branch in others:
        git(api.root, "branch", branch)
        refused = agent.call(tool, **arguments, branch=branch)
        assert refused.error["status"] == 400
        assert "only to its own branches, such as agent/full" in refused.line
    tips = git(api.root, "for-each-ref", "--format=%(objectname)", "refs/heads").split()
    assert len(set(tips)) == 1


def test_an_agent_may_name_its_own_branches(agent: Agent, api: Api) -> None:
    first = write(agent, retitle("Mist")).content
    second = write(agent, retitle("Gale", "wind"), branch="agent/full").content
    assert second["branch"] == "agent/full"
    git(api.root, "merge", "-q", "--no-ff", "-m", "Merge", first["commit"])  # without the second one
    api.site.refresh()
    assert api.get("/api/articles/wind").data["title"] == "Wind"
    git(api.root, "branch", "agent/full.12")
    assert write(agent, retitle("Haze"), branch="agent/full.12").content["branch"] == "agent/full.12"
    assert agent.call("write", operations=[retitle("Mist")], branch="agent/full.3").is_error
    assert branch_name("{caller}", {"kind": "user", "name": "2"}) != "user.2"  # That is a branch of a token.


def test_direct_writes_may_name_any_branch(make_site: Make) -> None:
    api = make_site(", write: direct")
    git(api.root, "branch", "a;touch${IFS}x")
    made = write(Agent(api), retitle("Mist"), branch="a;touch${IFS}x").content
    assert made["branch"] == "a;touch${IFS}x"
    assert made["review"]["mergeCommand"] == f"git merge {made['commit']}"


def test_a_branch_that_blocks_the_name_is_avoided(agent: Agent, api: Api) -> None:
    assert api.ask("POST", "/branches", json={"name": "agent/full/x"}).status == 201
    assert api.ask("POST", "/branches", json={"name": "agent/full.3/x"}).status == 201
    assert write(agent, retitle("Mist")).content["branch"] == "agent/full.2"
    assert write(agent, retitle("Haze")).content["branch"] == "agent/full.2"
    git(api.root, "merge", "-q", "--no-ff", "-m", "Merge", "agent/full.2")
    api.site.refresh()
    assert write(agent, retitle("Smoke")).content["branch"] == "agent/full.4"


def test_a_token_for_branches_only_writes_to_its_branch_even_if_others_write_directly(
    make_site: Make,
) -> None:
    api = make_site(", write: direct")
    api.tokens["helper"] = api.accounts.create_token("helper", "full-access", branch_only=True)
    agent = Agent(api, "helper")
    assert agent.call("site_info").content["writes"] == {
        "mode": "branch",
        "branch": "agent/helper",
        "exists": False,
    }
    operation = {"action": "update", "type": "article", "documentId": "fog", "data": {"title": "Mist"}}
    assert agent.call("write", operations=[operation]).content["branch"] == "agent/helper"
    assert api.get("/api/articles/fog").data["title"] == "Fog"
    served = next(one["name"] for one in api.get("/branches").data if one["served"])
    refused = agent.call("write", operations=[operation], branch=served)
    assert refused.error["status"] == 403
    assert api.get("/api/articles/fog").data["title"] == "Fog"


def test_direct_writes_change_what_is_served(make_site: Make) -> None:
    api = make_site(", write: direct")
    agent = Agent(api)
    assert agent.call("site_info").content["writes"] == {"mode": "direct"}
    content = write(
        agent, retitle("Mist"), {"action": "delete", "type": "article", "documentId": "tide"}
    ).content
    assert "branch" not in content
    assert api.get("/api/articles/fog").data["title"] == "Mist"
    assert api.get("/api/articles/tide").status == 404


@pytest.mark.parametrize("tool", ["write", "restore", "write_file", "upload"])
def test_no_writes_at_all(make_site: Make, tool: str) -> None:
    api = make_site(", write: none")
    arguments = {
        "write": {"operations": [retitle("Mist")]},
        "restore": {"type": "article", "documentId": "fog", "version": "main"},
        "write_file": {"path": "content/articles/fog.json", "text": "{}", "ifMatch": "x"},
        "upload": {"data": b64encode(GIF).decode(), "name": "a.gif"},
    }[tool]
    called = Agent(api).call(tool, **arguments)
    assert "because this site has mcp: {write: none}" in called.line
    assert called.is_error
    assert git(api.root, "branch", "--format=%(refname:short)").split() == ["main"]
    assert git(api.root, "status", "--short") == ""


def test_who_may_not_branch_is_told_so(api: Api) -> None:
    api.token("editor", may=EDITOR)
    editor = Agent(api, "editor")
    says = "the token editor lacks branch: [find, create, update]"
    assert editor.call("site_info").content["writes"]["reason"] == says
    refused = editor.call("write", operations=[retitle("Mist")])
    assert says in refused.line
    assert refused.error["status"] == 403
    public = Agent(api, "public").call("write", operations=[retitle("Mist")])
    assert "no token was sent; the role public lacks branch: [find, create, update]" in public.line
    assert public.error["name"] == "ForbiddenError"
    api.token("lister", may=[*EDITOR, "branch.find"])
    assert Agent(api, "lister").call("write", operations=[retitle("Mist")]).error["status"] == 403


def test_a_role_without_sources_and_problems_writes_without_a_diff(api: Api) -> None:
    api.token("editor", may=[*EDITOR, "branch.find", "branch.create", "branch.update"])
    content = write(Agent(api, "editor"), retitle("Mist")).content
    assert (content["files"], content["problems"]) == (None, None)
    refused = Agent(api, "editor").call("write", operations=[retitle("Mist")], dryRun=True)
    assert refused.error["status"] == 403


def test_a_rejected_first_write_leaves_no_branch_for_any_role(api: Api) -> None:
    api.token("editor", may=[*EDITOR, "branch.find", "branch.create", "branch.update"])
    editor = Agent(api, "editor")
    assert editor.call("write", operations=[retitle("x" * 61)]).is_error
    assert editor.call("restore", type="article", documentId="fog", version="main").is_error
    assert git(api.root, "branch", "--format=%(refname:short)").split() == ["main"]
    assert write(editor, retitle("Mist")).content["branch"] == "agent/editor"
    assert editor.call("write", operations=[retitle("x" * 61)]).is_error
    assert "Mist" in git(api.root, "show", "agent/editor:content/articles/fog.json")


# --- write ----------------------------------------------------------------------------------------


def test_all_actions_in_one_batch(agent: Agent, api: Api) -> None:
    done = write(
        agent,
        {"action": "create", "type": "tag", "data": {"name": "Rain"}},
        {"action": "update", "type": "article", "documentId": "fog", "data": {"tags": ["{{0.documentId}}"]}},
        {
            "action": "update",
            "type": "article",
            "documentId": "tide",
            "data": {"title": "New"},
            "status": "draft",
        },
        {"action": "publish", "type": "article", "documentId": "tide"},
        {"action": "unpublish", "type": "article", "documentId": "wind"},
        {"action": "update", "type": "home", "data": {"title": "Start"}},
        {"action": "delete", "type": "tag", "documentId": "sky"},
    )
    assert [one["status"] for one in done.content["documents"]] == [201, 200, 200, 200, 200, 200, 204]
    at = {"at": done.content["branch"]}
    fog = agent.call("get", type="article", documentId="fog", populate="tags", **at).data
    assert [tag["name"] for tag in fog["tags"]] == ["Rain"]
    created = done.content["documents"][0]["documentId"]
    assert any(created in file["path"] for file in done.content["files"])
    assert agent.call("get", type="article", documentId="tide", **at).data["title"] == "New"
    assert agent.call("get", type="article", documentId="wind", **at).error["status"] == 404
    assert agent.call("get", type="home", **at).data["title"] == "Start"


def test_a_batch_is_all_or_nothing(agent: Agent, api: Api) -> None:
    write(agent, retitle("Gale", "wind"))
    called = agent.call("write", operations=[retitle("Mist"), retitle("x" * 61, "tide")])
    assert called.error["details"]["operation"] == 1
    assert "at most 60" in called.line
    assert api.get("/api/articles/fog?at=agent/full").data["title"] == "Fog"


def test_a_dry_run_writes_nothing(agent: Agent, api: Api) -> None:
    called = write(agent, retitle("Mist"), dryRun=True)
    assert called.content["files"][0]["action"] == "update"
    assert "agent/full" not in git(api.root, "branch")
    write(agent, retitle("Haze"))
    lines = write(agent, retitle("Mist"), dryRun=True).content["files"][0]["lines"]
    assert any(line.startswith("-") and "Haze" in line for line in lines)


def test_an_etag_keeps_an_agent_from_overwriting_others(agent: Agent) -> None:
    tag = agent.call("get", type="article", documentId="fog").content["etag"]
    write(agent, {**retitle("Mist"), "ifMatch": tag})
    refused = agent.call("write", operations=[{**retitle("Haze"), "ifMatch": tag}])
    assert refused.error["status"] == 412
    assert refused.error["message"].endswith("read it again (on the branch agent/full)")


def test_a_branch_that_another_call_has_just_created_is_used(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    send = RestClient.send

    def raced(self: RestClient, method: str, path: str, *arguments: Any, **more: Any) -> Any:
        if (method, path) == ("POST", "/branches"):
            git(api.root, "branch", "agent/full", "main")
        return send(self, method, path, *arguments, **more)

    monkeypatch.setattr(RestClient, "send", raced)
    assert write(Agent(api), retitle("Mist")).content["branch"] == "agent/full"
    assert "Mist" in git(api.root, "show", "agent/full:content/articles/fog.json")


def test_new_problems_are_in_the_answer(agent: Agent) -> None:
    made = write(agent, {"action": "delete", "type": "tag", "documentId": "sea"}).content
    [problem] = made["problems"]
    assert (problem["rule"], problem["path"]) == ("dangling", "content/articles/fog.json")
    assert write(agent, retitle("Mist")).content["problems"] == []  # It is not new any more.
    found = valid("check", agent.call("check", branch="agent/full"))
    assert [one["rule"] for one in found.data] == ["dangling"]


def test_old_problems_beyond_the_first_page_are_not_new(make_site: Make) -> None:
    api = make_site(", write: direct")
    broken = {f"a{number:03}": {"title": "A", "tags": ["none"]} for number in range(PAGE_PROBLEMS + 1)}
    write_files(api.root, documents("articles", **broken))
    api.site.refresh()
    fixed = {"action": "update", "type": "article", "documentId": "a000", "data": {"tags": []}}
    assert write(Agent(api), fixed).content["problems"] == []
    caused = write(Agent(api), {"action": "delete", "type": "tag", "documentId": "sea"}).content
    assert [problem["path"] for problem in caused["problems"]] == ["content/articles/fog.json"]


@pytest.mark.parametrize(
    ("operation", "says"),
    [
        ({"action": "destroy", "type": "tag"}, "must be one of create, update"),
        ({"action": "update", "type": "tag", "data": {}}, '"documentId" is missing'),
        ({"action": "update", "type": "taag", "documentId": "sea"}, 'did you mean "tag"?'),
        ({"action": "create", "type": "home", "data": {}}, "use the action update"),
        ({"action": "create", "type": "tag", "documentId": "fog", "data": {}}, "use the action update"),
        ({"action": "create", "type": "tag", "status": "draft", "data": {}}, "type tag has no drafts"),
        ({"action": "update", "type": "home", "status": "draft"}, "published when the branch is merged"),
        ({"action": "publish", "type": "article", "documentId": "fog", "data": {}}, 'does not accept "data"'),
        (
            {"action": "update", "type": "article", "documentId": "none", "data": {"title": "a"}},
            'no article "none"',
        ),
        ({"action": "update", "type": "article", "documentId": "fgo"}, 'did you mean "fog"?'),
        ({"action": "delete", "type": "tag", "documentId": "x", "where": 1}, 'unknown key "where"'),
        (
            {"action": "update", "type": "article", "documentId": "fog", "data": {"titel": "a"}},
            'Invalid key titel (400 ValidationError); did you mean "title"?',
        ),
    ],
)
def test_a_wrong_operation_is_told_what_is_allowed(
    agent: Agent, operation: dict[str, Any], says: str
) -> None:
    called = agent.call("write", operations=[operation])
    assert called.is_error
    assert says in called.line


def test_unchanged_lines_in_diffs_are_cut(agent: Agent, api: Api) -> None:
    before, after = "The harbour. " * 50, "The bay. " * 50
    fog = {"title": "Fog", "body": before, "updatedAt": "2024-01-01T00:00:00Z"}
    (api.root / "content/articles/fog.json").write_text(json.dumps(fog, indent=2))
    commit_all(api.root)
    api.site.refresh()
    for called in (write(agent, retitle("Mist")), write(agent, retitle("Haze"), dryRun=True)):
        lines = called.content["files"][0]["lines"]
        assert max(map(len, lines)) < 200
        assert any("harbour" in line and line.endswith("…") for line in lines)
    changed = {"action": "update", "type": "article", "documentId": "fog", "data": {"body": after}}
    assert any(len(line) > 400 for line in write(agent, changed).content["files"][0]["lines"])


def test_many_changed_files_are_cut(make_site: Make) -> None:
    agent = Agent(make_site(", max_bytes: 16 kB"))
    created = [{"action": "create", "type": "tag", "data": {"name": "x" * 200}} for _ in range(100)]
    called = write(agent, *created)
    assert len(called.content["documents"]) == 100
    assert "of 100 files" in called.content["note"]
    assert len(json.dumps(called.content)) < 16_500


def test_a_write_whose_diff_is_too_large_says_so(make_site: Make) -> None:
    api = make_site(rest="api: {limits: {steps: 5000}}\n")
    agent = Agent(api)
    write(agent, retitle("Mist"))
    long = {"action": "create", "type": "article", "data": {"title": "Long", "body": "x\n" * 6000}}
    called = write(agent, long)
    assert called.content["files"] is None
    assert "does not contain the diff" in called.content["note"]
    made = called.content["documents"][0]["documentId"]
    assert agent.call("get", type="article", documentId=made, at="agent/full").data["title"] == "Long"
    assert git(api.root, "rev-list", "--count", "main..agent/full").strip() == "2"


# --- the other tools ------------------------------------------------------------------------------


def test_history_diff_and_restore(make_site: Make) -> None:
    api = make_site(", write: direct", "git: {commit: each}\n")
    agent = Agent(api)
    first = git(api.root, "rev-parse", "HEAD").strip()
    write(agent, retitle("Mist"), message="Bad edit")
    listed = valid("history", agent.call("history", type="article", documentId="fog"))
    assert [one["message"] for one in listed.data] == ["Bad edit", "first"]
    assert listed.data[0]["attributes"] == ["title"]
    compared = valid("diff", agent.call("diff", type="article", documentId="fog", **{"from": first}))
    assert compared.content["attributes"]["title"] == {"from": "Fog", "to": "Mist"}
    earlier = {"type": "article", "documentId": "fog", "version": first}
    dry = valid("restore", agent.call("restore", **earlier, dryRun=True))
    assert dry.content["files"][0]["path"] == "content/articles/fog.json"
    restored = valid("restore", agent.call("restore", **earlier, fields="title")).content
    assert "Fog" in str([line for line in restored["files"][0]["lines"] if line.startswith("+")])
    assert restored["problems"] == []
    assert api.get("/api/articles/fog").data["title"] == "Fog"
    assert agent.call("history").content["total"] == 3


def test_the_diff_of_a_branch(agent: Agent) -> None:
    write(agent, retitle("Mist"))
    found = valid("diff", agent.call("diff"))
    assert found.data[0]["attributes"]["title"] == {"from": "Fog", "to": "Mist"}
    assert found.content["branch"] == "agent/full"
    assert found.content["media"] == []


@pytest.mark.parametrize(
    ("tool", "arguments", "says"),
    [
        ("check", {"branch": "main", "severity": "error"}, '"severity" can\'t be used with a branch'),
        ("diff", {"from": "main"}, '"from" can\'t be used without a type'),
        ("diff", {"branch": "main", "locale": "en"}, '"locale" can\'t be used without a type'),
        (
            "diff",
            {"type": "article", "documentId": "fog", "branch": "main"},
            '"branch" can\'t be used with a',
        ),
        ("diff", {"type": "article", "documentId": "fog", "page": 2}, '"page" can\'t be used with a type'),
    ],
)
def test_arguments_that_do_not_go_together_are_rejected(
    agent: Agent, tool: str, arguments: dict[str, Any], says: str
) -> None:
    called = agent.call(tool, **arguments)
    assert called.error["status"] == 400
    assert says in called.line


def test_the_diff_of_a_branch_names_uploaded_files(agent: Agent) -> None:
    agent.call("upload", name="buoy.gif", data=b64encode(GIF).decode())
    found = valid("diff", agent.call("diff"))
    assert found.data == []
    assert {file["action"] for file in found.content["media"]} == {"create"}
    assert any("buoy" in file["path"] for file in found.content["media"])


def test_a_file_is_read_and_written(agent: Agent, api: Api) -> None:
    path = "content/articles/fog.json"
    read = valid("read_file", agent.call("read_file", path=path)).content
    assert read["text"] == api.read(path)
    text = read["text"].replace("Fog comes", "Fog creeps")
    dry = valid(
        "write_file", agent.call("write_file", path=path, text=text, ifMatch=read["etag"], dryRun=True)
    )
    assert "creeps" in "".join(dry.content["files"][0]["lines"])
    assert "agent/full" not in git(api.root, "branch")
    done = valid(
        "write_file", agent.call("write_file", path=path, text=text, ifMatch=read["etag"], message="é")
    )
    assert done.content["branch"] == "agent/full"
    assert git(api.root, "log", "-1", "--format=%s", "agent/full") == "é\n"
    assert api.read(path) == read["text"]
    again = valid("read_file", agent.call("read_file", path=path, at="agent/full")).content
    assert (again["text"], again["etag"]) == (text, done.content["etag"])
    assert agent.call("write_file", path=path, text="{}", ifMatch=read["etag"]).error["status"] == 412


def test_a_part_of_a_file(agent: Agent, api: Api) -> None:
    (api.root / "content/articles/long.md").write_text("---\ntitle: Long\n---\n" + "line\n" * 20_000)
    api.site.refresh()
    path = "content/articles/long.md"
    read = agent.call("read_file", path=path, fromLine=2, toLine=2).content
    assert (read["text"], read["next"], read["lines"]) == ("title: Long\n", {"fromLine": 3}, 20_004)
    whole = agent.call("read_file", path=path).content
    assert whole["next"]["fromLine"] > 5000
    assert len(json.dumps(whole)) < 64_000


@pytest.mark.parametrize("path", ["site.yaml", "../x", "content/articles/none.json", "/etc/passwd", ""])
def test_other_files_are_not_read(agent: Agent, path: str) -> None:
    assert agent.call("read_file", path=path).error["status"] == 404


def test_who_may_not_read_sources_reads_none(api: Api) -> None:
    api.token("editor", may=EDITOR)
    assert Agent(api, "editor").call("read_file", path="content/articles/fog.json").error["status"] == 403


def _other_branches(root: Path) -> None:
    """Create a branch with one more content type, and a branch whose schemas can't be read."""
    git(root, "checkout", "-q", "-b", "more")
    write_files(root, collection("plan", {"name": STRING}))
    commit_all(root)
    git(root, "checkout", "-q", "-b", "broken")
    write_files(root, {"content-types/plan.json": "{"})
    commit_all(root)
    git(root, "checkout", "-q", "main")


@settings(max_examples=100)
@given(st.text("ab\n", max_size=40), st.integers(1, 12), st.integers(0, 12), st.integers(0, 20))
def test_lines_are_those_of_the_whole_text(text: str, first: int, more: int, max_chars: int) -> None:
    every = text.splitlines(keepends=True) + ([""] if text.endswith("\n") or not text else [])
    first = min(first, len(every))
    found = select_lines(text, first, min(first + more, len(every)), max_chars)
    assert found == every[first - 1 :][: len(found)]
    assert len(found) == min(more + 1, len(every) - first + 1) or sum(map(len, found)) > max_chars


def test_a_few_lines_of_a_long_text_need_little_memory() -> None:
    text = "x" + "\n" * 2_000_000 + "y"
    tracemalloc.start()
    assert select_lines(text, 3, 2_000_000, 1000) == ["\n"] * 1001
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1_000_000


@pytest.mark.parametrize("who", ["public", "reader", "source"])
@pytest.mark.parametrize("tool", ["read_file", "write_file"])
def test_who_may_not_read_a_branch_learns_nothing_of_its_files(make_site: Make, tool: str, who: str) -> None:
    api = make_site(", write: direct")
    _other_branches(api.root)
    api.site.refresh()
    api.token("reader", may=["article.find"])
    api.token("source", may=["article.find", "source.read", "source.write"])
    past = cast(Entrance, api.app.wsgi_app).past
    text = {"text": "{}", "ifMatch": "x"} if tool == "write_file" else {}
    for branch in ("broken", "more", "none"):
        for path in ("content/plans/a.json", "content/articles/fog.json", "site.yaml"):
            at = {"branch" if text else "at": branch}
            called = Agent(api, who).call(tool, path=path, **at, **text)
            assert called.error["status"] == 403, (branch, path)
            assert called.error["message"] == "Forbidden"
    assert not any(past.is_kept(past.branch(branch)) for branch in ("broken", "more"))


@pytest.mark.parametrize("may", ["history.read", "branch.find"])
def test_who_may_read_branches_reads_files_on_them(api: Api, may: str) -> None:
    _other_branches(api.root)
    api.site.refresh()
    api.token("reader", may=["article.find", "article.findOne", "source.read", may])
    reader = Agent(api, "reader")
    assert "Fog" in reader.call("read_file", path="content/articles/fog.json", at="more").content["text"]
    assert reader.call("read_file", path="content/plans/a.json", at="more").is_error


def test_a_branch_is_read_only_on_a_turn(api: Api, agent: Agent) -> None:
    _other_branches(api.root)
    api.site.refresh()
    app = cast(Entrance, api.app.wsgi_app)
    app.turns = turns(max_waiting=0)
    app.turns.acquire()
    arguments = {"path": "content/articles/fog.json", "at": "more"}
    assert agent.call("read_file", **arguments).error["status"] == 503
    app.turns.release()
    assert not agent.call("read_file", **arguments).is_error
    app.turns.acquire()  # No request has kept the turn.
    app.turns.release()


def test_check_finds_problems_of_the_served_content(agent: Agent, api: Api) -> None:
    (api.root / "content/tags/sea.json").unlink()
    api.site.refresh()
    found = valid("check", agent.call("check"))
    assert ("dangling", "content/articles/fog.json") in {(one["rule"], one["path"]) for one in found.data}
    assert agent.call("check", paths=["content/articles/fog.json"]).content["total"] == 1
    assert agent.call("check", paths="content/articles/tide.json").data == []


def test_a_branch_is_checked_once_even_if_it_has_many_problems(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    tagged = {"type": "article", "data": {"title": "Fog", "tags": ["sky"]}}
    write(agent, *[{**tagged, "action": "create"}] * 99, {**tagged, "action": "update", "documentId": "fog"})
    write(agent, {**tagged, "action": "create"}, {"action": "delete", "type": "tag", "documentId": "sky"})
    checked: list[str] = []
    find = BranchChecks.find

    def count(checks: Any, caller: Any, since: str, head: str, *more: Any) -> BranchProblems:
        checked.append(head)
        return find(checks, caller, since, head, *more)

    monkeypatch.setattr(BranchChecks, "find", count)
    found = valid("check", agent.call("check", branch="agent/full", paths="content/articles/fog.json"))
    assert [one["rule"] for one in found.data] == ["dangling"]
    assert len(checked) == 1
    assert agent.call("check", branch="agent/full").content["total"] == 101
    refused = agent.call("check", paths=["content/articles/fog.json"] * 101)
    assert '"paths" must have 1 to 100 items' in refused.line
    assert agent.call("check", paths=[7]).is_error
