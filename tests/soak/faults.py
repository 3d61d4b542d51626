"""Faults for a soak test: each function injects one fault into a scene, and ends it before it returns."""

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.git import git
from tests.machines.cluster import Machine
from tests.servers import wait
from tests.small_disk import full
from tests.soak.processes import generation_of, leader_of, workers_of

if TYPE_CHECKING:
    from tests.soak.scene import Scene

HOUR_S = 3600
Fault = Callable[["Scene", Machine, "Chance"], None]


@dataclass(frozen=True, slots=True)
class Chance:
    """Random pauses, which are shorter in a short soak test."""

    random: random.Random
    longest_s: float = 60.0

    def sleep(self, shortest_s: float, longest_s: float) -> None:
        """Sleep for a random time."""
        time.sleep(min(self.random.uniform(shortest_s, longest_s), self.longest_s))


def kill_supervisor(scene: "Scene", machine: Machine, chance: Chance) -> None:
    """Kill the main process. All other processes must exit; then start the server again."""
    assert machine.process
    machine.process.kill()
    machine.process.wait(10)
    scene.wait_until_gone(machine)
    chance.sleep(0, 2)
    machine.start()


def kill_all(scene: "Scene", machine: Machine, chance: Chance) -> None:
    """Kill all processes at once, as a power failure would."""
    machine.kill()
    chance.sleep(0, 2.5)
    machine.start()


def kill_two(scene: "Scene", machine: Machine, chance: Chance) -> None:
    """Kill two machines at once."""
    chosen = [machine, *(other for other in scene.cluster.machines if other is not machine)][:2]
    for one in chosen:
        one.kill()
    chance.sleep(0, 2.5)
    for one in chosen:
        one.start()


def kill_worker(scene: "Scene", machine: Machine, chance: Chance) -> None:
    """Kill a worker."""
    if found := workers_of(machine):
        _send(chance.random.choice(found), signal.SIGKILL)


def kill_leader(scene: "Scene", machine: Machine, chance: Chance) -> None:
    """Kill the worker that runs the jobs."""
    if leader := leader_of(machine):
        _send(leader, signal.SIGKILL)


def kill_generation(scene: "Scene", machine: Machine, chance: Chance) -> None:
    """Kill the process that forked the workers."""
    if generation := generation_of(machine):
        _send(generation, signal.SIGKILL)


def stop_worker(scene: "Scene", machine: Machine, chance: Chance) -> None:
    """Suspend a worker for 5 to 15 s. After 10 s, the server replaces it."""
    if found := workers_of(machine):
        chosen = chance.random.choice(found)
        _send(chosen, signal.SIGSTOP)
        chance.sleep(5, 15)
        _send(chosen, signal.SIGCONT)


def fill_disk(scene: "Scene", machine: Machine, chance: Chance) -> None:
    """Fill the machine's disk for a few seconds."""
    scene.record.is_disk_full = True
    with full(machine.root, scene.disk_size):
        chance.sleep(1, 10)


def set_clock(seconds: int) -> Fault:
    """Return a fault that shifts the clock by `seconds` for a short time."""

    def fault(scene: "Scene", machine: Machine, chance: Chance) -> None:
        assert scene.clock
        scene.clock.set(seconds)
        try:
            chance.sleep(3, 12)
        finally:
            scene.clock.set(0)

    return fault


def change_schema(scene: "Scene", machine: Machine, chance: Chance) -> None:
    """Add an attribute to a content type, or remove it if it exists."""
    scene.edit(
        "content-types/page.json",
        lambda text: (
            text.replace('"extra": {"type": "text"}, ', "")
            if '"extra"' in text
            else text.replace('"title": ', '"extra": {"type": "text"}, "title": ')
        ),
    )


def change_settings(scene: "Scene", machine: Machine, chance: Chance) -> None:
    """Change a setting, or restore it if it was changed."""
    scene.edit(
        "site.yaml",
        lambda text: (
            text.replace("bulk: 1001", "bulk: 1002")
            if "bulk: 1001" in text
            else text.replace("bulk: 1002", "bulk: 1001")
        ),
    )


def update_program(scene: "Scene", machine: Machine, chance: Chance) -> None:
    """Start a server with --takeover, as a server upgrade does."""
    before = machine.process
    assert before
    machine.launch("--takeover")
    assert machine.process
    before.wait(60)
    wait(machine.process, machine.port)


def stop_database(scene: "Scene", machine: Machine, chance: Chance) -> None:
    """Kill PostgreSQL, and restart it within a minute."""
    began = time.monotonic()
    scene.cluster.kill_database()
    chance.sleep(1, 60)
    scene.cluster.start_database()
    scene.log.outages.append((began, time.monotonic()))


def stop_remote(scene: "Scene", machine: Machine, chance: Chance) -> None:
    """Kill the server of the git remote, and restart it within a minute."""
    scene.cluster.remote.kill()
    chance.sleep(1, 60)
    scene.cluster.remote.start()


def stop_bucket(scene: "Scene", machine: Machine, chance: Chance) -> None:
    """Kill the server of the media bucket, and restart it within a minute."""
    assert scene.cluster.bucket
    with scene.cluster.bucket.killed():
        chance.sleep(1, 60)


def _send(pid: int, number: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)


PROCESSES: Mapping[str, Fault] = {
    "SIGKILL of the supervisor": kill_supervisor,
    "SIGKILL of all processes": kill_all,
    "SIGKILL of a worker": kill_worker,
    "SIGKILL of the leader": kill_leader,
    "SIGKILL of the generation": kill_generation,
    "SIGSTOP of a worker": stop_worker,
    "server upgrade": update_program,
}
CHANGES: Mapping[str, Fault] = {
    "schema changed": change_schema,
    "settings changed": change_settings,
}
DISK: Mapping[str, Fault] = {"full disk": fill_disk}
CLOCK: Mapping[str, Fault] = {
    "clock an hour ahead": set_clock(HOUR_S),
    "clock an hour back": set_clock(-HOUR_S),
}
MACHINES: Mapping[str, Fault] = {
    "SIGKILL of two machines": kill_two,
    "PostgreSQL unavailable": stop_database,
    "bucket unavailable": stop_bucket,
}
REMOTE: Mapping[str, Fault] = {"git remote unavailable": stop_remote}


def edit_by_push(scene: "Scene", path: str, change: Callable[[str], str]) -> None:
    """Change a file in another clone, commit the change and push it.

    The machines push several times a second, so a slow client could lose every race. After the tenth lost
    race, the writers pause until this client has pushed.
    """
    clone = scene.clone
    try:
        for left in reversed(range(100)):
            git(clone, "fetch", "-q")
            git(clone, "reset", "-q", "--hard", "origin/main")
            (clone / path).write_text(change((clone / path).read_text()))
            git(clone, "commit", "-qam", f"Change {path}")
            try:
                git(clone, "push", "-q", "origin", "HEAD:main")
                return
            except subprocess.CalledProcessError:  # Another client pushed first.
                if not left:
                    raise
            if left <= 90:
                scene.writers_paused.set()
            time.sleep(0.1)
    finally:
        scene.writers_paused.clear()
