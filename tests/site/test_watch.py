"""Files that change under a loaded site show changed; what is broken takes nothing else down."""

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from server.site.site import Change
from server.site.watch import Watcher
from tests.git import commit_all, git
from tests.making import Made, make, schema, write
from tests.waiting import until

POST = schema("post", {"title": "string", "count": "integer", "body": "richtext"}, drafts=True)
FILES: dict[str, str | bytes] = {
    "content-types/post.json": POST,
    "site.yaml": "roles:\n  public: {post: [find]}\n",
    "content/posts/one.md": "---\ntitle: One\n---\n",
    "content/posts/two.md": "---\ntitle: Two\n---\n",
}


def titles(made: Made) -> list[str]:
    found = made.get("/api/posts?fields=title&sort=title&pagination[pageSize]=100")
    return [document["title"] for document in found]


@pytest.fixture
def made(tmp_path: Path) -> Made:
    return make(tmp_path, FILES)


@pytest.fixture
def watched(made: Made) -> Iterator[Made]:
    watcher = Watcher(made.site)
    watcher.start()
    time.sleep(0.3)
    yield made
    watcher.stop()


def test_edits_of_every_kind_show(watched: Made) -> None:
    posts = watched.root / "content/posts"
    (posts / "three.md").write_text("---\ntitle: Three\n---\n")
    until(lambda: "Three" in titles(watched))
    (posts / "one.md").write_text("---\ntitle: One in place\n---\n")
    until(lambda: "One in place" in titles(watched))
    (posts / ".two.tmp").write_text("---\ntitle: Two by renaming\n---\n")
    (posts / ".two.tmp").replace(posts / "two.md")
    until(lambda: "Two by renaming" in titles(watched))
    (posts / "three.md").rename(posts / "drei.md")
    until(lambda: watched.send("GET", "/api/posts/drei").status_code == 200)
    assert watched.send("GET", "/api/posts/three").status_code == 404
    (posts / "drei.md").unlink()
    until(lambda: "Three" not in titles(watched))


def test_a_folder_that_moves_takes_its_documents_along(watched: Made) -> None:
    folder = watched.root / "content/posts/old"
    write(watched.root, {f"content/posts/old/{i}.md": f"---\ntitle: F{i}\n---\n" for i in range(50)})
    until(lambda: len(titles(watched)) == 52)
    folder.rename(folder.with_name("new"))
    until(lambda: watched.send("GET", "/api/posts/new--7").status_code == 200)
    assert watched.send("GET", "/api/posts/old--7").status_code == 404
    assert len(titles(watched)) == 52


def test_content_types_and_roles_are_live(watched: Made) -> None:
    write(watched.root, {"content-types/page.json": schema("page", {"name": "string"})})
    until(lambda: watched.send("GET", "/api/pages").status_code == 200)
    write(watched.root, {"content/pages/a.yaml": "name: A\n"})
    until(lambda: [d["name"] for d in watched.get("/api/pages")] == ["A"])
    assert watched.client.get("/api/pages").status_code == 403
    (watched.root / "site.yaml").write_text("roles:\n  public: {page: [find]}\n")
    until(lambda: watched.client.get("/api/pages").status_code == 200)
    assert watched.client.get("/api/posts").status_code == 403


def test_a_checkout_is_one_step(made: Made) -> None:
    old = {f"content/posts/{i}.md": f"---\ntitle: old\ncount: {i}\n---\n" for i in range(1500)}
    write(made.root, old)
    commit_all(made.root)
    git(made.root, "checkout", "-qb", "other")
    write(made.root, {path: str(text).replace("old", "new") for path, text in old.items()})
    git(made.root, "commit", "-qam", "second")
    git(made.root, "checkout", "-q", "main")
    made.site.load()
    made.site.refresh()
    watcher = Watcher(made.site)
    watcher.start()
    time.sleep(0.5)
    seen: set[tuple[int, int]] = set()
    stop = threading.Event()

    def look() -> None:
        type_ = made.site.state.schema.types["api::post.post"]
        while not stop.is_set():
            documents = made.site.state.snapshot.list(type_, "en", "published")
            found = [document.get("title") for document in documents]
            seen.add((found.count("old"), found.count("new")))
            time.sleep(0.002)

    looker = threading.Thread(target=look)
    looker.start()
    git(made.root, "checkout", "-q", "other")
    until(lambda: (0, 1500) in seen)
    stop.set()
    looker.join()
    watcher.stop()
    assert seen == {(1500, 0), (0, 1500)}


def test_timestamps_come_from_git_and_follow_it(made: Made) -> None:
    commit_all(made.root)
    site = make_again(made)
    one = site.get("/api/posts/one")
    assert one["createdAt"] == one["updatedAt"] == one["publishedAt"] == "2024-01-01T00:00:00.000Z"
    path = made.root / "content/posts/one.md"
    path.write_text("---\ntitle: Changed\n---\n")
    site.site.refresh(["content/posts/one.md"])
    changed = site.get("/api/posts/one")
    assert changed["createdAt"] == one["createdAt"]
    assert changed["updatedAt"] > "2025"
    git(made.root, "commit", "-qam", "second", at="2024-05-05T00:00:00Z")
    site.site.refresh()
    assert site.get("/api/posts/one")["updatedAt"] == "2024-05-05T00:00:00.000Z"
    assert (made.root / ".quire/cache/git.json").exists()
    (made.root / ".quire/cache/git.json").write_text("{damaged")
    assert make_again(made).get("/api/posts/one")["updatedAt"] == "2024-05-05T00:00:00.000Z"


def make_again(made: Made) -> Made:
    made.accounts.revoke_token("full")
    return make(made.root, {})


