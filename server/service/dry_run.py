"""Diffs of the files that a write changes or, in a dry run, would change."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from server.auth.draft_visibility import may_read_source_of
from server.documents.path_rules import Layout, PathClaim
from server.history.differences import diff_lines
from server.index.budget import Budget
from server.service.read import Caller
from server.site.site import State
from server.storage.intent import Write
from server.write.source import mask_text

_NO_NEWLINE = "\\ No newline at end of file"


@dataclass(frozen=True, slots=True)
class FileChange:
    """A changed file. `action` is "create", "update" or "delete". `lines` contains the lines of its diff."""

    path: str
    action: str
    lines: list[str]


def file_changes(writes: Iterable[Write], caller: Caller) -> Iterator[FileChange]:
    """Yield the changes that the caller may see, sorted by path. Raises LimitError if they are too large."""
    layout = Layout(caller.state.schema, caller.state.settings)
    for write in sorted(writes, key=lambda write: write.path):
        claim = layout.claim(write.path)
        if claim is not None and _may_see(caller, claim):
            lines = _lines(write, claim, caller.state, caller.budget)
            caller.budget.allow(sum(map(len, lines)))
            yield FileChange(write.path, action_of(write), lines)


def _may_see(caller: Caller, claim: PathClaim) -> bool:
    return may_read_source_of(caller.actor, claim.type, caller.state.schema, draft=claim.draft)


def action_of(write: Write) -> str:
    if write.before is None:
        return "create"
    return "delete" if write.deletes else "update"


def _lines(write: Write, claim: PathClaim, state: State, budget: Budget) -> list[str]:
    before, passwords = "", tuple[str, ...]()
    if write.before is not None:
        shown = mask_text(state.schema, claim.type, write.path, (write.read or b"").decode())
        before, passwords = shown.text, shown.passwords
    after = ""
    if write.data is not None:
        after = mask_text(state.schema, claim.type, write.path, write.data.decode(), passwords).text
    old, new = split_lines(before), split_lines(after)
    budget.spend(len(old) + len(new))
    return [part for line in diff_lines(old, new) for part in line.split("\n")]


def split_lines(text: str) -> list[str]:
    # If the text doesn't end in a newline, the diff has the same note as one from git.
    lines = text.split("\n")
    last = lines.pop()
    return [*lines, f"{last}\n{_NO_NEWLINE}"] if last else lines
