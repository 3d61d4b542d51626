"""Tests of two machines at the same commit: a fresh clone returns the same responses as the machine that made
the writes.
"""

import io
import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from server.write.precondition import use_key
from tests.git import commit_all, git
from tests.sites import STRING, Answer, Api, collection, component, make, relation, translated, write

OF_NOW = ("Date", "Expires")
FILES = {
    **collection(
        "article",
        {
            "title": translated({"type": "string"}),
            "slug": {"type": "uid", "targetField": "title"},
            "text": translated({"type": "richtext"}),
            "tags": relation("manyToMany", "tag", inversedBy="articles"),
            "cover": {"type": "media", "multiple": False},
            "seo": {"type": "component", "component": "page.seo"},
        },
        drafts=True,
        localized=True,
    ),
    **collection("tag", {"name": STRING, "articles": relation("manyToMany", "article", mappedBy="tags")}),
    **collection("home", {"title": STRING, "secret": {"type": "string", "private": True}}, single=True),
    **component("page.seo", {"title": STRING}),
    "content/articles/a.md": "---\ntitle: A\ntags: [red]\n---\nText\n",
    "content/articles/b.yaml": "title: B\ntags:\n  - red\n",
    "content/articles/c.toml": 'title = "C"\r\n',
    "content/articles/d.json": '{"title": "D", "createdAt": "2024-01-01T00:00:00.000Z"}',
    "content/articles/a.fr.md": "---\ntitle: Ah\n---\nTexte\n",
    "content/tags/red.json": '{"name": "Same"}',
    "content/tags/blue.yaml": "name: Same\n",
    "content/tags/Zoë.yaml": "name: Same\n",
    "content/home.json": '{"title": "Home", "secret": "s"}',
    "content/uploads/a.txt": "text of a file",
    "content/uploads/b.txt": "text of another",
    "content/uploads/b.txt.yaml": "caption: It\n",
    "site.yaml": """
git: {commit: each, committer: "Site <site@example.org>"}
api: {cache_tags: true}
search: {index: false}
locales: {available: [en, fr], default: en}
""",
    ".gitignore": ".bifolio/\n",
}
OPEN = [
    "/api/articles?sort=title&populate=*",
    "/api/articles?status=draft&populate[tags][populate]=articles&populate[seo]=true",
    "/api/articles?sort=updatedAt:desc&pagination[pageSize]=3",
    "/api/articles?sort=createdAt&locale=fr",
    "/api/articles?locale=*&status=draft&fields=title",
    "/api/tags?sort=name&populate=*",
    "/api/tags?filters[articles][title][$contains]=A",
    "/api/home?populate=*",
    "/api/upload/files",
    "/api/upload/files/page",
    "/api/i18n/locales",
    "/api/content-type-builder/content-types",
    "/api/content-type-builder/components",
    "/search?q=a",
    "/openapi.json",
    "/problems",
    "/history",
    "/history?deleted=true",
    "/history/articles?deleted=true",
    "/history/home",
    "/history/uncommitted",
    "/branches",
    "/access",
    "/source/home",
]


# Prints the responses of another machine, with a clone and a different environment.
ANSWERS = """
import json, sys
from pathlib import Path
from tests.api.test_same_answers import whole
from tests.sites import make
from server.write.precondition import use_key
use_key("secret")
api = make(Path(sys.argv[1]), {})
json.dump({path: whole(api.get(path)) for path in json.load(sys.stdin)}, sys.stdout)
"""
ELSEWHERE = {"LC_ALL": "C", "LANG": "C", "TZ": "Pacific/Chatham", "PYTHONHASHSEED": "7"}


def paths_of(api: Api) -> Iterator[str]:
    """Yield a path for every read whose response depends on content."""
    yield from OPEN
    for plural in ("articles", "tags"):
        for document in api.get(f"/api/{plural}?status=draft&locale=*&pagination[pageSize]=100").data:
            id_, locale = document["documentId"], document.get("locale") or ""
            at = f"?locale={locale}" if locale else "?"
            yield f"/api/{plural}/{id_}{at}"
            yield f"/api/{plural}/{id_}{at}&status=draft&populate=*"
            for what in ("", "/diff", "/lines", "/source"):
                yield f"/history/{plural}/{id_}{what}{at}"
            yield f"/source/{plural}/{id_}{at}"
    for file in api.get("/api/upload/files").body:
        yield f"/api/upload/files/{file['id']}"
        yield file["url"]


def whole(answer: Answer) -> tuple[int, dict[str, str], str]:
    """Return a response's status, headers and body, without the time of the response and of the check for
    problems.
    """
    headers = {name: value for name, value in answer.headers.items() if name not in OF_NOW}
    if isinstance(answer.body, dict) and "checkedAt" in answer.body.get("meta", {}):
        del answer.body["meta"]["checkedAt"], headers["ETag"]
        return answer.status, headers, json.dumps(answer.body)
    return answer.status, headers, answer.raw.decode()


