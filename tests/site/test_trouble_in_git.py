"""Failures of a site's git repository: there is a test for each row of the table in docs/reliability.md.

The app serves a site while its repository is damaged, locked or in the middle of an operation. Content must
be served all the time, each write must get a response, and no confirmed write may be lost.
"""

import logging
import os
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from server.site import site as sites
from server.site.commits import committing
from tests.git import commit_all, git
from tests.servers import ROOT
from tests.sites import STRING, Answer, Api, collection, make, write
from tests.small_disk import fill, mounted

pytestmark = pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")

NAMES = ("one", "two", "three", "four", "five")
FILES = {
    ".gitignore": ".bifolio/\n",
    **collection("note", {"title": STRING}),
    **{f"content/notes/{name}.md": f"---\ntitle: {name.title()}\n---\nThe harbour.\n" for name in NAMES},
}
SETTINGS = "git: {{commit: {}, committer: Site <site@example.org>}}\nsearch: {{index: false}}\n"
ALLOWED = ("-c", "protocol.file.allow=always")
COMMIT, PENDING, NONE = "a commit", "pending", "none"
OBJECT = r"git fsck lists the damaged objects"


def note(title: str) -> str:
    return f"---\ntitle: {title}\n---\nThe harbour.\n"


# --- repositories ---------------------------------------------------------------------------------


def plain(root: Path) -> None:
    """Create a repository with two commits."""
    write(root, FILES)
    commit_all(root)
    git(root, "tag", "first")
    commit_note(root, "two", "Two!")


def commit_note(root: Path, name: str, title: str) -> None:
    write(root, {f"content/notes/{name}.md": note(title)})
    git(root, "commit", "-qam", title)


def packed(root: Path) -> None:
    plain(root)
    git(root, "pack-refs", "--all")


def shallow(root: Path) -> None:
    plain(first := root.parent / "first")
    git(root.parent, "clone", "-q", "--depth=1", f"file://{first}", str(root))


def unborn(root: Path) -> None:
    write(root, FILES)
    git(root, "init", "-q", "-b", "main")


def forked(root: Path) -> None:
    """Create a repository with two branches that change the same lines."""
    plain(root)
    git(root, "checkout", "-qb", "side")
    commit_note(root, "one", "Side")
    git(root, "checkout", "-q", "main")
    commit_note(root, "one", "Main")


def with_submodule(root: Path) -> None:
    write(inner := root.parent / "inner", {"six.md": note("Six")})
    commit_all(inner)
    plain(root)
    git(root, *ALLOWED, "submodule", "add", "-q", str(inner), "content/notes/sub")
    git(root, "commit", "-qm", "submodule")


def of_windows(root: Path) -> None:
    """Create a clone whose files have CRLF line endings, as on Windows."""
    plain(first := root.parent / "first")
    git(root.parent, "-c", "core.autocrlf=true", "clone", "-q", str(first), str(root))
    git(root, "config", "core.autocrlf", "true")


# --- failures ---------------------------------------------------------------------------------------

Happening = Callable[[Path], AbstractContextManager[None]]


def nothing(_: Path) -> AbstractContextManager[None]:
    """Do nothing: the repository itself is the failure."""
    return nullcontext()


def locked(age_s: float) -> Happening:
    @contextmanager
    def happening(root: Path) -> Iterator[None]:
        lock, at = root / ".git/index.lock", time.time() - age_s
        lock.touch()
        os.utime(lock, (at, at))
        yield
        lock.unlink()

    return happening


@contextmanager
def detached(root: Path) -> Iterator[None]:
    git(root, "checkout", "-q", "--detach")
    yield
    git(root, "checkout", "-q", "main")


@contextmanager
def merging(root: Path) -> Iterator[None]:
    with pytest.raises(subprocess.CalledProcessError):
        git(root, "merge", "-q", "side")
    yield
    write(root, {"content/notes/one.md": note("Both")})
    git(root, "add", "content/notes/one.md")
    git(root, "commit", "-qm", "Merge")


@contextmanager
def rebasing(root: Path) -> Iterator[None]:
    with pytest.raises(subprocess.CalledProcessError):
        git(root, "rebase", "-q", "side")
    yield
    git(root, "rebase", "--abort")


@contextmanager
def stashed(root: Path) -> Iterator[None]:
    git(root, "stash", "-q")
    yield
    if git(root, "stash", "list"):
        git(root, "stash", "pop", "-q")


