"""Benchmark of the git history: writes with commits, past states, versions and branches."""
# Every commit changes two articles. Every tenth commit also changes the first article, which gets hundreds of
# versions.

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Any

from bench.effort import scaled
from bench.serving import Serving, bifolio
from bench.sites import WORDS, article_id, article_path, git, make_site
from bench.tables import count, ratio, show
from bench.writing import writing_token

ARTICLES, COMMITS = scaled(2500, 50), scaled(5000, 60)
OFTEN = 10  # every tenth commit also changes the first article
AUTHORS = ("Ada", "Brahim", "Chiara", "Dmitri", "Eun-ji")
FIRST = 1_710_000_000  # Unix time of the first commit; one commit per hour follows
WRITES, READS = scaled(40), scaled(12)
BRANCH = "next"
LIST = "/api/articles?fields=title,publishedOn&populate=author&sort=publishedOn"
MODES = {"off": "", "each": "git: {commit: each}", "2 s": "git: {commit: 2s}"}

Row = list[str]


def measure(root: Path, articles: int, commits: int) -> None:
    """Create a site with a history below `root`, and print all measurements."""
    sites = {mode: root / mode.replace(" ", "") for mode in MODES}
    first = sites["off"]
    first.mkdir(parents=True)
    make_site(first, articles)
    ids = make_history(first, articles, commits)
    for mode, site in sites.items():
        if site != first:
            shutil.copytree(first, site)
            git(site, "status")  # This updates git's index for the copied files.
        with (site / "site.yaml").open("a") as settings:
            settings.write(f"\n{MODES[mode]}\n")
        git(site, "commit", "--quiet", "--all", "--message", "settings", when=_when(commits))
    about = f"{count(commits)} commits, {count(articles)} articles"
    head = ["request", "median", "longest", "ratio to the list"]
    show(f"History, {about}", head, _reads(first, articles, ids))
    head = ["write", "median", "longest", "ratio to off"]
    note = "Writes to a branch or with Prefer: merge use the site with git.commit: off."
    show(f"Writes, {about}", head, _writes(sites, articles), note)


def make_history(root: Path, articles: int, commits: int) -> list[str]:
    """Add commits by multiple authors, and return the commits' ids, oldest first."""
    texts: dict[str, str] = {}
    lines: list[bytes] = []
    for number in range(commits):
        changed = {2 * number % articles, (2 * number + 1) % articles, *([0] if number % OFTEN == 0 else [])}
        lines.append(_commit(number, "from refs/heads/main^0\n" if number == 0 else ""))
        for path in map(article_path, sorted(changed)):
            text = texts[path] = _edited(texts.get(path) or (root / path).read_text(), number)
            data = text.encode()
            lines.append(b"M 100644 inline %b\ndata %d\n%b\n" % (path.encode(), len(data), data))
    git(root, "fast-import", "--quiet", given=b"".join(lines))
    git(root, "reset", "--quiet", "--hard")
    ids = git(root, "rev-list", "--reverse", f"--max-count={commits}", "HEAD").split()
    git(root, "branch", BRANCH)
    return ids


def _commit(number: int, parent: str) -> bytes:
    name = AUTHORS[number % len(AUTHORS)]
    who = f"{name} <{name.lower()}@example.org> {_when(number)} +0000"
    message = f"Change number {number}"
    head = f"commit refs/heads/main\nauthor {who}\ncommitter {who}\n"
    return f"{head}data {len(message)}\n{message}\n{parent}".encode()


def _when(number: int) -> int:
    return FIRST + number * 3600


def _edited(text: str, number: int) -> str:
    head, _, body = text.rpartition("\n---\n")
    head = "\n".join(f"title: Title {number}" if s.startswith("title:") else s for s in head.split("\n"))
    lines = body.split("\n")
    lines[number % len(lines)] = f"Line {number} {WORDS[number % len(WORDS)]}"
    return f"{head}\n---\n" + "\n".join(lines)


# --- reading -------------------------------------------------------------------------------------


