"""The journal: writes survive SIGKILL at every step, concurrent writers, and simultaneous edits by hand."""

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from server.commands.cli import main
from server.errors import ConflictError
from server.site.site import Site
from server.storage.files import signature_of
from server.storage.intent import Step, Write, write_intent
from server.storage.journal import Journal
from server.write.context import Context
from tests.servers import children, free_port, serving, start, wait, workers
from tests.sites import Api, make, schema, write, write_to
from tests.torture import SEED

THING = schema(
    "thing",
    {
        "name": "string",
        "body": "richtext",
        "tags": {
            "type": "relation",
            "relation": "manyToMany",
            "target": "api::tag.tag",
            "inversedBy": "things",
        },
    },
    drafts=True,
)
TAG = schema(
    "tag",
    {
        "name": "string",
        "things": {
            "type": "relation",
            "relation": "manyToMany",
            "target": "api::thing.thing",
            "mappedBy": "tags",
        },
    },
)
FILES: dict[str, str | bytes] = {
    "content-types/thing.json": THING,
    "content-types/tag.json": TAG,
    "content/tags/a.md": "---\nname: a\n---\n",
    "content/tags/b.md": "---\nname: b\n---\n",
    "content/things/one.md": "---\nname: one # kept\ntags: [a]\n---\n\nText\n",
    "content/things/two.md": "---\nname: two\n---\n",
    "content/things/two.draft.md": "---\nname: two, later\n---\n",
    "content/things/three.md": "---\nname: three\ntags: [b]\n---\n",
}
# Writes that change several files, or that replace a file.
STEPS: dict[str, Callable[[Api], Any]] = {
    "from the other side": lambda m: (
        m.put("/api/tags/b", {"name": "bb", "things": {"set": ["one", "two"]}}).data
    ),
    "publish": lambda m: m.put("/api/things/two", {"body": "now"}).data,
    "update": lambda m: m.put("/api/things/one", {"name": "changed"}).data,
    "create": lambda m: m.post("/api/things", {"name": "new", "tags": ["a"]}).data,
    "delete": lambda m: m.ask("DELETE", "/api/things/two").status,
}
TOUCHING = ("open", "os.rename", "os.remove", "os.link", "os.mkdir", "os.chmod", "os.rmdir")


def contents(root: Path) -> dict[str, str]:
    """Return all files in content/. Timestamps and new ids are removed, because they differ between runs."""
    found = {}
    for path in sorted((root / "content").rglob("*")):
        if path.is_file():
            name = re.sub(r"q[0-9a-z]{23}", "NEW", path.relative_to(root).as_posix())
            found[name] = re.sub(
                r"(?m)^(createdAt|updatedAt|publishedAt): .*$|q[0-9a-z]{23}", "", path.read_text()
            )
    return found


