"""Readers see the same states in all workers, in the same order (docs/architecture.md).

A Hypothesis state machine edits, renames, commits, checks out branches, writes, and kills and adds workers.
Once no more changes are made, every worker must show what is on disk. No worker may ever show a state that
did not exist. `make torture` runs more and longer sequences.
"""

import shutil
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from subprocess import CalledProcessError
from typing import Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from server.site.site import Site
from tests.git import git
from tests.site.cluster import Cluster, Shown, show
from tests.sites import schema, write
from tests.torture import LONG

QUIET_S = 2.0
BULK = [f"bulk{i}" for i in range(30)]
SINGLE = ["one", "two", "three"]
PAIR = ["left", "right"]  # two notes that are only changed by writes, always both at once
NOTE = {
    "title": "string",
    "count": "integer",
    "other": {"type": "relation", "relation": "oneToOne", "target": "api::note.note", "inversedBy": "back"},
    "back": {"type": "relation", "relation": "oneToOne", "target": "api::note.note", "mappedBy": "other"},
}
BRANCHES = ["first", "second", "third"]
names = st.sampled_from(SINGLE)
worker = st.integers(0, 3)


def site_yaml(branch: str, public: bool = True) -> str:
    roles = "note: [find, findOne]" if public else ""
    return f"name: {branch}\nroles:\n  public: {{{roles}}}\nsearch: {{index: false}}\n"


def note(title: str, count: int) -> str:
    return f"---\ntitle: {title}\ncount: {count}\n---\n"