def assert_clone_answers_the_same(one: Api, folder: Path) -> None:
    """Require that a clone of the committed site returns the same responses as the original."""
    assert not git(one.root, "status", "--porcelain")
    git(one.root.parent, "clone", "-q", str(one.root), str(folder))
    paths = list(dict.fromkeys(paths_of(one)))
    asked = subprocess.run(
        [sys.executable, "-c", ANSWERS, str(folder)],
        input=json.dumps(paths),
        capture_output=True,
        text=True,
        env={**os.environ, **ELSEWHERE},
        check=True,
    )
    theirs = json.loads(asked.stdout)
    for path in paths:
        here, there = whole(one.get(path)), theirs[path]
        assert list(here) == there, f"{path}\n{here}\n{there}"


class Writer:
    """Generator of random writes that checks the response to each write."""

    def __init__(self, api: Api, seed: int) -> None:
        self.api, self.random = api, random.Random(seed)
        self.count = 0

    def write(self) -> None:
        name = self.random.choice([n for n in dir(self) if n.startswith("do_")])
        getattr(self, name)()

    def _text(self) -> str:
        self.count += 1
        return f"{self.random.choice(['Ähre', 'same', 'Zoo', 'a', 'B'])} {self.count}"

    def _some(self, plural: str, query: str = "?status=draft&pagination[pageSize]=100") -> str | None:
        found = self.api.get(f"/api/{plural}{query}").ids
        return self.random.choice(found) if found else None

    def _checked(self, answer: Answer, path: str, **query: Any) -> None:
        """Require that the response to a write contains the same values as a subsequent read."""
        assert answer.status in (200, 201, 204), answer.text
        if answer.status == 204 or not answer.body.get("data"):
            return
        read = self.api.get(path + query.get("query", ""))
        assert read.status == 200, read.text
        assert {k: answer.data[k] for k in answer.data} == {k: read.data[k] for k in answer.data}
        assert read.headers["ETag"].split(".")[0] == answer.headers["ETag"].split(".")[0]

    def do_create(self) -> None:
        data = {"title": self._text(), "text": "x", "seo": {"title": self._text()}}
        status = self.random.choice(["draft", "published"])
        locale = self.random.choice(["en", "fr"])
        query = f"?status={status}&locale={locale}"
        answer = self.api.post("/api/articles" + query, data)
        self._checked(answer, f"/api/articles/{answer.data['documentId']}", query=query)

    def do_create_tag(self) -> None:
        some = self._some("articles")
        data = {"name": "Same", **({"articles": [some]} if some else {})}
        answer = self.api.post("/api/tags", data)
        self._checked(answer, f"/api/tags/{answer.data['documentId']}")

    def do_update(self) -> None:
        id_ = self._some("articles")
        if id_:
            status = self.random.choice(["draft", "published"])
            tags = self.api.get("/api/tags").ids
            data = {"title": self._text(), "tags": self.random.sample(tags, min(2, len(tags)))}
            answer = self.api.put(f"/api/articles/{id_}?status={status}", data)
            self._checked(answer, f"/api/articles/{id_}", query=f"?status={status}")

    def do_translate(self) -> None:
        id_ = self._some("articles")
        if id_:
            answer = self.api.put(f"/api/articles/{id_}?locale=fr", {"title": self._text()})
            self._checked(answer, f"/api/articles/{id_}", query="?locale=fr")

    def do_update_tag(self) -> None:
        id_ = self._some("tags", "")
        if id_:
            self._checked(self.api.put(f"/api/tags/{id_}", {"name": self._text()}), f"/api/tags/{id_}")

    def do_delete(self) -> None:
        id_ = self._some("articles")
        if id_ and self.random.random() < 0.4:
            assert self.api.ask("DELETE", f"/api/articles/{id_}").status == 204

    def do_home(self) -> None:
        self._checked(self.api.put("/api/home", {"title": self._text()}), "/api/home")

    def do_upload(self) -> None:
        name = self.random.choice(["a.txt", "ü.txt", "c d.txt"])
        files = {"files": (io.BytesIO(self._text().encode()), name)}
        info = self.random.choice([{}, {"fileInfo": '{"caption": "C"}'}])
        answer = self.api.ask("POST", "/api/upload", data={**files, **info})
        assert answer.status == 201, answer.text
        (made,) = answer.body
        assert self.api.get(f"/api/upload/files/{made['id']}").body == made

    def do_describe(self) -> None:
        file = self.random.choice(self.api.get("/api/upload/files").body)
        answer = self.api.ask(
            "POST",
            f"/api/upload?id={file['id']}",
            data={"fileInfo": json.dumps({"alternativeText": self._text()})},
        )
        assert answer.status == 200, answer.text
        assert self.api.get(f"/api/upload/files/{file['id']}").body == answer.body

    def do_publish(self) -> None:
        id_ = self._some("articles")
        action = self.random.choice(["publish", "unpublish", "discard-draft"])
        if id_:
            self.api.post(f"/api/articles/{id_}/actions/{action}", {})

    def do_restore(self) -> None:
        found = self.api.get("/history/articles?deleted=true").body["data"]
        if found:
            id_ = self.random.choice(found)["documentId"]
            self.api.ask("POST", f"/history/articles/{id_}/restore", json={})

    def do_by_hand(self) -> None:
        """Create a commit with git and a wrong clock."""
        root, name = self.api.root, f"content/tags/hand-{self.random.randrange(4)}.yaml"
        kind = self.random.choice(["write", "rename", "merge"])
        if kind == "rename" and (root / name).exists():
            git(root, "mv", name, name.replace("hand-", f"moved-{self.count}-"))
        elif kind == "merge":
            self._merge(name)
        else:
            (root / name).write_text(f"name: {self._text()}\n{'# long ' * 30}\n")
        self._commit("by hand")
        self.api.site.refresh()

    def _commit(self, message: str) -> None:
        at = 1_700_000_000 + self.random.randrange(200_000_000)
        git(self.api.root, "add", "-A")
        git(self.api.root, "commit", "-q", "--allow-empty", "-m", message, at=f"{at} +0300")

    def _merge(self, name: str) -> None:
        """Merge two branches that changed different files. One of the branches renamed a file."""
        root, tags = self.api.root, sorted((self.api.root / "content/tags").glob("hand-*"))
        git(root, "checkout", "-q", "-b", f"side{self.count}", "HEAD~1")
        if tags and tags[0].exists():
            git(root, "mv", str(tags[0]), f"content/tags/side-{self.count}.yaml")
        else:
            (root / "content/tags" / f"side-{self.count}.yaml").write_text("name: Side\n")
        self._commit("at the side")
        git(root, "checkout", "-q", "main")
        with suppress(subprocess.CalledProcessError):
            git(root, "merge", "-q", "--no-edit", f"side{self.count}", "-X", "ours")
        # Branches belong to a clone and not to a commit, so the other clone would lack this branch.
        git(root, "branch", "-D", f"side{self.count}")
        self.count += 1