def hooked(name: str, script: str = "echo not today >&2; exit 1") -> Happening:
    @contextmanager
    def happening(root: Path) -> Iterator[None]:
        hook = root / ".git/hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\n{script}\n")
        hook.chmod(0o755)
        yield
        hook.unlink()

    return happening


def attributed(attributes: str, **settings: str) -> Happening:
    """Return a failure that sets git attributes for all notes, and the git settings for a filter named
    "x".
    """

    @contextmanager
    def happening(root: Path) -> Iterator[None]:
        path = root / ".git/info/attributes"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"*.md {attributes}\n")
        for name, value in settings.items():
            git(root, "config", f"filter.x.{name}", value)
        yield
        if "clean" not in settings or settings.get("required"):
            path.unlink()

    return happening


def replaced(name: str, data: bytes) -> Happening:
    """Return a failure that replaces the content of a file in `.git`."""

    @contextmanager
    def happening(root: Path) -> Iterator[None]:
        path, kept = root / ".git" / name, root / ".git/kept"
        path.rename(kept)
        path.write_bytes(data)
        yield
        kept.replace(path)

    return happening


def lost(revision: str, data: bytes | None = None) -> Happening:
    """Return a failure that deletes a git object, or replaces its content."""

    @contextmanager
    def happening(root: Path) -> Iterator[None]:
        id_ = git(root, "rev-parse", revision).strip()
        path, kept = root / ".git/objects" / id_[:2] / id_[2:], root / ".git/kept"
        path.rename(kept)
        if data is not None:
            path.write_bytes(data)
        yield
        path.parent.mkdir(exist_ok=True)
        kept.replace(path)

    return happening


@contextmanager
def collecting(root: Path) -> Iterator[None]:
    """Context manager: run `git gc` again and again."""
    over = threading.Event()

    def collect() -> None:
        while not over.is_set():
            with suppress(subprocess.CalledProcessError):  # Simultaneous writes may cause it to fail.
                git(root, "gc", "-q")

    thread = threading.Thread(target=collect)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@contextmanager
def full(root: Path) -> Iterator[None]:
    fill(filler := root / ".git/filler")
    yield
    filler.unlink()


@contextmanager
def read_only(root: Path) -> Iterator[None]:
    remount = ("mount", "-o")
    subprocess.run([*remount, "remount,ro", str(root / ".git")], check=True)
    yield
    subprocess.run([*remount, "remount,rw", str(root / ".git")], check=True)


@contextmanager
def without_git(_: Path) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", "/nowhere")
        yield


@contextmanager
def owned_by_others(root: Path) -> Iterator[None]:
    if os.geteuid():
        pytest.skip("only root can give files to others")
    for owner in (12345, 0):
        for path in (root, *(root / ".git").rglob("*"), root / ".git"):
            os.chown(path, owner, owner, follow_symlinks=False)
        if owner:
            yield


@dataclass(frozen=True, slots=True)
class Trouble:
    """A test case for a row of the table in docs/reliability.md.

    - `answers`: allowed `Bifolio-Commit` headers of a write with `commit: each`
    - `past`: allowed statuses of a read from the first commit
    - `log`: a part of the only log line; with `always`, it is also logged with `commit: off`
    """

    row: str
    happening: Happening
    prepare: Callable[[Path], None] = plain
    answers: tuple[str, ...] = (COMMIT,)
    refused: bool = False
    past: tuple[int, ...] = (200,)
    log: str = ""
    always: bool = False
    disk: str = ""
    written: str = "two"  # the id of the document to write


