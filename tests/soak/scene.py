"""A scene of a soak test: machines under load, in rounds. Each round has a fault and ends with checks."""

import random
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.buckets import s3_server
from tests.git import git
from tests.machines.clients import Reader, ask
from tests.machines.cluster import NAMES, Cluster, Machine
from tests.machines.verdict import (
    History,
    check_after,
    check_agreement,
    check_codes,
    check_repository,
    check_writes,
    converge,
    stale_reads,
)
from tests.postgres import postgres
from tests.receivers import receiving
from tests.small_disk import mounted
from tests.soak.checks import (
    EventLog,
    Found,
    check_documents,
    check_git,
    check_hands,
    check_orphans,
    check_stream,
    check_webhooks,
    undescribed,
)
from tests.soak.clock import Clock
from tests.soak.faults import (
    CHANGES,
    CLOCK,
    DISK,
    MACHINES,
    PROCESSES,
    REMOTE,
    Chance,
    Fault,
    edit_by_push,
)
from tests.soak.ledger import GIT, LOST, ORPHANS, RECOVERED, STALE, TORN, Ledger
from tests.soak.load import (
    HandEditor,
    Hook,
    KeepingReader,
    Pusher,
    SoakRecord,
    SoakWriter,
    Stream,
    hand_files,
)
from tests.soak.model import Model
from tests.soak.processes import memory_bytes, serving
from tests.soak.strain import Deadline
from tests.waiting import until

RECOVERS_S = 60.0
WRITERS = 2  # for each machine
THOROUGH_ROUNDS = 8  # rounds between two runs of `git fsck`
WARM_S = 60.0  # seconds until memory is measured for the first time
MAX_GROWTH = 1.1
DOUBLE_SHARE = 0.15  # the share of rounds that have two faults
SETTINGS = """\
events: {{bulk: 1001}}
webhooks_allow: [127.0.0.1]
webhooks:
  - {{name: soak, url: "{url}"}}
"""
Run = Callable[[threading.Event], None]


