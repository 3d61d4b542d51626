"""Kills of the media bucket while machines read, write and upload."""

import threading
import time
from pathlib import Path
from typing import Any

from tests.buckets import s3_server
from tests.machines.clients import Answer, ask
from tests.machines.cluster import Cluster, Machine
from tests.postgres import postgres
from tests.waiting import until

WAIT_S = 10.0  # the longest time that a request may wait if the bucket is down
READ_S = 5.0  # the longest time for reads that do not need the bucket, on a busy machine


def test_a_bucket_that_is_killed_is_missed_by_uploads_alone(tmp_path: Path) -> None:
    with postgres() as database, s3_server() as bucket:
        bucket.empty()
        cluster = Cluster(tmp_path, database, "before", bucket, notes=3)
        one, two, _ = cluster.machines
        try:
            cluster.start()
            [file] = upload(cluster, one, "a").body
            until(lambda: ask(two, "GET", file["url"]).raw == b"a")
            with Reading(two) as reads, bucket.killed():
                began = time.monotonic()
                refused = upload(cluster, one, "b")
                assert (refused.status, refused.retry) == (503, "5")
                assert time.monotonic() - began < WAIT_S
                assert ask(one, "PUT", "/api/notes/n1", {"data": {"text": "on"}}).status == 200
                for machine in (one, two):  # Each machine has a cached copy by now.
                    assert ask(machine, "GET", file["url"]).raw == b"a"
                assert reads.count > 0
            assert reads.failed == []
            assert reads.longest < READ_S
            until(lambda: upload(cluster, one, "c").status == 201, seconds=30)
            names = [each["name"] for each in ask(one, "GET", "/api/upload/files").body]
            assert sorted(names) == ["a.txt", "c.txt"]
            [third] = [each for each in ask(one, "GET", "/api/upload/files").body if each["name"] == "c.txt"]
            until(lambda: ask(two, "GET", third["url"]).raw == b"c", seconds=30)
        finally:
            cluster.end()


class Reading:
    """Context manager: a client that reads documents from a machine, one request after the other, during the
    block.
    """

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.count, self.longest = 0, 0.0
        self.failed: list[Answer] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._read)

    def __enter__(self) -> "Reading":
        self._thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._ended.set()
        self._thread.join()

    def _read(self) -> None:
        while not self._ended.wait(0.02):
            for path in ("/api/notes", "/api/upload/files", "/api/notes/n1?populate=*"):
                began = time.monotonic()
                answer = ask(self.machine, "GET", path)
                self.longest = max(self.longest, time.monotonic() - began)
                self.count += 1
                if answer.status != 200:
                    self.failed.append(answer)


def upload(cluster: Cluster, machine: Machine, text: str) -> Answer:
    """Upload a file that contains a single letter. Its name contains the same letter."""
    head = f'Content-Disposition: form-data; name="files"; filename="{text}.txt"'
    part = f"--b\r\n{head}\r\n\r\n{text}\r\n--b--\r\n"
    headers = {"Content_Type": "multipart/form-data; boundary=b", "Authorization": f"Bearer {cluster.token}"}
    return ask(machine, "POST", "/api/upload", part.encode(), **headers)
