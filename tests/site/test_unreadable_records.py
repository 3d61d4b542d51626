"""Records that a worker can't apply: the worker reads the files instead, and logs a warning once."""

import json
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from http.client import HTTPConnection
from pathlib import Path

import pytest

from server.auth.accounts import Accounts
from server.site.change_log import ChangeLog
from server.site.rescan import rescan_all
from server.site.site import Site
from server.storage.entry import Entry
from tests.servers import free_port, start, stop, wait, workers
from tests.site.cluster import show
from tests.sites import STRING, collection, documents, load, schema, write
from tests.waiting import until

FILES: dict[str, str] = {
    **collection("note", {"title": STRING, "data": {"type": "json"}}),
    **documents("notes", a={"title": "A"}, b={"title": "B"}),
    "site.yaml": "search: {index: false}\n",
}
WARNING = "can't be applied"


class Foreign(str):
    """A string of a class that other processes refuse to unpickle."""

    __slots__ = ()


@pytest.fixture
def sites(tmp_path: Path) -> Iterator[list[Site]]:
    """Three workers of one server. The first one writes; the others have not applied any record yet."""
    write(tmp_path, FILES)
    made = [load(tmp_path, {}) for _ in range(3)]
    with closing(ChangeLog()) as log:
        for site in made:
            site.share(log)
        yield made


def append_damaged(writer: Site) -> None:
    """Record the changed files, and then damage one byte of the record in shared memory."""
    log = writer._replica._log
    assert log is not None
    at = log.end
    writer.refresh()
    middle = (at + log.end) // 2
    [byte] = os.pread(log._segments[0], 1, middle)
    os.pwrite(log._segments[0], bytes([byte ^ 1]), middle)


def append_cut_off(writer: Site) -> None:
    """Record the changed files, and then truncate the shared memory in the middle of the record."""
    log = writer._replica._log
    assert log is not None
    at = log.end
    writer.refresh()
    segment = next(one for one in log._segments if os.fstat(one).st_size)
    os.ftruncate(segment, os.fstat(segment).st_size - (log.end - at) // 2)


def append_foreign(writer: Site) -> None:
    """Record the changed files as strings of a class that the other workers refuse to unpickle."""
    record = rescan_all(writer._contents, None, writer._contents.write_counter)
    assert record is not None

    def foreign(entry: Entry | None) -> Entry | None:
        if entry is None or entry.document is None:
            return entry
        document = entry.document.with_values({"data": [Foreign("x")]})
        return entry._replace(document=document)

    writer._append(replace(record, entries={path: foreign(e) for path, e in record.entries.items()}))


def save(site: Site, name: str, **values: object) -> None:
    (site.root / f"content/notes/{name}.json").write_text(json.dumps({"data": ["x"], **values}))


@pytest.mark.parametrize("append", [append_damaged, append_cut_off, append_foreign])
@pytest.mark.parametrize("name", ["a", "new"])
def test_the_others_show_what_the_files_say(
    append: Callable[[Site], None], name: str, sites: list[Site], caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(3):  # several times; no write is rejected
        caplog.clear()
        save(sites[0], name, title=f"Number {number}")
        append(sites[0])
        for site in (sites[1], sites[2], sites[0]):
            assert show(site.current()) == show(load(site.root, {}).state)
        # One warning for each of the two workers that did not write.
        assert 1 <= caplog.text.count(WARNING) <= 2
        save(sites[2], "b", title=f"Later {number}")
        sites[2].refresh()
        for site in sites:
            assert show(site.current()) == show(load(site.root, {}).state)


def test_an_edit_that_nobody_has_recorded_yet_reaches_everybody(sites: list[Site]) -> None:
    save(sites[0], "a", title="Written")
    append_damaged(sites[0])
    save(sites[0], "b", title="Edited by hand")
    for site in (sites[1], sites[0], sites[2]):
        assert show(site.current()) == show(load(site.root, {}).state)


def test_a_broken_file_keeps_its_last_good_version(sites: list[Site]) -> None:
    (sites[0].root / "content/notes/b.json").write_text("{")
    for site in sites:
        site.refresh()
    save(sites[0], "a", title="Written")
    append_damaged(sites[0])
    shown = show(sites[1].current())
    assert [row[0] for key, row in shown.items() if key.startswith("b ")] == ["B"]


def test_a_schema_in_a_record_that_cant_be_read_is_taken_over(sites: list[Site]) -> None:
    write(sites[0].root, {"content-types/note.json": schema("note", {"title": "string", "more": "integer"})})
    append_damaged(sites[0])
    for site in sites[1:]:
        assert "more" in show(site.current())["columns"]["api::note.note"]
    assert show(sites[0].current()) == show(sites[1].current()) == show(sites[2].current())


# --- a server ----------------------------------------------------------------------------------


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="reaches into processes by /proc")
def test_a_server_goes_on_after_damage_in_its_memory(tmp_path: Path) -> None:
    root, log, port = tmp_path / "site", tmp_path / "log", free_port()
    write(root, FILES)
    accounts = Accounts(root)
    token = accounts.create_token("full", "full-access")
    accounts.close()
    with log.open("wb") as out:
        process = start(root, port, "--workers=2", output=out)
    try:
        wait(process, port)
        until(lambda: len(workers(process.pid)) == 2)

        def send(method: str, path: str, data: object = None) -> tuple[int, str]:
            body = json.dumps({"data": data}) if data else None
            headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
            with closing(HTTPConnection("127.0.0.1", port, timeout=20)) as connection:
                connection.request(method, path, body, headers)
                answer = connection.getresponse()
                text = json.loads(answer.read())
            return answer.status, text["data"]["title"] if answer.status == 200 else ""

        stopped = min(workers(process.pid))
        os.kill(stopped, signal.SIGSTOP)
        until(lambda: is_stopped(stopped))
        assert send("PUT", "/api/notes/a", {"title": "Unmistakable"}) == (200, "Unmistakable")
        assert damage(stopped, b"Unmistakable")
        os.kill(stopped, signal.SIGCONT)
        assert {send("GET", "/api/notes/a") for _ in range(40)} == {(200, "Unmistakable")}
        until(lambda: WARNING in log.read_text())
        assert log.read_text().count(WARNING) == 1
        assert "Traceback" not in log.read_text()
        os.kill(stopped, signal.SIGKILL)  # Another worker is started before the record is damaged.
        until(lambda: len(workers(process.pid) - {stopped}) == 2)
        assert send("PUT", "/api/notes/b", {"title": "Next"})[0] == 200
        for path, title in (("/api/notes/a", "Unmistakable"), ("/api/notes/b", "Next")):
            assert {send("GET", path) for _ in range(40)} == {(200, title)}
    finally:
        stop(process)


def is_stopped(pid: int) -> bool:
    """Return whether all threads of a process are stopped."""
    threads = [stat.read_text() for stat in Path(f"/proc/{pid}/task").glob("*/stat")]
    return {thread.rpartition(")")[2].split()[0] for thread in threads} == {"T"}


def damage(pid: int, text: bytes) -> bool:
    """Overwrite a text in the workers' shared memory. Return False if it is not found there."""
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        if "memfd:" in os.readlink(descriptor) and text in (held := descriptor.read_bytes()):
            at = held.index(text)
            with descriptor.open("r+b") as file:
                file.seek(at - 20)
                file.write(b"\xff" * 60)
            return True
    return False
