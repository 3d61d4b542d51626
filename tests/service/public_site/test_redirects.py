"""Redirects from former addresses: aliases, renamed files and changed attributes."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from server.auth.owner import OWNER
from server.bounded import BoundedMutex
from server.commands.cli import main
from server.config.model import with_values
from server.errors import BusyError, ClientGone
from server.history import former_addresses
from server.history.past import PastStates
from server.index.budget import Budget
from server.service.public_site import redirects as redirect_lists
from server.service.public_site.redirects import Redirects
from server.service.read import Caller
from server.site.aliases import resolve_alias
from server.storage.git.tree import read_blob_ids
from tests.conftest import MakeApi
from tests.git import commit_all, git
from tests.sites import STRING, Api, collection, documents, opened, write

SETTINGS = """\
locales: {default: en, available: [en, fr]}
roles: {public: {article: [find], page: [find]}}
urls:
  article: {en: "https://example.org/articles/{slug}", fr: "https://example.org/fr/articles/{slug}"}
  page: https://example.org/{name}/
  memo: https://example.org/memos/{slug}
"""
FILES = {
    "site.yaml": SETTINGS,
    **collection("article", {"title": STRING, "slug": {"type": "uid"}}, drafts=True, localized=True),
    **collection("page", {"title": STRING}),
    **collection("memo", {"slug": {"type": "uid"}}),
    "content/articles/fog.md": "---\ntitle: Fog\nslug: fog\n---\nIt is thick.\n",
    "content/articles/ferry.yaml": "title: Ferry\nslug: ferry\n",
    "content/articles/fog.fr.md": "---\ntitle: Brume\nslug: brume\n---\nElle est épaisse.\n",
    **documents("pages", about={"title": "About"}),
    **documents("memos", plan={"slug": "plan"}),
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A committed site."""
    write(tmp_path, FILES)
    commit_all(tmp_path)
    return tmp_path


def run(root: Path, *options: str) -> Result:
    return CliRunner().invoke(main, ["redirects", "--site", str(root), *options], catch_exceptions=False)


def redirects(root: Path, exit_code: int = 0) -> dict[str, str]:
    """Return the target of each source."""
    done = run(root)
    assert done.exit_code == exit_code, done.output
    found = json.loads(done.stdout)
    assert [one["from"] for one in found] == sorted(one["from"] for one in found)
    return {one["from"]: one["to"].removeprefix("https://example.org") for one in found}


def change(root: Path, path: str, text: str) -> None:
    write(root, {path: text})
    commit_all(root)


def article(slug: str, text: str = "It is thick.", more: str = "") -> str:
    return f"---\ntitle: Fog\nslug: {slug}\n{more}---\n{text}\n"


# --- history --------------------------------------------------------------------------------------


def test_all_former_slugs_lead_directly_to_the_current_address(root: Path) -> None:
    for slug in ("mist", '"mist"', "haze", "fret # on the coast"):
        change(root, "content/articles/fog.md", article(slug))
    assert redirects(root) == dict.fromkeys(
        ["/articles/fog", "/articles/mist", "/articles/haze"], "/articles/fret"
    )


def test_a_slug_that_came_back_is_not_redirected(root: Path) -> None:
    change(root, "content/articles/fog.md", article("mist"))
    change(root, "content/articles/fog.md", article("fog"))
    assert redirects(root) == {"/articles/mist": "/articles/fog"}


def test_a_renamed_file_is_followed(root: Path) -> None:
    change(root, "content/articles/fog.md", article("mist"))
    git(root, "mv", "content/articles/fog.md", "content/articles/haze.md")
    git(root, "mv", "content/pages/about.json", "content/pages/us.json")
    commit_all(root)
    change(root, "content/articles/haze.md", article("haze"))
    assert redirects(root) == {
        "/about": "/us/",
        "/articles/fog": "/articles/haze",
        "/articles/mist": "/articles/haze",
    }


