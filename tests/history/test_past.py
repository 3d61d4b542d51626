"""Reads with `?at=`: the responses must be the same as from a server that serves a checkout of the commit."""

import gc
import shutil
from pathlib import Path

import pytest

from server.history.past import PastState, PastStates
from tests.conftest import MakeApi
from tests.git import commit_all, git
from tests.sites import STRING, Api, collection, load, make, relation, translated, write

pytestmark = pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000003000000020802000000124c0d0a"
    "0000000c49444154789c6360a00f00000049000100c5a1d1220000000049454e44ae426082"
)
SITE = "locales: {available: [en, fr]}\nsearch: {index: false}\nroles: {public: {note: [find, findOne]}}\n"
TAGS = collection("tag", {"name": STRING})
NOTES = collection(
    "note",
    {
        "title": translated(STRING),
        "body": {"type": "richtext"},
        "cover": {"type": "media"},
        "tags": relation("manyToMany", "tag"),
    },
    drafts=True,
    localized=True,
)
FIRST = {
    "site.yaml": SITE,
    **TAGS,
    **NOTES,
    "content/tags/sea.yaml": "name: Sea\n",
    "content/tags/fog.yaml": "name: Fog\n",
    "content/notes/one.md": "---\ntitle: One\ntags: [sea]\ncover: a.png\n---\nThe first harbour.\n",
    "content/notes/one.fr.md": "---\ntitle: Un\n---\n",
    "content/notes/two.draft.md": "---\ntitle: Two\n---\nNot yet.\n",
    "content/uploads/a.png": PNG,
    "content/uploads/a.png.yaml": "alternativeText: A harbour\n",
}
READS = (
    "/api/notes?populate=*&sort=title",
    "/api/notes?status=draft&populate=*&sort=title",
    "/api/notes?locale=fr&populate=*",
    "/api/notes?filters[title][$contains]=n&pagination[withCount]=false",
    "/api/notes/one?populate[tags][fields]=name",
    "/api/notes/two",
    "/api/tags?sort=updatedAt:desc&populate=*",
    "/api/tags/sea",
    "/api/upload/files",
    "/api/content-type-builder/content-types",
)


def commit(root: Path, hour: int) -> str:
    git(root, "add", "-A")
    git(root, "commit", "-qm", f"hour {hour}", at=f"2030-05-01T{hour:02d}:00:00Z")
    return git(root, "rev-parse", "HEAD").strip()


@pytest.fixture
def commits(tmp_path: Path) -> list[str]:
    """The commits of a site. Each commit changes something else, so that together they contain every kind of
    change.
    """
    root = tmp_path / "site"
    write(root, FIRST)
    commit_all(root, at="2030-05-01T00:00:00Z")
    made = [git(root, "rev-parse", "HEAD").strip()]
    write(root, {"content/notes/one.md": "---\ntitle: One more\ntags: [fog, sea]\n---\nThe harbour.\n"})
    made.append(commit(root, 1))
    git(root, "mv", "content/notes/two.draft.md", "content/notes/two.md")
    git(root, "mv", "content/tags/fog.yaml", "content/tags/mist.yaml")
    made.append(commit(root, 2))
    write(root, collection("tag", {"name": STRING, "label": {"type": "string", "default": "x"}}))
    write(root, {"content/tags/sea.yaml": "name: Sea\nlabel: wide\n"})
    git(root, "rm", "-q", "content/uploads/a.png", "content/uploads/a.png.yaml", "content/notes/one.fr.md")
    made.append(commit(root, 3))
    write(root, {"content/uploads/a.png": PNG, "content/tags/sea.yaml": "name: Sea\n"})
    write(root, {"site.yaml": SITE.replace("[en, fr]", "[fr, en]")})
    made.append(commit(root, 4))
    (root / "content/tags/link.yaml").symlink_to("sea.yaml")
    write(root, {"content/notes/broken.md": "---\ntitle: [\n---\n", "content/.hidden/x.yaml": "name: x\n"})
    made.append(commit(root, 5))
    return made


