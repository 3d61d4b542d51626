"""Notifications between machines that share a PostgreSQL database: each notifies the others after a push."""

import time
from pathlib import Path

import pytest

from tests.machines.clients import ask
from tests.machines.cluster import Cluster
from tests.postgres import postgres
from tests.waiting import until

# By then, the other machines must show a write; without a notification, they fetch once a minute.
SHOWN_S = 1.0


@pytest.mark.parametrize("push", ["before", "after"])
def test_a_write_shows_on_the_other_machines_within_a_second(tmp_path: Path, push: str) -> None:
    taken = []
    with postgres() as database:
        cluster = Cluster(tmp_path, database, push, notes=3, follow="60s")
        try:
            cluster.start()
            for number in range(4):
                data = {"data": {"title": f"T{number}", "code": f"t{number}"}}
                written = ask(cluster.machines[0], "POST", "/api/notes", data)
                assert written.status == 201
                path = f"/api/notes/{written.body['data']['documentId']}"
                began = time.monotonic()
                for other in cluster.machines[1:]:
                    until(lambda path=path, at=other: ask(at, "GET", path).status == 200)  # type: ignore[misc]
                taken.append(time.monotonic() - began)
        finally:
            cluster.end()
    print("shown after", [round(each, 2) for each in taken])
    assert min(taken) < SHOWN_S
