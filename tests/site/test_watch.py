"""A running site that watches its files: changes are served, and a broken file does not affect other
documents.
"""

import mmap
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from server.jobs.job import Timing
from server.jobs.runner import Runner
from server.site.site import Change
from server.site.watch import Watcher
from tests.git import commit_all, git
from tests.servers import free_port, get, start, stop, wait, workers
from tests.sites import Api, make, schema, write
from tests.waiting import until

POST = schema("post", {"title": "string", "count": "integer", "body": "richtext"}, drafts=True)
FILES: dict[str, str | bytes] = {
    "content-types/post.json": POST,
    "site.yaml": "roles:\n  public: {post: [find]}\n",
    "content/posts/one.md": "---\ntitle: One\n---\n",
    "content/posts/two.md": "---\ntitle: Two\n---\n",
}


def titles(api: Api) -> list[str]:
    found = api.get("/api/posts?fields=title&sort=title&pagination[pageSize]=100").data
    return [document["title"] for document in found]


@pytest.fixture
def api(tmp_path: Path) -> Api:
    return make(tmp_path, FILES)


@pytest.fixture
def watched(api: Api) -> Iterator[Api]:
    watcher = Runner([Watcher(api.site, Timing())])
    watcher.start()
    time.sleep(0.3)
    yield api
    watcher.stop()


def test_edits_of_every_kind_show(watched: Api) -> None:
    posts = watched.root / "content/posts"
    (posts / "three.md").write_text("---\ntitle: Three\n---\n")
    until(lambda: "Three" in titles(watched))
    (posts / "one.md").write_text("---\ntitle: One in place\n---\n")
    until(lambda: "One in place" in titles(watched))
    (posts / ".two.tmp").write_text("---\ntitle: Two by renaming\n---\n")
    (posts / ".two.tmp").replace(posts / "two.md")
    until(lambda: "Two by renaming" in titles(watched))
    (posts / "three.md").rename(posts / "drei.md")
    until(lambda: watched.get("/api/posts/drei").status == 200)
    assert watched.get("/api/posts/three").status == 404
    (posts / "drei.md").unlink()
    until(lambda: "Three" not in titles(watched))


def test_a_folder_that_moves_takes_its_documents_along(watched: Api) -> None:
    folder = watched.root / "content/posts/old"
    write(watched.root, {f"content/posts/old/{i}.md": f"---\ntitle: F{i}\n---\n" for i in range(50)})
    until(lambda: len(titles(watched)) == 52)
    folder.rename(folder.with_name("new"))
    until(lambda: watched.get("/api/posts/new--7").status == 200)
    assert watched.get("/api/posts/old--7").status == 404
    assert len(titles(watched)) == 52


def test_content_types_and_roles_are_live(watched: Api) -> None:
    write(watched.root, {"content-types/page.json": schema("page", {"name": "string"})})
    until(lambda: watched.get("/api/pages").status == 200)
    write(watched.root, {"content/pages/a.yaml": "name: A\n"})
    until(lambda: [d["name"] for d in watched.get("/api/pages").data] == ["A"])
    assert watched.get("/api/pages", "public").status == 403
    (watched.root / "site.yaml").write_text("roles:\n  public: {page: [find]}\n")
    until(lambda: watched.get("/api/pages", "public").status == 200)
    assert watched.get("/api/posts", "public").status == 403


def test_a_checkout_is_one_step(api: Api) -> None:
    old = {f"content/posts/{i}.md": f"---\ntitle: old\ncount: {i}\n---\n" for i in range(1500)}
    write(api.root, old)
    commit_all(api.root)
    git(api.root, "checkout", "-qb", "other")
    write(api.root, {path: str(text).replace("old", "new") for path, text in old.items()})
    git(api.root, "commit", "-qam", "second")
    git(api.root, "checkout", "-q", "main")
    api.site.load()
    api.site.refresh()
    watcher = Runner([Watcher(api.site, Timing())])
    watcher.start()
    time.sleep(0.5)
    seen: set[tuple[int, int]] = set()
    stop = threading.Event()

    def look() -> None:
        type_ = api.site.state.schema.types["api::post.post"]
        while not stop.is_set():
            documents = api.site.state.snapshot.list(type_, "en", "published")
            found = [document.get("title") for document in documents]
            seen.add((found.count("old"), found.count("new")))
            time.sleep(0.002)

    looker = threading.Thread(target=look)
    looker.start()
    git(api.root, "checkout", "-q", "other")
    until(lambda: (0, 1500) in seen)
    stop.set()
    looker.join()
    watcher.stop()
    assert seen == {(1500, 0), (0, 1500)}