def serve(root: Path) -> Api:
    return make(root, {})


def serve_copy(root: Path, number: int = 0) -> Api:
    """Copy a site without its caches, and serve the copy."""
    copy = root.with_name(f"again{number}")
    shutil.copytree(root, copy, symlinks=True, ignore=shutil.ignore_patterns(".bifolio"))
    return make(copy, {})


def test_a_past_state_equals_a_checkout(tmp_path: Path, commits: list[str]) -> None:
    site = serve(tmp_path / "site")
    checkouts = []
    for number, id_ in enumerate(commits):
        copy = tmp_path / f"copy{number}"
        git(tmp_path, "clone", "-q", str(tmp_path / "site"), str(copy))
        git(copy, "checkout", "-q", id_)
        checkouts.append((id_, serve(copy)))
    for id_, checkout in [*checkouts, *reversed(checkouts)]:
        for path in READS:
            then = site.get(f"{path}{'&' if '?' in path else '?'}at={id_}")
            wanted = checkout.get(path)
            assert then.body == wanted.body, (commits.index(id_), path)
            assert then.status == wanted.status
            assert then.headers["Bifolio-Commit"] == id_
    for api in (site, *(checkout for _, checkout in checkouts)):
        api.accounts.close()


def test_states_do_not_depend_on_earlier_reads(tmp_path: Path, commits: list[str]) -> None:
    site = serve(tmp_path / "site")
    path = "/api/notes?populate=*&sort=title&at="
    first = {id_: site.get(path + id_).raw for id_ in commits}
    for number, id_ in reversed([*enumerate(commits)]):
        fresh = serve_copy(site.root, number)
        assert fresh.get(path + id_).raw == first[id_] == site.get(path + id_).raw
        fresh.accounts.close()
    site.accounts.close()


def test_uncommitted_changes_are_not_in_past_states(tmp_path: Path, commits: list[str]) -> None:
    site = serve(tmp_path / "site")
    committed = site.get("/api/notes?at=HEAD&sort=title").raw
    write(
        site.root,
        {
            "content/notes/one.md": "---\ntitle: By hand\n---\n",
            "content/notes/new.md": "---\ntitle: New\n---\n",
        },
    )
    site.site.refresh()
    assert site.put("/api/tags/sea", {"name": "Ocean"}).status == 200
    assert site.get("/api/notes?sort=title").raw != committed
    again = serve_copy(site.root)
    for api in (site, again):
        assert api.get("/api/notes?at=HEAD&sort=title").raw == committed
        assert api.get("/api/tags/sea?at=main").data["name"] == "Sea"
        api.accounts.close()


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("HEAD", 5),
        ("main", 5),
        ("main~2", 3),
        ("2030-05-01T02:30Z", 2),
        ("2030-05-01", 5),
        ("2030-05-01T00:00:00Z", 0),
        ("2030-05-01T04:30%2B02:00", 2),
        ("2030-05-01T04:30+02:00", 2),
    ],
)
def test_a_commit_is_named_by_branch_or_time(
    tmp_path: Path, commits: list[str], name: str, number: int
) -> None:
    site = serve(tmp_path / "site")
    assert site.get(f"/api/tags?at={name}").headers["Bifolio-Commit"] == commits[number]
    site.accounts.close()


@pytest.mark.parametrize(
    "name", ["nothing", "--all", "-x", "", "main..HEAD", "2029-01-01", "2030-99-01", "main:x"]
)
def test_an_unknown_commit_name_is_refused_by_name(tmp_path: Path, commits: list[str], name: str) -> None:
    site = serve(tmp_path / "site")
    answer = site.get(f"/api/tags?at={name}")
    assert answer.status == 400
    assert f'"{name}"' in answer.error["message"]
    site.accounts.close()


