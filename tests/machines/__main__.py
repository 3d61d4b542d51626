"""`python -m tests.machines`: fault-injection test of three machines with two workers each.

The seed determines the writes and the kills, but not the timing.
"""

import argparse
import random
import re
import secrets
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.tables import show
from tests.buckets import s3_server
from tests.ci import skipped
from tests.machines.clients import Answer, Editor, Reader, Record, Writer
from tests.machines.cluster import Cluster, Machine
from tests.machines.conflict import conflict
from tests.machines.verdict import (
    History,
    check_after,
    check_agreement,
    check_codes,
    check_events,
    check_reads,
    check_repository,
    check_writes,
    converge,
)
from tests.postgres import postgres
from tests.signals import restore_in_children
from tests.waiting import until

MAX_PRINTED = 40
MAX_PROCESS_BYTES = 400_000_000


def main() -> int:
    """Run the test and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.machines", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="how long machines write and are killed")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(2**31))
    parser.add_argument("--push", choices=("before", "after", "off"), default="before")
    parser.add_argument("--no-faults", action="store_true", help="kill nothing")
    parser.add_argument("--keep", action="store_true", help="keep the folder of the machines")
    options = parser.parse_args()
    restore_in_children()
    print(f"seed {options.seed}, git.push: {options.push}", flush=True)
    try:
        with postgres() as database, s3_server() as bucket:
            bucket.empty()
            folder = Path(tempfile.mkdtemp(prefix="bifolio-machines-"))
            cluster = Cluster(folder, database, options.push, bucket)
            try:
                violations = _run(cluster, options)
            finally:
                cluster.end()
                if options.keep:
                    print(cluster.folder)
                else:
                    cluster.remove()
    except pytest.skip.Exception as reason:
        return skipped("machines", str(reason))
    for violation in violations[:MAX_PRINTED]:
        print(f"FAILED: {violation}")
    repeat = f"python -m tests.machines --seed {options.seed} --push {options.push}"
    print(f"{len(violations)} consistency checks failed. Repeat with: {repeat}")
    return int(bool(violations))


def _run(cluster: Cluster, options: argparse.Namespace) -> list[str]:
    record = Record(options.seed)
    cluster.start()
    _run_load(cluster, record, options)
    violations = [*record.violations, *converge(cluster, record)]
    if options.push == "after" and not violations:
        violations += [*conflict(cluster, record), *converge(cluster, record)]
    history = History.of(cluster.remote.repository)
    fresh = Machine("fresh", cluster.clone("fresh"))
    try:
        fresh.start()
        violations += check_writes(record, history, options.push)
        violations += check_reads(record, history)
        violations += check_after(record, history)
        violations += check_events(cluster, record, options.push)
        violations += check_agreement(cluster, [*cluster.machines, fresh], record)
        violations += check_repository(cluster)
        for machine in cluster.machines:
            violations += check_codes(machine)
            if (used := machine.memory()) > MAX_PROCESS_BYTES:
                violations.append(f"{machine.name}: a process has {used / 1e6:.0f} MB")
    finally:
        fresh.kill()
    _print_summary(cluster, record, history)
    return violations


def _run_load(cluster: Cluster, record: Record, options: argparse.Namespace) -> None:
    """Run clients that write, read and edit on all machines, and kill a process every few seconds."""
    chance = random.Random(options.seed)
    stopped = threading.Event()
    editor = Editor(cluster, record, random.Random(chance.random()))
    runs: list[Callable[[threading.Event], None]] = [editor.run]
    for machine in cluster.machines:
        for _ in range(2):
            chances = random.Random(chance.random())
            runs.append(Writer(cluster, machine, record, chances, apart=options.push == "after").run)
        runs.append(Reader(machine, record).run)
    threads = [threading.Thread(target=run, args=(stopped,)) for run in runs]
    for thread in threads:
        thread.start()
    try:
        end = time.monotonic() + options.seconds
        while time.monotonic() < end:
            time.sleep(1.5 + chance.random() * 4)
            if not options.no_faults:
                _inject_fault(cluster, record, chance)
    finally:
        stopped.set()
        for thread in threads:
            thread.join()
    record.violations += _hand_edits(cluster, editor)


def _inject_fault(cluster: Cluster, record: Record, chance: random.Random) -> None:
    """Kill a random process, and restart it soon."""
    what = chance.choice(("machine", "machine", "two machines", "worker", "database", "remote", "remote"))
    pause = chance.random() * 2.5
    record.faults.append(what)
    again = "" if what == "worker" else f" (restart after {pause:.1f} s)"
    print(f"{time.monotonic() - record.began:6.1f} s  killed: {what}{again}", flush=True)
    if what == "database":
        cluster.kill_database()
        time.sleep(pause)
        cluster.start_database()
    elif what == "remote":
        cluster.remote.kill()
        time.sleep(pause)
        cluster.remote.start()
    elif what == "worker":
        chance.choice(cluster.machines).kill_worker()
    else:
        chosen = chance.sample(cluster.machines, 1 if what == "machine" else 2)
        for machine in chosen:
            machine.kill()
        time.sleep(pause)
        for machine in chosen:
            machine.start()


def _hand_edits(cluster: Cluster, editor: Editor) -> list[str]:
    """Return the edits by hand that were lost. Then restore the edited files, so that the machines can
    converge.
    """
    lost = []
    for machine in cluster.machines:
        path = f"content/hands/{machine.name}.json"
        if (token := editor.left.get(machine.name)) and token not in (machine.root / path).read_text():
            lost.append(f"{machine.name}: an edit by hand that nobody committed is gone: {token}")
        until(lambda root=machine.root, path=path: _take_back(root, path))  # type: ignore[misc]
    return lost


def _take_back(root: Path, path: str) -> bool:
    """Restore a file from the commit HEAD. Return False if git fails, for example because its index is
    locked.
    """
    command = ["git", "checkout", "-q", "HEAD", "--", path]
    return subprocess.run(command, cwd=root, capture_output=True, check=False).returncode == 0


def _message(answer: Answer) -> str:
    error = (answer.body or {}).get("error", {})
    message = re.sub(r"[0-9a-f]{7,}|w[0-9]{8}y|q0[a-z0-9]+", "…", str(error.get("message")))
    return f"{answer.status} {message[:100]}"


def _print_summary(cluster: Cluster, record: Record, history: History) -> None:
    """Print a summary of the run."""
    statuses: dict[str, Counter[int]] = {}
    for write in record.writes:
        statuses.setdefault(write.kind, Counter())[write.answer.status] += 1
    rows = [
        [kind, ", ".join(f"{n} × {s or 'none'}" for s, n in sorted(counts.items()))]
        for kind, counts in statuses.items()
    ]
    show("Writes by response status", ["write", "statuses"], rows)
    refused = Counter(_message(write.answer) for write in record.writes if write.answer.status >= 400)
    show(
        "Error responses by message",
        ["message", "times"],
        [[text, str(times)] for text, times in refused.most_common(12)],
    )
    taken = sorted(write.ended - write.began for write in record.writes if 200 <= write.answer.status < 300)
    typical, long = taken[len(taken) // 2], taken[-1 - len(taken) // 100]
    print(f"\nsuccessful writes: median {typical:.2f} s, p99 {long:.2f} s")
    reads = sum(len(seen) for seen in record.reads.values())
    after = Counter(answer.status for _, _, answer in record.after)
    memory = max(machine.memory() for machine in cluster.machines)
    print(
        f"\n{len(history.commits)} commits, {history.merges} of them merges; {reads} reads of all counters;"
    )
    print(
        f"Bifolio-After: {dict(after)}; {dict(Counter(record.faults))}; largest process {memory / 1e6:.0f} MB"
    )


if __name__ == "__main__":
    sys.exit(main())
