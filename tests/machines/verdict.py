"""The final checks: no confirmed write was lost, all machines agree, and no client read an inconsistent
state.
"""

import json
import re
import subprocess
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.git import git
from tests.machines.clients import Answer, Record, Write, ask
from tests.machines.cluster import NAMES, Cluster, Machine

_TOKEN = re.compile(r"w\d{8}y|(?<=\"n\": )\d{8}")
_PATHS = 120  # the number of documents that are read one by one
_HISTORIES = 30
CONVERGES_S = 60.0


def converge(cluster: Cluster, record: Record, is_over: Callable[[], bool] | None = None) -> list[str]:
    """Wait until all machines serve the remote's latest commit. Return a message if they do not.

    Stop waiting after `CONVERGES_S`, or when `is_over` returns True.
    """
    began = time.monotonic()
    is_over = is_over or (lambda: time.monotonic() - began > CONVERGES_S)
    while True:
        heads = {machine.name: machine.head() for machine in cluster.machines}
        served = {m.name: ask(m, "GET", "/api/counters?fields=n").commit for m in cluster.machines}
        dirty = {m.name: git(m.root, "status", "--porcelain") for m in cluster.machines}
        remote = cluster.remote.head()
        if {*heads.values(), *served.values()} == {remote} and not any(dirty.values()):
            record.faults.append(f"converged in {time.monotonic() - began:.1f} s")
            return []
        if is_over():
            ready = {m.name: ask(m, "GET", "/_health/ready").body for m in cluster.machines}
            return [
                f"machines did not converge within {time.monotonic() - began:.0f} s: remote head {remote}, "
                f"clone heads {heads}, served commits {served}, "
                f"uncommitted files {dirty}, /_health/ready {ready}"
            ]
        time.sleep(0.2)


@dataclass(slots=True)
class History:
    """The commits of the remote's branch, oldest first, with the tokens that each of them contains."""

    commits: list[str] = field(default_factory=list)
    order: dict[str, int] = field(default_factory=dict)
    tokens: dict[str, int] = field(default_factory=dict)  # the first commit that contains each token
    # Tokens that were written a second time, which means that an older value has come back.
    again: list[str] = field(default_factory=list)
    merges: int = 0
    added: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))  # tokens by file path

    @classmethod
    def of(cls, repository: Path) -> "History":
        found = cls()
        told = git(
            repository,
            "log",
            "--format=%x00%H %P",
            "--reverse",
            "--topo-order",
            "-p",
            "-U0",
            "--no-renames",
            "main",
        )
        for text in told.split("\0")[1:]:
            head, _, rest = text.partition("\n")
            commit, *parents = head.split()
            found.order[commit] = len(found.commits)
            found.commits.append(commit)
            found.merges += len(parents) > 1
            found._read(rest, len(found.commits) - 1)
        return found

    def _read(self, text: str, index: int) -> None:
        path = ""
        for line in text.splitlines():
            if line.startswith("+++ "):
                path = line[6:]
            elif line.startswith("+"):
                for token in _TOKEN.findall(line):
                    named = token if token.startswith("w") else f"w{token}y"
                    known = self.tokens.setdefault(named, index)
                    one_of_many = path.startswith(("content/counters", "content/pages", "content/uploads"))
                    if (
                        known != index
                        and not one_of_many
                        and not path.endswith(tuple(f"/{n}.json" for n in NAMES))
                    ):
                        self.again.append(f"{named} in {path}, at {self.commits[index][:8]}")
                    self.added[path].append(named)


def check_writes(record: Record, history: History, push: str) -> Iterator[str]:
    """Check the history: it must contain all confirmed writes, in the order of their responses, and no
    rejected write.
    """
    for write in record.writes:
        status, token = write.answer.status, write.token
        if status in (200, 201) and token and token not in history.tokens:
            yield f"{write.machine}: {write.kind} {token} was answered {status}, and is not in the remote"
        elif status >= 400 and token in history.tokens and not _may_be_made(write):
            yield f"{write.machine}: {write.kind} {token} was answered {status}, and is in the remote"
    for again in history.again:
        yield f"an older value has come back: {again}"
    if push == "before":
        yield from _check_order(record.writes, history)


