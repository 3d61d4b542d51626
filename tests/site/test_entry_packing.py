"""Tests of serializing a site's entries in a forked process."""

import os
import signal

import pytest

from server.site import entry_packing
from server.site.entry_packing import EntryPacking
from server.storage.entry import Entry

ENTRIES = {"content/notes/a.md": Entry("content/notes/a.md", None)}


def test_entries_are_serialized_unless_they_have_changed() -> None:
    assert EntryPacking(ENTRIES).finish(ENTRIES)
    assert EntryPacking(ENTRIES).finish({}) == b""


def test_a_process_that_hangs_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entry_packing, "TIMEOUT_S", 0.1)
    monkeypatch.setattr(entry_packing, "_pack", lambda *_: os.kill(os.getpid(), signal.SIGSTOP))
    assert EntryPacking(ENTRIES).finish(ENTRIES) == b""
