"""Problems that a caller may see or fix.

The message of a problem can quote hidden values. Callers therefore see a problem only if they may read all
values that its message could mention.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from server.auth.draft_visibility import may_see_all
from server.auth.permissions import PROBLEMS, has_site_permission, may_draft, may_find, require_of_site
from server.documents.document import DRAFT
from server.documents.encode import unknown_key_advice
from server.errors import ValidationError
from server.formats.text_positions import KeyPath
from server.history.viewer import Viewer
from server.problems import Problem
from server.query.qs import read_boolean
from server.schema.model import ACCOUNT_UIDS, UPLOAD, Attribute, Schema, Type
from server.service.read import Caller
from server.service.write import Outcome, Writes
from server.site.check.audit import Audit
from server.site.check.fixes import (
    Fix,
    FixRequest,
    FixResult,
    KeyFix,
    apply_fixes,
    apply_key_fixes,
    possible_fixes,
)
from server.site.check.served import BackgroundChecks, CheckResult, DocumentProblem, ValueChange

_WORD = re.compile(r"[\w-]+")
MAX_PATHS = 100  # The parser of query strings returns longer lists as objects.
STALE_MESSAGE = "the file no longer has this problem"


# --- requests and results -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ProblemFilter:
    """A filter for problems. Fields that are empty or None match all problems."""

    type: str = ""
    document_id: str = ""
    paths: frozenset[str] = frozenset()
    severity: str = ""
    fixable: bool | None = None

    @classmethod
    def from_params(cls, params: Mapping[str, Any]) -> "ProblemFilter":
        texts = {name: params.get(name, "") for name in ("type", "documentId", "severity")}
        wrong = next((name for name, value in texts.items() if not isinstance(value, str)), None)
        if wrong:
            raise ValidationError(f'"{wrong}" must be a single string')
        if texts["severity"] not in ("", "error", "warning"):
            raise ValidationError('"severity" must be "error" or "warning"')
        fixable = read_boolean(params["fixable"]) if params.get("fixable") else None
        if params.get("fixable") and fixable is None:
            raise ValidationError('"fixable" must be "true" or "false"')
        paths = parse_paths(params.get("path"))
        return cls(texts["type"], texts["documentId"], paths, texts["severity"], fixable)

    def is_about(self, problem: DocumentProblem, schema: Schema) -> bool:
        type_ = schema.types.get(problem.uid)
        is_type = not self.type or (type_ is not None and self.type in (type_.singular, type_.plural))
        is_document = is_type and self.document_id in ("", problem.document_id)
        return is_document and (not self.paths or problem.problem.path in self.paths)

    def is_like(self, problem: DocumentProblem) -> bool:
        return self.severity in ("", problem.problem.severity) and self.fixable in (
            None,
            problem.fix is not None,
        )


def parse_paths(value: object) -> frozenset[str]:
    paths = [value] if isinstance(value, str) else value or []
    if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
        raise ValidationError(f'"path" must be a file path; it may be repeated up to {MAX_PATHS} times')
    return frozenset(filter(None, paths))


@dataclass(frozen=True, slots=True)
class FoundProblems:
    """The problems that the caller may see.

    `in_scope` contains the problems of the selected type, document and files. `matching` contains only those
    that also match the filter's `severity` and `fixable`. `is_current` is True if the site has not changed
    since the check.
    """

    check: CheckResult
    is_current: bool
    in_scope: Sequence[DocumentProblem]
    matching: Sequence[DocumentProblem]


@dataclass(frozen=True, slots=True)
class FixedProblems:
    """The fixes that were applied, and the rejected fixes with the reason for each rejection."""

    applied: Sequence[ValueChange]
    rejected: Sequence[tuple[ValueChange, str]]
    commit: str = ""


class Problems:
    """The problems of a site that is being served, and their fixes. This class is thread-safe."""

    def __init__(self, checks: BackgroundChecks, writes: Writes) -> None:
        self._checks, self._writes = checks, writes

    def find(self, viewer: "ProblemViewer", problem_filter: ProblemFilter, wait_s: float) -> FoundProblems:
        """Return the problems that match the filter, if the caller may see them.

        Waits up to `wait_s` seconds for an up-to-date check. Raises BusyError if no check has finished yet.
        """
        check, is_current = self._checks.current(wait_s)
        viewer.caller.budget.spend(len(check.problems) // 10)
        seen = [
            found
            for found in viewer.visible_problems(check)
            if problem_filter.is_about(found, viewer.caller.state.schema)
        ]
        return FoundProblems(
            check, is_current, seen, [found for found in seen if problem_filter.is_like(found)]
        )

    def fix(
        self, viewer: "ProblemViewer", requested: Sequence[ValueChange], message: Callable[[int], str]
    ) -> FixedProblems:
        """Apply the requested fixes that are still possible and that the caller may make.

        `message` is called with the number of fixes, and returns the commit message. Raises the errors of
        `Writes.save`.
        """
        caller = viewer.caller
        caller.budget.take_turn()
        audit = Audit(self._writes.site.root, caller.state.settings, caller.state.snapshot)
        chosen, refused = _choose_fixes(audit, requested, viewer)
        if not chosen:
            return FixedProblems((), refused)
        repair = FixRequest(audit, tuple(chosen.values()))
        outcome = fix_documents(self._writes, caller, repair, message(len(chosen)))
        result = outcome.result
        refused += [
            (change, result.rejected[change.path]) for change in chosen if change.path in result.rejected
        ]
        made = [ValueChange.from_fix(one) for one in result.fixes if isinstance(one, Fix)]
        return FixedProblems(made, refused, outcome.commit)


def _choose_fixes(
    audit: Audit, requested: Sequence[ValueChange], viewer: "ProblemViewer"
) -> tuple[dict[ValueChange, Fix], list[tuple[ValueChange, str]]]:
    paths = {change.path for change in requested}
    possible = {ValueChange.from_fix(fix): fix for fix in possible_fixes(audit, paths) if fix.is_certain}
    chosen: dict[ValueChange, Fix] = {}
    refused = []
    for change in requested:
        fix = possible.get(change)
        if fix is not None and viewer.can_apply(fix):
            chosen[change] = fix
        else:
            refused.append((change, STALE_MESSAGE))
    return chosen, refused


# --- permissions ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ProblemViewer:
    """Permission checks that determine which problems one caller may see and fix."""

    caller: Caller
    _known: dict[tuple[str, KeyPath, str], bool] = field(default_factory=dict)

    @classmethod
    def for_caller(cls, caller: Caller, *actions: str) -> "ProblemViewer":
        """Return the viewer for a caller. Raises ForbiddenError if one of the `actions` is not permitted."""
        for action in actions:
            require_of_site(caller.actor, PROBLEMS, action, caller.state.schema)
        return cls(caller)

    def visible_problems(self, check: CheckResult) -> Iterator[DocumentProblem]:
        """Yield the problems that the caller may see, without the fixes that the caller may not make."""
        may_fix = has_site_permission(self.caller.actor, PROBLEMS, "fix", self.caller.state.schema)
        for found in check.problems:
            if self._sees(found):
                shown = self._without_hidden_names(found)
                yield (
                    shown
                    if shown.fix is None or (may_fix and self._may_write(found))
                    else replace(shown, fix=None)
                )

    def _without_hidden_names(self, found: DocumentProblem) -> DocumentProblem:
        problem, type_ = found.problem, self.caller.state.schema.types.get(found.uid)
        if self.caller.actor.everything or type_ is None or not problem.fix:
            return found
        # The advice for a broken link could mention hidden documents, so it is replaced.
        if problem.rule == "broken-link":
            return replace(found, problem=replace(problem, fix="correct the link"))
        words, types = {*_WORD.findall(problem.fix)}, self._types_at(type_, _names_of(problem.at))
        if not any(words & self._hidden_names(one) for one in types):
            return found
        fix = ""
        if problem.rule == "unknown-key":
            fix = unknown_key_advice(str(problem.at[-1]), types[-1], self._hidden_names(types[-1]))
        return replace(found, problem=replace(problem, fix=fix))

    def _types_at(self, type_: Type, names: KeyPath) -> list[Type]:
        schema, found = self.caller.state.schema, [type_]
        for name in names:
            attributes = [one.attributes[str(name)] for one in found if str(name) in one.attributes]
            uids = [uid for attribute in attributes for uid in attribute.component_uids]
            found += [schema.types[uid] for uid in uids if uid in schema.types]
        return found

    def _hidden_names(self, type_: Type) -> set[str]:
        actor = self.caller.actor
        return {
            attribute.name
            for attribute in type_.attributes.values()
            if not attribute.visible
            or (attribute.type == "relation" and attribute.target and not may_find(actor, attribute.target))
        }

    def can_apply(self, fix: Fix) -> bool:
        document = fix.document
        problem = Problem(fix.path, None, "", rule=fix.rule, at=fix.key_path)
        found = DocumentProblem(problem, document.type.uid, status=document.status)
        return self._sees(found) and self._may_write(found)

    def _may_write(self, problem: DocumentProblem) -> bool:
        type_ = self.caller.state.schema.types.get(problem.uid)
        if type_ is None:
            return False
        if problem.status == DRAFT and may_draft(self.caller.actor, type_, "update"):
            return True
        return self.caller.actor.may(type_.singular, "update")

    def _sees(self, problem: DocumentProblem) -> bool:
        if self.caller.actor.everything:
            return True
        if problem.uid == UPLOAD:
            return may_find(self.caller.actor, UPLOAD)
        type_ = self.caller.state.schema.types.get(problem.uid)
        if type_ is None:
            return False
        key = (problem.uid, _names_of(problem.problem.at), problem.problem.rule)
        if key not in self._known:
            dangling = problem.problem.rule == "dangling"
            self._known[key] = may_see_all(self.caller.actor, type_) and self._sees_path(
                type_, key[1], dangling
            )
        return self._known[key]

    def _sees_path(self, type_: Type, names: KeyPath, dangling: bool) -> bool:
        if not names:
            return True
        attribute = type_.attributes.get(str(names[0]))
        if attribute is None:
            return True
        if not Viewer(self.caller.actor, self.caller.state).sees(type_, attribute):
            return False
        if len(names) == 1:
            return not dangling or self._sees_targets(attribute)
        types = self.caller.state.schema.types
        inner = (types.get(uid) for uid in attribute.component_uids)
        return all(one is None or self._sees_path(one, names[1:], dangling) for one in inner)

    def _sees_targets(self, attribute: Attribute) -> bool:
        if attribute.type == "media":
            return may_find(self.caller.actor, UPLOAD)
        types = self.caller.state.schema.types
        target = types.get(attribute.target or "")
        targets = [target] if target else self.caller.state.schema.content_types
        return all(
            may_find(self.caller.actor, t.uid) if t.uid in ACCOUNT_UIDS else may_see_all(self.caller.actor, t)
            for t in targets
        )


def _names_of(key_path: KeyPath) -> KeyPath:
    return tuple(key for key in key_path if isinstance(key, str))


# --- fixes ----------------------------------------------------------------------------------------


def fix_documents(
    writes: Writes, caller: Caller, repair: FixRequest, message: str = ""
) -> Outcome[FixResult]:
    """Apply fixes to documents. Files that have changed since the check are skipped.

    Raises the errors of `Writes.save`.
    """
    return writes.save(caller, apply_fixes, repair, message=message or _message_of)


def fix_keys(writes: Writes, caller: Caller, fixes: Sequence[KeyFix]) -> Outcome[None]:
    return writes.save(caller, apply_key_fixes, fixes, message=fix_message(len(fixes)))


def fix_message(count: int) -> str:
    return f"Fix {count:,} problem{'s' * (count != 1)}"


def _message_of(fix_result: FixResult) -> str:
    return fix_message(len(fix_result.fixes))