def run_disturbed(api: Api, step: Callable[[Api], Any], at: int, disturb: Callable[[], Any]) -> list[Any]:
    """Run a step in a forked process, and call `disturb` at its event number `at`.

    Return the events and the step's result, or an empty list if the process died.
    """
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        seen: list[str] = []

        def hook(event: str, arguments: tuple[Any, ...]) -> None:
            if event in TOUCHING and (".bifolio/journal" in str(arguments) or "/content" in str(arguments)):
                seen.append(event)
                if len(seen) == at:
                    disturb()

        try:
            sys.addaudithook(hook)
            returned = step(api)
            os.write(writing, json.dumps([seen, returned]).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with open(reading, "rb") as pipe:
        told = pipe.read()
    os.waitpid(pid, 0)
    return list(json.loads(told or b"[]"))


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("name", STEPS)
def test_a_kill_at_any_step_leaves_the_old_or_the_new(name: str, tmp_path: Path) -> None:
    api = make(tmp_path / "site", FILES)
    shutil.copytree(api.root / "content", tmp_path / "before")
    old = contents(api.root)

    def restore() -> None:
        shutil.rmtree(api.root / "content")
        shutil.copytree(tmp_path / "before", api.root / "content")
        api.site.refresh()

    events, _ = run_disturbed(api, STEPS[name], 0, die)
    new = contents(api.root)
    assert len(events) > 3
    assert new != old
    outcomes = set()
    for at in range(1, len(events) + 1):
        restore()
        assert run_disturbed(api, STEPS[name], at, die) == []
        Site(api.root).recover()
        found = contents(api.root)
        assert found in (old, new), f"torn at event {at} of {events}"
        assert list((api.root / ".bifolio" / "journal").iterdir()) == []
        outcomes.add(found == new)
    assert outcomes == {True, False}


def test_the_state_folder_may_be_deleted_at_any_step_of_a_write(tmp_path: Path) -> None:
    api = make(tmp_path / "site", FILES)
    shutil.copytree(api.root / "content", tmp_path / "before")

    def write(made: Api) -> int:
        return made.put("/api/tags/b", {"name": "bb", "things": {"set": ["one", "two"]}}).status

    old = contents(api.root)
    shutil.copytree(api.root / ".bifolio", tmp_path / "state")
    events, status = run_disturbed(api, write, 0, die)
    assert status == 200
    new = contents(api.root)
    for at in range(1, len(events) + 1):
        shutil.rmtree(api.root / "content")
        shutil.copytree(tmp_path / "before", api.root / "content")
        shutil.rmtree(api.root / ".bifolio", ignore_errors=True)
        shutil.copytree(tmp_path / "state", api.root / ".bifolio")
        api.site.refresh()
        _, status = run_disturbed(api, write, at, lambda: shutil.rmtree(api.root / ".bifolio"))
        found = contents(api.root)
        assert found in (old, new), f"torn at event {at} of {len(events)}, {events[at - 1]}"
        assert (status, found) == (200, new), f"at event {at} of {len(events)}, {events[at - 1]}"


def send(port: int, token: str, path: str, data: dict[str, Any], method: str = "PUT") -> int:
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    body = json.dumps({"data": data}).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", body, headers, method=method)
    with urllib.request.urlopen(request, timeout=30) as answer:
        return int(answer.status)


def kill_server(process: subprocess.Popen[str]) -> None:
    """Kill a server and its workers. Some workers may already have exited."""
    for pid in (process.pid, *children(process.pid), *workers(process.pid)):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def test_a_real_server_killed_at_random_moments_loses_no_answered_write(tmp_path: Path) -> None:
    api = make(tmp_path, FILES)
    chance = random.Random(SEED or 7)
    answered, number = 0, 0
    for _ in range(6):
        port = free_port()
        process = start(api.root, port)
        wait(process, port)
        number += 1
        # Loads the modules that writes need.
        send(port, api.tokens["full"], "/api/things/one", {"body": str(number)})
        answered = number
        stop = time.monotonic() + chance.uniform(0.05, 0.6)
        killer = threading.Timer(stop - time.monotonic(), kill_server, [process])
        killer.start()
        try:
            while True:
                number += 1
                send(port, api.tokens["full"], "/api/things/one", {"body": str(number)})
                answered = number
        except urllib.error.HTTPError as error:
            error.close()
        except (OSError, ValueError, HTTPException):
            pass
        killer.join()
        process.communicate()
        api.site.recover()
        api.site.refresh()
        body = api.get("/api/things/one").data["body"]
        # The last write may have been applied without a response.
        assert int(body if body.isdigit() else 0) in (answered, number)
        assert api.read("content/things/one.md").startswith("---\nname: one # kept\n")
        assert not list((api.root / ".bifolio" / "journal").iterdir())
    assert answered > 5


def test_two_servers_on_one_site_lose_no_update(tmp_path: Path) -> None:
    api = make(tmp_path, FILES)
    ports = [free_port() for _ in range(2)]
    with serving(api.root, ports[0]), serving(api.root, ports[1]):

        def add(port: int, names: list[str]) -> None:
            for name in names:
                send(port, api.tokens["full"], "/api/things", {"name": name, "tags": ["a"]}, "POST")

        batches = [[f"s{i}-{n}" for n in range(15)] for i in range(2)]
        threads = [
            threading.Thread(target=add, args=(port, batch))
            for port, batch in zip(ports, batches, strict=True)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    api.site.refresh()
    found = {d["name"] for d in api.get("/api/things?fields=name&pagination[pageSize]=100").data}
    assert found >= {name for batch in batches for name in batch}


def test_a_hand_edit_at_any_step_of_a_write_loses_nothing(tmp_path: Path) -> None:
    """Whenever an editor saves, the saved line must remain. A confirmed write must remain, too."""
    api = make(tmp_path, FILES)
    path = api.root / "content/things/one.md"
    before = path.read_text()

    def save() -> None:
        temporary = path.with_name(".one.md.editing")
        temporary.write_text(path.read_text().replace("---\n", "---\n# edited\n", 1))
        temporary.replace(path)

    def write(made: Api) -> int:
        return api.put("/api/things/one", {"tags": ["a", "b"]}).status

    events, status = run_disturbed(api, write, 0, save)
    assert status == 200
    repeated = 0
    for at in range(1, len(events) + 1):
        path.write_text(before)
        api.site.refresh()
        seen, status = run_disturbed(api, write, at, save)
        assert status == 200
        text = path.read_text()
        assert "# edited\n" in text, f"at event {at} of {events}"
        assert "name: one # kept\n" in text
        assert "tags: [a, b]\n" in text
        repeated += "os.remove" in seen  # The staged file was discarded, and the write was repeated.
    assert repeated


def test_a_file_that_changed_after_it_was_read_is_not_replaced(tmp_path: Path) -> None:
    api = make(tmp_path, FILES)
    path = api.root / "content/things/one.md"
    calls = []

    def prepare(_: None, context: Context) -> None:
        text = context.changeset.text("content/things/one.md")
        if not calls:
            path.write_text("---\nname: by hand\ntags: [a]\n---\n")
        calls.append(text)
        context.changeset.put("content/things/one.md", text.replace("tags: [a]", "tags: [a, b]"))

    write_to(api.site, prepare, None)
    assert len(calls) == 2  # The write detected the edit, and was repeated on top of it.
    assert path.read_text() == "---\nname: by hand\ntags: [a, b]\n---\n"


def test_deleting_a_link_leaves_the_document_that_it_leads_to(tmp_path: Path) -> None:
    link = "content/tags/link.md"
    api = make(tmp_path, FILES)
    (api.root / link).symlink_to("b.md")
    api.site.refresh()
    assert api.put("/api/tags/link", {"name": "through the link"}).status == 200
    api.site.refresh()
    assert api.get("/api/tags/b").data["name"] == "through the link"
    assert api.ask("DELETE", "/api/tags/link").status == 204
    assert not (api.root / link).is_symlink()
    assert [api.get(f"/api/tags/{name}").status for name in ("link", "b")] == [404, 200]


def test_deleting_links_is_taken_back_with_the_rest(tmp_path: Path) -> None:
    api = make(tmp_path, FILES)
    link, file = "content/tags/link.md", "content/tags/b.md"
    (api.root / link).symlink_to("b.md")
    journal, found = Journal(api.root, api.root / ".bifolio"), signature_of(api.root / file)
    with journal.writing(), pytest.raises(ConflictError):
        journal.commit([Write(link, None, found), Write("content/tags/a.md/x", b"no folder", None)])
    assert (api.root / link).readlink() == Path("b.md")
    with journal.writing():  # deletes a symbolic link and its target, which must work in either order
        journal.commit([Write(file, None, found), Write(link, None, found)])
    assert not os.path.lexists(api.root / link)
    assert not (api.root / file).exists()


def test_a_touched_file_is_taken_back_with_the_rest(tmp_path: Path) -> None:
    api = make(tmp_path, FILES)
    before, paths = contents(api.root), ["content/tags/a.md", "content/tags/b.md", "content/tags/new.md"]
    journal, permitted = Journal(api.root, api.root / ".bifolio"), []

    def permit() -> None:
        permitted.append(1)
        if len(permitted) == 2:  # The files have been replaced, and another program touches one of them.
            for path in paths[1:]:
                (api.root / path).touch()
            raise ConflictError("refused")

    writes = [Write(path, b"---\nname: new\n---\n", signature_of(api.root / path)) for path in paths]
    with journal.writing(), pytest.raises(ConflictError, match="refused"):
        journal.commit(writes, permit)
    assert contents(api.root) == before


@pytest.mark.parametrize("at", [1, 2, 3])
def test_a_touch_before_the_next_start_does_not_stop_the_rest_of_a_write(tmp_path: Path, at: int) -> None:
    api = make(tmp_path / "site", FILES)
    paths = ["content/tags/a.md", "content/tags/b.md"]
    writes = [
        Write(
            path, f"new {path}".encode(), signature_of(api.root / path), read=(api.root / path).read_bytes()
        )
        for path in paths
    ]

    def commit(_: Api) -> None:
        made = Journal(api.root, api.root / ".bifolio")
        with made.writing():
            made.commit(writes)

    before = contents(api.root)
    events, _ = run_disturbed(api, commit, 0, die)
    for path in paths:
        (api.root / path).write_text(before[path])
    api.site.refresh()
    writes = [
        Write(
            path, f"new {path}".encode(), signature_of(api.root / path), read=(api.root / path).read_bytes()
        )
        for path in paths
    ]
    run_disturbed(api, commit, events.index("os.rename") + at, die)
    for path in paths:
        (api.root / path).touch()
    api.site.recover()
    assert [(api.root / path).read_text() for path in paths] == [f"new {path}" for path in paths]
    assert not (api.root / ".bifolio/unsaved").exists()


def test_a_step_that_fails_in_the_middle_is_taken_back(tmp_path: Path) -> None:
    api = make(tmp_path, FILES)
    (api.root / "content/things/three.md").chmod(0o444)
    before = contents(api.root)
    answer = api.put("/api/tags/b", {"name": "x", "things": ["one"]})
    assert answer.status == 507
    assert contents(api.root) == before
    assert api.get("/api/tags/b").data["name"] == "b"


def test_a_full_disk_leaves_the_old_content(tmp_path: Path) -> None:
    api = make(tmp_path, FILES)
    script = (
        "import resource, signal, sys; from pathlib import Path; from server.site.site import Site;"
        "from server.errors import StorageError; from server.storage.intent import Write;"
        "from server.storage.journal import Journal;"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096));"
        "root = Path(sys.argv[1]); journal = Journal(root, root / '.bifolio');\n"
        "try:\n"
        "    with journal.writing(): journal.commit([Write('content/things/new.md', b'x' * 100000, None)])\n"
        "except StorageError as error: print(error.message)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(api.root)], capture_output=True, text=True, check=True
    )
    assert "can't be written" in done.stdout
    assert "things/new.md" not in api.files
    assert list((api.root / ".bifolio" / "journal").iterdir()) == []


