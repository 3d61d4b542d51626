"""The result of a check for people: problems by file, how to fix them, and a summary."""

from collections.abc import Iterator, Mapping
from itertools import groupby

from server.problems import Problem
from server.site.check.fixes import Fix, FixResult
from server.site.check.key_fixes import KeyFix
from server.site.check.survey import Survey
from server.tools.terminal import Part, Style, printable

_SIGNS: Mapping[str, tuple[str, Style]] = {
    "error": ("✗", {"fg": "red"}),
    "warning": ("!", {"fg": "yellow"}),
}
_PLAIN: Style = {}
_QUIET: Style = {"dim": True}
_PATH: Style = {"bold": True}


def report(found: Survey, prefix: str, seconds: float) -> Iterator[list[Part]]:
    """The lines of a report; `prefix` is the path from the current folder to the site."""
    for path, problems in groupby(found.problems, key=lambda problem: problem.path):
        yield [(printable(prefix + path), _PATH)]
        of_file = list(problems)
        width = max(len(_position(problem)) for problem in of_file)
        for problem in of_file:
            yield from _lines(problem, width)
        yield []
    yield _summary(found, seconds)
    if found.fixable:
        yield [(f"  quire check --fix fixes {count(found.fixable, 'value')}", _PLAIN)]


def _lines(problem: Problem, width: int) -> Iterator[list[Part]]:
    sign, style = _SIGNS[problem.severity]
    position = _position(problem).ljust(width)
    yield [(f"  {position}  ", _QUIET), (f"{sign} ", style), (printable(problem.message), _PLAIN)]
    if problem.fix:
        yield [(f"  {' ' * width}    {printable(problem.fix)}", _QUIET)]


def _position(problem: Problem) -> str:
    if problem.line is None:
        return "-"
    return f"{problem.line}:{problem.column}" if problem.column else str(problem.line)


def _summary(found: Survey, seconds: float) -> list[Part]:
    looked = f"{count(found.files, 'file')} looked at in {seconds:.2f} s"
    if found.site is None:
        looked = "no document was looked at"
    if not found.problems:
        return [("✓ ", {"fg": "green"}), (f"nothing is wrong; {looked}", _PLAIN)]
    sign, style = _SIGNS["error" if found.errors else "warning"]
    counts = [count(n, what) for n, what in ((found.errors, "error"), (found.warnings, "warning")) if n]
    files = len({problem.path for problem in found.problems})
    return [(f"{sign} ", style), (f"{' and '.join(counts)} in {count(files, 'file')}; {looked}", _PLAIN)]


def count(n: int, what: str) -> str:
    """`1 file`, `2 files`."""
    return f"{n:,} {what}" + ("s" if n != 1 else "")


def fixed(done: FixResult, prefix: str) -> Iterator[list[Part]]:
    """The lines that say what was fixed and what could not be fixed."""
    for path, fixes in groupby(done.fixes, key=lambda fix: fix.path):
        yield [(printable(prefix + path), _PATH)]
        yield from ([("  ✓ ", {"fg": "green"}), (printable(_shown(fix)), _PLAIN)] for fix in fixes)
    for path, reason in done.refused.items():
        yield [(printable(prefix + path), _PATH)]
        yield [("  ! ", {"fg": "yellow"}), (printable(reason), _PLAIN)]
    if done.fixes or done.refused:
        yield []


def _shown(fix: Fix | KeyFix) -> str:
    name = ".".join(map(str, fix.at))
    if fix.at[-1] == fix.old:  # It is the key itself.
        return f"{name} → {fix.new}"
    return f"{name}: {fix.old} → {fix.new}" if fix.old else f"{name}: {fix.new}"