WAITS = (PENDING,)
FILTER = {"clean": "tr a-z A-Z", "smudge": "tr A-Z a-z"}
BROKEN = {"clean": "no-such-program", "smudge": "no-such-program", "required": "true"}
REFUSING = 'test "$1" != prepared'
TROUBLES = {
    "lock": Trouble(
        "`index.lock`, younger than 30 s", locked(0), refused=True, log="delete .git/index.lock", always=True
    ),
    "old lock": Trouble(
        "`index.lock`, older than 30 s", locked(3600), answers=WAITS, log="delete .git/index.lock"
    ),
    "detached": Trouble("detached HEAD", detached, log="git switch -c NAME"),
    "shallow": Trouble("a shallow clone", nothing, shallow),
    "merge": Trouble(
        "a merge with conflicts", merging, forked, WAITS, log="a merge is in progress; git status"
    ),
    "rebase": Trouble(
        "a rebase with conflicts", rebasing, forked, WAITS, log="a rebase is in progress; git status"
    ),
    "unborn": Trouble("the repository does not contain any commit", nothing, unborn, past=(404, 409)),
    "stash": Trouble("`git stash` between two writes", stashed),
    **{
        name: Trouble(
            "a hook rejects the commit", hooked(name), answers=WAITS, log="not today; to commit without hooks"
        )
        for name in ("pre-commit", "prepare-commit-msg", "commit-msg")
    },
    "silent hook": Trouble(
        "a hook rejects the commit",
        hooked("pre-commit", "exit 3"),
        answers=WAITS,
        log="without an error message; ",
    ),
    "no interpreter": Trouble(
        "a hook rejects the commit",
        hooked("pre-commit", "exec /nowhere/program"),
        answers=WAITS,
        log="run git commit --no-verify",
    ),
    "reference-transaction": Trouble(
        "a hook rejects the commit",
        hooked("reference-transaction", REFUSING),
        answers=WAITS,
        log="run git commit --no-verify",
    ),
    "post-commit": Trouble("the hook `post-commit` fails", hooked("post-commit")),
    "lfs": Trouble(
        "the program of a filter in `.gitattributes`, such as Git LFS, fails or is missing",
        attributed("filter=x diff=x merge=x -text", **BROKEN, process="no-such-program"),
        answers=WAITS,
        log="install the filter's program",
    ),
    "broken filter": Trouble(
        "the program of a filter in `.gitattributes`, such as Git LFS, fails or is missing",
        attributed("filter=x", **BROKEN),
        answers=WAITS,
        log="install the filter's program",
    ),
    "lfs without settings": Trouble(
        "a filter in `.gitattributes` is not defined in git's configuration", attributed("filter=x -text")
    ),
    "filter": Trouble("a filter in `.gitattributes` works", attributed("filter=x", **FILTER)),
    "-merge": Trouble("`.gitattributes` contains `-merge`", attributed("-merge")),
    "autocrlf": Trouble("`core.autocrlf` is on", nothing, of_windows),
    "submodule": Trouble(
        "a submodule in `content/`",
        nothing,
        with_submodule,
        (NONE,),
        log="content/notes/sub/six.md is in a different repository; commit these files in that repository",
        written="sub--six",
    ),
    "packed-refs": Trouble(
        "`.git/packed-refs` or the file of a branch in `.git` is damaged",
        replaced("packed-refs", b"garbage\0\xff"),
        packed,
        WAITS,
        past=(503,),
        log=".git/logs contains the earlier commits",
        always=True,
    ),
    "branch": Trouble(
        "`.git/packed-refs` or the file of a branch in `.git` is damaged",
        replaced("refs/heads/main", b""),
        answers=WAITS,
        past=(503,),
        log=".git/logs contains the earlier commits",
        always=True,
    ),
    **{
        f"{name}, {how}": Trouble(
            "an object is missing or damaged",
            lost(revision, data),
            answers=WAITS,
            past=(400, 503),
            log=OBJECT,
            always=name != "folder",  # because the folder is not read then
        )
        for name, revision in (("commit", "HEAD"), ("tree", "HEAD^{tree}"), ("folder", "HEAD:content/notes"))
        for how, data in (("missing", None), ("damaged", b"garbage"))
    },
    **{
        f"{name}, {how}": Trouble(
            "an older object is missing or damaged", lost(revision, data), past=(400, 503)
        )
        for name, revision in (("first commit", "first"), ("file", "first:content/notes/two.md"))
        for how, data in (("missing", None), ("damaged", b"garbage"))
    },
    "index": Trouble(
        "the index is damaged",
        replaced("index", b"garbage"),
        answers=WAITS,
        log="delete .git/index",
        always=True,
    ),
    "config": Trouble(
        "`.git/config` is damaged",
        replaced("config", b"[core\n"),
        answers=WAITS,
        past=(503,),
        log="fix .git/config",
        always=True,
    ),
    "gc": Trouble("`git gc` is running", collecting, answers=(COMMIT, PENDING)),
    "full": Trouble(
        "no disk space for `.git`, but enough for the content",
        full,
        answers=WAITS,
        log="free space on the disk",
        disk="2m",
    ),
    "read-only": Trouble(
        "`.git` is read-only",
        read_only,
        answers=WAITS,
        log="give the server's user write permission",
        disk="2m",
    ),
    "no git": Trouble(
        "git is not in `PATH`", without_git, answers=WAITS, past=(409,), log="install git", always=True
    ),
    "owner": Trouble(
        "the repository belongs to another user (`safe.directory`)",
        owned_by_others,
        answers=WAITS,
        past=(409,),
        log="git config --global --add safe.directory",
        always=True,
    ),
}