def test_timestamps_come_from_git_and_follow_it(api: Api) -> None:
    commit_all(api.root)
    site = make_again(api)
    one = site.get("/api/posts/one").data
    assert one["createdAt"] == one["updatedAt"] == one["publishedAt"] == "2024-01-01T00:00:00.000Z"
    path = api.root / "content/posts/one.md"
    path.write_text("---\ntitle: Changed\n---\n")
    site.site.refresh(["content/posts/one.md"])
    changed = site.get("/api/posts/one").data
    assert changed["createdAt"] == one["createdAt"]
    assert changed["updatedAt"] > "2025"
    git(api.root, "commit", "-qam", "second", at="2024-05-05T00:00:00Z")
    site.site.refresh()
    assert site.get("/api/posts/one").data["updatedAt"] == "2024-05-05T00:00:00.000Z"
    assert (api.root / ".bifolio/cache/git.json").exists()
    (api.root / ".bifolio/cache/git.json").write_text("{damaged")
    assert make_again(api).get("/api/posts/one").data["updatedAt"] == "2024-05-05T00:00:00.000Z"


def test_an_edit_that_git_takes_back_is_no_longer_shown(api: Api) -> None:
    commit_all(api.root)
    watcher = Runner([Watcher(api.site, Timing())])
    watcher.start()
    time.sleep(0.5)
    for i in range(30):
        (api.root / "content/posts/one.md").write_text(f"---\ntitle: One, changed {i}\n---\n")
        if i % 2:
            until(lambda: titles(api) == [f"One, changed {i}", "Two"])  # noqa: B023
        else:
            time.sleep(0.001 * i)
        git(api.root, "checkout", "-q", "content/posts/one.md")
        until(lambda: titles(api) == ["One", "Two"], 5)
    watcher.stop()


