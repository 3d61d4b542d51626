"""The search index in `.bifolio/search/`: it must be current, survive restarts and damage, and have only one
writer.
"""

import gc
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from server.documents.document import PUBLISHED
from server.jobs.job import Timing
from server.jobs.runner import Runner
from server.search import sync
from server.search.catalog import VersionGroup
from server.search.find import Results, Scope, Search
from server.search.question import read_question
from server.search.status import DAMAGED_FILE, read_status
from server.search.sync import Sync
from server.search.texts import Task, Text
from server.search.writer_process import WriterProcess
from server.site.site import Site
from tests.sites import STRING, Files, collection, documents, load, write
from tests.waiting import delete_folder, until

FILES: Files = {
    "site.yaml": "name: Search\n",
    **collection("note", {"title": STRING, "body": {"type": "richtext"}}),
    **documents("notes", one={"title": "First note"}, two={"title": "Second note", "body": "gauge"}),
}
SCOPE = Scope({"api::note.note": PUBLISHED})
WAIT_S = 20.0
# If Whoosh can't read a file to its end, it leaves closing the file to the garbage collector.
LEAVES_FILES = pytest.mark.filterwarnings(
    "ignore:unclosed file:ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)


def ask(search: Search, site: Site, q: str) -> Results:
    return search.find(site.state, read_question(q, {"title", "body", "extra"}), SCOPE, 0, 10)


def ids(found: Results) -> list[str]:
    return [document.document_id for _, document in found.documents]


def indexed(search: Search, site: Site, q: str, expected: list[str]) -> Callable[[], bool]:
    """Return a function that returns whether the index itself, not a scan, finds the expected documents."""

    def answers() -> bool:
        found = ask(search, site, q)
        return found.indexed and ids(found) == expected

    return answers


@contextmanager
def fed(site: Site, *, whole: bool = True, timing: Timing | None = None) -> Iterator[Sync]:
    sync = Sync(site, timing or Timing())
    runner = Runner([sync])
    runner.start()
    try:
        assert sync.done.wait(WAIT_S)
        if whole:
            until(lambda: (status := read_status(folder(site))) is not None and bool(status.shape))
        yield sync
    finally:
        runner.stop()


def folder(site: Site) -> Path:
    return site.root / ".bifolio" / "search"


def edit(site: Site, path: str, **values: str) -> None:
    write(site.root, {path: json.dumps(values)})
    site.refresh([path])


def remove(site: Site, path: str) -> None:
    (site.root / path).unlink()
    site.refresh([path])


def test_until_there_is_an_index_every_document_is_looked_at(tmp_path: Path) -> None:
    site, search = load(tmp_path, FILES), Search(tmp_path)
    found = ask(search, site, "note")
    assert (set(ids(found)), found.indexed, found.status) == ({"one", "two"}, False, None)
    with fed(site):
        found = ask(search, site, "note")
        assert (set(ids(found)), found.indexed) == ({"one", "two"}, True)
        assert found.status is not None
        assert (found.status.documents, found.status.total, found.status.pending) == (2, 2, 0)


def test_what_changes_is_found_as_it_is_now(tmp_path: Path) -> None:
    site, search = load(tmp_path, FILES), Search(tmp_path)
    with fed(site):
        edit(site, "content/notes/three.json", title="A lantern")
        until(indexed(search, site, "lantern", ["three"]))
        edit(site, "content/notes/three.json", title="A buoy")
        until(indexed(search, site, "buoy", ["three"]))
        assert ids(ask(search, site, "lantern")) == []
        remove(site, "content/notes/three.json")
        assert ids(ask(search, site, "buoy")) == []  # immediately
        until(lambda: ask(search, site, "buoy").counts == {})


def test_an_index_outlives_its_process_and_learns_what_it_missed(tmp_path: Path) -> None:
    site = load(tmp_path, FILES)
    with fed(site):
        pass
    before = read_status(folder(site))
    site = load(tmp_path, {})
    with fed(site):
        assert read_status(folder(site)) == before  # The index was not written again.
    edit(site, "content/notes/two.json", title="Second note", body="lantern")
    remove(site, "content/notes/one.json")
    site, search = load(tmp_path, {}), Search(tmp_path)
    with fed(site):
        until(indexed(search, site, "lantern", ["two"]))
        until(indexed(search, site, "gauge", []))
        until(indexed(search, site, "first", []))


def test_a_changed_type_is_searched_as_it_is_now(tmp_path: Path) -> None:
    site, search = load(tmp_path, FILES), Search(tmp_path)
    with fed(site):
        assert ids(ask(search, site, "gauge")) == ["two"]
        private = {"title": STRING, "body": {"type": "richtext", "private": True}}
        write(tmp_path, collection("note", private))
        site.refresh()
        assert ids(ask(search, site, "gauge")) == []  # immediately, without the index
        until(indexed(search, site, "gauge", []))
        until(indexed(search, site, "first", ["one"]))


def test_a_changed_weight_is_taken_over(tmp_path: Path) -> None:
    site, search = load(tmp_path, FILES), Search(tmp_path)
    with fed(site):
        write(tmp_path, {"site.yaml": "search: {weights: {note.body: 0}}\n"})
        site.refresh()
        until(indexed(search, site, "gauge", []))


def damage_status(status: Path, **changes: str) -> None:
    status.write_text(json.dumps({**json.loads(status.read_bytes()), **changes}))


DAMAGES: dict[str, Callable[[Path, Path, Path], object]] = {
    "half of the segment": lambda segment, toc, status: os.truncate(segment, segment.stat().st_size // 2),
    "a segment of zeros": lambda segment, toc, status: segment.write_bytes(bytes(segment.stat().st_size)),
    "no segment": lambda segment, toc, status: segment.unlink(),
    "a table of contents that is none": lambda segment, toc, status: toc.write_bytes(b"nothing"),
    "a status that is cut": lambda segment, toc, status: status.write_text('{"versio'),
    "an older version": lambda segment, toc, status: damage_status(status, version="1 whoosh 3.0.0"),
}


@LEAVES_FILES
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_index_is_built_anew(tmp_path: Path, damage: str) -> None:
    site = load(tmp_path, FILES)
    with fed(site):
        pass
    before = read_status(folder(site))
    assert before is not None
    (segment,) = folder(site).glob("*.seg")
    (toc,) = folder(site).glob("*.toc")
    DAMAGES[damage](segment, toc, folder(site) / "status.json")
    search = Search(tmp_path)
    answered = ask(search, site, "gauge")
    assert (ids(answered), answered.indexed) == (["two"], False)
    with fed(site):
        until(indexed(search, site, "gauge", ["two"]))
        after = read_status(folder(site))
        assert after is not None
        assert after.build != before.build
        assert after.version == before.version
        assert not (folder(site) / DAMAGED_FILE).exists()
    gc.collect()


@LEAVES_FILES
def test_an_index_damaged_under_a_running_server_is_built_anew(tmp_path: Path) -> None:
    site, search = load(tmp_path, FILES), Search(tmp_path)
    with fed(site):
        (segment,) = folder(site).glob("*.seg")
        os.truncate(segment, 100)
        assert ids(ask(search, site, "gauge")) == ["two"]
        until(indexed(search, site, "gauge", ["two"]))
        edit(site, "content/notes/three.json", title="A lantern")
        until(indexed(search, site, "lantern", ["three"]))
    gc.collect()


class BrokenScope(Scope):
    """A scope that raises an error, as a bug would."""

    def permits(self, group: VersionGroup) -> bool:
        raise TypeError("a mistake")


def test_a_mistake_while_a_search_is_answered_is_no_damage_of_the_index(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    site, search = load(tmp_path, FILES), Search(tmp_path)
    with fed(site):
        pass
    scope = BrokenScope(SCOPE.statuses)
    with pytest.raises(TypeError, match="a mistake"):
        search.find(site.state, read_question("gauge", {"title", "body", "extra"}), scope, 0, 10)
    assert not (folder(site) / DAMAGED_FILE).exists()
    assert caplog.messages == []
    assert ask(search, site, "gauge").indexed


@pytest.mark.parametrize("left", [".", ".bifolio", ".bifolio/search"])
def test_a_folder_that_is_deleted_is_told_of_in_one_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str], left: str
) -> None:
    site, search = load(tmp_path, FILES), Search(tmp_path)
    with fed(site):
        delete_folder(site.root / ".bifolio")
        (site.root / left).mkdir(parents=True, exist_ok=True)
        edit(site, "content/notes/three.json", title="Third note", body="gauge")
        until(indexed(search, site, "gauge", ["three", "two"]), WAIT_S)
    assert {record.getMessage() for record in caplog.records} == {
        "the search index can't be written: its folder was deleted; rebuilding it"
    }
    assert capfd.readouterr().err == ""


def test_files_that_are_deleted_before_a_commit_are_told_of(tmp_path: Path) -> None:
    index = tmp_path / "search"
    index.mkdir()
    with (tmp_path / "lock").open("w") as lock, WriterProcess(index, lock.fileno()) as writer:
        writer.call("begin", "shape")
        writer.call("apply", [Task("one", "note", "en", (Text("title", 1.0, "text", "Words"),))])
        shutil.rmtree(index)
        index.mkdir()
        with pytest.raises(ChildProcessError, match=r"^its folder was deleted; rebuilding it$"):
            writer.call("commit", 1, 0, "shape")


def test_progress_counts_from_nothing_where_documents_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sync, "BATCH_VERSIONS", 1)
    many = documents("notes", **{f"n{i}": {"title": f"Note {i}"} for i in range(60)})
    site, search = load(tmp_path, {**FILES, **many}), Search(tmp_path)
    seen = set()
    with fed(site) as feeding:
        for path in many:
            (tmp_path / path).unlink()
        site.refresh(list(many))

        def is_done() -> bool:
            seen.add(feeding.progress[0])
            return bool((status := read_status(folder(site))) and status.documents == 2)

        until(is_done)
        assert ids(ask(search, site, "gauge")) == ["two"]
    assert min(seen) == 0