def test_a_branch_that_moves_names_another_commit(tmp_path: Path, commits: list[str]) -> None:
    site = serve(tmp_path / "site")
    git(site.root, "branch", "preview", commits[0])
    assert site.get("/api/tags?at=preview").headers["Bifolio-Commit"] == commits[0]
    git(site.root, "branch", "-f", "preview", commits[3])
    assert site.get("/api/tags?at=preview").headers["Bifolio-Commit"] == commits[3]
    site.accounts.close()


@pytest.mark.parametrize(
    "name", ["HEAD", "@", "main", "heads/main", "refs/heads/main", "HEAD~0", "main~0", "main^0", "2031-01-01"]
)
def test_a_name_follows_the_checked_out_branch(tmp_path: Path, commits: list[str], name: str) -> None:
    site = serve(tmp_path / "site")
    assert site.get(f"/api/tags?at={name}").headers["Bifolio-Commit"] == commits[-1]
    write(site.root, {"content/tags/sea.yaml": "name: The sea\n"})
    last = commit(site.root, 6)
    assert site.get(f"/api/tags?at={name}").headers["Bifolio-Commit"] == last
    site.accounts.close()


@pytest.mark.parametrize("name", ["origin", "origin/HEAD", "origin/main", "origin/main~0"])
def test_a_remote_branch_names_the_last_fetched_commit(tmp_path: Path, commits: list[str], name: str) -> None:
    git(tmp_path, "clone", "-q", "site", "clone")
    site = serve(tmp_path / "clone")
    assert site.get(f"/api/tags?at={name}").headers["Bifolio-Commit"] == commits[-1]
    write(tmp_path / "site", {"content/tags/sea.yaml": "name: The sea\n"})
    last = commit(tmp_path / "site", 6)
    git(site.root, "fetch", "-q")
    assert site.get(f"/api/tags?at={name}").headers["Bifolio-Commit"] == last
    site.accounts.close()


def test_responses_at_a_full_id_are_immutable_and_at_a_branch_not(tmp_path: Path, commits: list[str]) -> None:
    site = serve(tmp_path / "site")
    assert "immutable" in site.get(f"/api/tags?at={commits[1]}").headers["Cache-Control"]
    assert "immutable" not in site.get(f"/api/tags?at={commits[1][:12]}").headers["Cache-Control"]
    assert "immutable" not in site.get("/api/tags?at=main").headers["Cache-Control"]
    assert "immutable" not in site.get(f"/api/tags/none?at={commits[1]}").headers.get("Cache-Control", "")
    etag = site.get(f"/api/tags?at={commits[1]}").headers["ETag"]
    assert site.get(f"/api/tags?at={commits[1]}", headers={"If-None-Match": etag}).status == 304
    site.accounts.close()


def test_the_memory_of_states_is_bounded(tmp_path: Path, commits: list[str]) -> None:
    site = load(tmp_path / "site", {})
    past = PastStates(site, max_bytes=1)
    for commit_id in commits:
        assert past.state_for_request(commit_id, site.state.settings).snapshot
    gc.collect()
    states = [one for one in gc.get_objects() if isinstance(one, PastState) and one.commit in commits]
    assert [one.commit for one in states] == commits[-1:]


def test_a_state_larger_than_the_bound_is_built_once(tmp_path: Path, commits: list[str]) -> None:
    past = PastStates(load(tmp_path / "site", {}), max_bytes=1)
    made = past.at(commits[1])
    assert past.is_kept(commits[1])
    assert past.at(commits[1]) is made
    assert past.at(commits[2]) is not made
    assert not past.is_kept(commits[1])


@pytest.mark.parametrize("path", ["/api/users", "/api/users-permissions/roles", "/api/i18n/locales"])
def test_current_content_is_not_cached_forever(tmp_path: Path, commits: list[str], path: str) -> None:
    site = serve(tmp_path / "site")
    answer = site.get(f"{path}?at={commits[1]}")
    assert answer.status == 200
    assert "immutable" not in answer.headers["Cache-Control"]
    site.accounts.close()