def test_what_is_not_reported_is_found_by_the_patrol_which_says_so(
    api: Api, caplog: pytest.LogCaptureFixture
) -> None:
    watcher = Runner([Watcher(api.site, replace(Timing(), patrol_s=0.5, max_notification_delay_s=0.2))])
    watcher.start()
    time.sleep(1.2)
    assert caplog.messages == []
    with (api.root / "content/posts/one.md").open("r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
        # Changed through mmap, for which the system sends no notification.
        memory[:] = memory[:].replace(b"One", b"Odd")
        memory.flush()
    until(lambda: titles(api) == ["Odd", "Two"])
    watcher.stop()
    expected = "the operating system did not report a change to content/posts/one.md; changes may appear late"
    assert caplog.messages == [expected]


def test_checkouts_in_quick_succession_show_no_mixture(api: Api) -> None:
    paths = [f"content/posts/{i}.md" for i in range(200)]
    branches = [f"branch-{i}" for i in range(4)]
    commit_all(api.root)
    for branch in branches:
        git(api.root, "checkout", "-qb", branch)
        write(api.root, dict.fromkeys(paths, f"---\ntitle: {branch}\n---\n"))
        write(api.root, {"site.yaml": f"name: {branch}\nroles:\n  public: {{post: [find]}}\n"})
        committed_again(api.root, branch)
    api.site.load()
    watcher = Runner([Watcher(api.site, Timing())])
    watcher.start()
    type_ = api.site.state.schema.types["api::post.post"]
    seen: set[tuple[str, ...]] = set()
    stop = threading.Event()

    def look() -> None:
        while not stop.is_set():
            state = api.site.state
            documents = state.snapshot.list(type_, "en", "published")
            found = {d.get("title") for d in documents if d.document_id not in ("one", "two")}
            seen.add((state.settings.name, *sorted(found)))
            time.sleep(0.001)

    looker = threading.Thread(target=look)
    looker.start()
    for branch in branches * 4:
        git(api.root, "checkout", "-q", branch)
        time.sleep(0.01 * len(seen))
    git(api.root, "checkout", "-q", branches[0])
    until(lambda: api.site.state.settings.name == branches[0], 5)
    stop.set()
    looker.join()
    watcher.stop()
    assert seen <= {(branch, branch) for branch in branches}


def committed_again(root: Path, message: str) -> None:
    git(root, "add", "content", "content-types", "site.yaml")
    git(root, "commit", "-qm", message)


def make_again(api: Api) -> Api:
    api.accounts.revoke_token("full")
    return make(api.root, {})


def _bomb() -> bytes:
    """Return ten nested lists with nine references each: a billion values in a few lines."""
    lines = ["a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    for before, name in zip("abcdefghi", "bcdefghij", strict=True):
        lines.append(f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]")
    return "\n".join(lines).encode()


BAD: dict[str, tuple[bytes, str, int | None]] = {
    "broken.md": (b"---\ntitle: a: b\n---\n", "mapping values are not allowed", 2),
    "open.md": (b"---\ntitle: x\n", "not closed", 1),
    "binary.md": (b"\x89PNG\r\n\x1a\n\0\0", "is a binary file", 3),
    "latin.md": (b"---\ntitle: caf\xe9\n---\n", "0xe9 at position 14", 2),
    "deep.md": (b"---\ntitle: " + b"[" * 100_000 + b"\n---\n", "nested more than", 2),
    "deep.json": (b"[" * 100_000, "the values are nested too deeply", None),
    "bomb.yaml": (_bomb(), "more than 200000 values", 6),
    "kind.md": (b"---\ntitle: x\ncount: many\n---\n", 'must be a whole number (found "many")', 3),
    "big.md": (b"x" * 50_000_000, "the limit is 16 MB", None),
}


@pytest.mark.parametrize("name", BAD)
def test_a_file_that_can_not_be_read_is_a_problem_and_no_failure(api: Api, name: str) -> None:
    data, what, line = BAD[name]
    write(api.root, {f"content/posts/{name}": data})
    api.site.refresh()
    problem = next(p for p in api.site.problems if p.path == f"content/posts/{name}")
    assert what in problem.message
    assert problem.line == line
    assert problem.severity == "error"
    assert titles(api) == ["One", "Two"]


def test_the_last_good_version_stays_while_a_file_is_broken(api: Api) -> None:
    path = api.root / "content/posts/one.md"
    path.write_text("---\ntitle: [One\n---\n")
    change: Change = api.site.refresh()
    assert [(p.path, p.line, p.severity) for p in change.problems] == [("content/posts/one.md", 2, "error")]
    assert titles(api) == ["One", "Two"]
    path.write_text("---\ntitle: One again\n---\n")
    api.site.refresh()
    assert titles(api) == ["One again", "Two"]
    assert api.site.problems == ()


def test_a_broken_schema_leaves_the_old_one_in_place(api: Api) -> None:
    (api.root / "content-types/post.json").write_text(POST.replace('"integer"', '"intger"'))
    change = api.site.refresh()
    assert "intger" in str(change.problems[0])
    assert titles(api) == ["One", "Two"]
    (api.root / "content-types/post.json").write_text(POST)
    api.site.refresh()
    assert api.site.problems == ()


def test_the_last_good_settings_stay_while_their_file_is_empty(api: Api) -> None:
    settings = api.root / "site.yaml"
    text = settings.read_text()
    settings.write_text("")
    change = api.site.refresh()
    fix = "Write the settings, or delete the file. Until this is fixed, the last good configuration is used."
    assert [str(problem) for problem in change.problems] == [f"site.yaml: the file is empty. {fix}"]
    assert api.get("/api/posts", "public").status == 200
    write(api.root, {"content-types/page.json": schema("page", {"name": "string"})})
    api.site.refresh()
    assert api.get("/api/posts", "public").status == 200
    settings.write_text(text.replace("post", "page"))
    api.site.refresh()
    assert api.site.problems == ()
    assert api.get("/api/posts", "public").status == 403
    assert api.get("/api/pages", "public").status == 200
    settings.unlink()
    api.site.refresh()
    assert api.get("/api/pages", "public").status == 403


def test_a_schema_that_is_emptied_stays_as_it_was(tmp_path: Path) -> None:
    part = {"type": "component", "component": "shared.part"}
    files: dict[str, str | bytes] = {
        "content-types/post.json": schema("post", {"title": "string", "part": part}),
        "content-types/components/shared/part.yaml": "attributes: {label: {type: string}}\n",
        "content/posts/one.yaml": "title: One\npart: {label: L}\n",
    }
    api = make(tmp_path, files)
    for path in ("content-types/components/shared/part.yaml", "content-types/post.json"):
        (tmp_path / path).write_text("")
        change = api.site.refresh()
        assert [(p.path, p.message) for p in change.problems] == [(path, "the file is empty")]
        assert api.get("/api/posts/one?populate=part").data["part"]["label"] == "L"
        (tmp_path / path).write_bytes(str(files[path]).encode())
        api.site.refresh()
        assert api.site.problems == ()


def test_a_configuration_file_that_is_replaced_is_never_seen_missing(api: Api) -> None:
    """Some editors rename the old file and then write a new one."""
    for path in ("site.yaml", "content-types/post.json"):
        file = api.root / path
        text = file.read_text()
        file.unlink()
        writer = threading.Timer(0.03, file.write_text, [text + "\n"])
        writer.start()
        api.site.refresh()
        assert api.get("/api/posts", "public").status == 200
        writer.join()
        api.site.refresh()
        assert api.get("/api/posts", "public").status == 200
        assert api.site.problems == ()


def test_links_are_followed_inside_the_site_only(api: Api, tmp_path_factory: pytest.TempPathFactory) -> None:
    outside = tmp_path_factory.mktemp("outside") / "secret.md"
    outside.write_text("---\ntitle: Secret\n---\n")
    posts = api.root / "content/posts"
    (posts / "loop").symlink_to(".")
    (posts / "out.md").symlink_to(outside)
    (posts / "nothing.md").symlink_to("not-there.md")
    (posts / "inside.md").symlink_to("one.md")
    os.mkfifo(posts / "pipe.md")
    api.site.refresh()
    assert titles(api) == ["One", "One", "Two"]
    found = {p.path.rpartition("/")[2]: p.message for p in api.site.problems}
    assert found == {
        "loop": "is a symbolic link that forms a cycle",
        "out.md": "is a symbolic link that points outside the site's folder",
        "nothing.md": "is a symbolic link to a missing file",
        "pipe.md": "is not a regular file",
    }


def test_two_files_of_one_document(api: Api) -> None:
    write(api.root, {"content/posts/one.yaml": "title: Other\n"})
    api.site.refresh()
    assert titles(api) == ["One", "Two"]
    problem = str(api.site.problems[0])
    assert 'the document "one" in the locale "en" is already stored in content/posts/one.md' in problem
    (api.root / "content/posts/one.md").unlink()
    api.site.refresh()
    assert titles(api) == ["Other", "Two"]


@pytest.mark.parametrize("name", ["a b", "v1.2.3", "été-ñ", "日本", "a'b\"c", "%41", "#xy"])
def test_odd_names_are_names(api: Api, name: str) -> None:
    write(api.root, {f"content/posts/x{name}.md": "---\ntitle: Odd\n---\n"})
    api.site.refresh()
    found = api.get("/api/posts?filters[title]=Odd").data[0]["documentId"]
    assert found == f"x{name}"


def test_a_documentation_site_is_served_in_place(tmp_path: Path) -> None:
    """The pages resemble Astro's documentation: MDX files in one folder per locale, with folders in their
    names.
    """
    text = {"type": "string", "pluginOptions": {"i18n": {"localized": True}}}
    body = {"type": "richtext", "pluginOptions": {"i18n": {"localized": True}}}
    attributes = {"title": text, "type": "string", "body": body}
    page = (
        "---\ntitle: {}\ntype: guide\ni18nReady: true\n---\nimport Since from '~/components/Since.astro';\n"
    )
    titles = {
        "en/guides/images": "Images",
        "en/guides/cms/index": "Use a CMS",
        "en/basics/project-structure": "Project structure",
        "fr/guides/images": "Images",
        "fr/guides/cms/index": "'CMS : lequel ?'",
        "de/basics/project-structure": "Projektstruktur",
    }
    api = make(
        tmp_path,
        {
            "content-types/doc.json": schema(
                "doc", attributes, localized=True, files="docs/{locale}/{name}.mdx"
            ),
            "site.yaml": "locales: {default: en, available: [en, fr, de]}\n",
            **{f"docs/{name}.mdx": page.format(title) for name, title in titles.items()},
        },
    )
    assert [p for p in api.site.problems if p.severity == "error"] == []
    totals = {}
    for locale in ("en", "fr", "de"):
        answer = api.get(f"/api/docs?locale={locale}&pagination[pageSize]=1").body
        totals[locale] = answer["meta"]["pagination"]["total"]
    assert totals == {"en": 3, "fr": 2, "de": 1}
    images = api.get("/api/docs/guides--images?populate=localizations").data
    assert (images["title"], images["type"]) == ("Images", "guide")
    assert images["body"].startswith("import Since from")
    assert [other["locale"] for other in images["localizations"]] == ["fr"]
    assert api.get("/api/docs/guides--cms--index?locale=fr").data["title"] == "CMS : lequel ?"


def test_files_that_the_system_can_not_watch_are_looked_at(tmp_path: Path) -> None:
    """This runs in a user namespace, so that the system's inotify limits are not changed."""
    root, log, port = tmp_path / "site", tmp_path / "log", free_port()
    write(root, FILES)
    limit = "/proc/sys/user/max_inotify_instances"
    timing = replace(Timing(), poll_s=0.2, watch_retry_s=1.0, patrol_s=1000.0)
    inside = ["unshare", "--user", "--map-root-user", "sh", "-c", f'echo 0 >{limit} && exec "$@"', "sh"]
    if not shutil.which("unshare") or subprocess.run([*inside, "true"], capture_output=True).returncode:
        pytest.skip("no user namespaces here")
    with log.open("wb") as out:
        process = start(root, port, "--workers=1", output=out, inside=inside, timing=timing)

    def shown() -> bytes:
        return get(port, "/api/posts?sort=title")[1]

    try:
        wait(process, port)
        (root / "content/posts/one.md").write_text("---\ntitle: Seen\n---\n")
        until(lambda: b'"Seen"' in shown(), 10)
        time.sleep(2.5)
        assert log.read_text().count("the operating system can't watch files") == 1
        lift = ["nsenter", f"--target={process.pid}", "--user", "--preserve-credentials"]
        subprocess.run([*lift, "sh", "-c", f"echo 100 >{limit}"], check=True)
        (worker,) = workers(process.pid)
        until(lambda: "inotify" in str([os.readlink(fd) for fd in Path(f"/proc/{worker}/fd").iterdir()]), 10)
        (root / "content/posts/one.md").write_text("---\ntitle: Reported\n---\n")
        until(lambda: b'"Reported"' in shown(), 10)
        assert log.read_text().count("the operating system can't watch files") == 1
    finally:
        stop(process)


def test_a_name_that_is_not_utf_8_is_a_problem_and_the_rest_stays_watched(
    api: Api, caplog: pytest.LogCaptureFixture
) -> None:
    timing = replace(Timing(), patrol_s=1000.0, poll_s=1000.0)
    posts = api.root / "content/posts"
    changes: list[Change] = []
    watcher = Runner([Watcher(api.site, timing, lambda change, seconds: changes.append(change))])
    watcher.start()
    time.sleep(0.3)
    (posts / os.fsdecode(b"caf\xe9.md")).write_text("---\ntitle: Nowhere\n---\n")
    (posts / os.fsdecode(b"folder\xe9")).mkdir()
    until(
        lambda: (
            [p.path for p in api.site.problems] == [r"content/posts/caf\xe9.md", r"content/posts/folder\xe9"]
        )
    )
    for i in range(3):
        (posts / "one.md").write_text(f"---\ntitle: One {i}\n---\n")
        until(lambda: f"One {i}" in titles(api))  # noqa: B023
        (posts / os.fsdecode(b"caf\xe9.md")).read_bytes()
    write(api.root, {"content/posts/new/three.md": "---\ntitle: Three\n---\n"})
    until(lambda: "Three" in titles(api))
    time.sleep(0.5)
    write(api.root, {"content/posts/new/three.md": "---\ntitle: Four\n---\n"})
    until(lambda: "Four" in titles(api))
    (posts / os.fsdecode(b"caf\xe9.md")).unlink()
    (posts / os.fsdecode(b"folder\xe9")).rmdir()
    until(lambda: api.site.problems == ())
    watcher.stop()
    told = [problem.path for change in changes for problem in change.problems]
    assert sorted(told) == [r"content/posts/caf\xe9.md", r"content/posts/folder\xe9"]
    assert caplog.messages == []
