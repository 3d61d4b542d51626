"""A conflict with `git.push: after`: two machines change the same attribute, and a person resolves the
conflict.
"""

import time
from collections.abc import Iterator
from typing import Any

from tests.machines.clients import Record, Write, ask
from tests.machines.cluster import Cluster, Machine
from tests.waiting import until

MERGE = "/branches/origin/main/merge"


def conflict(cluster: Cluster, record: Record) -> Iterator[str]:
    """Cause a conflict and resolve it. Yield a message for each violation.

    Both machines must accept writes during the conflict, and push again after it.
    """
    headers = {"Authorization": f"Bearer {cluster.token}"}

    def put(machine: Machine, name: str) -> str:
        token, began = record.token(), time.monotonic()
        answer = ask(machine, "PUT", "/api/board", {"data": {name: token}}, **headers)
        record.add(Write(machine.name, "board", token, "board", began, time.monotonic(), answer))
        return token if answer.status == 200 else ""

    def waits(machine: Machine) -> dict[str, Any]:
        found = ask(machine, "GET", "/_health/ready", **headers).body["data"]["push"]
        return found if "The same values were changed here and on the git remote" in found["reason"] else {}

    machines = cluster.machines[:2]
    cluster.remote.kill()
    titles = {machine.name: put(machine, "title") for machine in machines}
    cluster.remote.start()
    until(lambda: any(map(waits, machines)), 60)
    [stuck] = [machine for machine in machines if waits(machine)]
    told, text = waits(stuck), put(stuck, "text")
    if not all((*titles.values(), text)):
        yield f"{stuck.name}: a write beside a conflict was refused"
    if "(title)" not in told["reason"] or not told["commits"] or not told["since"]:
        yield f"{stuck.name}: a conflict is told as {told}"
    refused = ask(stuck, "POST", MERGE, {}, **headers)
    if refused.status != 409:
        yield f"{stuck.name}: a merge with a conflict was answered {refused.status} {refused.body}"
        return
    [found] = refused.body["error"]["details"]["conflicts"]
    choice = {"resolve": {"documents": {found["document"]: "ours"}}}
    made = ask(stuck, "POST", MERGE, choice, **headers)
    if made.status != 200:
        yield f"{stuck.name}: a resolution was answered {made.status} {made.body}"
        return
    until(lambda: cluster.remote.head() == stuck.head(), 30)
    for machine in machines:
        until(lambda machine=machine: _board(machine) == (titles[stuck.name], text), 30)  # type: ignore[misc]
    record.faults.append("conflict resolved")


def _board(machine: Machine) -> tuple[str, str]:
    answer = ask(machine, "GET", "/api/board")
    data = answer.body["data"] if answer.status == 200 else {}
    return data.get("title", ""), data.get("text", "")
