"""Tasks that agents solve on a real site, and calls that must fail without changing anything.

Each file in tests/mcp/tasks is a task:

- `write`: the setting `mcp.write`, `branch` by default.
- `solve`: the calls that solve the task. Each is a mapping of the tool's name to its arguments. `keep` stores
  values of the result for later calls: `<etag>`, or `<text|old|new>` to replace a part of the value.
- `changed`: the files that differ from the served commit, as `git diff --name-status` lists them. `NEW` is
  the id of a new document.
- `branch` and `served`: what the REST API returns at the end, by path. `missing` means status 404.
- `fail`: three sequences of calls. All but the last call succeed. The last one fails with a message that
  contains `says`, and changes no file, no git ref and no response. `as` names the token.
"""

import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import pytest
import yaml

from tests.git import git
from tests.mcp.agents import Agent, Called
from tests.mcp.magazine import TOKENS, make_magazine
from tests.sites import Api, opened

TASKS = {
    path.stem: yaml.safe_load(path.read_text()) for path in sorted(Path(__file__).parent.glob("tasks/*.yaml"))
}
FAILURES = [(name, number) for name, task in TASKS.items() for number in range(len(task["fail"]))]
# Ids of new documents, and suffixes of uploaded files.
_RANDOM = re.compile(r"\b(q[0-9a-z]{23})\b|_[0-9a-f]{10}\b")
BRANCH = "agent/assistant"
_READS = (
    "articles?populate=*",
    "articles?populate=*&status=draft&locale=*",
    "authors",
    "tags",
    "home?populate=*",
)

Templates = Mapping[str, tuple[Path, str]]


@pytest.fixture(scope="module")
def templates(tmp_path_factory: pytest.TempPathFactory) -> Templates:
    """Folders with the site, by the setting `mcp.write`, and the first commit in each."""
    folders = {mode: tmp_path_factory.mktemp(mode) for mode in ("branch", "direct", "none")}
    return {mode: (folder, make_magazine(folder, mode)) for mode, folder in folders.items()}


class World:
    """A copy of the site, with the tokens of agents and the values that they keep."""

    def __init__(self, root: Path, template: tuple[Path, str]) -> None:
        shutil.copytree(template[0], root)
        self.root, self.api = root, Api.of(opened(root))
        for name, permissions in TOKENS.items():
            self.api.token(name, may=permissions)
        self.kept: dict[str, Any] = {"first": template[1]}

    def run(self, step: Mapping[str, Any], who: str) -> Called:
        """Run one call of a task."""
        [(tool, arguments)] = ((name, value) for name, value in step.items() if name != "keep")
        called = Agent(self.api, who).call(tool, **_filled(arguments, self.kept))
        for name, path in step.get("keep", {}).items():
            self.kept[name] = _at(called.content, path)
        return called

    def fingerprint(self) -> Mapping[str, Any]:
        """Return everything that a failed call must not change."""
        return {
            **self.served(),
            "refs": git(self.root, "for-each-ref"),
            "HEAD": git(self.root, "rev-parse", "HEAD"),
        }

    def served(self) -> Mapping[str, Any]:
        """Return all files of the site, and responses of the REST API."""
        files = {
            path.relative_to(self.root).as_posix(): path.read_bytes()
            for path in sorted(self.root.rglob("*"))
            if path.is_file() and path.relative_to(self.root).parts[0] not in (".git", ".bifolio")
        }
        return {**files, **{path: self.api.get(f"/api/{path}").raw for path in _READS}}


@pytest.fixture
def make_world(tmp_path: Path, templates: Templates) -> Iterator[Any]:
    made: list[World] = []

    def make(mode: str) -> World:
        made.append(World(tmp_path / "site", templates[mode]))
        return made[-1]

    yield make
    for world in made:
        world.api.accounts.close()


def _filled(value: Any, kept: Mapping[str, Any]) -> Any:
    if isinstance(value, dict):
        return {key: _filled(inner, kept) for key, inner in value.items()}
    if isinstance(value, list):
        return [_filled(inner, kept) for inner in value]
    if not (isinstance(value, str) and value.startswith("<") and value.endswith(">")):
        return value
    name, *replaced = value[1:-1].split("|")
    if not replaced:
        return kept[name]
    assert replaced[0] in kept[name]
    return kept[name].replace(*replaced)


def _at(content: Any, path: str) -> Any:
    for key in path.split("."):
        content = content[int(key) if isinstance(content, list) else key]
    return content


