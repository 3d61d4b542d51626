"""The branch that an agent writes to."""

import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from http import HTTPStatus
from itertools import accumulate, count
from typing import Any
from urllib.parse import quote

from server.api.mcp.explanations import describe_caller
from server.api.mcp.json_rpc import Json
from server.api.mcp.rest_client import Reply
from server.api.mcp.tools.tool import Call, RestRequestError, body_of
from server.config.mcp import CALLER_PLACEHOLDER, WriteMode
from server.errors import ApiError, ForbiddenError, NotAllowedBySettingError, PreconditionError

_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")
_NUMBER = re.compile(r"[2-9]|[1-9][0-9]{1,8}", re.ASCII)
_MAX_NAME_CHARS = 60
_HASH_CHARS = 16  # Fewer could be found by trying names.
_HASHED = re.compile(rf"(?:^|-)[0-9a-f]{{{_HASH_CHARS}}}$")
_BRANCH_ACTIONS = ("find", "create", "update")
_OFF = "Agents can't write, because this site has mcp: {write: none}"
_NOT_OWN = (
    "This agent can write only to its own branches, such as {}, because this site has "
    'mcp: {{write: branch}}. Omit the argument "branch"'
)
_ON_SERVED = (
    "This agent can't write to the served branch, because this site has mcp: {write: branch}. "
    'Omit the argument "branch"'
)


@dataclass(frozen=True, slots=True)
class Destination:
    """The branch that an agent writes to.

    - `branch`: the name of the branch, or "" for the served branch.
    - `exists`: whether the branch exists. If not, the first write creates it.
    - `commit`: the branch's last commit, or "" if it is unknown. For a new branch, it is the served commit.
    - `no_branch_reason`: why the caller can't write to a branch, or "" if it can.
    - `lacks_permission`: whether the reason is a missing permission.
    """

    mode: WriteMode
    branch: str = ""
    exists: bool = False
    commit: str = ""
    no_branch_reason: str = ""
    lacks_permission: bool = False

    @property
    def description(self) -> str:
        if self.mode is WriteMode.NONE:
            return f"{_OFF}."
        if self.mode is WriteMode.DIRECT:
            return "Writes change the served content."
        if self.no_branch_reason:
            return f"You can't write to a branch: {self.no_branch_reason}."
        return f"Writes go to the branch {self.branch}, which a person merges."

    def describe(self) -> Json:
        found: Json = {"mode": self.mode.value}
        if self.branch:
            found |= {"branch": self.branch, "exists": self.exists}
        return {**found, **({"reason": self.no_branch_reason} if self.no_branch_reason else {})}


def default_destination(call: Call) -> Destination:
    """Return the destination of writes that do not name a branch. This does not create a branch."""
    mode, caller = call.settings.mcp.write, _caller(call)
    if mode is WriteMode.DIRECT and caller.get("branchOnly"):
        mode = WriteMode.BRANCH
    if mode is not WriteMode.BRANCH:
        return Destination(mode)
    try:
        branches = _branches(call)
    except RestRequestError as error:
        if error.reply.status >= HTTPStatus.INTERNAL_SERVER_ERROR:  # such as a busy server
            raise
        if error.reply.status == HTTPStatus.FORBIDDEN:
            return Destination(mode, no_branch_reason=_missing_permissions(call), lacks_permission=True)
        return Destination(mode, no_branch_reason=error.reply.body["error"]["message"])
    return _own_branch(branch_name(call.settings.mcp.branch, caller), branches)


def _caller(call: Call) -> Json:
    caller: Json = body_of(call.rest.send("GET", "/access"))["data"]["caller"]
    return caller


def _missing_permissions(call: Call) -> str:
    access = body_of(call.rest.send("GET", "/access"))["data"]
    allowed = access["permissions"].get("branch", ())
    lacking = ", ".join(action for action in _BRANCH_ACTIONS if action not in allowed)
    if access["caller"]["kind"] == "public":
        return f"no token was sent; the role public lacks branch: [{lacking}]"
    return f"the {describe_caller(access['caller'])} lacks branch: [{lacking}]"


def _branches(call: Call) -> Mapping[str, Json]:
    listed = body_of(call.rest.send("GET", "/branches"))["data"]
    return {branch["name"]: branch for branch in listed}


def _own_branch(first_name: str, branches: Mapping[str, Json]) -> Destination:
    """Return the caller's latest branch (the one with the highest number) as the destination.

    If the caller has no branch, or if the latest one is checked out or merged, return a new branch. Its name
    is one that git can create: for example, git can't create `agent/a` while `agent/a/b` exists.
    """
    served = next((one["commit"] for one in branches.values() if one["served"]), "")
    last = max((_number_of(each, first_name) for each in branches if _is_own(each, first_name)), default=0)
    found = branches.get(_numbered(first_name, last))
    if found and not found["checkedOut"] and (not found["merged"] or found["commit"] == served):
        return Destination(WriteMode.BRANCH, _numbered(first_name, last), exists=True, commit=found["commit"])
    folders = {folder for each in branches for folder in _parent_names(each)}
    names = (_numbered(first_name, number) for number in count(last + 1))
    return Destination(WriteMode.BRANCH, next(name for name in names if name not in folders), commit=served)