@dataclass(slots=True)
class Scene:
    """A scene of a soak test: machines, their load, and the expected state."""

    name: str
    cluster: Cluster
    ledger: Ledger
    record: SoakRecord
    hook: Hook
    chance: Chance
    faults: Mapping[str, Fault]
    clock: Clock | None = None
    disk_size: str = ""
    model: Model = field(default_factory=Model)
    runs: list[Run] = field(default_factory=list)
    hands: list[HandEditor] = field(default_factory=list)
    streams: list[Stream] = field(default_factory=list)
    log: EventLog = field(default_factory=lambda: EventLog(""))
    clone: Path = field(init=False)  # the clone in which schemas and settings are changed
    # After each round: the time, and the memory in bytes.
    memory: list[tuple[float, int]] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)
    writers_paused: threading.Event = field(default_factory=threading.Event)

    def prepare(self) -> None:
        """Start the machines and create the load."""
        self.cluster.start()
        self.clone = self.cluster.clone("changes")
        self.log.token = self.cluster.token
        dice = self.chance.random
        commits = self.cluster.push == "after"
        pusher = Pusher(self.cluster, self.record, random.Random(dice.random()))
        self.runs.append(pusher.run)
        for machine in self.cluster.machines:
            for _ in range(WRITERS):
                writer = SoakWriter(
                    self.cluster,
                    machine,
                    self.record,
                    random.Random(dice.random()),
                    apart=True,
                    model=self.model,
                    ledger=self.ledger,
                    paused=self.writers_paused,
                )
                self.runs.append(writer.run)
            editor = HandEditor(machine, random.Random(dice.random()), self.record, commits)
            self.hands.append(editor)
            keeping = KeepingReader(machine, self.record, random.Random(dice.random()))
            self.runs += [editor.run, Reader(machine, self.record).run, keeping.run]
            self.streams.append(Stream(machine, self.cluster.token, self.ledger))

    def edit(self, path: str, change: Callable[[str], str]) -> None:
        """Change a file in another clone, and push the change."""
        edit_by_push(self, path, change)

    def wait_until_gone(self, machine: Machine) -> None:
        """Wait until all processes of a killed server have ended. Report processes that remain."""
        try:
            until(lambda: not serving(machine.root), seconds=20)
        except AssertionError:
            self.ledger.violated(ORPHANS, f"{machine.name}: left after a kill: {serving(machine.root)}")
            with suppress(ProcessLookupError):
                machine.kill()

    def soak(self, seconds: float, *, each_once: bool) -> None:
        """Run rounds until the time is over. All faults occur equally often; the first round has no fault.

        With `each_once`, continue until each fault has occurred once.
        """
        waiting: list[str] = []
        stopped = threading.Event()
        threads = [threading.Thread(target=stream.run, args=(stopped,)) for stream in self.streams]
        for thread in threads:
            thread.start()
        try:
            until(lambda: all(stream.last for stream in self.streams), 2 * RECOVERS_S)
            self.run_round([])
            end, left = self.began + seconds, set(self.faults) if each_once else set()
            while time.monotonic() < end or left:
                waiting = waiting or self.chance.random.sample(sorted(self.faults), len(self.faults))
                count = 2 if len(waiting) > 1 and self.chance.random.random() < DOUBLE_SHARE else 1
                chosen = [waiting.pop() for _ in range(count)]
                self.run_round(chosen)
                left.difference_update(chosen)
        finally:
            stopped.set()
            for thread in threads:
                thread.join()
        self.check_end()

    def run_round(self, faults: list[str]) -> None:
        """Run a round: load, faults, more load, and then checks without load."""
        one = self.ledger.begin(self.name, faults)
        self.record.is_disk_full = False
        stopped = threading.Event()
        threads = [threading.Thread(target=run, args=(stopped,)) for run in self.runs]
        for thread in threads:
            thread.start()
        try:
            for fault in faults:
                self.chance.sleep(1, 5)
                machine = self.chance.random.choice(self.cluster.machines)
                self.ledger.say(f"{self.name}: {fault} ({machine.name})")
                self._do(fault, machine)
            one.recovery_s = self.wait_for_recovery()
            self.chance.sleep(1, 5)
        finally:
            stopped.set()
            for thread in threads:
                thread.join()
        self.check_quiet()
        self.memory.append(
            (time.monotonic() - self.began, sum(memory_bytes(machine) for machine in self.cluster.machines))
        )

    def _do(self, fault: str, machine: Machine) -> None:
        """Inject a fault. If the server does not start again afterwards, report this and start it once
        more.
        """
        try:
            self.faults[fault](self, machine, self.chance)
        except (AssertionError, OSError, subprocess.SubprocessError) as error:
            self.ledger.violated(RECOVERED, f"{machine.name}: {fault}: {type(error).__name__} {error}")
            for one in self.cluster.machines:
                if one.process is None or one.process.poll() is not None:
                    one.start()

    def wait_for_recovery(self) -> float:
        """Wait until each machine has completed a read and a write. Return how many seconds this took."""
        began, deadline = time.monotonic(), Deadline(RECOVERS_S)
        headers = {"Authorization": f"Bearer {self.cluster.token}"}
        for machine in self.cluster.machines:
            while True:
                path, data = f"/api/hands/{machine.name}", {"data": {"b": "probe"}}
                read = ask(machine, "GET", "/api/board").status
                written = ask(machine, "PUT", path, data, **headers)
                if (read, written.status) == (200, 200):
                    break
                if deadline.is_over():
                    message = f"{machine.name}: {read} to a read, {written.status} {written.body} to a write"
                    self.ledger.violated(RECOVERED, f"{message} after {RECOVERS_S:.0f} s")
                    break
                time.sleep(0.2)
        return time.monotonic() - began

    def report(self, found: Found) -> None:
        """Report the broken promises that a check found."""
        for promise, message in found:
            self.ledger.violated(promise, message)

    def check_quiet(self) -> None:
        """Run all checks without load."""
        for editor in self.hands:
            with suppress(OSError):
                editor.finish()
            self.report(check_hands(editor))
            self._tidy(editor)
        for message in converge(self.cluster, self.record, Deadline(RECOVERS_S).is_over):
            self.ledger.violated(RECOVERED, message)
        self.report(check_documents(self.cluster.machines, self.model, self.cluster.token))
        thorough = len(self.ledger.rounds) % THOROUGH_ROUNDS == 0
        for machine in self.cluster.machines:
            self.report(check_git(machine, thorough=thorough))
            self.report(check_orphans(machine))
        self.log.read(self.cluster.machines[0])
        self.report(self.log.check(self.model, exact=self.cluster.push == "after"))
        for stream in self.streams:
            self.report(check_stream(stream, self.log))
        self.report(check_webhooks(self.hook, self.log, 0))

    def _tidy(self, editor: HandEditor) -> None:
        """Commit or discard the edits that were made by hand."""
        action = editor.commit if editor.commits else lambda: [editor.reset(n) for n in range(4)]

        def done() -> bool:
            try:
                action()
            except Exception:
                return "content/hands" not in _status(editor.machine)
            return True

        until(done, RECOVERS_S)

    def check_end(self) -> None:
        """Check the whole history, and that all machines return the same bytes for each request."""
        cluster, record = self.cluster, self.record
        history = History.of(cluster.remote.repository)
        times = {write.token: write.ended for write in record.writes}
        for message in check_writes(record, history, cluster.push):
            at = next((times[word] for word in message.split() if word in times), None)
            self.ledger.violated(LOST, message, at)
        for at, message in stale_reads(record, history):
            self.ledger.violated(STALE, message, at)
        for message in check_after(record, history):
            self.ledger.violated(STALE, message)
        fresh = Machine("fresh", cluster.clone("fresh"))
        if not cluster.database:  # Without a shared database, each machine has its own tokens.
            (fresh.root / ".bifolio").mkdir(mode=0o700)
            for path in (cluster.machines[0].root / ".bifolio").glob("accounts.db*"):
                shutil.copy(path, fresh.root / ".bifolio")
        try:
            fresh.start()
            for message in check_agreement(cluster, [*cluster.machines, fresh], record):
                self.ledger.violated(TORN, message)
        finally:
            fresh.kill()
        for message in check_repository(cluster):
            self.ledger.violated(GIT, message)
        for machine in cluster.machines:
            for message in check_codes(machine):
                self.ledger.violated(TORN, message)
        if cluster.bucket:
            objects = sorted(cluster.bucket.objects())
            stray = undescribed(objects, cluster.machines[0])
            self.ledger.notes.append(
                f"{self.name}: {len(objects)} objects in the bucket; no description names {len(stray)}, of "
                "uploads that were refused (`bifolio media gc` removes them)"
            )
        self._note_summary(history)

    def _note_summary(self, history: History) -> None:
        done = sum(200 <= write.answer.status < 300 for write in self.record.writes)
        note = (
            f"{self.name}: {len(self.record.writes)} writes, {done} of them answered as made; "
            f"{len(history.commits)} commits; {len(self.log.events)} events; webhooks: "
            f"{len(self.hook.taken)} taken, {self.hook.failed} refused"
        )
        self.ledger.notes.append(note)
        warm = [used for at, used in self.memory if at > WARM_S] or [self.memory[0][1]]
        first, last = warm[0], self.memory[-1][1]
        self.ledger.notes.append(
            f"{self.name}: memory of all processes {first / 1e6:.0f} MB after the first minute, "
            f"{last / 1e6:.0f} MB at the end ({last / first:.2f} times)"
        )
        if last > first * MAX_GROWTH:
            self.ledger.notes.append(f"{self.name}: memory grew by more than {MAX_GROWTH} times: look at it")