def test_a_former_address_that_another_document_has_now_is_not_redirected(root: Path) -> None:
    change(root, "content/articles/fog.md", article("mist"))
    change(root, "content/articles/ferry.yaml", "title: Ferry\nslug: fog\n")
    assert redirects(root) == {"/articles/ferry": "/articles/fog"}


def test_the_document_that_had_an_address_last_gets_the_redirect(root: Path) -> None:
    change(root, "content/articles/fog.md", article("mist"))
    change(root, "content/articles/ferry.yaml", "title: Ferry\nslug: fog\n")
    change(root, "content/articles/ferry.yaml", "title: Ferry\nslug: boat\n")
    assert redirects(root)["/articles/fog"] == "/articles/boat"


def test_what_was_never_published_is_not_told(root: Path) -> None:
    change(root, "content/articles/new.draft.md", article("secret-one"))
    change(root, "content/articles/new.draft.md", article("secret-two"))
    git(root, "mv", "content/articles/new.draft.md", "content/articles/new.md")
    commit_all(root)
    change(root, "content/articles/new.md", article("public"))
    change(root, "content/articles/fog.draft.md", article("secret-three"))
    change(root, "content/memos/plan.json", '{"slug": "secret-four"}')
    assert redirects(root) == {"/articles/secret-two": "/articles/public"}  # It was published for one commit.


def test_drafts_that_a_key_marks_are_not_told(root: Path) -> None:
    options = {"files": ["posts/{name}.md"], "draftWhen": {"draft": True}}
    described = collection("page", {"slug": {"type": "uid"}}, drafts=True, **options)
    settings = SETTINGS.replace("/{name}/", "/{slug}")
    write(root, {**described, "site.yaml": settings, "posts/a.md": article("secret", more="draft: true\n")})
    commit_all(root)
    change(root, "posts/a.md", article("secret2", more="draft: 'true'\n"))
    change(root, "posts/a.md", article("one", more="draft: false\n"))
    change(root, "posts/a.md", article("two"))
    assert redirects(root) == {"/one": "/two"}


def on_branch(root: Path) -> None:
    """Create the branch `plan`, on which a slug and a file are renamed twice."""
    git(root, "checkout", "-qb", "plan")
    for slug, name in (("secret", "secret"), ("mist", "us")):
        write(root, {"content/articles/fog.md": article(slug)})
        before = "about" if name == "secret" else "secret"
        git(root, "mv", f"content/pages/{before}.json", f"content/pages/{name}.json")
        commit_all(root)
    git(root, "checkout", "-q", "main")


FROM_PLAN = {"/about": "/us/", "/articles/fog": "/articles/mist"}


@pytest.mark.parametrize("moved_on", [False, True])
def test_addresses_that_existed_only_on_a_branch_are_not_told(root: Path, moved_on: bool) -> None:
    on_branch(root)
    if moved_on:
        change(root, "content/articles/ferry.yaml", "title: Ferry\nslug: boat\n")
    git(root, "merge", "-q", "--no-ff", "-m", "Merge", "plan")
    more = {"/articles/ferry": "/articles/boat"} if moved_on else {}
    assert redirects(root) == FROM_PLAN | more
    change(root, "content/articles/fog.md", article("haze"))
    assert redirects(root) == {**FROM_PLAN, **more, **dict.fromkeys(SERVED_SLUGS, "/articles/haze")}


SERVED_SLUGS = ("/articles/fog", "/articles/mist")


def test_addresses_of_a_branch_that_was_merged_over_the_api_are_not_told(make_api: MakeApi) -> None:
    api = make_api(FILES)
    commit_all(api.root)
    api.site.refresh()
    assert api.ask("POST", "/branches", json={"name": "plan"}).status == 201
    for slug in ("secret", "mist"):
        assert api.put("/api/articles/fog?branch=plan", {"slug": slug}).status == 200
    assert api.ask("POST", "/branches/plan/merge", json={}).status == 200
    assert [one["from"] for one in api.get("/redirects").data] == ["/articles/fog"]


