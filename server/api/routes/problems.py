"""The routes of `/problems`: what `quire check` says of the site that is served, and its fixes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from flask import Response, request

from server.api.identities import Identities
from server.api.operations.source import MAX_FIXES
from server.api.request import (
    actor_of,
    answer,
    answer_within,
    budget_of,
    caller_of,
    parameters,
    read_body,
    state_of,
    tell_commit,
)
from server.api.response import CALLER
from server.api.routes.handlers import Handlers
from server.api.routes.problem_viewer import ProblemViewer
from server.api.routes.write_requests import message_of
from server.auth.permissions import PROBLEMS, require_of_site
from server.errors import ValidationError
from server.query.parse import pagination, read_page
from server.query.qs import read_boolean
from server.schema.model import Schema, key_of
from server.service.render import dumps
from server.service.repair import fix_documents, fix_message
from server.service.write import Writes
from server.site.check.audit import Audit
from server.site.check.fixes import Fix, Repair, possible_fixes
from server.site.check.served import Change, Checks, Found
from server.site.site import Site

WAIT_S = 3.0  # how long a request waits for a check
_KEYS = ("path", "key", "before", "after")
_STALE = "what is there is not what was to be fixed"


def bind(handles: Handlers, site: Site, identities: Identities, writes: Writes) -> None:
    """Bind the operations of `/problems`."""
    checks = Checks(site, lambda: identities.user_index().join(site.state.snapshot, site.state.settings))

    def viewer(action: str) -> ProblemViewer:
        state, actor = state_of(request), actor_of(request)
        require_of_site(actor, PROBLEMS, action, state.schema)
        return ProblemViewer(actor, state)

    @handles("findProblems")
    def listed() -> Response:
        who, params = viewer("find"), parameters(request)
        wanted = _Wanted.of(params)
        page = read_page({n: params[n] for n in ("page", "pageSize") if n in params}, who.state.settings)
        check, current = checks.current(WAIT_S)
        budget_of(request).spend(len(check.found) // 10)
        seen = [found for found in who.shown(check) if wanted.is_about(found, who.state.schema)]
        found = [one for one in seen if wanted.is_like(one)]
        part = found[page.start : page.start + page.limit]
        errors = sum(one.problem.severity == "error" for one in seen)
        meta = {
            "checkedAt": check.at,
            "current": current,
            "errors": errors,
            "warnings": len(seen) - errors,
            "fixable": sum(one.fix is not None for one in seen),
            "more": check.more,
            "pagination": pagination(page, len(found)),
        }
        data = [_shown(one, who.state.schema) for one in part]
        return answer_within(request, {"data": data, "meta": meta}, CALLER)

    @handles("fixProblems")
    def fix() -> Response:
        who = viewer("fix")
        require_of_site(who.actor, PROBLEMS, "find", who.state.schema)
        wanted = _wanted_fixes(read_body(request))
        budget_of(request).take_turn()
        repair = Repair(Audit(site.root, who.state.settings, who.state.snapshot), ())
        chosen, refused = _choose(repair.audit, wanted, who)
        made: list[Change] = []
        commit = ""
        if chosen:
            repair = Repair(repair.audit, tuple(chosen.values()))
            caller, message = caller_of(request), message_of(request, fix_message(len(chosen)))
            outcome = fix_documents(writes, caller, repair, message)
            done, commit = outcome.made, outcome.commit
            made = [Change.of(one) for one in done.fixes if isinstance(one, Fix)]
            refused += [
                (change, done.refused[change.path]) for change in chosen if change.path in done.refused
            ]
        left = [{**_named(change), "reason": reason} for change, reason in refused]
        body = dumps({"data": {"fixed": [_named(one) for one in made], "refused": left}})
        return tell_commit(answer(body), commit)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """Which problems are asked for."""

    type: str = ""
    document_id: str = ""
    severity: str = ""
    fixable: bool | None = None

    @classmethod
    def of(cls, params: Mapping[str, Any]) -> "_Wanted":
        """Those that parameters ask for. Raises ValidationError."""
        texts = {name: params.get(name, "") for name in ("type", "documentId", "severity")}
        wrong = next((name for name, value in texts.items() if not isinstance(value, str)), None)
        if wrong:
            raise ValidationError(f"{wrong} must be one text")
        if texts["severity"] not in ("", "error", "warning"):
            raise ValidationError("severity must be error or warning")
        fixable = read_boolean(params["fixable"]) if params.get("fixable") else None
        if params.get("fixable") and fixable is None:
            raise ValidationError("fixable must be true or false")
        return cls(texts["type"], texts["documentId"], texts["severity"], fixable)

    def is_about(self, found: Found, schema: Schema) -> bool:
        """Whether a problem is of the type and document that are asked for."""
        type_ = schema.types.get(found.uid)
        named = not self.type or (type_ is not None and self.type in (type_.singular, type_.plural))
        return named and self.document_id in ("", found.document_id)

    def is_like(self, found: Found) -> bool:
        """Whether a problem is one of the kind that is asked for."""
        return self.severity in ("", found.problem.severity) and self.fixable in (None, found.fix is not None)


def _shown(found: Found, schema: Schema) -> dict[str, Any]:
    problem, type_ = found.problem, schema.types.get(found.uid)
    return {
        **problem.as_json(),
        "type": key_of(type_) if type_ else None,
        "documentId": found.document_id or None,
        "locale": found.locale or None,
        "status": found.status or None,
        "title": found.title or None,
        "attribute": ".".join(map(str, problem.at)) or None,
        "change": _named(found.fix) if found.fix else None,
    }


def _named(change: Change) -> dict[str, str | None]:
    return {"path": change.path, "key": change.key, "before": change.before, "after": change.after}


def _wanted_fixes(body: Any) -> list[Change]:
    """The fixes that a body names. Raises ValidationError."""
    given = body["fixes"] if isinstance(body, dict) and body.keys() == {"fixes"} else None
    if not isinstance(given, list) or not given:
        raise ValidationError('The body must be {"fixes": [{"path", "key", "before", "after"}]}')
    if len(given) > MAX_FIXES:
        raise ValidationError(f"At most {MAX_FIXES:,} fixes are made at once")
    return [_wanted_fix(one, i) for i, one in enumerate(given)]


def _wanted_fix(given: Any, i: int) -> Change:
    """A fix as `GET /problems` shows it. Raises ValidationError."""
    texts: dict[str, Any] = {name: given.get(name) for name in _KEYS} if isinstance(given, dict) else {}
    missing = [
        n for n in _KEYS if not isinstance(texts.get(n), str) and (n, texts.get(n)) != ("before", None)
    ]
    if missing:
        raise ValidationError(f"fixes.{i} must have path, key, before and after, as /problems shows them")
    return Change(texts["path"], texts["key"], texts["before"], texts["after"])


def _choose(
    audit: Audit, wanted: list[Change], who: ProblemViewer
) -> tuple[dict[Change, Fix], list[tuple[Change, str]]]:
    """The fixes that were asked for, of those that are safe now, and what is refused of the others."""
    possible = {
        Change.of(fix): fix for fix in possible_fixes(audit, {one.path for one in wanted}) if fix.certain
    }
    chosen: dict[Change, Fix] = {}
    refused = []
    for change in wanted:
        fix = possible.get(change)
        if fix is not None and who.may_make(fix):
            chosen[change] = fix
        else:
            refused.append((change, _STALE))
    return chosen, refused
