"""Tests of the number of open streams, which includes only workers that are alive."""

import os
import signal

from server.events.stream import StreamCounts


def test_workers_are_counted_as_long_as_they_live() -> None:
    counts = StreamCounts()
    read, write = os.pipe()
    worker = os.fork()
    if not worker:
        counts.register_worker(1)
        counts.set(5)
        counts.add("192.0.2.1", 2)
        os.write(write, b".")
        signal.pause()
    try:
        os.read(read, 1)
        counts.register_worker(2)
        counts.set(3)
        counts.add("192.0.2.1", 1)
        assert counts.total() == 8
        assert counts.client_count("192.0.2.1") == 3
    finally:
        os.kill(worker, signal.SIGKILL)
        os.waitpid(worker, 0)
        os.close(read)
        os.close(write)
    assert counts.total() == 3
    assert counts.client_count("192.0.2.1") == 1
    counts.register_worker(2)
    assert counts.client_count("192.0.2.1") == 0
    counts.set(0)
    assert counts.total() == 0