def test_an_attribute_that_was_private_is_not_told(root: Path) -> None:
    def schema(**slug: Any) -> dict[str, str]:
        return collection("page", {"title": STRING, "slug": {"type": "uid", **slug}})

    pages = SETTINGS.replace("/{name}/", "/{slug}")
    write(
        root, {**schema(private=True), "site.yaml": pages, "content/pages/about.json": '{"slug": "hidden"}'}
    )
    commit_all(root)
    change(root, "content-types/page.json", schema()["content-types/page.json"])
    change(root, "content/pages/about.json", '{"slug": "one"}')
    change(root, "content/pages/about.json", '{"slug": "two"}')
    assert redirects(root) == {"/one": "/two"}


def test_json_yaml_and_markdown_with_odd_values_are_read(root: Path) -> None:
    for slug in ("multi\n line", "'it''s'", "&a x", '"\\u00fcber uns"', "[a]", "*none"):
        change(root, "content/articles/fog.md", article(slug))
    change(root, "content/articles/fog.md", "no front matter: slug")
    change(root, "content/articles/fog.md", article("end"))
    assert redirects(root) == dict.fromkeys(
        [
            "/articles/fog",
            "/articles/it%27s",
            "/articles/multi%20line",
            "/articles/x",
            "/articles/%C3%BCber%20uns",
        ],
        "/articles/end",
    )


def test_a_site_without_git_has_the_redirects_of_its_aliases(tmp_path: Path) -> None:
    write(tmp_path, {**FILES, "content/articles/fog.md": article("fog", more="aliases: [/mist]\n")})
    assert redirects(tmp_path) == {"/mist": "/articles/fog"}


# --- aliases --------------------------------------------------------------------------------------


def test_aliases_are_absolute_or_relative_to_the_folder(root: Path) -> None:
    more = 'aliases: [/old/fog/, mist, "../haze.html", "https://example.org/full", "/?p=12", /a b]\n'
    more += "redirect_from: /x\n"
    change(root, "content/articles/fog.md", article("fog", more=more))
    assert redirects(root) == dict.fromkeys(
        ["/old/fog", "/articles/mist", "/haze.html", "/full", "/?p=12", "/x", "/a%20b"], "/articles/fog"
    )


def test_zolas_paths_and_aliases_are_relative_to_the_root(root: Path) -> None:
    settings = SETTINGS.replace("{slug}", "{+slug}", 1) + "redirects: {aliases: root}\n"
    text = article("/2024/05/fog/", more="aliases: [2024/fog.html, /x]\n")
    write(root, {"site.yaml": settings, "content/articles/fog.md": text})
    target = "/articles/2024/05/fog"
    assert redirects(root) == {"/2024/fog.html": target, "/x": target, "/articles/fog": target}


def test_aliases_are_not_unknown_keys(root: Path) -> None:
    text = "aliases: [/old]\nredirect_from: /x\ntitle: F\nslug: ferry\n"
    change(root, "content/articles/ferry.yaml", text)
    assert opened(root).problems == ()


