"""Dry runs of writes, `?dryRun=true`: what each would change in files, as diffs of lines.

It is a parameter, and no preference (RFC 7240): that may be ignored, and a dry run that is ignored writes.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from flask import Response, request

from server.api.environ import parse_query
from server.api.identities import Identities
from server.api.request import answer_within, authorship, budget_of, operation_of, state_of
from server.api.routes.branch_requests import METHODS, BranchRequests
from server.auth.permissions import Actor, may_find, may_read_drafts, require_source
from server.documents.layout import Claim, Layout
from server.errors import ValidationError
from server.history.lines import unified_lines
from server.site.site import State
from server.storage.journal import Write
from server.write.context import Context
from server.write.source.masking import masked

Wanted = TypeVar("Wanted")
Result = TypeVar("Result")
PARAMETER = "dryRun"
_LIKE = "dryrun"  # the parameter and its misspellings in lower case, without hyphens
_NO_NEWLINE = "\\ No newline at end of file"


def open_dry_run() -> None:
    """Refuse a dry run of what has none, and a parameter that is spelled nearly so. Raises ValidationError.

    Other parameters that are not known are ignored. Here that would write.
    """
    query = request.environ.get("QUERY_STRING", "")
    if request.method not in METHODS or "dry" not in query.lower() or request.routing_exception:
        return
    for name, value in parse_query(query).items():
        if not is_like_dry_run(name):
            continue
        if name != PARAMETER or value not in ("true", "false"):
            raise ValidationError(f"A dry run is asked for with {PARAMETER}=true")
        if value == "true" and not operation_of(request).dry_run:
            raise ValidationError("There is no dry run of this")


def is_like_dry_run(name: str) -> bool:
    """Whether a parameter is the one for dry runs, or a misspelling of it."""
    return name.replace("-", "").replace("_", "").lower() == _LIKE


def is_dry_run() -> bool:
    """Whether the current request is for a dry run."""
    query = request.environ.get("QUERY_STRING", "")
    return PARAMETER in query and parse_query(query).get(PARAMETER) == "true"


def dry_run(
    identities: Identities,
    branches: BranchRequests,
    prepare: Callable[[Wanted, Context], Result],
    wanted: Wanted,
) -> Response:
    """What a write would change, prepared and checked as `branches.write` does it.

    Raises ForbiddenError for who may not see the files of documents, and what the write itself would raise.
    """
    state, actor = state_of(request), identities.actor(request)
    require_source(actor, "read", state.schema)
    authorship(identities, request, signed=False)  # It refuses a message that the commit could not have.
    writes, _ = branches.preview(prepare, wanted)
    return answer_within(request, {"data": {"files": list(_files(writes, state, actor))}})


def _files(writes: list[Write], state: State, actor: Actor) -> Iterator[Mapping[str, Any]]:
    """The files that would change, without those of documents that the actor may not see."""
    layout = Layout(state.schema, state.settings)
    for write in sorted(writes, key=lambda write: write.path):
        claim = layout.claim(write.path)
        if claim is not None and _is_seen(claim, actor):
            lines = _lines(write, claim, state)
            budget_of(request).allow(sum(map(len, lines)))
            yield {"path": write.path, "action": _action(write), "lines": lines}


def _is_seen(claim: Claim, actor: Actor) -> bool:
    """Whether an actor may see a file: of a type that it may find, and no draft that it may not read."""
    drafted = claim.draft or (claim.type.draft_key is not None and claim.type.draft_publish)
    return may_find(actor, claim.type.uid) and (not drafted or may_read_drafts(actor, claim.type))


def _action(write: Write) -> str:
    """What becomes of a file, in the words of /history."""
    if write.before is None:
        return "create"
    return "delete" if write.deletes else "update"


def _lines(write: Write, claim: Claim, state: State) -> list[str]:
    """How the text of a file would differ, as the lines of a unified diff."""
    before, passwords = "", tuple[str, ...]()
    if write.before is not None:
        shown = masked(state.schema, claim.type, write.path, (write.read or b"").decode())
        before, passwords = shown.text, shown.passwords
    after = ""
    if write.data is not None:
        after = masked(state.schema, claim.type, write.path, write.data.decode(), passwords).text
    old, new = _split(before), _split(after)
    budget_of(request).spend(len(old) + len(new))
    return [part for line in unified_lines(old, new) for part in line.split("\n")]


def _split(text: str) -> list[str]:
    """The lines of a text; the last one says, below it, where no newline ends it."""
    lines = text.split("\n")
    last = lines.pop()
    return [*lines, f"{last}\n{_NO_NEWLINE}"] if last else lines