def _may_be_made(write: Write) -> bool:
    """Whether the server could not find out whether the remote accepted the write, so that either result is
    allowed.
    """
    error = (write.answer.body or {}).get("error", {})
    return write.answer.status == 503 and "did not confirm the push" in str(error.get("message"))


def _check_order(writes: Sequence[Write], history: History) -> Iterator[str]:
    """Check that a write that was sent after the response to another write comes later in the history."""
    done = [w for w in writes if w.answer.status in (200, 201) and w.token in history.tokens]
    ended = sorted(done, key=lambda w: w.ended)
    latest, next_ = -1, 0
    for write in sorted(done, key=lambda w: w.began):
        while next_ < len(ended) and ended[next_].ended < write.began:
            latest = max(latest, history.tokens[ended[next_].token])
            next_ += 1
        if history.tokens[write.token] < latest:
            yield f"{write.machine}: {write.kind} {write.token} is before one that was answered before it"


def check_reads(record: Record, history: History) -> Iterator[str]:
    """Check that no machine's responses go back to an older commit."""
    yield from (message for _, message in stale_reads(record, history))


def stale_reads(record: Record, history: History) -> Iterator[tuple[float, str]]:
    """Find reads that returned an older commit than an earlier read from the same machine.

    Yield the time at which each read ended, and a message.
    """
    for name, reads in record.reads.items():
        latest = -1
        for _, ended, commit in reads:
            if not commit or commit not in history.order:
                continue
            index = history.order[commit]
            if index < latest:
                yield ended, f"{name}: a read from {commit[:8]} after one from {history.commits[latest][:8]}"
            latest = max(latest, index)


def check_after(record: Record, history: History) -> Iterator[str]:
    """Check reads with `Bifolio-After`: each must return a state with that commit, or 503 with
    `Retry-After`.
    """
    for name, commit, answer in record.after:
        if answer.status == 503 and answer.retry is None:
            yield f"{name}: 503 to Bifolio-After: {commit[:8]}, without Retry-After"
        elif answer.status in (200, 404):
            if commit not in history.order:
                yield f"{name}: a write was answered with {commit[:8]}, which the remote has not"
            elif history.order.get(answer.commit, -1) < history.order[commit]:
                yield f"{name}: asked for {commit[:8]}, answered from {answer.commit[:8] or 'no commit'}"


def check_events(cluster: Cluster, record: Record, push: str) -> Iterator[str]:
    """Check that all machines have the same event log.

    The log must contain each change to a note once, and must agree with the documents that are served.
    """
    logs = [list(_events(machine, cluster.token)) for machine in cluster.machines]
    if any(log != logs[0] for log in logs[1:]):
        yield "machines answer with other logs of events"
    numbers = [event["seq"] for event in logs[0]]
    if numbers != sorted(set(numbers)):
        yield "events are not in their order"
    kinds: Mapping[str, Counter[str]] = defaultdict(Counter)
    last: dict[str, str] = {}
    for event in logs[0]:
        if event["model"] == "note":
            kinds[str(event["event"])][str(event["documentId"])] += 1
            last[str(event["documentId"])] = str(event["event"])
    for kind in ("entry.create", "entry.delete") if push != "off" else ():
        if twice := sorted(name for name, count in kinds[kind].items() if count > 1):
            yield f"{kind} was recorded twice of {len(twice)} notes: {', '.join(twice[:3])}"
    updates = Counter(w.document for w in record.writes if w.kind in ("title", "text") and _may_be(w.answer))
    if more := [name for name, count in kinds["entry.update"].items() if count > updates[name]]:
        yield f"entry.update was recorded too often of {len(more)} notes: {', '.join(more[:3])}"
    made = [
        w.answer.body["data"]["documentId"]
        for w in record.writes
        if w.kind == "create" and w.answer.status == 201
    ]
    notes = {*made, *last}
    there = {name for name in notes if ask(cluster.machines[0], "GET", f"/api/notes/{name}").status == 200}
    # If a note is created and deleted while the database is down, no event is recorded.
    unseen = notes - there - last.keys() if "database" in record.faults else set()
    if missing := [name for name in made if not kinds["entry.create"][name] and name not in unseen]:
        yield f"entry.create was not recorded of {len(missing)} notes: {', '.join(missing[:3])}"
    if wrong := [name for name, kind in last.items() if (kind == "entry.delete") == (name in there)]:
        yield f"the last event of {len(wrong)} notes is not what became of them: {', '.join(wrong[:3])}"