def test_one_of_several_writes_and_has_an_heir(tmp_path: Path) -> None:
    site = load(tmp_path, FILES)
    first, second = Sync(site, Timing()), Sync(load(tmp_path, {}), Timing())
    runners = Runner([first]), Runner([second])
    search = Search(tmp_path)
    runners[0].start()
    until(first.holds_lock.is_set)
    runners[1].start()
    try:
        assert second.done.wait(WAIT_S)
        assert not second.holds_lock.is_set()
        until(indexed(search, site, "gauge", ["two"]))
        runners[0].stop()
        until(second.holds_lock.is_set)
        edit(second.site, "content/notes/three.json", title="A lantern")
        until(indexed(search, second.site, "lantern", ["three"]))
    finally:
        for runner in runners:
            runner.stop()


def test_a_writer_that_is_killed_is_replaced(tmp_path: Path) -> None:
    site, search = load(tmp_path, FILES), Search(tmp_path)
    with fed(site):
        for process in writers(tmp_path):
            os.kill(process, signal.SIGKILL)
        edit(site, "content/notes/three.json", title="A lantern")
        until(indexed(search, site, "lantern", ["three"]))


def test_a_writer_ends_with_its_server(tmp_path: Path) -> None:
    load(tmp_path, FILES)
    code = (
        "import sys, time; from pathlib import Path; from server.site.site import Site\n"
        "from server.search.sync import Sync; from server.jobs.runner import Runner\n"
        "from server.jobs.job import Timing\n"
        "site = Site(Path(sys.argv[1])); site.load(); sync = Sync(site, Timing()); Runner([sync]).start()\n"
        "sync.done.wait(); print('done', flush=True); time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == b"done\n"
        assert writers(tmp_path)
        server.kill()
    until(lambda: not writers(tmp_path))


def test_a_writer_that_has_nothing_to_do_ends_and_comes_back(tmp_path: Path) -> None:
    site, search = load(tmp_path, FILES), Search(tmp_path)
    with fed(site, timing=replace(Timing(), index_idle_s=0.2)):
        until(lambda: not writers(tmp_path))
        edit(site, "content/notes/three.json", title="A lantern")
        until(indexed(search, site, "lantern", ["three"]))
        assert indexed(search, site, "gauge", ["two"])()
        until(lambda: not writers(tmp_path))
        (folder(site) / "status.json").unlink()  # what an administrator might do to rebuild the index
        edit(site, "content/notes/four.json", title="An anchor")
        until(indexed(search, site, "anchor", ["four"]))
        until(indexed(search, site, "gauge", ["two"]))


def writers(root: Path) -> list[int]:
    """Return the ids of the processes that write a site's search index."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = path.read_bytes().decode().split("\0")
        except OSError:
            continue
        if "server.search.indexer" in command and str(root) in command[-2]:
            found.append(int(path.parent.name))
    return found


def test_a_site_that_can_not_be_written_to_is_searched_all_the_same(tmp_path: Path) -> None:
    site, search = load(tmp_path, FILES), Search(tmp_path)
    write(tmp_path, {".bifolio/search": "a file where the folder should be"})
    with fed(site, whole=False):
        found = ask(search, site, "gauge")
    assert (ids(found), found.indexed) == (["two"], False)


def test_the_process_that_writes_the_index_loads_no_settings() -> None:
    program = "import sys, server.search.indexer; print([m for m in sys.modules if 'server.config' in m])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
