"""Benchmark of `bifolio migrate`: the rename of an attribute that every document has."""

import resource
import time
from pathlib import Path

from bench.sites import make_site
from bench.tables import count, ratio, show
from server.service.authorship import caller_of_command, writes_of_command
from server.service.migrations import preview_migration, write_migration
from server.service.opening import Mode, open_site
from server.site.migrations.migration import Migration
from server.site.migrations.plan import NewMigration


def measure(folder: Path, articles: int) -> None:
    """Print how long planning and writing take, compared with merely reading the files."""
    root = folder / "migrating"
    root.mkdir()
    make_site(root, articles)
    began = time.perf_counter()
    for path in (root / "content").rglob("*"):
        if path.is_file():
            path.read_bytes()
    read = time.perf_counter() - began
    opened = open_site(root, Mode.COMMAND)
    writes, caller = writes_of_command(opened), caller_of_command(opened)
    request = NewMigration(Migration("rename", {"attribute": "article.title", "to": "headline"}))
    rows = []
    for name, act in (("plan", preview_migration), ("plan and write", write_migration)):
        began, busy = time.perf_counter(), _processor_time()
        act(writes, caller, request)
        took, busy = time.perf_counter() - began, _processor_time() - busy
        figures = (f"{took:.2f} s", f"{busy:.2f} s", f"{took / articles * 1000:.2f} ms", ratio(took / read))
        rows.append([name, *figures])
    head = ["rename of an attribute", "time", "processor time", "per document", "next to a plain read"]
    show(f"Migrations, {count(articles)} articles", head, rows, f"A plain read takes {read:.2f} s.")


def _processor_time() -> float:
    """Return the processor time of this process and of the processes that it has started, in seconds."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)
