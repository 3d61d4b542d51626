"""Tests of `/settings` and `/roles`, which read and change site.yaml."""

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from server.config.bounds import violated_bound
from server.config.model import DEFAULTS, KEYS, value_of
from tests.git import commit_all, git
from tests.sites import STRING, Answer, Api, collection, documents, make, write

SITE = """\
# Ours.
name: Harbour  # the town
accounts: ""
webhooks:
  - {name: build, url: "https://build.example.org/hunter2"}
api:
  rate_store: memory
  page_size: {max: 50}
mail: {host: smtp.example.org}
roles:
  public:
    note: [find]  # open
  editor: # people
    note: [find, findOne, create, update]
  chief:
    note: [find, findOne, create, update, delete]
    role: [find, update]
    settings: [read, write]
    user: [find]
"""
FILES = {
    **collection("note", {"title": STRING}),
    **documents("notes", a={"title": "A"}),
    "site.yaml": SITE,
}


@pytest.fixture
def api(tmp_path: Path) -> Api:
    api = make(tmp_path, FILES)
    api.token("reader", may=("settings.read", "role.find"))
    chief = api.site.state.settings.roles["chief"]
    api.token("chief", may=chief)
    return api


def change(api: Api, path: str, data: Any, who: str = "full", method: str = "PUT", tag: str = "") -> Answer:
    """Change settings or roles, as they are in the file now."""
    tag = tag or api.get(f"/{path.strip('/').partition('/')[0].partition('?')[0]}").headers["ETag"]
    return api.ask(method, path, who, json={"data": data}, headers={"If-Match": tag})


def settings(answer: Answer) -> dict[str, Any]:
    return {row["key"]: row for row in answer.data}


def test_settings_are_listed_without_secrets(api: Api) -> None:
    answer = api.get("/settings", "reader")
    rows = settings(answer)
    assert rows["name"] == {
        "key": "name",
        "type": "text",
        "description": "The name of the site.",
        "default": "Bifolio",
        "value": "Harbour",
        "set": True,
        "editable": True,
        "secret": False,
        "restart": False,
    }
    assert rows["api.page_size.max"]["value"] == 50
    assert rows["webhooks"]["set"] is True
    assert rows["webhooks"]["value"] is None
    assert rows["api.limits.size"]["default"] == "16 MB"
    assert "hunter2" not in answer.text
    assert "roles" not in rows
    assert {key for key, row in rows.items() if row["restart"]} == {
        "accounts",
        "api.rate_limit",
        "api.rate_store",
        "auth.session",
    }
    assert answer.body["meta"] == {"problem": None}


def test_a_change_is_served_at_once_and_keeps_the_rest_of_the_file(api: Api) -> None:
    values = {"name": "Pier", "api.page_size.max": 80, "events.keep": "90d"}
    answer = change(api, "/settings", values)
    assert settings(answer)["name"]["value"] == "Pier"
    assert api.read("site.yaml") == SITE.replace("Harbour", "Pier").replace("50", "80") + (
        "events:\n  keep: 90d\n"
    )
    assert api.get("/access").data["site"]["name"] == "Pier"
    assert answer.headers["ETag"] == api.get("/settings").headers["ETag"]
    assert change(api, "/settings", dict.fromkeys(values)).status == 200
    assert "name:" not in api.read("site.yaml").partition("webhooks")[0]
    assert api.get("/access").data["site"]["name"] == "Bifolio"


def test_a_dry_run_shows_the_changed_lines_only(api: Api) -> None:
    answer = change(api, "/settings?dryRun=true", {"name": "Pier"}, "chief")
    assert answer.data == {
        "files": [
            {
                "path": "site.yaml",
                "action": "update",
                "lines": ["@@ -2 +2 @@", "-name: Harbour  # the town", "+name: Pier  # the town"],
            }
        ]
    }
    assert api.read("site.yaml") == SITE
    assert change(api, "/settings?dryRun=true", {"name": "Harbour"}).data == {"files": []}