# --- the test -------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Shorten all waiting times, and hide the git settings of the user who runs the tests."""
    for name in ("BACKOFF_S", "REPOSITORY_CACHE_TTL_S", "HOOK_RETRY_INTERVAL_S"):
        monkeypatch.setattr(committing, name, 0.0)
    monkeypatch.setattr(committing, "GIT_LOCK_TIMEOUT_S", 0.05)
    for name in ("WRITE_GIT_TIMEOUT_S", "GIT_TIMEOUT_S"):
        monkeypatch.setattr(sites, name, 0.05)
    monkeypatch.setenv("HOME", str(tmp_path_factory.mktemp("home")))


def test_each_row_of_the_table_has_a_case() -> None:
    text = (ROOT / "docs/reliability.md").read_text()
    table = text.split("## Git failures\n", 1)[1].split("\n## ", 1)[0]
    rows = [line.split(" | ")[0].removeprefix("| ") for line in table.splitlines() if line.startswith("| ")]
    assert set(rows[2:]) == {trouble.row for trouble in TROUBLES.values()}


def cases() -> Iterator[tuple[str, str]]:
    """Yield the cases to run.

    With `commit: each`, these are all cases. With `commit: off`, they are one case for each row, and all
    cases that are always logged.
    """
    rows = set[str]()
    for name, trouble in TROUBLES.items():
        yield name, "each"
        if trouble.row not in rows or trouble.always:
            yield name, "off"
        rows.add(trouble.row)


@pytest.mark.parametrize(("name", "commit"), [*cases()])
def test_trouble(name: str, commit: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "bifolio")
    trouble, root = TROUBLES[name], tmp_path / "site"
    with ExitStack() as opened, pytest.MonkeyPatch.context() as patch:
        patch.setitem(FILES, "site.yaml", SETTINGS.format(commit))
        root.mkdir()
        if trouble.disk:
            opened.enter_context(mounted(root / ".git", trouble.disk))
        trouble.prepare(root)
        api = make(root, {})
        opened.callback(api.accounts.close)
        Check(name, trouble, commit == "each", api, caplog).run()


