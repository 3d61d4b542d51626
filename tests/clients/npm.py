"""Installation of packages from npm, once for each package.json. `make npm` installs those of this folder."""

import fcntl
import shutil
import subprocess
import sys
from pathlib import Path

from tests.ci import skipped

HERE = Path(__file__).parent
INSTALL_S = 900.0
_AWAY = ("ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ETIMEDOUT")
_OPTIONS = ("--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error")


def missing_node(least: tuple[int, int] = (0, 0)) -> str | None:
    """Return None if npm and at least version `least` of Node.js are installed. Otherwise, return what is
    missing.
    """
    node = shutil.which("node")
    if not node or not shutil.which("npm"):
        return "there is no Node.js with npm on this machine"
    told = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    major, minor = told.removeprefix("v").split(".")[:2]
    if (int(major), int(minor)) < least:
        return f"it needs Node.js {least[0]}.{least[1]}, and this is {told}"
    return None


def install(folder: Path, *options: str) -> str | None:
    """Install the packages of a package.json, unless they are already installed.

    Return the reason if npm can't reach its registry, and None otherwise. If another process is installing
    the same packages, wait for this process. Raises SystemExit with npm's output if the installation fails
    for a different reason.
    """
    with (folder / "package.json").open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        return _install(folder, options)


def _install(folder: Path, options: tuple[str, ...]) -> str | None:
    wanted = (folder / "package.json").read_bytes()
    done = folder / "node_modules" / ".installed"
    if done.exists() and done.read_bytes() == wanted:
        return None
    command = ["npm", "install", *_OPTIONS, *options]
    made = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=INSTALL_S)
    if made.returncode == 0:
        done.write_bytes(wanted)
        return None
    if any(sign in made.stderr for sign in _AWAY):
        return "npm can't reach its registry"
    raise SystemExit(f"npm install failed in {folder}\n{made.stderr}")


def main() -> int:
    """Implementation of `make npm`. Return the exit status."""
    reason = missing_node() or install(HERE, "--legacy-peer-deps")
    return skipped("npm", reason) if reason else 0


if __name__ == "__main__":
    sys.exit(main())