def test_contradictions_are_named_with_their_lines_and_left_out(root: Path) -> None:
    write(
        root,
        {
            "content/articles/fog.md": article(
                "fog", more="aliases:\n- /both\n- /articles/ferry\n- /about\n- ok\n"
            ),
            "content/articles/ferry.yaml": "aliases: [/both, /articles/fog, /articles/ferry/]\n"
            "title: F\nslug: ferry\n",
            "content/pages/about.json": "{\n"
            ' "redirect_from": ["https://other.org/x", "a#b", "", 7, {"a": 1}]\n}',
        },
    )
    assert redirects(root, exit_code=1) == {"/articles/ok": "/articles/fog"}
    errors = run(root).stderr.splitlines()
    fog, ferry = "content/articles/fog.md", "content/articles/ferry.yaml"
    fogs, ferries, remove = "/articles/fog", "/articles/ferry", ". Remove the alias."
    assert errors == [
        f'{ferry}:1: the alias "/articles/ferry/" makes a loop: /articles/ferry → /articles/ferry{remove}',
        f'{ferry}:1: the alias "/articles/fog" makes a loop: {fogs} → {ferries} → {fogs}{remove}',
        f'{ferry}:1: the alias "/both" is also an alias of {fog}. Remove it from all documents except one.',
        f'{fog}:5: the alias "/both" is also an alias of {ferry}. Remove it from all documents except one.',
        f'{fog}:6: the alias "/articles/ferry" makes a loop: {ferries} → {fogs} → {ferries}{remove}',
        f'{fog}:7: the alias "/about" is the address of content/pages/about.json{remove}',
        'content/pages/about.json:2: the alias "" is not a path. Write a path such as /old-name.',
        'content/pages/about.json:2: the alias "7" is not a path. Write a path such as /old-name.',
        'content/pages/about.json:2: the alias "a#b" contains "#", which browsers do not send to a server.'
        " Write a path such as /old-name.",
        'content/pages/about.json:2: the alias "https://other.org/x" is not on https://example.org.'
        " Write a path such as /old-name.",
        "content/pages/about.json:2: the alias (a mapping) is not a path. Write a path such as /old-name.",
    ]


def test_long_aliases_are_left_out_with_a_message(root: Path) -> None:
    longest, longer = "/" + "x" * 1999, "/" + "y" * 1997 + "é"
    change(root, "content/articles/fog.md", article("fog", more=f"aliases:\n- {longest}\n- {longer}\n"))
    assert redirects(root, exit_code=1) == {longest: "/articles/fog"}
    assert run(root).stderr == (
        f'content/articles/fog.md:6: the alias "{longer[:199]}…" has more than 2,000 characters'
        " when it is percent-encoded. Write a path such as /old-name.\n"
    )


def test_an_alias_wins_over_a_former_address(root: Path) -> None:
    change(root, "content/articles/fog.md", article("mist"))
    change(root, "content/articles/ferry.yaml", "title: Ferry\nslug: ferry\naliases: [/articles/fog]\n")
    assert redirects(root) == {"/articles/fog": "/articles/ferry"}


def test_two_documents_with_one_address_are_named(root: Path) -> None:
    change(root, "content/articles/ferry.yaml", "title: Ferry\nslug: fog\n")
    done = run(root)
    assert done.exit_code == 1
    assert (
        "content/articles/fog.md: the document has the same address as content/articles/ferry.yaml"
        in done.stderr
    )


@given(st.text())
def test_any_alias_is_a_path_or_refused(text: str) -> None:
    try:
        origin, source = resolve_alias(text, "https://example.org/articles/fog")
    except ValueError:
        return
    assert origin == "https://example.org"
    assert source.startswith("/")
    assert source.isascii()
    assert not any(character in source for character in " \"'<>\\\n\r\t#;{}")


# --- limits ---------------------------------------------------------------------------------------