def test_a_dry_run_hides_secrets_on_the_same_line(tmp_path: Path) -> None:
    site = '# secret\n{webhooks: [{name: a, url: "https://x.org/hunter2"}], name: Harbour} # ours\n'
    api = make(tmp_path, {**FILES, "site.yaml": site})
    answer = change(api, "/settings?dryRun=true", {"name": "Pier"})
    assert answer.data["files"][0]["lines"] == [
        "@@ -2 +2 @@",
        "-{webhooks: (hidden), name: Harbour} # ours",
        "+{webhooks: (hidden), name: Pier} # ours",
    ]
    assert "x.org" not in answer.text
    assert "secret" not in answer.text


def test_a_dry_run_hides_comments_on_their_own_lines(tmp_path: Path) -> None:
    site = "branches:\n  # hunter2\n  max: 3 # ours\nroles: {public: {note: [find, findOne]}}\n"
    api = make(tmp_path, {**FILES, "site.yaml": site})
    answer = change(api, "/settings?dryRun=true", {"branches.max": None})
    lines = ["@@ -1,3 +0,0 @@", "-branches:", "-  # (hidden)", "-  max: 3 # ours"]
    assert answer.data["files"][0]["lines"] == lines


def test_a_dry_run_after_a_secret_block_shows_whole_lines(tmp_path: Path) -> None:
    api = make(tmp_path, {**FILES, "site.yaml": "mail:\n  user: |\n    hunter2\nname: Harbour\n"})
    answer = change(api, "/settings?dryRun=true", {"name": "Pier"})
    assert answer.data["files"][0]["lines"] == ["@@ -3 +3 @@", "-name: Harbour", "+name: Pier"]


def test_a_preview_url_is_shown_only_to_editors_of_the_type(tmp_path: Path) -> None:
    site = '{preview: {note: "https://a.example/{slug}?secret=hunter2"}, name: Harbour}\n'
    api = make(tmp_path, {**FILES, "site.yaml": site})
    api.token("reader", may=("settings.read", "settings.write", "note.find"))
    api.token("editor", may=("settings.read", "note.update"))
    answer = api.get("/settings", "reader")
    assert settings(answer)["preview"]["value"] == {"note": "(hidden)"}
    assert "hunter2" not in answer.text + change(api, "/settings?dryRun=true", {"name": "P"}, "reader").text
    assert "hunter2" in settings(api.get("/settings", "editor"))["preview"]["value"]["note"]


def test_an_invalid_value_is_not_shown(tmp_path: Path) -> None:
    """Credentials can be written to the wrong place, and must not be shown to readers of settings."""
    site = (
        "media: {store: s3://bucket, endpoint: 'https://AKIA:hunter2@s3.example.org', serve: hunter2}\n"
        "api: {cors: ['https://hunter2@a.example']}\n"
    )
    api = make(tmp_path, FILES)
    (tmp_path / "site.yaml").write_text(site)
    answer = api.get("/settings")
    assert "hunter2" not in answer.text
    assert settings(answer)["media.endpoint"]["set"] is True
    assert "api.cors must be a list of origins" in answer.body["meta"]["problem"]
    refused = change(api, "/settings", {"name": "Pier"})
    assert refused.status == 400
    assert "hunter2" not in refused.text + api.get("/roles").text


def test_a_saved_change_is_not_answered_with_an_error(tmp_path: Path) -> None:
    api = make(tmp_path, {**FILES, "site.yaml": SITE.replace("rate_store: memory", "limits: {size: 3000}")})
    answer = change(api, "/settings", {"name": "Pier"})
    assert (answer.status, settings(answer)["name"]["value"]) == (200, "Pier")


