"""Copies of the repository's own site, with the files that a server derives from it in the background.

Resizing the pictures and writing the search index takes a server 2.3 s of processor time, and tests start
dozens of servers of this site.
"""

import atexit
import shutil
import subprocess
import sys
import tempfile
import threading
from functools import cache
from pathlib import Path

from server.jobs.job import Clock, JobContext, Timing
from server.paths import state_folder
from server.search.sync import Sync
from tests.sites import opened

ROOT = Path(__file__).parent.parent
FORMATS, SEARCH = "formats", "search"  # folders in .bifolio/


def copy_site(folder: Path) -> None:
    """Copy the site's content, content types and settings into a folder."""
    for name in ("content", "content-types"):
        shutil.copytree(ROOT / name, folder / name)
    shutil.copy(ROOT / "site.yaml", folder)


def copy_derived(source: Path, folder: Path) -> None:
    """Copy the resized pictures and the search index from one `.bifolio` folder to the site in a folder."""
    for name in (FORMATS, SEARCH):
        shutil.copytree(source / name, state_folder(folder) / name)


def write_search_index(folder: Path) -> None:
    """Write the search index of the site in a folder, as a server does in the background."""
    sync = Sync(opened(folder), Timing())
    context = JobContext(Clock(), threading.Event(), lambda: None, False)
    while not sync.done.is_set():
        sync.run(context)
    sync.close()


@cache
def derived_files() -> Path:
    """Return a `.bifolio` folder with the resized pictures and the search index of the site."""
    folder = Path(tempfile.mkdtemp(prefix="bifolio-example-site-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    copy_site(folder / "site")
    command = [sys.executable, "-m", "server", "export", "--site", str(folder / "site"), str(folder / "out")]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    write_search_index(folder / "site")
    return folder / "site/.bifolio"