class Lister:
    """A site whose requests have so little time that they end at the first checkpoint."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(former_addresses, "BATCH_VERSIONS", 2)
        monkeypatch.setattr(redirect_lists, "_BATCH_FILES", 2)
        self.site = opened(root)
        self.past = PastStates(self.site)
        self.redirects = Redirects(self.past)
        self.settings = with_values(self.site.state.settings, {"api.limits.time": timedelta(microseconds=1)})

    def sources(self, *, commit: str = "", is_gone: bool = False) -> list[str]:
        state = self.past.state_for_request(commit, self.site.state.settings) if commit else self.site.state
        turns = BoundedMutex("take long", 1, 1)
        with Budget(self.settings, turns, is_client_gone=lambda: is_gone) as budget:
            found = self.redirects.list_redirects(Caller(state, OWNER, budget=budget, commit=commit))
        return [redirect.source for redirect in found.redirects]

    def repeat(self, commit: str = "") -> tuple[int, list[str]]:
        """Return the number of requests until the list is complete, and the list."""
        for number in range(1, 20):
            try:
                return number, self.sources(commit=commit)
            except BusyError:
                continue
        raise AssertionError("the list is never complete")


def test_requests_with_too_little_time_complete_the_list_together(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(20):
        change(root, "content/articles/fog.md", article(f"fog-{number}"))
    number, found = Lister(root, monkeypatch).repeat()
    assert 10 < number < 20
    assert len(found) == 20
    assert f"{found}" == f"{sorted(redirects(root))}"


def test_a_commit_whose_files_are_listed_has_the_same_former_addresses(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only commits that change many files are listed in one step."""
    for number in range(4):
        write(root, {"content/articles/ferry.yaml": f"title: Ferry\nslug: ferry-{number}\n"})
        change(root, "content/articles/fog.md", article(f"fog-{number}"))
    found = redirects(root)
    assert len(found) == 8
    listed = list[str]()

    def read(root: Path, commit: str) -> dict[str, str]:
        listed.append(commit)
        return read_blob_ids(root, commit)

    monkeypatch.setattr(former_addresses, "read_blob_ids", read)
    monkeypatch.setattr(former_addresses, "MIN_LISTED_VERSIONS", 2)
    assert redirects(root) == found
    assert len(listed) == 5
    ids = read_blob_ids(root, "HEAD")
    assert ids["content/articles/fog.md"] == git(root, "rev-parse", "HEAD:content/articles/fog.md").strip()


@pytest.mark.parametrize("past", [False, True], ids=["current", "at a commit"])
def test_aliases_are_read_by_several_requests(
    root: Path, monkeypatch: pytest.MonkeyPatch, past: bool
) -> None:
    aliased = {f"page-{n}": {"title": "Page", "aliases": [f"/alias-{n}"]} for n in range(9)}
    write(root, documents("pages", **aliased))
    commit_all(root)
    number, found = Lister(root, monkeypatch).repeat(git(root, "rev-parse", "HEAD").strip() if past else "")
    assert number > 2
    assert found == [f"/alias-{n}" for n in range(9)]


def test_listing_ends_if_the_client_has_disconnected(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(6):
        change(root, "content/articles/fog.md", article(f"fog-{number}"))
    with pytest.raises(ClientGone):
        Lister(root, monkeypatch).sources(is_gone=True)


# --- HTTP -----------------------------------------------------------------------------------------


def test_the_public_may_list_redirects_only_with_a_permission(make_api: MakeApi) -> None:
    settings = SETTINGS + "api: {cors: '*'}\n"
    files = {
        **FILES,
        "site.yaml": settings,
        "content/articles/fog.md": article("fog", more="aliases: [/mist]\n"),
    }
    api = make_api(files)
    assert api.get("/redirects", "public").status == 403
    api.token("reader", "read-only")
    assert api.get("/redirects", "reader").status == 403  # Former addresses are a part of the history.
    api.token("build", may=["redirects.read"])
    assert api.get("/redirects", "build").body == {
        "data": [
            {
                "from": "/mist",
                "to": "https://example.org/articles/fog",
                "status": 301,
                "origin": "https://example.org",
                "type": "article",
                "documentId": "fog",
                "locale": "en",
            }
        ],
        "meta": {"total": 1, "problems": 0},
    }


def test_a_write_changes_the_redirects(make_api: MakeApi) -> None:
    api: Api = make_api({**FILES, "site.yaml": SETTINGS + "git: {commit: each}\n"})
    commit_all(api.root)
    api.site.refresh()
    assert api.get("/redirects").body["data"] == []
    assert api.put("/api/articles/fog", {"slug": "mist"}).status == 200
    [redirect] = api.get("/redirects").body["data"]
    assert (redirect["from"], redirect["to"]) == ("/articles/fog", "https://example.org/articles/mist")


def test_without_public_urls_the_command_says_what_to_do(tmp_path: Path) -> None:
    write(tmp_path, collection("note", {"title": STRING}))
    done = run(tmp_path)
    assert done.exit_code == 1
    assert done.output.startswith(
        "bifolio: site.yaml: no content type has a public URL. Add urls to site.yaml"
    )
