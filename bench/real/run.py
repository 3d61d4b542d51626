"""Test of one tree, from its archive to its row in the table."""

import http.client
import json
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from bench.host import HOST
from bench.real.client import TIMEOUT_S, Client
from bench.real.content import make_content
from bench.real.differences import Differences
from bench.real.layout import ContentType, claimed, documents, load_types
from bench.real.migrations import rename_there_and_back
from bench.real.reader import read
from bench.real.trees import Tree, commit, list_files, unpack
from bench.real.values import compare
from bench.real.writes import choose_documents, write_changed, write_unchanged
from bench.serving import bifolio
from server.auth.accounts import Accounts
from tests.site.unsaved import compare_edits

PARAMETER = re.compile(r"\{(\w+)\}")
RENAMES = 4  # number of attributes to rename in each tree
EDITS, MOST_EDITS, SEED = 2, 10, 1  # unsaved random edits in each tree; each takes a second
NO_INDEX = "\nsearch: {index: false}\n"  # The search index is turned off, because nothing is searched.
PARAMETERS = {"locale": "en", "slug": "slug-first"}


@dataclass(slots=True)
class Outcome:
    """The results for one tree, which are one row in the table."""

    tree: Tree
    files: int = 0
    types: int = 0
    locales: int = 0
    documents: int = 0
    problems: int = 0
    compared: int = 0
    unchanged: int = 0
    changed: int = 0
    seconds: float = 0
    differences: Differences = field(default_factory=Differences)


def run(tree: Tree, source: Path, folder: Path, reader: Path, limit: int | None) -> Outcome:
    """Serve a tree, compare its values, and write at most `limit` documents (or all if it is None)."""
    began = time.monotonic()
    outcome = Outcome(tree)
    root = unpack(source, tree.name, folder)
    outcome.files = len(list_files(root))
    if tree.defines_types:
        make_content(root)
    if tree.defines_types or _init(root, outcome.differences):
        with (root / "site.yaml").open("a") as settings:
            settings.write(NO_INDEX)
        commit(root, "content types")
        outcome.problems = _check(root, outcome.differences)
        if not tree.defines_types:
            _edit(root, MOST_EDITS if limit is None else EDITS, outcome.differences)
        rename_there_and_back(root, None if limit is None else RENAMES, outcome.differences)
        _serve(root, reader, limit, outcome)
    outcome.seconds = time.monotonic() - began
    return outcome


def _serve(root: Path, reader: Path, limit: int | None, outcome: Outcome) -> None:
    types, locales = load_types(root), _locales(root)
    outcome.types, outcome.locales = len(types), len(locales)
    readings = read(reader, root, claimed(types, locales, list_files(root)))
    accounts = Accounts(root)
    token = accounts.create_token("real", "full-access")
    accounts.close()
    with bifolio(root) as server:
        client = Client(http.client.HTTPConnection(HOST, server.port, timeout=TIMEOUT_S), token)
        found = documents(types, locales, readings.values())
        comparison = compare(client, types, locales, found, outcome.differences)
        outcome.documents, outcome.compared = len(found), comparison.compared
        written = choose_documents(comparison.served, limit)
        write_unchanged(client, root, written, outcome.differences)
        outcome.unchanged = len(written)
        outcome.changed = write_changed(client, root, reader, written, outcome.differences)
        _request(client, root, types, outcome.differences)
        client.connection.close()


def _init(root: Path, differences: Differences) -> bool:
    done = _command("init", str(root), "--yes")
    if done.returncode:
        differences.add("init: refused", done.stderr.strip().splitlines()[-1])
    return done.returncode == 0


def _check(root: Path, differences: Differences) -> int:
    """Run `bifolio check` and return the number of problems."""
    done = _command("check", "--format", "json", "--site", str(root))
    try:
        found: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        differences.add("check: failed", done.stderr.strip()[-200:])
        return 0
    return len(found["problems"])


def _edit(root: Path, edits: int, differences: Differences) -> None:
    """Make random edits without saving them, and compare the language server's problems with those that
    `bifolio check` finds in a copy in which the same texts are saved.
    """
    saved = root.with_name(f"{root.name}-saved")
    shutil.copytree(root, saved, symlinks=True)
    try:
        compare_edits(root, saved, SEED, edits, with_fixes=False)
    except AssertionError as error:
        differences.add("language server: other problems than check", str(error))
    shutil.rmtree(saved)


def _command(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "server", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def _locales(root: Path) -> list[str]:
    path = root / "site.yaml"
    settings = yaml.safe_load(path.read_bytes()) if path.exists() else {}
    described = (settings or {}).get("locales", {})
    available: list[str] = described.get("available", [])
    default = described.get("default") or next(iter(available), "en")
    return [default, *(locale for locale in available if locale != default)]


def _request(client: Client, root: Path, types: list[ContentType], differences: Differences) -> None:
    """Send the requests in requests.json, which a project's front end sends."""
    listed = root / "requests.json"
    if not listed.exists():
        return
    for path in json.loads(listed.read_bytes()):
        filled = PARAMETER.sub(lambda match: PARAMETERS.get(match[1], "x"), path)
        code, body = client.send("GET", filled)
        if code != 200 and not (code == 404 and filled.startswith(_singles(types))):
            differences.add("requests: refused", f"{filled}: {code} {body}")


def _singles(types: list[ContentType]) -> tuple[str, ...]:
    # A document of a single type may not have a file yet, so 404 is allowed.
    return tuple(one.path for one in types if one.is_single)
