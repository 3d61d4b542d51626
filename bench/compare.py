"""Benchmark of WSGI servers, with an empty app and with Bifolio (`python -m bench servers`)."""

import pickle
import subprocess
import venv
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from statistics import median

from bench.effort import scaled, scaled_seconds
from bench.host import SERVERS
from bench.load import CONNECTIONS, Requests, Result, run
from bench.serving import Serving, hosted
from bench.sites import make_site
from bench.tables import count, ratio, show, size

SECONDS = scaled_seconds(2)
ARTICLES = scaled(1000, 60)
FIRST = "granian"
_REQUESTS = {
    "a document": "/api/articles/2007--article-00007?",
    "a list of 25": "/api/articles?pagination[page]=2",
}
Turns = dict[str, list[Result]]


def measure(folder: Path, rounds: int) -> None:
    """Measure all available servers in alternation."""
    root = folder / "site"
    root.mkdir()
    make_site(root, ARTICLES)
    missing = [name for name in SERVERS if find_spec(name) is None]
    packages = _install(folder, missing[: scaled(len(missing), 1)])
    names = [name for name in SERVERS if find_spec(name) or (packages and (packages / name).is_dir())]
    with ExitStack() as stack:
        sites = {name: stack.enter_context(hosted(name, "site", root, packages)) for name in names}
        answers = {path: sites[FIRST].get(path) for path in _REQUESTS.values()}
        file = folder / "answers"
        file.write_bytes(pickle.dumps(answers))
        empty = {name: stack.enter_context(hosted(name, "empty", file, packages)) for name in names}
        for what, path in _REQUESTS.items():
            length = size(len(answers[path]))
            _table(f"The empty app, {what} ({length})", empty, path, rounds)
            _table(f"Bifolio, {what} ({length}), every request different", sites, path, rounds)


def _install(folder: Path, missing: Sequence[str]) -> Path | None:
    """Install missing servers in a temporary environment, and return the folder of their packages (or
    None).
    """
    if not missing:
        return None
    home = folder / "servers"
    venv.create(home, with_pip=True)
    command = [str(home / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    if subprocess.run([*command, *missing], check=False, capture_output=True).returncode:
        for name in missing:
            if subprocess.run([*command, name], check=False, capture_output=True).returncode:
                print(f"{name} can't be installed here; it is left out")
    found = subprocess.run(
        [str(home / "bin" / "python"), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        capture_output=True,
        text=True,
        check=True,
    )
    return Path(found.stdout.strip())


def _table(title: str, servings: Mapping[str, Serving], path: str, rounds: int) -> None:
    turns: Turns = {name: [] for name in servings}
    for turn in range(rounds):
        for name, serving in servings.items():
            turns[name].append(run(serving, Requests([path], unique=True), SECONDS, turn))
    rows = [[name, *_cells(turns[name], turns[FIRST])] for name in servings]
    head = ["server", "requests/s", "median / p99", f"ratio to {FIRST}"]
    show(f"{title}, {CONNECTIONS} connections", head, rows)


def _cells(results: Sequence[Result], first: Sequence[Result]) -> list[str]:
    latency = f"{median(r.median_ms for r in results):.2f} / {median(r.p99_ms for r in results):.2f} ms"
    ratios = (a.rate / b.rate for a, b in zip(results, first, strict=True))
    return [count(median(r.rate for r in results)), latency, ratio(median(ratios))]
