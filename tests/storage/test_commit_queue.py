"""The queue of writes that wait for their commits."""

import time
from pathlib import Path

import pytest

from server.storage.git.commit_queue import CommitQueue


def queue_write(queue: CommitQueue, text: str) -> str:
    """Queue a write of one file. Return the name of its entry."""
    about = {"author": "", "email": "", "actor": "", "message": text, "documents": [], "at": 0, "base": ""}
    name = queue.stage(about, {"content/a.txt": text.encode()})
    queue.enqueue(name)
    return name


def test_no_name_is_used_twice_after_the_clock_was_set_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process caches entries by name: it would commit the text of the earlier write again."""
    ours, theirs = CommitQueue(tmp_path), CommitQueue(tmp_path)
    waiting = queue_write(ours, "waiting")
    monkeypatch.setattr(time, "time_ns", lambda: 1)
    finished = queue_write(ours, "finished")
    assert [write.message for write in theirs.pending()] == ["waiting", "finished"]
    ours.finish(finished, "a commit")
    assert ours.take_commit_id(finished) == "a commit"
    last = queue_write(ours, "last")
    assert len({waiting, finished, last}) == 3
    assert [write.message for write in theirs.pending()] == ["waiting", "last"]
