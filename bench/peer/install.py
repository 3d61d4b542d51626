"""Installation of the other servers from npm, once, in a cache folder outside the repository."""

import json
import os
import shutil
import subprocess
from pathlib import Path

APP = Path(__file__).parent / "app"
STRAPI = str(json.loads((APP / "package.json").read_bytes())["dependencies"]["@strapi/strapi"])
JSON_SERVER = "0.17.4"
IPX = "3.1.1"
_COMPILED = "node_modules/better-sqlite3/build/Release/better_sqlite3.node"


def cache() -> Path:
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("BIFOLIO_PEERS") or Path(home, "bifolio", "peers"))


def node() -> str | None:
    return shutil.which("node") if shutil.which("npm") else None


def install_strapi() -> Path:
    folder = cache() / f"strapi-{STRAPI}"
    _install(folder, json.loads((APP / "package.json").read_bytes()))
    if not (folder / _COMPILED).exists():
        raise SystemExit(f"better-sqlite3 did not compile in {folder}: it needs a C++ compiler and Python")
    return folder


def install_json_server() -> Path:
    folder = cache() / f"json-server-{JSON_SERVER}"
    _install(folder, {"name": "peer", "private": True, "dependencies": {"json-server": JSON_SERVER}})
    return folder


def install_ipx() -> Path:
    """Install ipx, a server for images, with sharp, the library that it uses."""
    folder = cache() / f"ipx-{IPX}"
    _install(folder, {"name": "peer", "private": True, "dependencies": {"ipx": IPX}})
    return folder


def _install(folder: Path, package: dict[str, object]) -> None:
    # Skip the installation, which takes minutes, if it has already been done.
    text, done = json.dumps(package, indent=2), folder / "installed.json"
    if done.exists() and done.read_text() == text:
        return
    print(f"installing into {folder}", flush=True)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "package.json").write_text(text)
    command = ["npm", "install", "--no-audit", "--no-fund", "--loglevel=error"]
    if subprocess.run(command, cwd=folder, check=False, stdout=subprocess.DEVNULL).returncode:
        raise SystemExit(f"npm could not install into {folder}; its own words are above")
    done.write_text(text)
