"""Several workers of one site: a write is visible either completely or not at all, even if its worker is
killed.
"""

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.site.cluster import Cluster, Shown
from tests.sites import schema, write
from tests.waiting import until

NOTE = schema(
    "note",
    {
        "title": "string",
        "count": "integer",
        "other": {
            "type": "relation",
            "relation": "oneToOne",
            "target": "api::note.note",
            "inversedBy": "back",
        },
        "back": {
            "type": "relation",
            "relation": "oneToOne",
            "target": "api::note.note",
            "mappedBy": "other",
        },
    },
)
FILES: dict[str, str | bytes] = {
    "content-types/note.json": NOTE,
    "site.yaml": "name: One\n",
    "content/notes/left.md": "---\ncount: 1\n---\n",
    "content/notes/right.md": "---\ncount: 0\n---\n",
}
WORKERS = 3


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    write(tmp_path, FILES)
    made = Cluster(tmp_path, WORKERS, segment=2000)
    yield made
    made.close()


def pair(shown: Shown) -> tuple[int, bool]:
    """Return the count in `left`, and whether `right` refers to `left`. It should do so if the count is
    even.
    """
    return shown["left en published"][1], shown["right en published"][2] == ("left",)


def both(count: int) -> dict[str, object]:
    return {"count": count, "back": None if count % 2 else "right"}


def test_nobody_sees_half_of_a_write_of_two_files(cluster: Cluster) -> None:
    stop = threading.Event()

    def touch() -> None:
        """Touch files, so that the watching worker keeps rescanning."""
        while not stop.is_set():
            for name in ("left", "right"):
                (cluster.root / f"content/notes/{name}.md").touch()
            time.sleep(0.001)

    toucher = threading.Thread(target=touch)
    toucher.start()
    last = 1
    for count in range(2, 60):
        if cluster.write(cluster.workers[count % WORKERS], "left", both(count)):
            last = count
    stop.set()
    toucher.join()
    for worker in cluster.workers:
        assert pair(cluster.show(worker)) == (last, last % 2 == 0)
        seen = [pair(sample.shown) for sample in cluster.samples(worker)]
        assert {even == (count % 2 == 0) for count, even in seen} == {True}
        assert [count for count, _ in seen] == sorted(count for count, _ in seen)


def test_the_write_of_a_killed_worker_is_done_or_not_done(cluster: Cluster) -> None:
    outcomes = set()
    for at in range(1, 26, 2):
        before = pair(cluster.show(cluster.workers[0]))
        count = before[0] + 1
        cluster.write_and_die(cluster.workers[at % WORKERS], "left", both(count), at)
        until(lambda: not list((cluster.root / ".bifolio").glob("journal/*")), 5)
        written = f"count: {count}\n" in (cluster.root / "content/notes/left.md").read_text()
        after = (count, count % 2 == 0) if written else before
        until(lambda: {pair(cluster.show(worker)) for worker in cluster.workers} == {after}, 5)  # noqa: B023
        outcomes.add(after == before)
    assert outcomes == {True, False}
    for worker in cluster.workers:
        for sample in cluster.samples(worker):
            count, even = pair(sample.shown)
            assert even == (count % 2 == 0)


def test_a_worker_that_comes_late_begins_with_a_checkpoint(cluster: Cluster) -> None:
    for count in range(2, 40):
        assert cluster.write(cluster.workers[0], "left", both(count))
    for _ in range(WORKERS):
        cluster.kill(cluster.workers[0])
    for worker in cluster.workers:
        assert pair(cluster.show(worker)) == (39, False)
        assert cluster.number(worker) == cluster.number(cluster.workers[0])