def _reads(root: Path, articles: int, ids: list[str]) -> list[Row]:
    """Measure reads of the history, first after a cold start and then again later."""
    token = writing_token(root)
    shutil.rmtree(root / ".bifolio/cache", ignore_errors=True)
    often, other = (f"/history/articles/{article_id(i)}" for i in (0, articles // 2))
    with bifolio(root, workers=1) as serving:
        client = Client(serving, token)
        client.ask("GET", LIST)
        rows = [_row("the history of a document, first request after a cold start", [client.seconds(other)])]
        rows += _past(client, ids)
        later: dict[str, Callable[[int], str]] = {
            "the history of a document": lambda i: f"/history/articles/{article_id(i)}",
            f"the history of a document with {count(len(ids) / OFTEN)} versions": lambda i: (
                f"{often}?page={i + 1}"
            ),
            "diff with an earlier commit": lambda i: f"{other}/diff?from={ids[len(ids) // 2 + i]}",
            "blame": lambda i: f"/history/articles/{article_id(i + 1)}/blame",
            "blame of 500 versions": lambda i: f"{often}/blame?n={i}",
            "history of the site by an author": lambda i: f"/history?author={AUTHORS[i % 5]}&page={i + 1}",
        }
        rows += [_row(name, [client.seconds(path(i)) for i in range(READS)]) for name, path in later.items()]
    commands = {"bifolio log, of the site": [], "bifolio log, of a document": [f"article/{article_id(1)}"]}
    return rows + [_row(name, [_command(root, more) for _ in range(3)]) for name, more in commands.items()]


def _past(client: "Client", ids: list[str]) -> list[Row]:
    """Measure reads of past states and, for comparison, of the current one."""
    now = [client.seconds(f"{LIST}&n={i}") for i in range(READS)]
    rows = [_row("a list of 25", now)]
    step = max(1, len(ids) // 100)
    unseen = {"a recent commit": ids[-2 : -2 - READS : -1], "an old commit": ids[: READS * step : step]}
    for name, commits in unseen.items():
        taken = [client.seconds(f"{LIST}&at={commit}") for commit in commits]
        rows.append(_row(f"the same at {name}, first request", taken, median(now)))
        again = [client.seconds(f"{LIST}&at={commits[-1]}&n={i}") for i in range(READS)]
        rows.append(_row(f"the same at {name}, later requests", again, median(now)))
    return rows


def _command(root: Path, more: list[str]) -> float:
    began = time.perf_counter()
    command = [sys.executable, "-m", "server", "log", "--site", str(root), *more]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


# --- writing -------------------------------------------------------------------------------------


def _writes(sites: Mapping[str, Path], articles: int) -> list[Row]:
    """Measure writes with and without commits, in alternation."""
    taken: dict[str, list[float]] = {}
    half = articles // 2  # The articles after this one change only on the branch.
    with ExitStack() as opened:
        clients = {
            mode: Client(opened.enter_context(bifolio(root, workers=1)), writing_token(root))
            for mode, root in sites.items()
        }
        off, each = clients["off"], clients["each"]
        kinds: dict[str, Callable[[str, int], float]] = {
            f"git.commit: {mode}": client.change for mode, client in clients.items()
        }
        kinds |= {
            "to a branch": lambda path, i: off.change(f"{path}&branch={BRANCH}", i),
            "with Prefer: merge, after another write": off.merge,
            "a branch merged, git.commit: each": lambda _, i: each.merge_branch(article_id(half + i), i),
        }
        for i in range(-3, WRITES):  # The first writes are a warm-up.
            for name, write in kinds.items():
                seconds = write(f"/api/articles/{article_id(i % articles)}?fields=slug", i)
                taken.setdefault(name, []).extend([seconds] if i >= 0 else [])
    before = median(taken["git.commit: off"])
    return [_row(name, seconds, before) for name, seconds in taken.items()]


class Client:
    """Connection to a server. All requests contain a token."""

    def __init__(self, serving: Serving, token: str) -> None:
        self._connection = serving.connect()
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def ask(
        self, method: str, path: str, data: Mapping[str, Any] | None = None, **headers: str
    ) -> tuple[float, str]:
        """Send a request. Return its duration in seconds and the ETag. Raises RuntimeError."""
        body = json.dumps({"data": data}) if data is not None else None
        began = time.perf_counter()
        self._connection.request(method, path, body, self._headers | headers)
        answer = self._connection.getresponse()
        said = answer.read()
        taken = time.perf_counter() - began
        if answer.status != 200:
            raise RuntimeError(f"{method} {path}: {answer.status} {said[:300]!r}")
        return taken, answer.headers.get("ETag", "")

    def seconds(self, path: str) -> float:
        return self.ask("GET", path)[0]

    def change(self, path: str, number: int) -> float:
        return self.ask("PUT", path, {"title": f"Changed {number} {time.time_ns()}"})[0]

    def merge(self, path: str, number: int) -> float:
        _, tag = self.ask("GET", path)
        self.change(path, number)
        summary = {"summary": f"Changed {number} {time.time_ns()}"}
        return self.ask("PUT", path, summary, **{"If-Match": tag, "Prefer": "merge"})[0]

    def merge_branch(self, document_id: str, number: int) -> float:
        self.change(f"/api/articles/{document_id}?fields=slug&branch={BRANCH}", number)
        return self.ask("POST", f"/branches/{BRANCH}/merge")[0]


def _row(name: str, taken: list[float], before: float | None = None) -> Row:
    cells = [f"{seconds * 1000:,.1f} ms" for seconds in (median(taken), max(taken))]
    return [name, *cells, ratio(median(taken) / before) if before else ""]