def has(found: Any, wanted: Any) -> bool:
    """Return whether a value contains all keys of another one, with the same values."""
    if isinstance(wanted, dict):
        return isinstance(found, dict) and all(
            key in found and has(found[key], wanted[key]) for key in wanted
        )
    if isinstance(wanted, list):
        return len(found) == len(wanted) and all(map(has, found, wanted))
    return bool(found == wanted)


def check_state(api: Api, wanted: Mapping[str, Any], branch: str = "") -> None:
    for path, expected in wanted.items():
        at = f"{'&' if '?' in path else '?'}at={branch}" if branch else ""
        answer = api.get(f"/api/{path}{at}")
        if expected == "missing":
            assert answer.status == 404, path
        else:
            assert has(answer.data, expected), (path, answer.data)


@pytest.mark.parametrize("name", TASKS)
def test_a_task_is_solved(name: str, make_world: Any) -> None:
    task = TASKS[name]
    is_direct = task.get("write") == "direct"
    world: World = make_world(task.get("write", "branch"))
    before = world.served()
    for step in task["solve"]:
        called = world.run(step, "assistant")
        assert not called.is_error, called.line
    compared = ("HEAD",) if is_direct else (f"main...{BRANCH}",)
    git(world.root, "add", "-AN")
    changed = git(world.root, "diff", "--no-renames", "--name-status", *compared)
    assert _RANDOM.sub(lambda found: "NEW" if found[1] else "", changed).split() == task["changed"], changed
    check_state(world.api, task.get("branch", {}), BRANCH)
    check_state(world.api, task.get("served", {}))
    assert is_direct or world.served() == before
    assert task.keys() & {"branch", "served"}


@pytest.mark.parametrize(("name", "number"), FAILURES)
def test_a_mistake_changes_nothing(name: str, number: int, make_world: Any) -> None:
    task = TASKS[name]
    failing = task["fail"][number]
    world: World = make_world(failing.get("write", task.get("write", "branch")))
    *steps, last = failing["calls"]
    who = failing.get("as", "assistant")
    for step in steps:
        called = world.run(step, who)
        assert not called.is_error, called.line
    before = world.fingerprint()
    called = world.run(last, who)
    assert called.is_error
    assert failing["says"] in called.line
    assert world.fingerprint() == before


def test_there_are_enough_tasks() -> None:
    assert len(TASKS) >= 20
    assert all(len(task["fail"]) == 3 for task in TASKS.values())


def test_two_agents_on_one_branch_beside_a_person_on_the_served_one(make_world: Any) -> None:
    """All three write at the same time, the agents with one token.

    No write is lost, and the person merges the branch.
    """
    world: World = make_world("branch")
    start, failed = Barrier(3), list[str]()
    git(world.root, "branch", BRANCH)

    def agent(name: str) -> None:
        api = Api(
            world.api.site, world.api.app, world.api.accounts, world.api.app.test_client(), world.api.tokens
        )
        start.wait()
        for number in range(8):
            data = {"name": f"{name} {number}"}
            created = {"action": "create", "type": "author", "data": data}
            called = Agent(api, "assistant").call("write", operations=[created], branch=BRANCH)
            failed.extend([called.line] if called.is_error else [])

    def person() -> None:
        api = Api(
            world.api.site, world.api.app, world.api.accounts, world.api.app.test_client(), world.api.tokens
        )
        start.wait()
        for number in range(8):
            answer = api.put("/api/articles/tide", {"rating": number})
            failed.extend([answer.text] if answer.status != 200 else [])

    threads = [
        Thread(target=agent, args=("first",)),
        Thread(target=agent, args=("second",)),
        Thread(target=person),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    names = {f"{name} {number}" for name in ("first", "second") for number in range(8)}
    written = world.api.get(f"/api/authors?at={BRANCH}&pagination[pageSize]=100").data
    assert {author["name"] for author in written} == names | {"Ada", "Ben"}
    assert {author["name"] for author in world.api.get("/api/authors").data} == {"Ada", "Ben"}
    tide = world.api.get("/api/articles/tide").data
    assert tide["rating"] == 7
    authors = git(world.root, "log", "--format=%an", f"main..{BRANCH}").split()
    assert authors == ["assistant"] * 16
    git(world.root, "add", "-A")
    git(world.root, "commit", "-qm", "The person's changes")
    world.api.site.refresh()
    merged = world.api.ask("POST", f"/branches/{BRANCH}/merge", json={})
    assert merged.status == 200, merged.text
    assert len(world.api.get("/api/authors?pagination[pageSize]=100").data) == 18
    assert world.api.get("/api/articles/tide").data["rating"] == 7