@pytest.mark.parametrize(
    ("data", "path", "message"),
    [
        ({"api.page_size.max": 5}, ["api.page_size.max"], "api.page_size.default must not be greater"),
        ({"api.limits.time": "soon"}, ["api.limits.time"], "api.limits.time must be a duration"),
        ({"locales.available": ["??"]}, ["locales.available"], "locales.available must be a list of locale"),
        ({"locales.default": "fr", "locales.available": ["en"]}, [], "locales.default must be one of"),
        ({"name": ["a"]}, ["name"], "name must be a string"),
        ({"nam": "a"}, ["nam"], '"nam" is not a setting; did you mean "name"?'),
        ({"mail.host": "evil.example.org"}, ["mail.host"], "mail.host can't be changed over the API"),
        ({"webhooks": []}, ["webhooks"], "webhooks can't be changed over the API"),
        ({"roles.editor": {}}, ["roles"], "roles are changed with PUT /roles"),
        ({"accounts": "x"}, ["accounts"], "accounts can't be changed over the API"),
        (
            {"preview.note": "https://evil.example/{slug}"},
            ["preview"],
            "preview can't be changed over the API",
        ),
        ({"api.rate_limit": "0 per day"}, ["api.rate_limit"], "api.rate_limit must be a rate limit"),
        ({"api.rate_limit": "1 per day"}, ["api.rate_limit"], "must allow at least 20 requests"),
        ({"api.rate_limit": "5 per second"}, ["api.rate_limit"], "must allow at least 20 requests"),
        ({"api.limits.size": "0"}, ["api.limits.size"], 'must be from 1 MB to 1 GB (found "0")'),
        ({"api.limits.values": 1}, ["api.limits.values"], "must be from 1000 to 10000000"),
        ({"api.limits.time": "2000y"}, ["api.limits.time"], "must be from 1s to 5m"),
        ({"auth.session": "1s"}, ["auth.session"], "must be from 5m to 10y"),
        ({"events.keep": 10**23}, ["events.keep"], "events.keep must be at most"),
        ({"events.keep": 1}, ["events.keep"], "must be from 100 to 10000000 events"),
        ({"events.keep": "1s"}, ["events.keep"], "must be from 100 to 10000000 events"),
        ({"locales.available": ["en", "EN"]}, ["locales.available"], "must not contain a locale twice"),
        ({}, [], "The request body must look like"),
    ],
)
def test_an_invalid_change_names_the_setting(
    api: Api, data: dict[str, Any], path: list[str], message: str
) -> None:
    answer = change(api, "/settings", data)
    assert answer.status == 400
    assert message in answer.error["message"]
    if path:
        assert ".".join(answer.error["details"]["errors"][0]["path"]) == path[0]
    assert api.read("site.yaml") == SITE


@pytest.mark.parametrize("name", [key.name for key in KEYS.values() if key.bounds])
def test_a_default_is_within_its_bounds(name: str) -> None:
    assert not violated_bound(KEYS[name], value_of(DEFAULTS, name))
    assert KEYS[name].editable


LOCALIZED = collection("page", {"title": STRING}, localized=True)


@pytest.mark.parametrize("broken", [False, True])
@pytest.mark.parametrize(
    ("data", "name"),
    [
        ({"locales.default": "fr"}, "locales.default"),
        ({"locales.default": "fr", "locales.available": ["fr", "en"]}, "locales.default"),
        ({"locales.default": None, "locales.available": ["fr", "en"]}, "locales.default"),
    ],
)
def test_a_new_default_locale_does_not_move_documents_to_it(
    tmp_path: Path, data: dict[str, Any], name: str, broken: bool
) -> None:
    files = {**LOCALIZED, "site.yaml": "locales: {default: en, available: [en, fr]}\n"}
    api = make(tmp_path, {**files, "content/pages/fog.json": "{" if broken else "{}"})
    for query in ("", "?dryRun=true"):
        answer = change(api, f"/settings{query}", data)
        assert answer.status == 400, answer.text
        [error] = answer.body["error"]["details"]["errors"]
        assert error["path"] == name.split(".")
        assert "would move from en to fr; run `bifolio migrate set-locale fr`" in error["message"]
    assert api.site.state.settings.locales.default == "en"
    # Without such files, nothing prevents the change.
    (tmp_path / "content/pages/fog.json").unlink()
    api.site.refresh()
    assert change(api, "/settings", data).status == 200


