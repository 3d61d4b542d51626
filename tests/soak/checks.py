"""Checks between rounds, while there is no load: files, git, responses, events and webhooks must match the
model.
"""

import subprocess
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.git import git
from tests.machines.clients import ask
from tests.machines.cluster import Machine
from tests.soak.ledger import EVENTS, GIT, LOST, ORPHANS, STALE, WEBHOOKS
from tests.soak.load import HandEditor, Hook, Stream
from tests.soak.model import Expected, Model
from tests.soak.processes import serving, tree
from tests.soak.strain import Deadline

SETTLES_S = 60.0
NOTICED_S = 30.0  # the time until all machines use the database again after an outage
SHOWN_S = 35.0  # the time until an edit by hand is visible if the system sent no notification
WEBHOOKS_SETTLE_S = 60.0
READS_OF_EACH = 3  # on separate connections, so that they reach all workers
# Folders in .bifolio/ that must be empty. Files with the suffix `.done` are allowed; they are kept for a
# minute.
EMPTY = ("journal", "commits", "unsaved")
ENDS = {"entry.create": 0, "entry.update": 1, "entry.delete": 2}
Found = Iterator[tuple[str, str]]  # the promise that was broken, and the evidence


def check_documents(machines: Sequence[Machine], model: Model, token: str) -> Found:
    """Check that every machine returns every document as in the model. Use several connections to each
    machine.
    """
    for kind in ("notes", "pages", "pages?status=draft"):
        expected = model.of(kind)
        answers = [_list(machine, kind, token) for machine in machines for _ in range(READS_OF_EACH)]
        first = answers[0]
        for machine, found in zip([m for m in machines for _ in range(READS_OF_EACH)], answers, strict=True):
            if found != first:
                differing = [key for key in {*found, *first} if found.get(key) != first.get(key)]
                yield LOST, f"{machine.name}: {kind} differ on other connections: {differing[:3]}"
        for document, known in expected.items():
            if not known.allows(first.get(document)):
                yield LOST, _lost(kind, document, known, first.get(document))
            model.settle(kind, document, first.get(document))


def _lost(kind: str, document: str, known: Expected, found: Any) -> str:
    ago = time.monotonic() - known.since
    return f"{kind} {document}: is {found}, must be one of {known.states}, answered {ago:.1f} s ago"


