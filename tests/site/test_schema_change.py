"""Schema changes: all documents of the changed content type are read again, once and in separate
processes.
"""

import json
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from server.errors import BusyError
from server.service.opening import Mode, open_site
from server.site.change_log import ChangeLog
from server.site.configure import Configuration
from server.site.contents import Contents
from server.site.record import encode
from server.site.rescan import ReloadedSite, reload_files
from server.site.site import Site
from server.storage.files import walk
from server.write.context import Context
from tests.git import commit_all, git
from tests.servers import children, free_port, get, start, stop, wait, workers
from tests.site.cluster import show
from tests.sites import opened, schema, write, write_to
from tests.waiting import until

COUNT = 1200  # so many that several processes read them
NOTE = {"title": "string"}
FILES: dict[str, str | bytes] = {
    "content-types/note.json": schema("note", NOTE),
    "site.yaml": "roles:\n  public: {note: [find]}\nsearch: {index: false}\n",
    **{f"content/notes/{i}.md": f"---\ntitle: Note {i}\nextra: {i}\n---\n" for i in range(COUNT)},
}


def test_writes_go_on_while_all_documents_are_read_for_a_new_schema(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One worker reads documents while the other writes with the old schema. Finally, both must agree with
    the files.
    """
    root = tmp_path / "site"
    write(root, FILES)
    with closing(ChangeLog()) as log:
        reader, writer = opened(root), opened(root)
        for site in (reader, writer):
            site.share(log)
        text = "---\ntitle: By API {0}\nextra: {0}\n---\n"
        write(root, {"content-types/note.json": schema("note", {**NOTE, "extra": "integer"})})
        reading, enough_writes = threading.Thread(target=reader.refresh), threading.Event()

        def read_slowly(contents: Contents, configuration: Configuration) -> ReloadedSite:
            anew = reload_files(contents, configuration)
            if threading.current_thread() is reading:
                assert enough_writes.wait(60)
            return anew

        monkeypatch.setattr("server.site.site.reload_files", read_slowly)
        reading.start()
        number = before = 0

        def prepare(number: int, context: Context) -> None:
            context.changeset.put(f"content/notes/{number}.md", text.format(-number))
            context.changeset.put(f"content/notes/new-{number}.md", text.format(number))
            context.changeset.delete(f"content/notes/{COUNT - 1 - number}.md")

        while reading.is_alive() and number < COUNT // 2:
            number += 1
            state, _ = write_to(writer, prepare, number)
            before += "extra" not in state.schema.subjects["note"].attributes
            if before > 3:
                enough_writes.set()
            time.sleep(0.02)
        reading.join()
        reader.catch_up()
        writer.catch_up()
        fresh = Site(root)
        fresh.load()
        assert before > 3
        assert show(reader.state) == show(writer.state) == show(fresh.state)
        assert not reader.refresh()


class CheckedOut:
    """A site in which a branch with another schema, other settings and other documents has been checked out
    while two workers serve it. The branch has not been read yet.
    """

    def __init__(self, root: Path, log: ChangeLog) -> None:
        write(root, {**FILES, ".gitignore": ".bifolio\n"})
        commit_all(root)
        git(root, "checkout", "-qb", "other")
        write(root, {"content-types/note.json": schema("note", {**NOTE, "extra": "integer"})})
        write(root, {"site.yaml": "name: Other\nroles: {}\nsearch: {index: false}\n"})
        write(root, {f"content/notes/{i}.md": f"---\ntitle: Other {i}\n---\n" for i in range(10)})
        git(root, "commit", "-qam", "other")
        git(root, "checkout", "-q", "main")
        self.root = root
        self.reader, self.writer = opened(root), opened(root)
        for site in (self.reader, self.writer):
            site.share(log)
        self.before = show(self.writer.state)
        git(root, "checkout", "-q", "other")

    def titles(self) -> set[str]:
        documents = self.writer.current().snapshot.tables["api::note.note"].versions.values()
        return {str(document.get("title")) for document in documents}


def put_title(number: int, context: Context) -> None:
    context.changeset.put(f"content/notes/{number}.md", f"---\ntitle: By API {number}\n---\n")


def test_a_checkout_with_a_schema_is_visible_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(ChangeLog()) as log:
        site = CheckedOut(tmp_path / "site", log)
        reading, has_checked = threading.Thread(target=site.reader.refresh), threading.Event()

        def read_slowly(contents: Contents, configuration: Configuration) -> ReloadedSite:
            anew = reload_files(contents, configuration)
            if threading.current_thread() is reading:
                assert has_checked.wait(60)
            return anew

        monkeypatch.setattr("server.site.site.reload_files", read_slowly)
        reading.start()
        try:
            state, _ = write_to(site.writer, put_title, COUNT)  # a new file, so the write does not wait
            assert show(state) == {**site.before, **{k: v for k, v in show(state).items() if str(COUNT) in k}}
            state, _ = write_to(site.writer, put_title, 3)  # This file was changed by the checkout.
            assert state.settings.name == "Other"
            assert "extra" in state.schema.subjects["note"].attributes
            assert site.titles() >= {"Other 2", "By API 3", "Other 4"}
        finally:
            has_checked.set()
            reading.join()
        site.reader.catch_up()
        fresh = Site(site.root)
        fresh.load()
        assert show(site.reader.state) == show(site.writer.state) == show(fresh.state)


def test_a_large_site_rejects_a_write_to_a_file_of_a_checkout_that_is_still_being_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("server.site.site.MAX_LOCAL_FILES", COUNT)
    monkeypatch.setattr("server.site.site.WRITE_GIT_TIMEOUT_S", 0.1)
    with closing(ChangeLog()) as log:
        site = CheckedOut(tmp_path / "site", log)
        with pytest.raises(BusyError, match="read under a new schema"):
            write_to(site.writer, put_title, 3)
        assert show(site.writer.state) == site.before
        assert "title: Other 3" in (site.root / "content/notes/3.md").read_text()


@pytest.mark.parametrize(
    ("new", "waits"),
    [
        (schema("note", {**NOTE, "extra": "integer"}), False),
        (schema("note", {"name": "string"}), True),
        (schema("note", {"title": {"type": "string", "maxLength": 5}}), True),
        (schema("memo", NOTE), True),
    ],
)
def test_a_write_waits_for_a_schema_that_would_lose_its_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, new: str, waits: bool
) -> None:
    for limit in ("server.site.site.MAX_LOCAL_FILES", "server.site.rescan.MAX_LOCKED_FILES"):
        monkeypatch.setattr(limit, COUNT)
    monkeypatch.setattr("server.site.site.WRITE_GIT_TIMEOUT_S", 0.1)
    root = tmp_path / "site"
    write(root, FILES)
    with closing(ChangeLog()) as log:
        writer = opened(root)
        writer.share(log)
        write(root, {"content-types/note.json": new})
        if waits:
            with pytest.raises(BusyError, match="read under a new schema"):
                write_to(writer, put_title, 3)
            assert "title: Note 3" in (root / "content/notes/3.md").read_text()
        else:
            write_to(writer, put_title, 3)
            assert "title: By API 3" in (root / "content/notes/3.md").read_text()


@pytest.mark.parametrize("is_written", [False, True])
def test_a_new_generation_starts_with_everything_that_the_current_workers_serve(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_written: bool
) -> None:
    """The files are listed again only if a worker has written since they were listed. The entries are
    serialized again only then, too.
    """
    repeated: list[str] = []

    def count(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *arguments, **options: (repeated.append(name), function(*arguments, **options))[1]

    root = tmp_path / "site"
    write(root, FILES)
    with closing(ChangeLog()) as log:
        current = opened(root)
        current.share(log)
        write(root, {"content-types/note.json": schema("note", {**NOTE, "extra": "integer"})})
        loaded_after = log.end
        following = open_site(root, Mode.SERVER, records=False, is_next_generation=True).site
        if is_written:
            write_to(current, put_title, COUNT)
        monkeypatch.setattr("server.site.changed_files.walk", count("walk", walk))
        monkeypatch.setattr("server.site.replica.encode", count("encode", encode))
        following.start_new_generation(log, loaded_after)
        assert sorted(set(repeated)) == (["encode", "walk"] if is_written else [])
        monkeypatch.undo()
        current.catch_up()
        fresh = Site(root)
        fresh.load()
        assert show(following.state) == show(current.state) == show(fresh.state)
        assert not following.refresh()


def test_all_workers_take_over_a_schema_and_answer_meanwhile(tmp_path: Path) -> None:
    root, log, port = tmp_path / "site", tmp_path / "log", free_port()
    write(root, FILES)
    with log.open("wb") as out:
        process = start(root, port, "--workers=2", output=out)
    stopped, failed = threading.Event(), []

    def extras() -> set[int | None]:
        """Return the values of the new attribute in twenty responses, which come from all workers."""
        query = "/api/notes?sort=title&pagination[pageSize]=1"
        answers = [json.loads(get(port, query)[1])["data"][0] for _ in range(20)]
        return {answer.get("extra") for answer in answers}

    def read() -> None:
        while not stopped.wait(0.01):
            status, body = get(port, "/api/notes?pagination[pageSize]=1")
            if status != 200 or json.loads(body)["meta"]["pagination"]["total"] != COUNT:
                failed.append(body)

    try:
        wait(process, port)
        assert extras() == {None}
        reader = threading.Thread(target=read)
        reader.start()
        for attributes, shown in (({**NOTE, "extra": "integer"}, 0), (NOTE, None)):
            write(root, {"content-types/.note.json": schema("note", attributes)})
            (root / "content-types/.note.json").replace(root / "content-types/note.json")
            until(lambda: extras() == {shown})  # noqa: B023
        stopped.set()
        reader.join()
        assert not failed
        # The processes that read the files have ended.
        assert not any(children(worker) for worker in workers(process.pid))
        until(lambda: log.read_text().count("a content type has changed") >= 2)
        assert log.read_text().count("a content type has changed") == 2
    finally:
        stopped.set()
        stop(process)