def _bomb() -> bytes:
    """Ten lists of nine of the list before: a billion values in a few lines."""
    lines = ["a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    for before, name in zip("abcdefghi", "bcdefghij", strict=True):
        lines.append(f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]")
    return "\n".join(lines).encode()


BAD: dict[str, tuple[bytes, str, int | None]] = {
    "broken.md": (b"---\ntitle: a: b\n---\n", "mapping values are not allowed", 2),
    "open.md": (b"---\ntitle: x\n", "not closed", 1),
    "binary.md": (b"\x89PNG\r\n\x1a\n\0\0", "is binary", 3),
    "latin.md": (b"---\ntitle: caf\xe9\n---\n", "0xe9 at position 14", 2),
    "deep.md": (b"---\ntitle: " + b"[" * 100_000 + b"\n---\n", "nested more than", 2),
    "deep.json": (b"[" * 100_000, "nested too deeply", None),
    "bomb.yaml": (_bomb(), "more than 200000 values", 6),
    "kind.md": (b"---\ntitle: x\ncount: many\n---\n", 'expected a whole number, found "many"', 3),
    "big.md": (b"x" * 50_000_000, "at most 16 MB", None),
}


@pytest.mark.parametrize("name", BAD)
def test_a_file_that_can_not_be_read_is_a_problem_and_no_failure(made: Made, name: str) -> None:
    data, what, line = BAD[name]
    write(made.root, {f"content/posts/{name}": data})
    made.site.refresh()
    problem = next(p for p in made.site.problems if p.path == f"content/posts/{name}")
    assert what in problem.message
    assert problem.line == line
    assert problem.severity == "error"
    assert titles(made) == ["One", "Two"]


def test_the_last_good_version_stays_while_a_file_is_broken(made: Made) -> None:
    path = made.root / "content/posts/one.md"
    path.write_text("---\ntitle: [One\n---\n")
    change: Change = made.site.refresh()
    assert [(p.path, p.line, p.severity) for p in change.problems] == [("content/posts/one.md", 3, "error")]
    assert titles(made) == ["One", "Two"]
    path.write_text("---\ntitle: One again\n---\n")
    made.site.refresh()
    assert titles(made) == ["One again", "Two"]
    assert made.site.problems == ()


def test_a_broken_schema_leaves_the_old_one_in_place(made: Made) -> None:
    (made.root / "content-types/post.json").write_text(POST.replace('"integer"', '"intger"'))
    change = made.site.refresh()
    assert "intger" in str(change.problems[0])
    assert titles(made) == ["One", "Two"]
    (made.root / "content-types/post.json").write_text(POST)
    made.site.refresh()
    assert made.site.problems == ()


def test_links_are_followed_inside_the_site_only(
    made: Made, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside") / "secret.md"
    outside.write_text("---\ntitle: Secret\n---\n")
    posts = made.root / "content/posts"
    (posts / "loop").symlink_to(".")
    (posts / "out.md").symlink_to(outside)
    (posts / "nothing.md").symlink_to("not-there.md")
    (posts / "inside.md").symlink_to("one.md")
    os.mkfifo(posts / "pipe.md")
    made.site.refresh()
    assert titles(made) == ["One", "One", "Two"]
    found = {p.path.rpartition("/")[2]: p.message for p in made.site.problems}
    assert found == {
        "loop": "a link that leads in a circle",
        "out.md": "a link out of the site",
        "nothing.md": "a link to nothing",
        "pipe.md": "is no ordinary file",
    }


def test_two_files_of_one_document(made: Made) -> None:
    write(made.root, {"content/posts/one.yaml": "title: Other\n"})
    made.site.refresh()
    assert titles(made) == ["One", "Two"]
    assert 'claims the document "one" (en), which content/posts/one.md has' in str(made.site.problems[0])
    (made.root / "content/posts/one.md").unlink()
    made.site.refresh()
    assert titles(made) == ["Other", "Two"]


@pytest.mark.parametrize("name", ["a b", "v1.2.3", "été-ñ", "日本", "a'b\"c", "%41", "#xy"])
def test_odd_names_are_names(made: Made, name: str) -> None:
    write(made.root, {f"content/posts/x{name}.md": "---\ntitle: Odd\n---\n"})
    made.site.refresh()
    found = made.get("/api/posts?filters[title]=Odd")[0]["documentId"]
    assert found == f"x{name}"


def test_a_documentation_site_is_served_in_place(tmp_path: Path) -> None:
    """Pages as Astro's own documentation has them: MDX in a folder per locale, named by folders below."""
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
    made = make(
        tmp_path,
        {
            "content-types/doc.json": schema(
                "doc", attributes, localized=True, files="docs/{locale}/{name}.mdx"
            ),
            "site.yaml": "locales: {default: en, available: [en, fr, de]}\n",
            **{f"docs/{name}.mdx": page.format(title) for name, title in titles.items()},
        },
    )
    assert [p for p in made.site.problems if p.severity == "error"] == []
    totals = {}
    for locale in ("en", "fr", "de"):
        answer = made.send("GET", f"/api/docs?locale={locale}&pagination[pageSize]=1").json
        totals[locale] = answer["meta"]["pagination"]["total"]
    assert totals == {"en": 3, "fr": 2, "de": 1}
    images = made.get("/api/docs/guides--images?populate=localizations")
    assert (images["title"], images["type"]) == ("Images", "guide")
    assert images["body"].startswith("import Since from")
    assert [other["locale"] for other in images["localizations"]] == ["fr"]
    assert made.get("/api/docs/guides--cms--index?locale=fr")["title"] == "CMS : lequel ?"
