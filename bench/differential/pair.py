"""The pair of servers, which are sent the same requests and reset to the same state."""

import json
import shutil
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from bench.differential.granting import Grants, our_token, site_yaml
from bench.differential.model import Model
from bench.differential.peers import Peer, restore_files
from bench.differential.request import Answer, Request
from bench.differential.servers import Server
from bench.serving import bifolio

_TIMEOUT = 60
_RESET = {
    "kind": "singleType",
    "info": {"singularName": "reset", "pluralName": "resets", "displayName": "Reset"},
    "attributes": {"number": {"type": "integer"}},
}


class Pair:
    """The two servers for one site. `keep` saves their state, and `reset` restores it while they run."""

    # A reset writes its number last: once Bifolio returns that number, all files have been loaded. Users are
    # deleted instead of being restored.

    def __init__(self, peer: Peer, types: Path, model: Model, grants: Grants, folder: Path) -> None:
        self._peer, self._folder, self._grants = peer, folder, grants
        self._root = folder / "site"
        (self._root / "content" / "uploads").mkdir(parents=True)
        shutil.copytree(types, self._root / "content-types")
        (self._root / "content-types" / "reset.json").write_text(json.dumps(_RESET))
        (self._root / "site.yaml").write_text(site_yaml(model))
        self._stack, self._resets = ExitStack(), 0
        self._stack.callback(peer.stop)
        self._kept: tuple[dict[str, Any], dict[str, Any]] = ({}, {})

    def start(self) -> None:
        """Start both servers."""
        self.theirs = self._peer.start()
        made = {"full": our_token(self._root, "full", "full-access", [])}
        made["read-only"] = our_token(self._root, "read-only", "read-only", [])
        for name, permissions in self._grants.items():
            made[name] = our_token(self._root, name, "custom", permissions)
        serving = self._stack.enter_context(bifolio(self._root, 1))
        self.ours = Server("Bifolio", serving.port, made)
        self._learn_roles()

    def _learn_roles(self) -> None:
        for server in (self.theirs, self.ours):
            answer = server.ask(Request("GET", "/api/users-permissions/roles"))
            server.names |= {f"role:{role['type']}": role["id"] for role in answer.body["roles"]}

    def stop(self) -> None:
        self._stack.close()

    def ask(self, request: Request) -> tuple[Answer, Answer]:
        return self.theirs.ask(request), self.ours.ask(request)

    def keep(self) -> None:
        shutil.copytree(self._root / "content", self._folder / "kept-content")
        self._peer.keep()
        self._kept = (dict(self.theirs.names), dict(self.ours.names))

    def reset(self, case: str) -> None:
        """Restore the saved state. `case` is the number of the next conversation."""
        restore_files(self._root / "content", self._folder / "kept-content")
        self._peer.reset(case)
        for user in self.ours.ask(Request("GET", "/api/users")).body:
            self.ours.ask(Request("DELETE", f"/api/users/{user['id']}"))
        self.theirs.names, self.ours.names = dict(self._kept[0]), dict(self._kept[1])
        self._resets += 1
        (self._root / "content" / "reset.yaml").write_text(f"number: {self._resets}\n")
        deadline = time.monotonic() + _TIMEOUT
        while (self.ours.ask(Request("GET", "/api/reset")).data or {}).get("number") != self._resets:
            if time.monotonic() > deadline:
                raise RuntimeError("Bifolio does not take notice of its files")
            time.sleep(0.01)
