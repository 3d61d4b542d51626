"""Three clones of one site, each served by its own process, with a shared git remote and a shared database.

The remote is served by `git daemon`, and the accounts are in PostgreSQL, so that both can be killed.
"""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from server.auth.accounts import Accounts
from tests.buckets import KEYS, S3
from tests.git import commit_all, git
from tests.postgres import Postgres
from tests.servers import ROOT, children, free_port, kill_all, start, wait, workers
from tests.sites import collection, schema, write
from tests.waiting import until

NAMES = ("one", "two", "three")
COUNTERS = tuple(f"c{i:02d}" for i in range(12))
EDITED = tuple(f"e{i}" for i in range(6))  # documents whose attribute `a` is changed in the editor's clone
SECRET = "s" * 40
SETTINGS = """\
git: {{remote: origin, branch: main, follow: {follow}, push: {push}, committer: "Bifolio <b@example.org>"}}
{accounts}{media}search: {{index: false}}
roles:
  public:
    note: [find, findOne, create, update, delete]
    page: [find, findOne]
    counter: [find, findOne]
    hand: [find, findOne]
    board: [find, update]
    upload: [find, findOne]
"""


def site_files(push: str, database: str, media: str, notes: int, follow: str = "1s") -> dict[str, str]:
    """Return the files of the site that all machines serve. Without `database`, each machine has its own
    accounts.
    """
    accounts = f"accounts: {database}\n" if database else ""
    text = '{{\n  "title": "Note {0}",\n  "text": "-",\n  "code": "note-{0}"\n}}\n'
    return {
        **{f"content/notes/n{number}.json": text.format(number) for number in range(notes)},
        **collection(
            "note", {"title": "string", "text": "string", "code": {"type": "string", "unique": True}}
        ),
        **collection("page", {"title": "string"}, drafts=True),
        **collection("counter", {"n": "integer"}),
        **collection("hand", {"a": "string", "b": "string"}),
        "content-types/board.json": schema("board", {"title": "string", "text": "string"}, single=True),
        **{f"content/counters/{name}.json": '{\n  "n": 0\n}\n' for name in COUNTERS},
        **{f"content/hands/{name}.json": '{\n  "a": "-",\n  "b": "-"\n}\n' for name in (*NAMES, *EDITED)},
        "content/board.json": '{\n  "title": "-",\n  "text": "-"\n}\n',
        "site.yaml": SETTINGS.format(push=push, follow=follow, accounts=accounts, media=media),
    }


@dataclass(slots=True)
class Machine:
    """A machine: the folder of its clone, and the server process while it is running."""

    name: str
    root: Path
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[str] | None = None
    environment: dict[str, str] = field(default_factory=dict)  # in addition to the test's own environment

    def start(self) -> None:
        """Serve the clone with two workers, and wait until the server responds."""
        self.launch()
        assert self.process
        wait(self.process, self.port)

    def launch(self, *more: str) -> None:
        """Start serving the clone, with additional options.

        A different `environment` only applies if a new process is started.
        """
        options = ("--workers", "2", "--log", "json", *more)
        environment = {**os.environ, "BIFOLIO_JWT_SECRET": SECRET, "PYTHONPATH": str(ROOT), **KEYS}
        environment |= self.environment
        is_real = bool(self.environment)
        with (self.root.parent / f"{self.name}.log").open("ab") as log:
            self.process = start(
                self.root, self.port, *options, output=log, environment=environment, real=is_real
            )

    def kill(self) -> None:
        """Kill the server and all its processes at once, as a power failure would."""
        assert self.process
        if self.process.poll() is None:
            kill_all(self.process)

    def kill_worker(self) -> None:
        """Kill one of the server's workers."""
        assert self.process
        for worker in sorted(workers(self.process.pid))[:1]:
            with suppress(ProcessLookupError):
                os.kill(worker, signal.SIGKILL)

    def memory(self) -> int:
        """The resident memory of the machine's largest process, in bytes."""
        assert self.process
        below = {self.process.pid, *children(self.process.pid), *workers(self.process.pid)}
        return max(_resident(pid) for pid in below)

    def head(self) -> str:
        """The commit that is checked out in the machine's clone."""
        return git(self.root, "rev-parse", "HEAD").strip()