@pytest.mark.parametrize("seed", range(4))
def test_a_clone_answers_as_the_machine_that_wrote(seed: int, tmp_path: Path) -> None:
    use_key("secret")
    root = tmp_path / "one"
    write(root, FILES)
    commit_all(root)
    one = make(root, {})
    writer = Writer(one, seed)
    for turn in range(2):
        for _ in range(12):
            writer.write()
        assert_clone_answers_the_same(one, tmp_path / f"clone{turn}")


def test_timestamps_are_the_same_for_who_followed_and_who_cloned(tmp_path: Path) -> None:
    """Clocks are wrong. Files are renamed by hand in a clone whose commit is then merged."""
    root = tmp_path / "one"
    write(root, FILES)
    commit_all(root, at="2024-05-01T00:00:00Z")
    one = make(root, {})
    other = tmp_path / "two"
    git(tmp_path, "clone", "-q", str(root), str(other))
    write(root, {"content/tags/red.json": '{"name": "Later"}'})
    git(root, "commit", "-qam", "a clock that is late", at="2024-04-01T00:00:00Z")
    one.site.refresh()
    git(other, "mv", "content/tags/blue.yaml", "content/tags/green.yaml")
    write(other, {"content/tags/old.yaml": "name: Old\n"})
    git(other, "add", "-A")
    git(other, "commit", "-qm", "beside", at="2024-03-01T00:00:00Z")
    git(root, "pull", "-q", "--no-rebase", "--no-edit", str(other), at="2024-06-01T00:00:00Z")
    one.site.refresh()
    git(root, "status")  # records in git's index that git has read the files
    assert one.put("/api/tags/green", {"name": "Green"}).status == 200
    made = make(tmp_path / "three", {}) if git(tmp_path, "clone", "-q", str(root), "three") == "" else one
    asked = "/api/tags?fields=createdAt,updatedAt&sort=documentId&pagination[pageSize]=100"
    assert one.get(asked).data == made.get(asked).data
    times = {tag["documentId"]: (tag["createdAt"], tag["updatedAt"]) for tag in one.get(asked).data}
    assert times["red"] == ("2024-04-01T00:00:00.000Z", "2024-05-01T00:00:00.000Z")
    assert times["old"] == ("2024-03-01T00:00:00.000Z", "2024-03-01T00:00:00.000Z")
    assert times["green"][0] == "2024-03-01T00:00:00.000Z"


def test_a_media_file_has_the_tag_of_its_bytes(tmp_path: Path) -> None:
    api = make(tmp_path, FILES)
    before = api.get("/uploads/a.txt").headers["ETag"]
    os.utime(tmp_path / "content/uploads/a.txt", (1, 1))
    api.site.refresh()
    assert api.get("/uploads/a.txt").headers["ETag"] == before
    (tmp_path / "content/uploads/a.txt").write_text("text of a life")
    os.utime(tmp_path / "content/uploads/a.txt", (1, 1))
    api.site.refresh()
    assert api.get("/uploads/a.txt").headers["ETag"] != before
