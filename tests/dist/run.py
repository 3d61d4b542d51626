"""Implementation of `make test-dist`: install the package in an empty environment, create a site and serve
it.

The environment is created with the installation steps of the Dockerfile. The Dockerfile's other steps need
Docker.
"""

import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.clients.npm import missing_node
from tests.servers import ROOT, free_port, get, wait
from tests.signals import restore_in_children


MOST_FILES = 12  # limit for the bundled studio; without bundling, there are about a hundred files
DOCKERFILE = (ROOT / "Dockerfile").read_text()
# The environment without the variables with which Python would find the modules in this folder.
OWN = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}


def main() -> int:
    """Install the package that `make dist` built, and use it as its documentation says. Return 0
    on success.
    """
    restore_in_children()
    (wheel,) = (ROOT / "dist").glob("bifolio-*.whl")
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        install(wheel, scratch / "venv")
        bifolio = scratch / "venv/bin/bifolio"
        told = run(bifolio, "--version", cwd=scratch)
        commit = run("git", "rev-parse", "--short", "HEAD", cwd=ROOT).strip()
        assert f"commit {commit}, " in told, told
        run(bifolio, "init", "site", "--yes", cwd=scratch)
        serve(bifolio, scratch / "site")
    print(f"{wheel.name}: {told.strip()} was installed, made a site and served it")
    return 0


def install(wheel: Path, environment: Path) -> None:
    """Install the package as the Dockerfile does, and import all modules."""
    (words,) = re.findall(r"pip --python \S+ install (.*?)(?: \\\n|$)", DOCKERFILE)
    packages = [re.sub(r"^\.(?=\[)", str(wheel), word) for word in shlex.split(words) if word != "--no-cache-dir"]
    run(sys.executable, "-m", "venv", "--without-pip", environment)
    pip = [sys.executable, "-m", "pip", "--python", environment / "bin/python"]
    run(*pip, "install", "--quiet", "--disable-pip-version-check", *packages)
    (imports,) = re.findall(r"&& (/opt/bifolio/bin/python -c .*?\")\n", DOCKERFILE, re.S)
    run("sh", "-c", imports.replace("/opt/bifolio", str(environment)), cwd=environment)


def run(*command: object, cwd: Path | None = None) -> str:
    """Run a command and return its output. Raises CalledProcessError if the command fails."""
    words = list(map(str, command))
    return subprocess.run(words, cwd=cwd, env=OWN, stdout=subprocess.PIPE, text=True, check=True).stdout


def see_studio(port: int) -> None:
    """Fetch the studio's page and all files that it loads at first. The files must be bundled if bundling was
    possible.
    """
    page = get(port, "/studio")[1].decode()
    files = re.findall(r'(?:href|src)="(studio/-/[^"]+)"', page)
    assert {file.rpartition("/")[2] for file in files} >= {"main.js", "page.css"}, page
    for file in files:
        assert get(port, f"/{file}")[0] == 200, file
    print(f"the studio begins with {len(files)} files")
    assert len(files) < MOST_FILES or missing_node() is not None, files


def serve(bifolio: Path, site: Path) -> None:
    """Serve a site created by `bifolio init`, and request everything that needs data files of the package."""
    port = free_port()
    command = [str(bifolio), "serve", "--site", str(site), "--port", str(port)]
    process = subprocess.Popen(
        command, cwd=site, env=OWN, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        wait(process, port)
        for path in ("/", "/docs", "/docs/page.js", "/openapi.json", "/api/articles"):
            status, body = get(port, path)
            assert status == 200, (path, status, body)
            assert body, path
        see_studio(port)
        (healthy,) = re.findall(r"^HEALTHCHECK.*\n +CMD (\[.*\])$", DOCKERFILE, re.M)
        run(*json.loads(healthy.replace(":1337/", f":{port}/")))
    finally:
        process.terminate()
        process.communicate(timeout=20)


if __name__ == "__main__":
    sys.exit(main())