@dataclass(slots=True)
class Remote:
    """A bare repository that a `git daemon` serves, which can be killed."""

    repository: Path
    port: int = field(default_factory=free_port)
    process: "subprocess.Popen[bytes] | None" = None

    @property
    def url(self) -> str:
        return f"git://127.0.0.1:{self.port}/{self.repository.name}"

    def start(self) -> None:
        command = ["git", "daemon", f"--base-path={self.repository.parent}", "--export-all", "--reuseaddr"]
        command += ["--enable=receive-pack", "--listen=127.0.0.1", f"--port={self.port}"]
        null = subprocess.DEVNULL
        self.process = subprocess.Popen(command, stdout=null, stderr=null, start_new_session=True)
        asked = ["git", "ls-remote", self.url]
        until(lambda: subprocess.run(asked, capture_output=True, check=False).returncode == 0)

    def kill(self) -> None:
        """Kill the git server with all its child processes, possibly in the middle of a push."""
        assert self.process
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(10)
        for lock in self.repository.rglob("*.lock"):  # as an administrator does after a crash
            lock.unlink(missing_ok=True)

    def head(self) -> str:
        """The latest commit of the remote's branch."""
        return git(self.repository, "rev-parse", "main").strip()


@dataclass(slots=True)
class Cluster:
    """The whole test setup in one folder: machines, remote, database and media bucket."""

    folder: Path
    database: Postgres | None
    push: str
    bucket: S3 | None = None
    notes: int = 200  # the number of notes at the start
    follow: str = "1s"  # how often each machine fetches if it gets no notification
    names: Sequence[str] = NAMES
    settings: str = ""  # additional lines for site.yaml
    files: Mapping[str, str] = field(default_factory=dict)  # additional files for the site
    machines: list[Machine] = field(default_factory=list)
    remote: Remote = field(init=False)
    editor: Path = field(init=False)
    token: str = ""

    def __post_init__(self) -> None:
        first = self.folder / "first"
        media = self.bucket.settings() if self.bucket else ""
        files = site_files(self.push, self.url, media, self.notes, self.follow)
        write(first, {**files, **self.files, "site.yaml": files["site.yaml"] + self.settings})
        commit_all(first)
        git(self.folder, "clone", "-q", "--bare", str(first), "remote.git")
        git(self.folder / "remote.git", "config", "receive.denyNonFastForwards", "true")
        self.remote = Remote(self.folder / "remote.git")
        self.remote.start()
        self.editor = self.clone("editor")
        self.machines = [Machine(name, self.clone(name)) for name in self.names]

    @property
    def url(self) -> str:
        """The URL of the database. It is "" if each machine has its own database."""
        return self.database.url if self.database else ""

    def clone(self, name: str) -> Path:
        """Clone the remote into the cluster's folder."""
        git(self.folder, "clone", "-q", self.remote.url, name)
        return self.folder / name

    def start(self) -> None:
        """Start all machines, and create the API token for the writers."""
        accounts = Accounts(self.machines[0].root, self.url)
        self.token = accounts.create_token("writer", "full-access")
        accounts.close()
        for machine in self.machines:
            machine.start()

    def kill_database(self) -> None:
        """Kill PostgreSQL with all its processes, as a power failure would."""
        assert self.database
        first = int((self.database.folder / "data" / "postmaster.pid").read_text().splitlines()[0])
        for process in (first, *children(first)):
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        time.sleep(0.2)

    def start_database(self) -> None:
        """Start PostgreSQL again as soon as the killed processes are gone."""
        assert self.database
        for left in reversed(range(60)):
            try:
                self.database.start()
            except subprocess.CalledProcessError:
                if not left:
                    raise
                time.sleep(0.2)
            else:
                return

    def end(self) -> None:
        """Kill all running machines and the git server."""
        for machine in self.machines:
            if machine.process and machine.process.poll() is None:
                machine.kill()
        if self.remote.process and self.remote.process.poll() is None:
            self.remote.kill()

    def remove(self) -> None:
        """Delete the cluster's folder."""
        shutil.rmtree(self.folder, ignore_errors=True)


def _resident(pid: int) -> int:
    with suppress(OSError):
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")
    return 0
