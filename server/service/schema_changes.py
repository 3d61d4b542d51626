"""Changes to content types and components over the API."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from pathlib import Path

from server.auth.draft_visibility import may_read_source_of
from server.auth.permissions import CONTENT_TYPE, SETTINGS, Actor, has_site_permission, require_schema_write
from server.config.model import FILE
from server.config.settings_file import mask_settings_text
from server.errors import ForbiddenError, PreconditionError, ValidationError
from server.history.differences import diff_lines
from server.paths import TYPES
from server.service.dry_run import FileChange, action_of, file_changes, split_lines
from server.service.read import Caller
from server.service.write import Outcome, Writes
from server.site.migrations.draft import MIGRATIONS
from server.site.migrations.plan import Plan
from server.site.migrations.schema_changes import SchemaChange, plan_schema_changes, read_schema_changes
from server.storage.git.uncommitted import paths_not_in_commit
from server.storage.intent import Write
from server.storage.undo import MAX_WRITE_BYTES, Permit
from server.write.context import Context
from server.write.precondition import matches_version, version_of_text

MAX_DIFFS = 60  # files whose changes a plan shows; the others are counted


@dataclass(frozen=True, slots=True)
class ChangeRequest:
    """A request to change schemas.

    If `lossy` is set, values may be lost. `if_match` is the version of the plan that the caller has read, or
    "" to accept any plan.
    """

    actor: Actor
    changes: Sequence[SchemaChange]
    lossy: bool = False
    if_match: str = ""


@dataclass(frozen=True, slots=True)
class SchemaPlan:
    """The plan of a schema change. `version` is a hash of all changed files, before and after the change.

    `files` contains the first MAX_DIFFS changed files, schemas first. `total_files` counts all of them.
    """

    plan: Plan
    version: str
    files: Sequence[FileChange] = ()
    total_files: int = 0


def change_request(caller: Caller, data: object) -> ChangeRequest:
    """Parse a request to change schemas. Raises ForbiddenError or ValidationError."""
    require_schema_write(caller.actor, caller.state.schema)
    if not isinstance(data, dict):
        raise ValidationError('The request body must look like {"data": {"changes": [{"operation": "…"}]}}')
    for key in data:
        if key not in ("changes", "lossy"):
            raise ValidationError(f'data can only contain "changes" and "lossy" (found "{str(key)[:100]}")')
    lossy = data.get("lossy", False)
    if not isinstance(lossy, bool):
        raise ValidationError("lossy must be true or false")
    return ChangeRequest(caller.actor, read_schema_changes(data.get("changes")), lossy)


def _require_readable(request: ChangeRequest, context: Context, path: str) -> None:
    layout = context.layout
    claim, actor = layout.claim(path), request.actor
    if claim is None or may_read_source_of(actor, claim.type, layout.schema, draft=True):
        return
    type_ = claim.type
    read = "find" if type_.kind == "singleType" else "findOne"
    missing = f"{type_.singular}.{'readDraft' if actor.may(type_.singular, read) else read}"
    raise ForbiddenError(
        f"This change reads documents of {type_.uid}, so it needs the permission {missing}",
        actor=actor.name,
        permission=missing,
        details={"permission": missing},
    )


def plan_change(writes: Writes, caller: Caller, request: ChangeRequest) -> SchemaPlan:
    """Return the plan of a schema change, even if values would be lost.

    Raises ForbiddenError, or ValidationError if the change is impossible.
    """
    found, (plan, version) = writes.planned_files(caller, _planned, request)
    if not caller.branch:
        plan = _note_uncommitted(writes.site.root, plan, found)
    ordered = sorted(found, key=lambda write: (not write.path.startswith(f"{TYPES}/"), write.path))
    return SchemaPlan(plan, version, list(_shown(ordered[:MAX_DIFFS], caller)), len(ordered))


def _note_uncommitted(root: Path, plan: Plan, writes: Iterable[Write]) -> Plan:
    is_large = sum(len(write.read or b"") for write in writes) > MAX_WRITE_BYTES
    fate = "nothing can restore it" if is_large else "only an undo can restore it, for an hour"
    steps = []
    for step in plan.steps:
        notes = step.notes
        if step.migration.operation == "delete-type" and step.documents:
            total, missing = len(step.documents), len(paths_not_in_commit(root, step.documents))
            which = f"{missing:,} of these {total:,} files" if total > 1 else "this file"
            if missing:
                notes = (f"git does not have the content of {which}; {fate}", *notes)
        steps.append(replace(step, notes=notes))
    return replace(plan, steps=tuple(steps))


def make_change(
    writes: Writes, caller: Caller, request: ChangeRequest, message: str, *, undo: bool = False
) -> Outcome[Plan]:
    """Change schemas and documents in one write.

    Raises PreconditionError if the version of the plan is not `if_match`. Raises ValidationError if the
    change is impossible, or if values would be lost and `lossy` is not set.
    """
    permits = (Permit(CONTENT_TYPE, "write", draft=False),) if undo else ()
    outcome = writes.save(caller, _accepted, request, message=message, permits=permits)
    if not caller.branch:
        changed = tuple(path for path in outcome.result.paths if path.startswith((TYPES, FILE)))
        writes.refresh_configuration(changed)
    return outcome


def schema_change_message(changes: Iterable[SchemaChange]) -> str:
    names = []
    for change in changes:
        target = next((change.arguments[key] for key in ("attribute", "type", "component")
                       if key in change.arguments), "")  # fmt: skip
        names.append(f"{change.operation} {target}")
    return f"Change content types: {', '.join(names)}"


def _planned(request: ChangeRequest, context: Context) -> tuple[Plan, str]:
    permit = partial(_require_readable, request, context)
    plan, writes = plan_schema_changes(request.changes, context, permit), context.changeset.writes()
    for write in writes:
        permit(write.path)
    return plan, _version(writes)


def _accepted(request: ChangeRequest, context: Context) -> Plan:
    plan, version = _planned(request, context)
    if not matches_version(request.if_match, version):
        what = "Content types or documents have changed since the plan was made; make a new plan"
        raise PreconditionError(what, {"version": version})
    if any(step.loss_count for step in plan.steps) and not request.lossy:
        lines = "\n".join(f"  {line}" for step in plan.steps for line in step.losses)
        raise ValidationError(f'The change would lose values (allow this with "lossy": true):\n{lines}')
    return plan


def _version(writes: Iterable[Write]) -> str:
    def digest(data: bytes | None) -> str:
        return "" if data is None else sha256(data).hexdigest()

    rows = sorted((write.path, digest(write.read), digest(write.data)) for write in writes)
    return version_of_text(json.dumps(rows))


def _shown(writes: Sequence[Write], caller: Caller) -> Iterator[FileChange]:
    documents = {change.path: change for change in file_changes(writes, caller)}
    for write in writes:
        if change := documents.get(write.path):
            yield change
        elif write.path.startswith((f"{TYPES}/", f"{MIGRATIONS}/")):
            yield _diff(write, caller)
        elif write.path == FILE and has_site_permission(caller.actor, SETTINGS, "read", caller.state.schema):
            # Without unchanged lines, because comments in them can be secret.
            yield _diff(write, caller, _masked_settings, context=0)
        else:  # Only the path, because the text can contain passwords.
            yield FileChange(write.path, action_of(write), [])


def _text(data: bytes | None) -> str:
    return (data or b"").decode()


def _masked_settings(data: bytes | None) -> str:
    return mask_settings_text(_text(data), keeps_inline_comments=True)


def _diff(
    write: Write, caller: Caller, read: Callable[[bytes | None], str] = _text, context: int = 3
) -> FileChange:
    lines = diff_lines(split_lines(read(write.read)), split_lines(read(write.data)), context)
    shown = [part for line in lines for part in line.split("\n")]
    caller.budget.allow(sum(map(len, shown)))
    return FileChange(write.path, action_of(write), shown)
