"""The files with which a site is served in a container, and checked by GitHub Actions on every push."""

import json
import os
import re
import shlex
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from server.errors import SetupError
from server.formats.yaml.writer import yaml_entry
from server.storage.git.command import LIMIT_S, git_if_possible

COMPOSE = "compose.yaml"
WORKFLOW = ".github/workflows/content.yaml"

_PACKAGE = Path(__file__).parents[2]
_REMOTE = re.compile(r"(https?|ssh)://\S+")
_SHORT = re.compile(r"(?P<user>[\w.-]+@)(?P<host>[\w.-]+):(?P<path>[^/\s]\S*)")
_COMPOSE_TEXT = """\
# `docker compose up` serves this folder at http://127.0.0.1:1337/; what changes in it is served changed.
services:
  quire:
    image: quire
    {build}    user: "{owner}"  # who owns this folder, so that Quire can write to it
    ports: ["127.0.0.1:1337:1337"]
    volumes: [".:/site"]
    restart: unless-stopped
"""
_WORKFLOW_TEXT = """\
# Checks the content on every push and pull request; what is wrong is shown beside its line.
name: content
on: [push, pull_request]
permissions: {{contents: read}}
jobs:
  check:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
        with: {{fetch-depth: 0}}  # timestamps of documents that say none come from the history
      - uses: actions/setup-python@v5
        with: {{python-version: "3.12"}}
      - run: pip install "quire @ git+{repository}"
      - run: quire check{site} --format github
"""


def compose_file(folder: Path, repository: str | None) -> Mapping[str, str]:
    """The compose file of a site; its image is built from Quire's repository, or from a clone of it.

    Raises SetupError where neither is known.
    """
    source = repository_of(repository) or _clone()
    if source is None:
        raise _unknown()
    return {COMPOSE: _COMPOSE_TEXT.format(build=yaml_entry("build", source), owner=_owner(folder))}


def workflow_file(folder: Path, repository: str | None) -> Mapping[str, str]:
    """The workflow of a site, by its path from the site's folder: GitHub reads it at the repository's top.

    Raises SetupError where the address of Quire's repository is not known.
    """
    address = repository_of(repository)
    if address is None:
        raise _unknown()
    here = Path(os.path.realpath(folder))
    told = git_if_possible(_existing(here), "rev-parse", "--show-toplevel", seconds=LIMIT_S)
    top = Path(told.strip()) if told else here
    site = "" if here == top else f" --site {shlex.quote(here.relative_to(top).as_posix())}"
    path = Path(os.path.relpath(top / WORKFLOW, here)).as_posix()
    return {path: _WORKFLOW_TEXT.format(repository=address, site=site)}


def repository_of(told: str | None) -> str | None:
    """The address of the repository that is named, else of that which this Quire is from, where it is known.

    Raises SetupError for what is no address.
    """
    if told is not None:
        address = _as_address(told)
        if address is None:
            raise SetupError("--from", None, f'"{told}" is no address of a repository', "use https://…")
        return address
    if _clone() is None:
        return _installed_from()
    printed = git_if_possible(_PACKAGE.parent, "remote", "get-url", "origin", seconds=LIMIT_S)
    return _as_address(printed or "")


def _installed_from() -> str | None:
    """The address that pip has written down, where it installed from one."""
    try:
        told = json.loads(distribution("quire").read_text("direct_url.json") or "{}")
    except PackageNotFoundError:
        return None
    return _as_address(str(told["url"])) if "vcs_info" in told else None


def _as_address(told: str) -> str | None:
    """What git calls a remote, as an address; None for a path on this machine."""
    short = _SHORT.fullmatch(told.strip())
    text = f"ssh://{short['user']}{short['host']}/{short['path']}" if short else told.strip()
    return text if _REMOTE.fullmatch(text) else None


def _clone() -> str | None:
    """The folder of the clone that this Quire runs from, where it does."""
    root = _PACKAGE.parent
    return str(root) if (root / "Dockerfile").is_file() and (root / ".git").exists() else None


def _existing(folder: Path) -> Path:
    """A folder, or the first one above it that is there."""
    return next(path for path in (folder, *folder.parents) if path.is_dir())


def _owner(folder: Path) -> str:
    """The numbers of the user and group that own a folder, or that would."""
    found = _existing(Path(os.path.realpath(folder))).stat()
    return f"{found.st_uid}:{found.st_gid}"


def _unknown() -> SetupError:
    message = "where Quire is to be installed from is not known"
    return SetupError("--from", None, message, "give the address of its git repository: --from https://…")