def test_after_an_edit_of_the_default_locale_a_problem_names_the_migration(tmp_path: Path) -> None:
    fog = dict.fromkeys(("content/pages/fog.json", "content/pages/fog.fr.json"), "{}")
    files = {**LOCALIZED, **fog, "site.yaml": "locales: {default: en, available: [en, fr]}\n"}
    api = make(tmp_path, files)
    assert not api.site.problems
    (tmp_path / "site.yaml").write_text("locales: {default: fr, available: [en, fr]}\n")
    api.site.refresh()
    [problem] = api.site.problems
    assert "already stored in content/pages/fog.fr.json" in problem.message
    assert "restore the old value and run `bifolio migrate set-locale fr` instead" in (problem.fix or "")


def test_two_people_do_not_overwrite_each_other(api: Api) -> None:
    tag = api.get("/settings").headers["ETag"]
    assert change(api, "/settings", {"name": "Pier"}, tag=tag).status == 200
    answer = change(api, "/settings", {"name": "Quay"}, tag=tag)
    assert (answer.status, answer.error["message"]) == (412, "site.yaml has changed since you read it")
    assert change(api, "/roles/editor", {"permissions": {}}, tag=tag).status == 412
    missing = api.put("/settings", {"name": "Quay"})
    assert (missing.status, "If-Match" in missing.error["message"]) == (400, True)


def test_a_role_is_changed_created_and_deleted(api: Api) -> None:
    answer = change(api, "/roles/editor", {"permissions": {"note": ["find"], "upload": ["upload"]}}, "chief")
    assert answer.status == 403  # The chief can't upload.
    answer = change(api, "/roles/editor", {"permissions": {"note": ["find", "delete"]}}, "chief")
    roles = {role["name"]: role for role in answer.data}
    assert roles["editor"]["permissions"] == {"note": ["find", "delete"]}
    assert "editor: # people\n    note: [find, delete]\n" in api.read("site.yaml")
    assert answer.body["meta"]["actions"]["note"][0] == "find"
    assert answer.body["meta"]["actions"]["webhook"] == ["read", "write", "send", "rotate"]
    made = change(api, "/roles/guest", {"permissions": {"note": ["find"]}}, "chief")
    assert {role["name"]: role["users"] for role in made.data}["guest"] == 0
    assert api.site.state.settings.roles["guest"] == {"note.find"}
    user = {"username": "ann", "email": "ann@example.org", "password": "secret12", "role": "guest"}
    assert api.ask("POST", "/api/users", json=user).status == 201
    used = change(api, "/roles/guest", None, "chief", "DELETE")
    assert (used.status, used.error["message"]) == (
        409,
        "1 user has the role guest; give them another role first",
    )
    assert change(api, "/roles/editor", None, "chief", "DELETE").status == 200
    assert "editor" not in api.read("site.yaml")
    assert change(api, "/roles/public", None, method="DELETE").status == 409
    assert change(api, "/roles/none", None, method="DELETE").status == 404


def test_two_requests_that_create_the_same_role_keep_the_permissions_of_both(api: Api) -> None:
    def put(subject: str) -> int:
        data = {"permissions": {subject: ["find"]}}
        return api.ask("PUT", "/roles/clerk", json={"data": data}, headers={"If-Match": "*"}).status

    with ThreadPoolExecutor(2) as pool:
        with api.site.locked():
            answers = pool.map(put, ("note", "upload"))
            time.sleep(0.5)  # Both requests wait for the lock.
        assert list(answers) == [200, 200]
    [clerk] = [role for role in api.get("/roles").data if role["name"] == "clerk"]
    assert clerk["permissions"] == {"note": ["find"], "upload": ["find"]}


@pytest.mark.parametrize("name", ["null", "True", "constructor", "1a", "a b"])
def test_a_new_role_has_a_name_that_programs_can_use(api: Api, name: str) -> None:
    answer = change(api, f"/roles/{name}", {"permissions": {"note": ["find"]}})
    assert (answer.status, "A role's name must be" in answer.error["message"]) == (400, True)


