"""Groups of problems that have the same cause."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from server.config.model import FILE
from server.problems import Problem, Severity
from server.schema.model import Type
from server.site.check.audit import Audit

MAX_EXAMPLES = 3  # maximum number of examples for each cause
_MAX_NAMED_KEYS = 6  # maximum number of keys that one sentence lists
# Messages that differ only in values, paths and numbers have the same cause.
_VARIABLE = re.compile(
    r'(?<=\(found )".*"(?=\)$)|"(?:[^"\\]|\\.)*"'
    r'|[^\s,;()"]+/[^\s,;()"]+|(?<![\w"])[0-9][0-9.:-]*(?: [0-9:]+)?'
)
_OF_NO_TYPE = frozenset({"syntax", "unreadable", "repeated-key", "interrupted", "translation"})

_Key = tuple[str, str, str, str]


@dataclass(frozen=True)
class ProblemGroup:
    """Problems of the same kind (`rule`) in files of the same content type."""

    problems: tuple[Problem, ...]
    type: Type | None = None

    @property
    def rule(self) -> str:
        return self.problems[0].rule

    @property
    def severity(self) -> Severity:
        return self.problems[0].severity

    @property
    def is_large(self) -> bool:
        return len(self.problems) > MAX_EXAMPLES

    @cached_property
    def _keys(self) -> Counter[str]:
        return Counter(str(problem.at[-1]) for problem in self.problems if len(problem.at) == 1)

    @property
    def message(self) -> str:
        messages = {problem.message for problem in self.problems}
        if len(messages) == 1:
            return self.problems[0].message
        if self.rule == "unknown-key" and self.type and self._keys:
            named = [f"{key} ({count:,})" for key, count in self._keys.most_common(_MAX_NAMED_KEYS)]
            more = (
                f" and {len(self._keys) - _MAX_NAMED_KEYS:,} more"
                if len(self._keys) > _MAX_NAMED_KEYS
                else ""
            )
            return f"unknown attributes of {self.type.uid}: {', '.join(named)}{more}"
        return _VARIABLE.sub("…", self.problems[0].message)

    @property
    def examples(self) -> list[Problem]:
        first = list({problem.path: problem for problem in reversed(self.problems)}.values())[::-1]
        return [*first, *(problem for problem in self.problems if problem not in first[:MAX_EXAMPLES])][
            :MAX_EXAMPLES
        ]

    @property
    def advice(self) -> str:
        fixes = {problem.fix for problem in self.problems}
        if all(fix.startswith("--fix ") for fix in fixes):
            return "run bifolio check --fix to fix them all"
        if len(fixes) == 1 and self.problems[0].fix.startswith("did you mean "):
            return self.problems[0].fix
        if known := self._advice_for_rule():
            return known
        return self.problems[0].fix if len(fixes) == 1 else f"fix each of them{self._or_ignore}"

    @property
    def _or_ignore(self) -> str:
        if self.severity == "error":
            return ""
        return f", or list them under check.ignore.{self.rule} in {FILE} if they are intended"

    def _advice_for_rule(self) -> str:
        if self.rule == "translation":
            return f"add these versions, or list the files under check.ignore.translation in {FILE}"
        if not self.type:
            return ""
        where, names = self.type.path, {str(problem.at[-1]) for problem in self.problems if problem.at}
        attribute = f'"{names.pop()}"' if len(names) == 1 else "the attribute"
        return {
            "unknown-key": f"add the attributes to {where}, or set options.otherKeys there to serve all "
            "other keys",
            "value": f"correct each value, or change the type of {attribute} in {where}",
            "option": f"correct the files, or change the options of {attribute} in {where}",
            "duplicate-value": f'use different values, or remove "unique" from {attribute} in {where}',
            "dangling": f"add the missing targets, or change the target of {attribute} in {where}",
        }.get(self.rule, "")


def group_by_cause(problems: Iterable[Problem], audit: Audit | None) -> list[ProblemGroup]:
    """Group problems by cause. Errors come first, and larger groups come before smaller ones.

    If `audit` is None, each problem forms its own group.
    """
    grouped: Mapping[_Key, list[Problem]] = defaultdict(list)
    types: dict[_Key, Type] = {}
    for number, problem in enumerate(problems):
        claim = audit.claims.get(problem.path) if audit else None
        key = _key(problem, claim.type.uid if claim else "") if audit else ("", "", "", str(number))
        grouped[key].append(problem)
        if claim:
            types[key] = claim.type
    causes = [ProblemGroup(tuple(of_cause), types.get(key)) for key, of_cause in grouped.items()]
    return sorted(causes, key=lambda cause: (cause.severity, -len(cause.problems)))


def _key(problem: Problem, uid: str) -> _Key:
    uid = "" if problem.rule in _OF_NO_TYPE else uid
    if problem.rule == "unknown-key" and uid and len(problem.at) == 1:
        message = ""
    elif problem.rule == "unclaimed":
        message = problem.message  # The message names a folder. Each folder is a separate cause.
    else:
        message = _VARIABLE.sub("…", problem.message)
    return problem.rule, problem.severity, uid, message