def test_content_related_to_users_is_not_cached_forever(make_api: MakeApi) -> None:
    to_user = relation("manyToOne", "user") | {"target": "plugin::users-permissions.user"}
    api = make_api({**collection("note", {"title": STRING, "author": to_user})})
    commit_all(api.root)
    api.site.refresh()
    commit = git(api.root, "rev-parse", "HEAD").strip()
    assert "immutable" not in api.get(f"/api/notes?at={commit}&populate=author").headers["Cache-Control"]


@pytest.mark.parametrize("name", ["%61t", "a%74", "%61%74"])
def test_at_may_be_encoded(tmp_path: Path, commits: list[str], name: str) -> None:
    site = serve(tmp_path / "site")
    site.token("writer", may=["note.find"])
    path = f"/api/notes/one?fields=title&{name}={commits[0]}"
    assert site.get(path).data["title"] == "One"
    assert site.get(path).headers["Bifolio-Commit"] == commits[0]
    assert site.get(path, "writer").status == 403
    site.accounts.close()


@pytest.mark.parametrize(
    "query", ["at[]={0}", "at%5B%5D={0}", "at[x]={0}", "at={0}&at={0}", "at={0}&%61t={0}"]
)
def test_at_names_one_commit(tmp_path: Path, commits: list[str], query: str) -> None:
    site = serve(tmp_path / "site")
    error = site.get(f"/api/notes?{query.format(commits[0])}").error
    assert (error["status"], error["message"]) == (400, '"at" must be a single commit, tag, branch or time')
    site.accounts.close()


def test_the_past_needs_a_permission_of_its_own(tmp_path: Path, commits: list[str]) -> None:
    site = serve(tmp_path / "site")
    site.token("reader", may=["note.find", "history.read"])
    site.token("writer", may=["note.find", "note.update", "note.readDraft"])
    path = f"/api/notes?at={commits[0]}"
    assert site.get(path, "reader").ids == ["one"]
    assert [site.get(path, who).status for who in ("writer", "public")] == [403, 403]
    # The current permissions apply, not those at the commit.
    assert site.get(f"{path}&status=draft", "reader").status == 403
    assert site.get(f"/api/tags?at={commits[0]}", "reader").status == 403
    # Without permission, the response does not reveal whether a commit exists.
    assert site.get("/api/notes?at=nothing", "public").status == 403
    site.accounts.close()


def test_the_past_is_searched_without_an_index(tmp_path: Path, commits: list[str]) -> None:
    site = serve(tmp_path / "site")
    assert [hit["documentId"] for hit in site.get(f"/search?q=first&at={commits[0]}").data] == ["one"]
    assert site.get("/search?q=first").data == []
    site.accounts.close()


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_the_past_can_not_be_written(tmp_path: Path, commits: list[str], method: str) -> None:
    site = serve(tmp_path / "site")
    path = "/api/tags" if method == "POST" else "/api/tags/sea"
    assert site.ask(method, f"{path}?at=main", json={"data": {"name": "x"}}).status == 400
    assert site.get("/api/tags/sea").data["name"] == "Sea"
    site.accounts.close()


def test_a_commit_with_an_invalid_schema_is_reported(tmp_path: Path, commits: list[str]) -> None:
    root = tmp_path / "site"
    write(root, {"content-types/note.json": "{"})
    broken = commit(root, 6)
    write(root, NOTES)
    commit(root, 7)
    site = serve(root)
    answer = site.get(f"/api/tags?at={broken}")
    assert answer.status == 409
    assert "content-types/note.json" in answer.error["message"]
    site.accounts.close()


def test_a_site_outside_of_a_repository_gets_a_helpful_error(make_api: MakeApi) -> None:
    api = make_api(FIRST)
    answer = api.get("/api/tags?at=main")
    assert answer.status == 409
    assert "git init" in answer.error["message"]
    git(api.root, "init", "-q")
    api.site.refresh()
    answer = api.get("/api/tags?at=main")
    assert answer.status == 409
    assert "commit" in answer.error["message"]