def test_a_new_role_can_not_be_mistaken_for_another(api: Api) -> None:
    before = api.read("site.yaml")
    for name in ("role-editor", "role-public"):
        answer = change(api, f"/roles/{name}", {"permissions": {}})
        assert (answer.status, "can't be told from the role" in answer.error["message"]) == (409, True)
    assert api.read("site.yaml") == before
    assert change(api, "/roles/role-new", {"permissions": {}}).status == 200
    assert change(api, "/roles/new", {"permissions": {}}).status == 409


def test_nobody_changes_a_role_that_can_do_more(api: Api) -> None:
    api.token("weak", may=("role.find", "role.update", "user.find"))
    answer = change(api, "/roles/editor", {"permissions": {"user": ["find"]}}, "weak")
    assert (answer.status, "permissions that you don't have" in answer.error["message"]) == (403, True)
    assert api.read("site.yaml") == SITE


def test_nobody_grants_or_revokes_a_permission_that_they_lack(api: Api) -> None:
    for role, permissions in (
        ("chief", {"source": ["read"]}),
        ("public", {"user": ["find", "update"]}),
        ("new", {"branch": ["merge"]}),
    ):
        answer = change(api, f"/roles/{role}", {"permissions": permissions}, "chief")
        assert answer.status == 403, role
        assert "because you don't have it" in answer.error["message"]
    api.token("weak", may=("role.find", "role.update"))
    assert change(api, "/roles/editor", {"permissions": {"note": []}}, "weak").status == 403
    assert change(api, "/roles/chief", None, "weak", "DELETE").status == 403
    assert change(api, "/roles/editor?dryRun=true", {"permissions": {"note": []}}, "weak").status == 403
    assert {role["name"]: role["changeable"] for role in api.get("/roles", "weak").data} == {
        "authenticated": True,
        "public": False,
        "editor": False,
        "chief": False,
    }
    assert api.read("site.yaml") == SITE


@pytest.mark.parametrize(
    ("role", "permissions", "message"),
    [
        ("editor", {"nothing": ["find"]}, 'unknown content type "nothing"'),
        ("editor", {"note": ["fly"]}, 'unknown action "fly" in the permissions for note'),
        ("editor", {"note": "find"}, '"note" must be a list of actions'),
        ("a b", {"note": ["find"]}, "A role's name must be"),
    ],
)
def test_an_invalid_role_is_refused(api: Api, role: str, permissions: Any, message: str) -> None:
    answer = change(api, f"/roles/{role}", {"permissions": permissions})
    assert answer.status == 400
    assert message in answer.error["message"]


def test_permissions_are_required(api: Api) -> None:
    assert change(api, "/settings", {"name": "Pier"}, "reader").status == 403
    assert change(api, "/roles/editor", {"permissions": {}}, "reader").status == 403
    for path in ("/settings", "/roles"):
        assert api.get(path, "public").status == 403
    assert change(api, "/settings?dryRun=true", {"name": "Pier"}, "reader").status == 403


def test_a_broken_file_says_what_is_wrong(api: Api) -> None:
    write(api.root, {"site.yaml": SITE.replace("Harbour", "'Harbour")})
    assert api.get("/settings").body["meta"]["problem"].startswith("site.yaml:2:")
    answer = api.ask("PUT", "/settings", json={"data": {"name": "a"}}, headers={"If-Match": "*"})
    assert answer.status == 409
    assert answer.error["message"].endswith("fix the file first")
    assert api.get("/roles").status == 409


def test_a_change_is_committed_with_its_author(tmp_path: Path) -> None:
    write(tmp_path, {**FILES, "site.yaml": SITE + "git: {commit: each}\n", ".gitignore": ".bifolio/\n"})
    commit_all(tmp_path)
    api = make(tmp_path, {})
    answer = change(api, "/settings", {"name": "Pier", "api.page_size.max": 60})
    assert answer.status == 200
    assert answer.headers["Bifolio-Commit"] == git(tmp_path, "rev-parse", "HEAD").strip()
    shown = git(tmp_path, "show", "--name-only", "--format=%an|%s", "HEAD").split("\n")
    assert shown[0] == "full|Change settings: api.page_size.max, name"
    assert "site.yaml" in shown