def _parent_names(branch_name: str) -> Iterator[str]:
    return accumulate(branch_name.split("/")[:-1], "{}/{}".format)


def _numbered(first: str, number: int) -> str:
    return first if number <= 1 else f"{first}.{number}"


def _number_of(branch: str, first: str) -> int:
    return 1 if branch == first else int(branch.removeprefix(f"{first}."))


def _is_own(branch: str, first_name: str) -> bool:
    number = branch.removeprefix(f"{first_name}.")
    return branch == first_name or (number != branch and bool(_NUMBER.fullmatch(number)))


def branch_name(pattern: str, caller: Mapping[str, Any]) -> str:
    """Return the name of a caller's first branch. Different callers get different names."""
    name = str(caller["name"])
    safe = _UNSAFE.sub("-", name).strip("-")[:_MAX_NAME_CHARS]
    kind = "" if caller["kind"] == "token" else f"{caller['kind']}."
    # agent/user.2 is the second branch of a token `user`, so it can't be that of a user `2`. A name that
    # looks like one with a hash gets a hash, too.
    if safe != name or (kind and safe.isdigit()) or _HASHED.search(safe):
        safe = "-".join(filter(None, (safe, sha256(name.encode()).hexdigest()[:_HASH_CHARS])))
    return pattern.replace(CALLER_PLACEHOLDER, f"{kind}{safe or 'anyone'}")


# --- writes ---------------------------------------------------------------------------------------


def write_destination(call: Call) -> Destination:
    """Return the branch that the call names, or the default branch if it names none.

    Raises ForbiddenError or NotAllowedBySettingError if the caller may not write to this branch.
    """
    mode, branch = call.settings.mcp.write, call.text("branch")
    if mode is WriteMode.NONE:
        raise NotAllowedBySettingError(_OFF)
    if mode is WriteMode.DIRECT and (branch or not _caller(call).get("branchOnly")):
        return Destination(mode, branch, exists=True)
    if branch:
        found = _branches(call).get(branch, {})
        if found.get("served"):
            raise NotAllowedBySettingError(_ON_SERVED)
        own = branch_name(call.settings.mcp.branch, _caller(call))
        if mode is WriteMode.BRANCH and not _is_own(branch, own):
            raise NotAllowedBySettingError(_NOT_OWN.format(own))
        return Destination(mode, branch, exists=True, commit=found.get("commit", ""))
    destination = default_destination(call)
    if destination.lacks_permission:
        raise ForbiddenError(destination.description)
    if destination.no_branch_reason:
        raise NotAllowedBySettingError(destination.description)
    return destination


@contextmanager
def branch_for_write(
    call: Call, destination: Destination, dry_run: Callable[[], Reply] | None = None
) -> Iterator[None]:
    """Context manager: create the branch if it does not exist. If the write then fails, delete it again.

    Before the branch is created, `dry_run` is called if the caller has the permission `source.read`.
    """
    if not destination.branch or destination.exists:
        yield
        return
    if dry_run and may_read_sources(call):
        body_of(dry_run())
    reply = call.rest.send("POST", "/branches", body={"name": destination.branch})
    if reply.is_error and destination.branch not in _branches(call):  # unless another call created it
        body_of(reply)
    try:
        yield
    except (ApiError, RestRequestError):
        if not reply.is_error:
            call.rest.delete_new_branch(destination.branch, reply.body["data"]["commit"])
        raise


def may_read_sources(call: Call) -> bool:
    permissions = body_of(call.rest.send("GET", "/access"))["data"]["permissions"]
    return "read" in permissions.get("source", ())


def write_query(destination: Destination, *, dry_run: bool) -> Json:
    """Return the query parameters of a write.

    If `dry_run` is set and the branch does not exist yet, the dry run uses the served branch.
    """
    on_branch = destination.branch and (destination.exists or not dry_run)
    branch = {"branch": destination.branch} if on_branch else {}
    return {**branch, **({"dryRun": "true"} if dry_run else {})}


def read_query(destination: Destination) -> Json:
    is_read = destination.branch and destination.exists
    return {"at": destination.branch} if is_read else {}


def write_body(reply: Reply, destination: Destination) -> Any:
    if reply.status == PreconditionError.status and destination.branch:
        error = reply.body["error"]
        raise PreconditionError(f"{error['message']} (on the branch {destination.branch})", error["details"])
    return body_of(reply)


def describe_write(call: Call, destination: Destination, commit: str) -> Json:
    """Describe the branch that was written to, and how to review and merge it.

    The merge command names `commit` instead of the branch, because more commits may follow on the branch.
    """
    found: Json = {"commit": commit} if commit else {}
    if not destination.branch:
        return found
    name = destination.branch
    review = {"mergeCommand": f"git merge {shlex.quote(commit or name)}"}
    page = f"/studio/site/-/branches/{quote(name)}"
    if call.rest.origin:
        review["url"] = f"{call.rest.origin}{page}"
    else:
        # Whether a server is running, and at which address, is unknown to a local agent.
        review |= {
            "startServer": f"bifolio serve --site {shlex.quote(str(call.rest.root.resolve()))}",
            "path": page,
        }
    return {**found, "branch": name, "review": review}
