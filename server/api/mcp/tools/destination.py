"""Where an agent's writes go: to a branch of its own, to the served branch, or nowhere."""

import re
from dataclasses import dataclass

from server.api.mcp.json_rpc import Json
from server.api.mcp.tools.tool import Call, body_of
from server.config.mcp import WriteMode

_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")
_MAX_NAME_CHARS = 60


@dataclass(frozen=True, slots=True)
class Destination:
    """Where writes go that don't name a branch. `branch` is "" unless the mode is `branch`."""

    mode: WriteMode
    branch: str

    @property
    def sentence(self) -> str:
        return {
            WriteMode.BRANCH: f"Writes go to the branch {self.branch}; a person merges it.",
            WriteMode.DIRECT: "Writes change the served content.",
            WriteMode.NONE: "Writes are turned off (mcp.write: none).",
        }[self.mode]

    def describe(self) -> Json:
        return {"to": self.mode.value, **({"branch": self.branch} if self.branch else {})}


def destination_of(call: Call) -> Destination:
    mode = call.settings.mcp.write
    if mode is not WriteMode.BRANCH:
        return Destination(mode, "")
    caller = body_of(call.gateway.send("GET", "/access"))["data"]["caller"]
    return Destination(mode, branch_name(call.settings.mcp.branch, str(caller["name"])))


def branch_name(pattern: str, caller: str) -> str:
    """Return the name of the caller's branch. `{token}` in the pattern stands for the caller's name."""
    safe = _UNSAFE.sub("-", caller).strip("-")[:_MAX_NAME_CHARS] or "public"
    return pattern.replace("{token}", safe)
