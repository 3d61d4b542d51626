"""Diagnostics and quick fixes for the problems that `bifolio check` finds."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from server.documents.path_rules import ENDINGS
from server.errors import with_fix
from server.lsp.edits import text_edits, workspace_edit
from server.lsp.flow import Node
from server.lsp.keys import scan_nodes
from server.lsp.positions import Span, Text, uri_of
from server.lsp.protocol import Json
from server.lsp.view import View
from server.problems import Problem
from server.service.unsaved import plan_fixes
from server.site.check.fixes import Fix, KeyFix
from server.site.check.survey import Survey

SOURCE = "bifolio"
FIX_ALL = "source.fixAll.bifolio"
QUICK_FIX = "quickfix"
_SEVERITIES = {"error": 1, "warning": 2}
_UNNECESSARY = 1  # tag: editors show the text faded
_WORD = re.compile(r"[^\s,\[\]{}\"']+")
_SUGGESTION = re.compile(r'did you mean "([^"]+)"\?')
_NAMING_RULES = frozenset(
    {"unknown-key", "settings", "schema"}
)  # Problems of these rules are about a single key or word, which a fix can replace.


MAX_QUICK_FIXES = 50  # Limit for one response, because each quick fix needs an edited copy of the file.


def to_diagnostic(problem: Problem, text: Text, span: Span) -> Json:
    """Convert a problem to an LSP diagnostic. `span` is the position of the problem in the file's text."""
    found: Json = {
        "range": text.range(span),
        "severity": _SEVERITIES[problem.severity],
        "code": problem.rule,
        "source": SOURCE,
        "message": with_fix(problem.message, problem.fix),
    }
    if problem.rule == "repeated-key":
        found["tags"] = [_UNNECESSARY]
    return found


def diagnostics(problems: Iterable[Problem], path: str, text: Text) -> list[Json]:
    spans = spans_by_start(scan_nodes(path, text.value)) if path.endswith(ENDINGS) else {}
    return [to_diagnostic(problem, text, problem_span(problem, text, spans)) for problem in problems]


def spans_by_start(nodes: Sequence[Node]) -> Mapping[int, Span]:
    """Return a mapping from the start index of each key and value to its span.

    The preceding index is also mapped to the span, because a quotation mark can be there.
    """
    spans: dict[int, Span] = {}
    for node in reversed(nodes):  # in reverse order, so that the first node at an index wins
        if node.depth >= 0:
            spans.update(dict.fromkeys((node.key[0] - 1, node.key[0]), node.key))
        if node.value:
            span = node.value if node.value[0] < node.value[1] else node.key
            spans.update(dict.fromkeys((node.value[0] - 1, node.value[0]), span))
    return spans


def problem_span(problem: Problem, text: Text, spans: Mapping[int, Span]) -> Span:
    """Return the span of the value, key, word or line that a problem is about."""
    start = text.index_of_line(problem.line, problem.column)
    if start in spans:
        return spans[start]
    if problem.column is None:
        line = text.line(text.line_of(start)).rstrip("\r\n")
        return start, start + len(line)
    word = _WORD.match(text.value, start)
    return (start, word.end()) if word else (start, min(start + 1, len(text.value)))


# --- fixes ----------------------------------------------------------------------------------------


def code_actions(
    view: View,
    path: str,
    span: Span,
    survey: Survey,
    versions: Mapping[str, int | None],
    kinds: Iterable[str] = (),
) -> list[Json]:
    """Return quick fixes for problems in a span (up to a limit), and an action that fixes the whole file.

    If `kinds` is not empty, only code actions of these kinds are returned.
    """
    text = view.text(path)
    if text is None:
        return []
    requested = list(kinds)
    own_problems = [problem for problem in survey.problems if problem.path == path]
    actions: list[Json] = []
    if _includes(requested, QUICK_FIX):
        spans = spans_by_start(scan_nodes(path, text.value))
        for problem in own_problems:
            begin, end = problem_span(problem, text, spans)
            if begin <= span[1] and span[0] <= end:
                actions += _fixes_of(view, problem, (begin, end), survey, versions)
            if len(actions) >= MAX_QUICK_FIXES:
                break
    if _includes(requested, FIX_ALL):
        actions += _fix_all(view, own_problems, survey, versions)
    return actions


def _includes(kinds: list[str], kind: str) -> bool:
    return not kinds or any(kind == wanted or kind.startswith(f"{wanted}.") for wanted in kinds)


def _fixes_of(
    view: View, problem: Problem, span: Span, survey: Survey, versions: Mapping[str, int | None]
) -> Iterator[Json]:
    text = view.text(problem.path)
    fix = survey.fixes.get(problem) or survey.suggestions.get(problem)
    key_fix = next((fix for fix in survey.key_fixes if fix.is_of(problem)), None)
    suggested = _SUGGESTION.search(problem.fix)
    if text is None:
        return
    shown = to_diagnostic(problem, text, span)
    if fix is not None:
        if edit := _edit(view, (fix,), versions):
            yield _action(_title(fix), edit, shown, preferred=fix.is_certain)
    elif key_fix is not None or suggested:
        new = key_fix.new if key_fix else suggested[1] if suggested else ""
        old = text.value[slice(*span)]
        if key_fix is not None and old != key_fix.old:
            return
        if problem.rule in _NAMING_RULES or problem.at or key_fix:
            changed = text.value[: span[0]] + new + text.value[span[1] :]
            edit = _text_edit(view.root, problem.path, text.value, changed, versions)
            yield _action(f'Change to "{new}"', edit, shown, preferred=key_fix is not None)


def _fix_all(
    view: View, problems: list[Problem], survey: Survey, versions: Mapping[str, int | None]
) -> Iterator[Json]:
    fixes = tuple(dict.fromkeys(survey.fixes[problem] for problem in problems if problem in survey.fixes))
    edit = _edit(view, fixes, versions) if fixes else None
    if edit:
        title = f"Fix {len(fixes)} problem{'s' * (len(fixes) != 1)} in this file"
        yield {"title": title, "kind": FIX_ALL, "edit": edit}


def _edit(view: View, fixes: tuple[Fix, ...], versions: Mapping[str, int | None]) -> Json | None:
    plan = plan_fixes(view.overlay, fixes)
    return workspace_edit(view.root, plan, versions) if plan.texts else None


def _text_edit(root: Path, path: str, old: str, new: str, versions: Mapping[str, int | None]) -> Json:
    identifier = {"uri": uri_of(root / path), "version": versions.get(path)}
    return {"documentChanges": [{"textDocument": identifier, "edits": text_edits(old, new)}]}


def _title(fix: Fix | KeyFix) -> str:
    if isinstance(fix, Fix) and fix.line is not None:
        return f'Remove the earlier "{fix.key_path[-1]}"'
    new = "null" if fix.new is None else f'"{fix.new}"'
    return f"Change to {new}" if fix.old else f"Add {fix.key_path[-1]}: {fix.new}"


def _action(title: str, edit: Json, shown: Json, *, preferred: bool) -> Json:
    return {
        "title": title,
        "kind": QUICK_FIX,
        "edit": edit,
        "diagnostics": [shown],
        "isPreferred": preferred,
    }
