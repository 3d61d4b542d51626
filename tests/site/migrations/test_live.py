"""Tests of migrations next to a running server, and of migrations that are killed."""

import json
import threading
from pathlib import Path
from urllib.request import urlopen

from server.service.opening import Mode, open_site
from server.write.context import Context
from tests.git import commit_all, git
from tests.killing import DONE, KILLED, killed_at
from tests.servers import free_port, serving
from tests.site.migrations.helpers import files, migrate
from tests.sites import STRING, collection, opened, write, write_to
from tests.waiting import until

DOCUMENTS = 300
FILES = {
    "site.yaml": "roles: {public: {article: [find, findOne]}}\ngit: {commit: each}\n",
    **collection("article", {"title": STRING, "text": {"type": "richtext"}}),
    **{f"content/articles/a{i}.md": f"---\ntitle: T{i}\n---\nText\n" for i in range(DOCUMENTS)},
}


def test_a_server_shows_schema_and_documents_together(tmp_path: Path) -> None:
    write(tmp_path, {**FILES, ".gitignore": ".bifolio/\n"})
    commit_all(tmp_path)
    port, odd, ended = free_port(), list[object](), threading.Event()
    seen = set[str]()

    def watch() -> None:
        while not ended.is_set():
            with urlopen(f"http://127.0.0.1:{port}/api/articles?pagination[pageSize]=100") as response:
                for document in json.loads(response.read())["data"]:
                    names = {"title", "headline"} & document.keys()
                    seen.update(names)
                    if len(names) != 1 or not document[next(iter(names))]:
                        odd.append(document)

    with serving(tmp_path, port):
        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            until(lambda: "title" in seen)
            migrate(tmp_path, "rename", attribute="article.title", to="headline")
            until(lambda: "headline" in seen)
            # The commit may be left to the server, if it takes long.
            until(lambda: git(tmp_path, "rev-list", "--count", "HEAD").strip() == "2")
        finally:
            ended.set()
            watcher.join()
    assert odd == []
    assert git(tmp_path, "status", "--porcelain") == ""
    assert git(tmp_path, "log", "-1", "--format=%s").strip() == "Migrate: rename article.title headline"


def test_a_write_after_a_migration_by_another_process_sees_schema_and_documents(tmp_path: Path) -> None:
    write(tmp_path, FILES)
    site = opened(tmp_path)
    migrate(tmp_path, "rename", attribute="article.title", to="headline")
    states = []

    def look(_: None, context: Context) -> None:
        [document] = context.snapshot.claims["api::article.article", "a7", "en", "published"]
        states.append((list(document.type.attributes), list(document.values)))
        context.changeset.put("content/articles/new.md", "---\nheadline: New\n---\n")

    write_to(site, look, None)
    assert states[-1] == (["headline", "text"], ["T7", "Text"])
    state = site.current()
    assert state.snapshot.claims["api::article.article", "new", "en", "published"][0].get("headline") == "New"


def test_a_migration_killed_at_any_step_is_done_or_undone(tmp_path: Path) -> None:
    few = {path: text for path, text in FILES.items() if not path.startswith("content/articles/a1")}
    few = dict(list(few.items())[:6])
    write(tmp_path / "before", few)
    write(tmp_path / "after", few)
    migrate(tmp_path / "after", "rename", attribute="article.title", to="headline")
    allowed = (files(tmp_path / "before"), files(tmp_path / "after"))
    step, ended = 1, KILLED
    while ended == KILLED:
        root = tmp_path / f"killed{step}"
        write(root, few)
        ended = killed_at(step, _migrates, root)
        first = open_site(root, Mode.SERVER, records=False).site.state
        assert files(root) in allowed, f"step {step}"
        assert ("headline" in first.schema.types["api::article.article"].attributes) == (
            files(root) == allowed[1]
        )
        assert (root / "migrations").exists() == (files(root) == allowed[1])
        step += 3
    assert ended == DONE


def _migrates(root: Path) -> bool:
    migrate(root, "rename", attribute="article.title", to="headline")
    return True
