"""Tests that no response, for any route, caller or parameters, contains a password hash or a confirmation
code.
"""

import json
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from server.auth.users import Users
from server.commands.cli import main
from tests.sites import STRING, Api, collection, component, load

USER = {"type": "relation", "target": "plugin::users-permissions.user"}
FILES = {
    **collection(
        "memo",
        {
            "text": STRING,
            "writer": {**USER, "relation": "manyToOne", "inversedBy": "memos"},
            "readers": {**USER, "relation": "manyToMany"},
            "credit": {"type": "component", "component": "shared.credit"},
        },
        drafts=True,
    ),
    **component("shared.credit", {"by": {**USER, "relation": "oneToOne"}}),
    "site.yaml": (
        "api: {populate_with_pagination: allow}\nroles:\n"
        "  public: {memo: [find, findOne, create, update], auth: [callback, register, forgotPassword]}\n"
        "  authenticated: {memo: [find, findOne], user: [me, updateMe, find, findOne], role: [find]}\n"
    ),
}
SECRETS = ("password", "resetPasswordToken", "confirmationToken", "reset_hash", "name_key", "sessions")
FORMS = (
    "fields={0}", "fields[0]={0}", "sort={0}", "sort={0}:desc", "sort[0]={0}", "sort[{0}]=asc",
    "populate={0}",
    "filters[{0}]=a", "filters[{0}][$startsWith]=$", "filters[{0}][$notNull]=true", "filters[{0}][$ne]=x",
    "filters[$or][0][{0}][$contains]=a", "filters[$not][{0}][$eq]=a", "filters[$and][0][$or][0][{0}]=a",
    "filters[writer][{0}][$startsWith]=$", "filters[writer][$or][0][{0}]=a", "filters[readers][{0}][$gt]=a",
    "filters[credit][by][{0}][$lt]=z", "filters[writer][memos][writer][{0}]=a",
    "filters[memos][writer][{0}]=a",
    "sort=writer.{0}", "sort[writer][{0}]=asc", "sort=credit.by.{0}", "populate=writer.{0}",
    "populate[writer][fields]={0}", "populate[writer][filters][{0}][$startsWith]=$",
    "populate[writer][sort]={0}", "populate[writer][populate]={0}",
    "populate[credit][populate][by][fields]={0}",
    "populate[memos][populate][writer][fields]={0}", "populate[role][fields]={0}",
)  # fmt: skip
PLAIN = (
    "", "populate=*", "populate[writer][populate]=*", "populate[writer]=true&populate[readers]=true",
    "populate[credit][populate]=*", "populate[memos][populate]=*", "populate=*&status=draft", "_q=argon2",
    "_q=a",
    "fields=*&populate=role", "pagination[pageSize]=100&populate=*",
)  # fmt: skip


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    api = Api.of(load(tmp_path_factory.mktemp("site"), FILES))
    users = Users(api.accounts)
    for name in ("ann", "bob"):
        made = users.create(name, f"{name}@x.org", "secret12", role="authenticated", confirmed=True)
        users.reset_code(made)
        users.confirm_code(made)
    people = {"writer": 1, "readers": [1, 2], "credit": {"by": 2}}
    assert api.post("/api/memos", {"text": "t", **people}).status == 201
    login = {"identifier": "bob", "password": "secret12"}
    api.tokens["bob"] = api.ask("POST", "/api/auth/local", "public", json=login).body["jwt"]
    api.token("reader", "read-only")
    api.token("memos", may=["memo.find", "memo.findOne", "memo.create", "memo.update"])
    yield api
    api.accounts.close()


@pytest.fixture(scope="module")
def secrets(api: Api) -> list[str]:
    """Return all hashes of passwords and codes in the accounts database."""
    with sqlite3.connect(api.site.root / ".bifolio/accounts.db") as database:
        rows = database.execute("SELECT password, reset_hash, confirm_hash FROM users").fetchall()
    database.close()
    found = [text for row in rows for text in row if text]
    assert len(found) == 6
    return found


def paths(api: Api) -> list[str]:
    """Return one path for each route of the app."""
    names = {
        "<api_id>": "memos",
        "<document_id>": api.get("/api/memos").ids[0],
        "<user:key>": "1",
        "<key>": "1",
    }
    found = set()
    for rule in api.app.url_map.iter_rules():
        path = rule.rule
        for variable in re.findall("<.*?>", path):
            path = path.replace(variable, names.get(variable, "none"))
        found.add(path)
    assert len(found) > 30
    return sorted(found)


@pytest.mark.parametrize("who", ["public", "memos", "bob", "reader", "full"])
def test_no_answer_has_a_secret_in_it(api: Api, secrets: list[str], who: str) -> None:
    forms = [form.format(secret) for form in FORMS for secret in SECRETS[:3]]
    for path in paths(api):
        for query in (*PLAIN, *(forms if path in ("/api/memos", "/api/users", "/api/users/me") else ())):
            text = json.dumps(str(api.get(f"{path}?{query}", who).body))
            assert not [secret for secret in secrets if secret in text], (path, query)
            assert "argon2" not in text.replace("_q=argon2", ""), (path, query)


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("who", ["full", "bob", "memos", "public"])
def test_nothing_is_told_of_a_secret_by_asking_for_it(api: Api, who: str, secret: str) -> None:
    """Counts and sort orders must not reveal a secret: filters and sort keys on secrets are rejected."""
    for query in (form.format(secret) for form in FORMS):
        for path in ("/api/memos", "/api/users", "/api/users/count", "/api/users/1"):
            assert api.get(f"{path}?{query}", who).status in (400, 403), (path, query)


@pytest.mark.parametrize("options", [(), ("--everything",), ("--role", "authenticated")])
def test_an_export_shows_no_users(
    api: Api, secrets: list[str], tmp_path: Path, options: tuple[str, ...]
) -> None:
    site = str(api.site.root)
    result = CliRunner().invoke(main, ["export", str(tmp_path / "out"), "--site", site, *options])
    assert result.exit_code == 0, result.output
    texts = [path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert len(texts) > 2
    assert not [text for text in texts for word in (b"@x.org", *map(str.encode, secrets)) if word in text]