class SameStates(RuleBasedStateMachine):
    """A site in a repository with three branches. The branches differ in settings and in many notes."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="bifolio-test-"))
        self.root = self.folder / "site"
        self.count = 0

    @initialize(workers=st.integers(1, 4))
    def start(self, workers: int) -> None:
        self.root.mkdir()
        files = {f"content/notes/{name}.md": note(name, 0) for name in SINGLE}
        pair = {f"content/notes/{name}.md": note(name, 1) for name in PAIR}
        ignored = "".join(f"/{path}\n" for path in (*pair, ".bifolio"))
        write(self.root, {"content-types/note.json": schema("note", NOTE), **files, **pair})
        write(self.root, {".gitignore": ignored})
        git(self.root, "init", "-q", "-b", "main")
        for branch in BRANCHES:
            git(self.root, "checkout", "-qb", branch)
            write(self.root, {f"content/notes/{name}.md": note(branch, 0) for name in BULK})
            write(self.root, {"site.yaml": site_yaml(branch)})
            self._commit()
        self.cluster = Cluster(self.root, workers)

    def _commit(self) -> None:
        git(self.root, "add", "content", "content-types", "site.yaml")
        git(self.root, "commit", "-qm", "change", "--allow-empty")

    def _path(self, name: str) -> Path:
        return self.root / f"content/notes/{name}.md"

    def _worker(self, index: int) -> int:
        return self.cluster.workers[index % len(self.cluster.workers)]

    def _next(self) -> int:
        self.count += 1
        return self.count

    # --- files -------------------------------------------------------------------------------------

    @rule(name=names, renamed=st.booleans())
    def edit(self, name: str, renamed: bool) -> None:
        path = self._path(name)
        target = path.with_name(f".{name}.tmp") if renamed else path
        target.write_text(note(name, self._next()))
        if renamed:
            target.replace(path)

    @rule(name=names)
    def remove(self, name: str) -> None:
        self._path(name).unlink(missing_ok=True)

    @rule(name=names)
    def move_and_back(self, name: str) -> None:
        if self._path(name).exists():
            self._path(name).rename(self._path(f"{name}-moved"))
            self._path(f"{name}-moved").rename(self._path(name))

    @rule(public=st.booleans())
    def change_roles(self, public: bool) -> None:
        path = self.root / "site.yaml"
        branch = path.read_text().partition("\n")[0].removeprefix("name: ")
        path.with_name(".site.yaml").write_text(site_yaml(branch, public))
        path.with_name(".site.yaml").replace(path)  # Truncating the file first would create another state.

    @rule(attribute=st.sampled_from(["extra", "more"]))
    def change_schema(self, attribute: str) -> None:
        write(self.root, {"content-types/note.json": schema("note", {**NOTE, attribute: "string"})})

    @rule(branch=st.sampled_from(BRANCHES))
    def checkout(self, branch: str) -> None:
        git(self.root, "checkout", "-qf", branch)

    @rule(name=names)
    def checkout_file(self, name: str) -> None:
        with suppress(CalledProcessError):  # fails if there are uncommitted changes
            git(self.root, "checkout", "-q", "--", f"content/notes/{name}.md")

    @rule()
    def commit(self) -> None:
        self._commit()

    # --- workers -----------------------------------------------------------------------------------

    @rule(index=worker, name=names)
    def write(self, index: int, name: str) -> None:
        count = self._next()
        if self.cluster.write(self._worker(index), name, {"count": count}):
            for each in self.cluster.workers:
                assert _counts(self.cluster.show(each)).get(name) == count

    @rule(index=worker)
    def write_pair(self, index: int) -> None:
        self.cluster.write(self._worker(index), "left", self._pair())

    @rule(index=worker, at=st.integers(1, 25))
    def write_pair_and_die(self, index: int, at: int) -> None:
        self.cluster.write_and_die(self._worker(index), "left", self._pair(), at)

    def _pair(self) -> dict[str, Any]:
        """Write two files that refer to each other."""
        count = self._next()
        return {"count": count, "back": None if count % 2 else "right"}

    @rule(index=worker)
    def kill(self, index: int) -> None:
        self.cluster.kill(self._worker(index))

    @rule(seconds=st.sampled_from([0.005, 0.03, 0.1]))
    def wait(self, seconds: float) -> None:
        time.sleep(seconds)

    # --- invariants --------------------------------------------------------------------------------

    @rule()
    def quiet(self) -> None:
        """Check that every worker shows what is on disk within two seconds."""
        deadline = time.monotonic() + QUIET_S
        while True:
            shown = [self.cluster.show(each) for each in self.cluster.workers]
            expected = self._on_disk()
            if all(one == expected for one in shown):
                return
            if time.monotonic() > deadline:
                for one in shown:
                    assert one == expected
            time.sleep(0.02)

    def _on_disk(self) -> Shown:
        """Read the files without a server, and return the resulting state."""
        copy = self.folder / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(self.root, copy, ignore=shutil.ignore_patterns(".bifolio"))
        site = Site(copy)
        site.load()
        return show(site.state)

    def teardown(self) -> None:
        try:
            if hasattr(self, "cluster"):
                self.quiet()
                self._check_samples()
        finally:
            if hasattr(self, "cluster"):
                self.cluster.close()
            shutil.rmtree(self.folder)

    def _check_samples(self) -> None:
        by_number: dict[int, Shown] = {}
        for each in self.cluster.workers:
            samples = self.cluster.samples(each)
            assert [s.number for s in samples] == sorted({s.number for s in samples})
            for sample in samples:
                assert by_number.setdefault(sample.number, sample.shown) == sample.shown
                _check(sample.shown)
            assert self.cluster.warnings(each) == []


def _rows(shown: Shown, names: list[str]) -> dict[str, Any]:
    return {name: shown[key] for name in names if (key := f"{name} en published") in shown}


def _counts(shown: Shown) -> dict[str, int]:
    return {name: row[1] for name, row in _rows(shown, SINGLE).items()}


def _check(shown: Shown) -> None:
    """Check that each checkout, and each write of two files, is visible either completely or not at all."""
    assert {row[0] for row in _rows(shown, BULK).values()} == {shown["name"]}
    left, right = _rows(shown, PAIR).values()
    assert right[2] == (() if left[1] % 2 else ("left",))


if LONG:
    bounds = settings(max_examples=20, stateful_step_count=40)
else:
    bounds = settings(max_examples=4, stateful_step_count=15, derandomize=True)
SameStates.TestCase.settings = settings(
    bounds, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate]
)
TestSameStates = SameStates.TestCase
