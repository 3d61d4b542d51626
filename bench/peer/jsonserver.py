"""Runner of json-server with a data file (db.json)."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.host import HOST
from bench.peer.install import node
from bench.serving import Serving, free_port, running


@contextmanager
def json_server(packages: Path, db: Path) -> Iterator[Serving]:
    port = free_port()
    script = packages / "node_modules/json-server/lib/cli/bin.js"
    command = [node() or "node", str(script), "--quiet", "--host", HOST, "--port", str(port), str(db)]
    with running(command, port, {"NODE_ENV": "production"}) as serving:
        yield serving