def _may_be(answer: Answer) -> bool:
    """Whether a write was applied, or may have been."""
    return answer.status < 400 or answer.status >= 500


def _events(machine: Machine, token: str) -> Iterator[dict[str, object]]:
    since = 0
    while True:
        path = f"/events?since={since}&limit=1000"
        answer = ask(machine, "GET", path, Authorization=f"Bearer {token}")
        if answer.status != 200:
            return
        yield from answer.body["data"]
        since = answer.body["meta"]["last"]
        if not answer.body["meta"].get("more"):
            return


def check_agreement(cluster: Cluster, machines: Sequence[Machine], record: Record) -> Iterator[str]:
    """Check that all machines, including one with a new clone, respond with the same bytes."""
    for path in _paths(cluster, record):
        headers = (
            {"Authorization": f"Bearer {cluster.token}"}
            if "status=draft" in path or "/history" in path
            else {}
        )
        answers = [ask(machine, "GET", path, **headers) for machine in machines]
        told = [(answer.status, answer.commit, answer.raw) for answer in answers]
        for machine, one in zip(machines[1:], told[1:], strict=True):
            if one != told[0]:
                yield f"{path}: {machine.name} answers {_differing(answers[0], one[0], one[2])}"


def _differing(first: Answer, status: int, raw: bytes) -> str:
    if status != first.status:
        return f"{status}, not {first.status}"
    at = next(
        (i for i, (a, b) in enumerate(zip(first.raw, raw, strict=False)) if a != b),
        min(len(raw), len(first.raw)),
    )
    start = max(0, at - 60)
    return f"…{raw[start : at + 60]!r}, not …{first.raw[start : at + 60]!r}"


def _paths(cluster: Cluster, record: Record) -> Iterator[str]:
    notes, pages = record.notes[-_PATHS:], record.pages[-_PATHS // 2 :]
    for kind in ("notes", "pages", "counters", "hands"):
        yield from (
            f"/api/{kind}?sort=id&pagination[page]={page}&pagination[pageSize]=100&populate=*"
            for page in (1, 2, 3)
        )
        yield f"/api/{kind}?sort=updatedAt:desc"
        yield f"/api/{kind}?status=draft&pagination[pageSize]=100"
    yield "/api/board"
    yield from (f"/api/notes/{note}" for note in notes)
    yield from (f"/api/pages/{page}?status=draft" for page in pages)
    yield from (f"/api/notes?filters[documentId]={note}" for note in notes[:10])
    yield "/api/upload/files"
    files = ask(cluster.machines[0], "GET", "/api/upload/files").body or []
    yield from (file["url"] for file in files[:20])
    yield from (f"/history/notes/{note}" for note in notes[:_HISTORIES])
    yield "/history"


def check_codes(machine: Machine) -> Iterator[str]:
    """Check that no two documents have the same value for a unique attribute."""
    counts: Counter[str] = Counter()
    for path in (machine.root / "content/notes").glob("*.json"):
        counts[json.loads(path.read_text()).get("code", "")] += 1
    if twice := {code for code, count in counts.items() if count > 1}:
        yield f"{machine.name}: the unique codes {sorted(twice)} are there twice"


def check_repository(cluster: Cluster) -> Iterator[str]:
    """Check all git repositories for corruption."""
    for folder in (cluster.remote.repository, *(machine.root for machine in cluster.machines)):
        done = subprocess.run(
            ["git", "fsck", "--connectivity-only", "--no-dangling", "--no-progress"],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            yield f"git fsck of {folder.name}: {(done.stderr or done.stdout).strip()[:300]}"