def _list(machine: Machine, kind: str, token: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    number, more = 1, True
    while more:
        path = f"/api/{kind}{'&' if '?' in kind else '?'}sort=documentId&pagination[pageSize]=100"
        answer = ask(machine, "GET", f"{path}&pagination[page]={number}", Authorization=f"Bearer {token}")
        if answer.status != 200:
            return {"": f"answered {answer.status} {answer.body}"}
        found |= {each["documentId"]: each for each in answer.body["data"]}
        more = number < answer.body["meta"]["pagination"]["pageCount"]
        number += 1
    return found


def check_hands(editor: HandEditor) -> Found:
    """Check that each file that was saved by hand contains the saved text, on disk and in the API."""
    for path, text in editor.saved.items():
        found = (editor.machine.root / path).read_text()
        if found != text:
            ago = time.monotonic() - editor.times[path]
            yield LOST, f"{editor.machine.name}: {path} says {found!r}, saved was {text!r}, {ago:.1f} s ago"
            editor.saved[path] = found
            continue
        values = dict(line.split(": ") for line in text.splitlines())
        deadline = Deadline(SHOWN_S)
        while not _shows(editor.machine, path, values):
            if deadline.is_over():
                yield STALE, f"{editor.machine.name}: {path} says {text!r}, the API not after {SHOWN_S:.0f} s"
                break
            time.sleep(0.1)


def _shows(machine: Machine, path: str, values: dict[str, str]) -> bool:
    answers = [ask(machine, "GET", f"/api/hands/{Path(path).stem}") for _ in range(READS_OF_EACH)]
    shown = [answer.body["data"] if answer.status == 200 else {} for answer in answers]
    return all(each.get(name) == value for each in shown for name, value in values.items())


# --- git and leftovers ----------------------------------------------------------------------------


def check_git(machine: Machine, *, thorough: bool) -> Found:
    """Check that the files are the same as in the last commit, byte for byte. Don't rely on git's index for
    this.
    """
    root = machine.root
    if dirty := git(root, "status", "--porcelain"):
        yield GIT, f"{machine.name}: git status says {dirty!r}"
    listed = [line.split(maxsplit=3) for line in git(root, "ls-tree", "-r", "HEAD").splitlines()]
    blobs = {path: blob for _, _, blob, path in listed}
    there = [path for path in blobs if (root / path).is_file()]
    if gone := sorted(blobs.keys() - set(there)):
        yield GIT, f"{machine.name}: files of HEAD are not there: {gone[:5]}"
    told = subprocess.run(
        ["git", "hash-object", "--stdin-paths"],
        cwd=root,
        input="\n".join(there),
        capture_output=True,
        text=True,
        check=True,
    )
    found = dict(zip(there, told.stdout.split(), strict=True))
    if other := [path for path in there if found[path] != blobs[path]]:
        yield GIT, f"{machine.name}: files are not what HEAD has: {other[:5]}"
    files = {str(path.relative_to(root)) for path in (root / "content").rglob("*") if path.is_file()}
    if more := sorted(files - blobs.keys()):
        yield ORPHANS, f"{machine.name}: files in content/ are in no commit: {more[:5]}"
    if thorough:
        command = ["git", "fsck", "--no-dangling", "--no-progress"]
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
        if done.returncode:
            yield GIT, f"{machine.name}: git fsck says {(done.stderr or done.stdout).strip()[:300]}"


def check_orphans(machine: Machine) -> Found:
    """Check that no temporary files and no processes are left over."""
    assert machine.process
    state = machine.root / ".bifolio"
    for name in EMPTY:
        files = sorted(path for path in (state / name).rglob("*") if path.is_file())
        if left := [path.name for path in files if path.name != "lock" and path.suffix != ".done"]:
            yield ORPHANS, f"{machine.name}: .bifolio/{name}/ has {left[:5]}"
    if left := [str(path.relative_to(machine.root)) for path in (machine.root / ".git").glob("*.lock")]:
        yield ORPHANS, f"{machine.name}: {left}"
    known = tree(machine.process.pid)
    strays = {pid: command for pid, command in serving(machine.root).items() if pid not in known}
    time.sleep(0.3 if strays else 0)  # A git command may be starting or ending.
    strays = {p: c for p, c in serving(machine.root).items() if p in strays and p not in known}
    if strays:
        yield ORPHANS, f"{machine.name}: processes of no running server: {strays}"


def undescribed(objects: Sequence[str], machine: Machine) -> list[str]:
    """Return the objects in the bucket that no file of the site refers to. `bifolio media gc` would delete
    them.
    """
    folders = (machine.root / name for name in ("content", "media"))
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    texts = "\n".join(path.read_text(errors="replace") for path in files)
    return [key for key in objects if Path(key).stem not in texts]


# --- events ---------------------------------------------------------------------------------------


@dataclass(slots=True)
class EventLog:
    """The event log as one machine returns it, read incrementally."""

    token: str
    events: list[dict[str, Any]] = field(default_factory=list)
    reported: set[str] = field(default_factory=set)
    outages: list[tuple[float, float]] = field(default_factory=list)  # when the database was away

    def read(self, machine: Machine) -> None:
        """Read new events."""
        while True:
            since = self.events[-1]["seq"] if self.events else 0
            path = f"/events?since={since}&limit=1000"
            answer = ask(machine, "GET", path, Authorization=f"Bearer {self.token}")
            assert answer.status == 200, f"{path} was answered {answer.status} {answer.body}"
            self.events += answer.body["data"]
            if not answer.body["meta"].get("more"):
                return

    def check(self, model: Model, *, exact: bool) -> Found:
        """Check that each confirmed write is in the log, in order. If `exact`, each must be there exactly
        once.
        """
        kinds: dict[str, list[str]] = defaultdict(list)
        for event in self.events:
            if event["model"] == "note":
                kinds[str(event["documentId"])].append(event["event"])
        for document, known in model.of("notes").items():
            found, is_gone = kinds[document], known.states == [{}]
            counts = Counter(found)
            wrong = found != sorted(found, key=lambda kind: ENDS.get(kind, 1))
            if exact:
                least, most = known.acknowledged, known.acknowledged + known.unknown
                wrong |= not least <= counts["entry.update"] <= most
            wrong |= counts["entry.create"] != 1 or counts["entry.delete"] != is_gone
            wrong &= not (is_gone and not found and self._was_away(known))
            if wrong and document not in self.reported:
                self.reported.add(document)
                yield (
                    EVENTS,
                    (
                        f"note {document}: {dict(counts)}, {known.acknowledged} updates were answered, "
                        f"{known.unknown} are unknown, and it is {'gone' if is_gone else 'there'}"
                    ),
                )

    def _was_away(self, known: Expected) -> bool:
        """Whether the log's database was away from the creation to the deletion of a document."""
        return any(
            began < known.created_at and known.since < ended + NOTICED_S for began, ended in self.outages
        )


def check_stream(stream: Stream, log: EventLog) -> Found:
    """Check that a client of the event stream received every event of the log once and in order."""
    name, wanted = stream.machine.name, [event["seq"] for event in log.events]
    deadline = Deadline(SETTLES_S)
    while wanted and (not stream.events or stream.events[-1]["seq"] < wanted[-1]):
        if deadline.is_over():
            last = stream.events[-1]["seq"] if stream.events else 0
            yield EVENTS, f"{name}: a stream has come to {last}, the log to {wanted[-1]}"
            return
        time.sleep(0.1)
    told = [event["seq"] for event in stream.events]
    wanted = [seq for seq in wanted if told and seq >= told[0]]
    if told[: len(wanted)] != wanted:
        missed, twice = set(wanted) - set(told), [seq for seq, n in Counter(told).items() if n > 1]
        yield (
            EVENTS,
            (
                f"{name}: a stream missed {sorted(missed)[:10]} ({len(missed)}), told {twice[:10]} twice, "
                f"in order: {told == sorted(told)}"
            ),
        )
        stream.events = [event for event in log.events if not told or event["seq"] >= told[0]]


def check_webhooks(hook: Hook, log: EventLog, begin: int) -> Found:
    """Check that the webhook received every event after `begin`, in the right order for each document."""
    wanted = {event["seq"] for event in log.events if event["seq"] > begin}
    deadline = Deadline(WEBHOOKS_SETTLE_S)
    while missing := wanted - {told["seq"] for told in list(hook.taken)}:
        if deadline.is_over():
            yield WEBHOOKS, f"{len(missing)} events were not delivered: {sorted(missing)[:10]}"
            hook.taken += [event for event in log.events if event["seq"] in missing]
            return
        time.sleep(0.2)
    last: dict[str, int] = {}
    seen: set[int] = set()
    for told in list(hook.taken):
        if told["seq"] in seen or not told.get("documentId"):
            continue
        seen.add(told["seq"])
        document = f"{told['model']} {told['documentId']}"
        if told["seq"] < last.get(document, 0):
            yield WEBHOOKS, f"{document}: event {told['seq']} was delivered after {last[document]}"
        last[document] = max(told["seq"], last.get(document, 0))