def test_the_lock_of_a_killed_writer_is_free(tmp_path: Path) -> None:
    api = make(tmp_path, FILES)
    assert api.put("/api/things/one", {"name": "x"}).status == 200
    script = (
        "import os, signal, sys; from pathlib import Path; from server.storage.journal import Journal;"
        "root = Path(sys.argv[1]); lock = Journal(root, root / '.bifolio').writing(); lock.__enter__();"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", script, str(api.root)], check=False)
    began = time.monotonic()
    assert api.put("/api/things/one", {"name": "y"}).status == 200
    assert time.monotonic() - began < 5


def test_names_that_leave_the_site_are_never_written(tmp_path: Path) -> None:
    api = make(tmp_path / "site", FILES)
    (tmp_path / "outside").mkdir()
    (api.root / "content/things/link").symlink_to(tmp_path / "outside")
    journal = Journal(api.root, api.root / ".bifolio")
    for path in ("../outside/x.md", "content/things/link/x.md"):
        with pytest.raises(Exception, match="points outside the site's folder"), journal.writing():
            journal.commit([Write(path, b"x", None)])
    assert list((tmp_path / "outside").iterdir()) == []
    for name, status in (("..%2f..%2fx", 405), ("..", 404), ("%2e%2e", 404)):
        assert api.put(f"/api/things/{name}", {"name": "x"}).status == status


def test_bifolio_check_tells_of_a_write_that_was_cut_off(tmp_path: Path) -> None:
    api = make(tmp_path / "site", FILES)
    shutil.copytree(api.root / "content", tmp_path / "before")
    old, told = contents(api.root), set[str]()
    events, _ = run_disturbed(api, STEPS["from the other side"], 0, die)
    new = contents(api.root)
    for at in range(1, len(events) + 1):
        shutil.rmtree(api.root / "content")
        shutil.copytree(tmp_path / "before", api.root / "content")
        api.site.refresh()
        run_disturbed(api, STEPS["from the other side"], at, die)
        arguments = ["check", "--site", str(api.root), "--format", "json"]
        problems = json.loads(CliRunner().invoke(main, arguments, catch_exceptions=False).stdout)["problems"]
        paths = {problem["path"] for problem in problems if problem["rule"] == "interrupted"}
        assert not paths or contents(api.root) == (old if paths == {".bifolio"} else new)
        told |= paths
    assert told == {".bifolio", *(path for path in new if new[path] != old[path])}


def test_bifolio_check_tells_of_a_write_that_was_dropped_or_put_aside(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    api = make(tmp_path / "site", FILES)

    def told() -> list[tuple[str, str]]:
        arguments = ["check", "--site", str(api.root), "--format", "json"]
        problems = json.loads(CliRunner().invoke(main, arguments, catch_exceptions=False).stdout)["problems"]
        found = [problem for problem in problems if problem["rule"] == "interrupted"]
        assert all(problem["fix"] for problem in found)
        return [(problem["path"], problem["message"]) for problem in found]

    before = contents(api.root)
    assert told() == []
    # The process was killed after it had staged a file and before it replaced the file.
    journal = api.root / ".bifolio/journal"
    journal.mkdir()
    (journal / "1234-1.staged").write_text("name: new\n")
    assert told() == [
        (".bifolio", "a write was interrupted before it changed a file, and has been discarded")
    ]
    assert contents(api.root) == before
    assert told() == []
    # The same two files are written by a killed process and then edited by hand, twice, before the next
    # start.
    (api.root / "content/tags/one.md").write_text("---\nname: one\n---\n")
    api.site.refresh()
    paths = ["content/tags/one.md", "content/things/one.md"]

    def commit(text: str) -> Callable[[Api], None]:
        writes = [Write(path, f"{text} {path}".encode(), signature_of(api.root / path)) for path in paths]

        def run(_: Api) -> None:
            made = Journal(api.root, api.root / ".bifolio")
            with made.writing():
                made.commit(writes)

        return run

    events, _ = run_disturbed(api, commit("whole"), 0, die)
    for text in ("first", "second"):
        run_disturbed(api, commit(text), events.index("os.rename") + 1, die)
        for path in paths:
            with (api.root / path).open("a") as file:
                file.write("by hand\n")
        api.site.recover()
    expected = "contains a write that was not applied, because the original file was changed at the same time"
    aside = [
        f".bifolio/unsaved/content/{name}.md"
        for name in ("tags/one-2", "tags/one", "things/one-2", "things/one")
    ]
    assert told() == told() == [(path, expected) for path in aside]
    texts = [(api.root / path).read_text() for path in aside]
    assert texts == [f"{text} {path}" for path in paths for text in ("second", "first")]
    assert sorted(record.getMessage() for record in caplog.records) == [
        f"{path.replace('-2', '').removeprefix('.bifolio/unsaved/')} was edited during a write; "
        f"the other version is in {path}"
        for path in aside
    ]


@pytest.mark.parametrize("broken", ["site.yaml", "content-types/odd.json"])
def test_bifolio_check_tells_of_it_beside_a_broken_configuration(tmp_path: Path, broken: str) -> None:
    api = make(tmp_path / "site", FILES)
    journal = api.root / ".bifolio/journal"
    journal.mkdir(exist_ok=True)
    (journal / "1234-1.staged").write_text("name: new\n")
    write(api.root, {broken: "{", ".bifolio/unsaved/one.md": "name: new\n"})
    arguments = ["check", "--site", str(api.root), "--format", "json"]
    problems = json.loads(CliRunner().invoke(main, arguments, catch_exceptions=False).stdout)["problems"]
    assert {problem["path"] for problem in problems} == {".bifolio", ".bifolio/unsaved/one.md", broken}
    assert not any(journal.iterdir())


@pytest.mark.parametrize("command", ["check", "export", "serve"])
def test_a_configuration_of_which_a_part_was_written_is_finished_first(tmp_path: Path, command: str) -> None:
    """An import was killed after it had written one schema, but not the schema to which the first one has a
    relation.
    """
    api = make(tmp_path / "site", FILES)
    journal = Journal(api.root, api.root / ".bifolio")
    journal.folder.mkdir(exist_ok=True)
    write(journal.folder, {"1234-1.staged": schema("other", {"name": "string"})})
    after = signature_of(journal.folder / "1234-1.staged")
    step = Step("content-types/other.json", "1234-1.staged", None, after)
    write_intent(journal.folder / "1234-2.intent", [step], synced=False)
    thing = json.loads(THING)
    thing["attributes"]["other"] = {"type": "relation", "relation": "manyToOne", "target": "api::other.other"}
    write(api.root, {"content-types/thing.json": json.dumps(thing)})
    if command == "serve":
        with serving(api.root, free_port()):
            pass
    else:
        where = [str(tmp_path / "static")] if command == "export" else []
        done = CliRunner().invoke(main, [command, *where, "--site", str(api.root)], catch_exceptions=False)
        assert done.exit_code == 0, done.output
    assert (api.root / step.target).is_file()
    assert journal.is_empty


@pytest.mark.parametrize(("count", "each"), [(2, True), (150, False)])
def test_many_files_are_synced_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int, each: bool
) -> None:
    """All new files are flushed to disk before the first one is replaced."""
    asked: list[str] = []
    monkeypatch.setattr(os, "sync", lambda: asked.append("all"))
    monkeypatch.setattr(os, "fsync", lambda _: asked.append("one"))
    (tmp_path / ".bifolio").mkdir()
    journal = Journal(tmp_path, tmp_path / ".bifolio")
    with journal.writing():
        journal.commit([Write(f"{number}.txt", b"new", None) for number in range(count)])
    assert all((tmp_path / f"{number}.txt").read_bytes() == b"new" for number in range(count))
    assert ("all" in asked) != each
    assert (asked.count("one") > count) == each