@dataclass(slots=True)
class Check:
    """The check for one case. If `commits`, it runs with `commit: each`, otherwise with `off`."""

    name: str
    trouble: Trouble
    commits: bool
    api: Api
    caplog: pytest.LogCaptureFixture
    first: str = ""
    created: str = ""

    def run(self) -> None:
        api, root = self.api, self.api.root
        with suppress(subprocess.CalledProcessError):
            name = "HEAD" if self.trouble.prepare is shallow else "first"
            self.first = git(root, "rev-parse", name).strip()
        if self.name != "rebase":  # git starts a rebase only if there are no uncommitted changes
            self.require(api.put("/api/notes/four", {"title": "Before"}), 200)
        with self.trouble.happening(root):
            api.site.refresh()
            self.read()
            self.write()
            self.edit_by_hand()
            self.look_into_log()
        api.site.committer.commit_due()
        api.site.refresh()
        self.compare()

    def require(self, answer: Answer, *statuses: int) -> Answer:
        assert answer.status in statuses, answer.text
        return answer

    def title(self, name: str) -> str:
        return str(self.api.get(f"/api/notes/{name}").data["title"])

    def read(self) -> None:
        """Check that current content is served, and that a past commit is served or results in a proper
        error.
        """
        api = self.api
        assert self.title("two").lower() in ("two!", "two")
        assert len(api.get("/api/notes?sort=title&filters[title][$notNull]=true").data) >= len(NAMES)
        if self.name == "stash" and not self.commits:
            assert self.title("four") == "Four"
        elif self.name != "rebase":
            assert self.title("four") == "Before"
        past = self.require(api.get(f"/api/notes/two?at={self.first or 'main'}"), *self.trouble.past)
        for path in ("/history/notes/two", "/history/uncommitted", "/branches"):
            answer = self.require(api.get(path), 200, 409, 503)
            assert answer.status == 200 or answer.error["message"]
        assert past.status == 200 or past.error["message"]

    def write(self) -> None:
        """Check that a write gets a response. The status may only be 503 if a git command may be running."""
        api = self.api
        if self.trouble.refused:
            for answer in (
                api.put("/api/notes/two", {"title": "TWO"}),
                api.post("/api/notes", {"title": "New"}),
                api.ask("DELETE", "/api/notes/three"),
            ):
                assert (self.require(answer, 503).headers["Retry-After"], answer.error["status"]) == (
                    "5",
                    503,
                )
            return
        if self.name in ("merge", "rebase"):
            assert "merge conflict" in self.require(api.put("/api/notes/one", {"title": "ONE"}), 409).text
        self.is_answered(
            api.put(f"/api/notes/{self.trouble.written}", {"title": "TWO"}), self.trouble.answers
        )
        others = self.trouble.answers if self.trouble.written == "two" else (COMMIT,)
        created = self.is_answered(api.post("/api/notes", {"title": "New"}), others)
        self.created = created.data["documentId"]
        if self.name not in ("lfs", "broken filter"):  # Deleting a file does not run a filter.
            # The document was never committed, so git does not track its file.
            expected = (NONE,) if self.name == "unborn" else others
            self.is_answered(api.ask("DELETE", "/api/notes/three"), expected)
        assert self.title(self.trouble.written) == "TWO"

    def is_answered(self, answer: Answer, expected: tuple[str, ...]) -> Answer:
        said = answer.headers.get("Bifolio-Commit", NONE)
        self.require(answer, 200, 201, 204)
        if self.commits:
            assert (COMMIT if re.match("[0-9a-f]{40}", said) else said) in expected, (said, answer.text)
        else:
            assert said != PENDING
        return answer

    def edit_by_hand(self) -> None:
        write(self.api.root, {"content/notes/five.md": note("By hand")})
        self.api.site.refresh()
        assert self.title("five") == "By hand"

    def look_into_log(self) -> None:
        """Check that the log contains one line with the failure and how to fix it."""
        for _ in range(2):
            self.api.site.committer.commit_due()
            self.api.site.refresh()
        told = [record.getMessage() for record in self.caplog.records]
        if self.trouble.log and (self.commits or self.trouble.always):
            assert [self.trouble.log in line for line in told] == [True], told
        else:
            assert told == []

    def compare(self) -> None:
        """Check that no confirmed write is lost, no files are left over, and everything works again."""
        api, root = self.api, self.api.root
        assert api.site.committer.queue.waiting == 0
        git(root, "fsck", "--strict", "--no-dangling")
        assert not [
            path.name for path in (root / ".git").glob("*") if re.search(r"lock$|^bifolio-|crash", path.name)
        ]
        if not self.trouble.refused:
            self.find_writes()
        if self.first and self.name != "unborn":
            assert api.get(f"/api/notes/two?at={self.first}").status == 200
        answer = self.require(api.put("/api/notes/four", {"title": "After"}), 200)
        if self.commits:
            assert answer.headers["Bifolio-Commit"] == git(root, "rev-parse", "HEAD").strip()
            assert "title: after" in git(root, "show", "HEAD:content/notes/four.md").lower()
        assert self.title("four") == "After"

    def find_writes(self) -> None:
        api, root = self.api, self.api.root
        in_files = self.name != ("detached" if self.commits else "rebase")
        if in_files:
            assert self.title(self.trouble.written) == "TWO"
            assert self.title(self.created) == "New"
            assert self.name == "rebase" or self.title("five") == "By hand"
            assert self.name in ("lfs", "broken filter") or api.get("/api/notes/three").status == 404
        if not self.commits or self.trouble.written != "two":
            return
        # HEAD was detached, so the commit is on no branch, but it is in HEAD's reflog.
        commit = "HEAD@{1}" if self.name == "detached" else "HEAD"
        assert "two" in git(root, "show", f"{commit}:content/notes/two.md").lower()
        listed = git(root, "ls-tree", "-r", "--name-only", commit)
        assert f"notes/{self.created}.md" in listed
        assert self.name in ("lfs", "broken filter") or "notes/three.md" not in listed
        if self.name == "rebase":
            assert "write to content/notes/two.md" in self.caplog.text