def _status(machine: Machine) -> str:
    return git(machine.root, "status", "--porcelain")


@contextmanager
def one_machine(folder: Path, ledger: Ledger, seed: int, longest_s: float) -> Iterator[Scene]:
    """Context manager: one machine with two workers. It has its own disk and clock, and pushes after it
    responds.
    """
    with ExitStack() as stack:
        receiver = stack.enter_context(receiving())
        faults = {**PROCESSES, **CHANGES, **REMOTE}
        size = ""
        try:
            stack.enter_context(mounted(folder / "one", "2g"))
            faults, size = {**faults, **DISK}, "2g"
        except pytest.skip.Exception as reason:
            ledger.notes.append(f"no full disk: {reason}")
        if clock := Clock.make(folder):
            faults |= CLOCK
        else:
            ledger.notes.append("no wrong clock: there is no C compiler")
        files, settings = hand_files(["one"]), SETTINGS.format(url=receiver.url)
        cluster = Cluster(folder, None, "after", notes=20, names=("one",), settings=settings, files=files)
        if clock:
            cluster.machines[0].environment |= clock.environment
        yield from _scene("one machine", cluster, ledger, seed, longest_s, faults, receiver, clock, size)


@contextmanager
def three_machines(folder: Path, ledger: Ledger, seed: int, longest_s: float) -> Iterator[Scene]:
    """Context manager: three machines that share PostgreSQL, a bucket and a git remote, and push before they
    respond.
    """
    with ExitStack() as stack:
        database, bucket = stack.enter_context(postgres()), stack.enter_context(s3_server())
        receiver = stack.enter_context(receiving())
        bucket.empty()
        files, settings = hand_files(list(NAMES)), SETTINGS.format(url=receiver.url)
        cluster = Cluster(folder, database, "before", bucket, notes=20, settings=settings, files=files)
        faults = {**PROCESSES, **CHANGES, **REMOTE, **MACHINES}
        clock = Clock.make(folder)
        if clock:
            faults |= CLOCK
            cluster.machines[-1].environment |= clock.environment
        yield from _scene("three machines", cluster, ledger, seed, longest_s, faults, receiver, clock, "")


def _scene(  # type: ignore[no-untyped-def]
    name, cluster, ledger, seed, longest_s, faults, receiver, clock, size
) -> Iterator[Scene]:
    dice = random.Random(f"{seed} {name}")
    hook = Hook(random.Random(dice.random()))
    receiver.answer = hook.answer
    record = SoakRecord(seed, ledger=ledger)
    chance = Chance(dice, longest_s)
    scene = Scene(name, cluster, ledger, record, hook, chance, faults, clock, size)
    try:
        scene.prepare()
        yield scene
    finally:
        cluster.end()
