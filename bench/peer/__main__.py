"""`python -m bench.peer` (`make bench-peers`): compares Bifolio's speed with Strapi and json-server.

All three are installed, filled with the same documents, and measured in alternation on 127.0.0.1, in one run.
The first run takes minutes, because npm installs and compiles packages. The installed packages are stored in
a cache folder. With `--stand-in`, a second Bifolio is filled through its API and measured instead of Strapi,
to check quickly that the command works.
"""

import argparse
import hashlib
import json
import os
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bench.differential.granting import our_token
from bench.effort import scaled, scaled_seconds
from bench.load import generator
from bench.peer import compare, filling
from bench.peer.install import APP, JSON_SERVER, STRAPI, install_json_server, install_strapi, node
from bench.peer.jsonserver import json_server
from bench.peer.rows import LEAST, rows
from bench.peer.strapi import make_project, strapi, token
from bench.serving import Serving, bifolio
from bench.sites import make_site
from server.api.wsgi_server import worker_count

BEGAN = time.perf_counter()


def main() -> int:
    """Run the command and return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m bench.peer", description=__doc__)
    parser.add_argument("--articles", type=int, default=scaled(1000, LEAST))
    parser.add_argument("--rounds", type=int, default=scaled(3, 1), help="how many turns each of them gets")
    parser.add_argument("--seconds", type=int, default=scaled_seconds(2), help="how long a turn is")
    parser.add_argument("--stand-in", action="store_true", help="a second Bifolio instead of Strapi")
    parser.add_argument(
        "--workers", type=int, default=worker_count(None), help="of Bifolio and of the empty app"
    )
    parser.add_argument("--json", type=Path, default=Path("build/bench-peers.json"), help="where to write")
    options = parser.parse_args()
    if not node():
        print("bench-peers: SKIPPED, there is no Node.js with npm on this machine")
        return int(os.environ.get("CI") == "true")
    about = _about(options)
    print(f"{about['python']}, {about['system']}; load by {about['load']}; {about['date']}")
    peer = "a second Bifolio in place of Strapi" if options.stand_in else f"Strapi {STRAPI}"
    print(f"{peer}, json-server {JSON_SERVER}; Bifolio and the empty app with {about['workers']} workers")
    with tempfile.TemporaryDirectory(prefix="bifolio-peers-") as folder:
        measured = _measure(Path(folder), options)
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps({"about": about, "rows": measured}, indent=1) + "\n")
    print(f"\nmeasured in {time.perf_counter() - BEGAN:.0f} s; {options.json} has the figures")
    return 0


def _measure(folder: Path, options: argparse.Namespace) -> list[dict[str, object]]:
    other = install_json_server()
    _say(f"making {options.articles:,} articles")
    root = folder / "site"
    root.mkdir()
    make_site(root, options.articles)
    with ExitStack() as stack:
        ours = stack.enter_context(bifolio(root, options.workers))
        documents = filling.read_documents(ours)
        filled = (
            _run_second_bifolio(folder, root, documents)
            if options.stand_in
            else _run_filled_strapi(root, documents)
        )
        reference, ids = stack.enter_context(filled)
        filling.write_db(folder / "db.json", documents)
        third = stack.enter_context(json_server(other, folder / "db.json"))
        servers = compare.Servers(ours, reference, third)
        asked = rows(documents, ids)
        _say("comparing what they answer")
        compare.check(servers, asked)
        _say("measuring")
        return compare.measure(servers, asked, folder, options.rounds, options.seconds, options.workers)


@contextmanager
def _run_second_bifolio(
    folder: Path, root: Path, documents: filling.Documents
) -> Iterator[tuple[Serving, filling.Ids]]:
    """Context manager: run a second Bifolio, filled in the same way as Strapi."""
    other = folder / "stand-in"
    shutil.copytree(root / "content-types", other / "content-types")
    shutil.copyfile(root / "site.yaml", other / "site.yaml")
    (other / "content").mkdir()
    with bifolio(other, 1) as serving:
        made = our_token(other, "peer", "full-access", [])
        yield serving, filling.fill_strapi(serving, made, documents, _say)


@contextmanager
def _run_filled_strapi(root: Path, documents: filling.Documents) -> Iterator[tuple[Serving, filling.Ids]]:
    """Context manager: run Strapi with the documents. A project that was already filled is reused."""
    packages, types = install_strapi(), root / "content-types"
    parts = [json.dumps(documents).encode()]
    parts += [path.read_bytes() for path in sorted(APP.rglob("*")) if path.is_file()]
    project = packages / "projects" / f"bench-{hashlib.sha256(b''.join(parts)).hexdigest()[:12]}"
    done = project / "ids.json"
    if not done.exists():
        shutil.rmtree(project, ignore_errors=True)
        make_project(project, types)
    with strapi(packages, project) as serving:
        if not done.exists():
            ids = filling.fill_strapi(serving, token(project), documents, _say)
            done.write_text(json.dumps(ids))
        yield serving, json.loads(done.read_text())


def _say(what: str) -> None:
    print(f"{time.perf_counter() - BEGAN:4.0f} s  {what}", file=sys.stderr, flush=True)


def _about(options: argparse.Namespace) -> dict[str, str]:
    return {
        "python": f"Python {platform.python_version()}",
        "system": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "load": f"{generator()}, {compare.CONNECTIONS} connections",
        "date": time.strftime("%Y-%m-%d"),
        "articles": f"{options.articles}",
        "workers": f"{options.workers}",
        "strapi": STRAPI,
        "json-server": JSON_SERVER,
    }


if __name__ == "__main__":
    sys.exit(main())
