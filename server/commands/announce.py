"""Messages that `bifolio serve` prints on the terminal."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

import click

from server.documents.document import PUBLISHED
from server.problems import Problem
from server.site.change import Change
from server.site.site import State
from server.tools.terminal import printable

# How many problems are printed after a change, unless --verbose is set.
MAX_SHOWN_PROBLEMS = 10


@dataclass(frozen=True, slots=True)
class Terminal:
    """The terminal output of `bifolio serve`. If `quiet` is set, only the URL and errors are printed."""

    # All workers print here. Each message is written with a single system call, so that messages never get
    # mixed up.

    quiet: bool = False
    verbose: bool = False

    def print_ready(
        self,
        state: State,
        problems: Sequence[Problem],
        elapsed_s: float,
        url: str,
        commit: tuple[str, str, str] | None = None,
        studio: str = "",
    ) -> None:
        """Print the numbers of documents, the problems, and the URL.

        - `commit`: the id, date and subject of the served commit, or None for the current state
        - `studio`: a URL that signs in to the studio, or "" to print none
        """
        lines = [] if self.quiet else list(_contents(state, elapsed_s))
        if commit and not self.quiet:
            id_, date, subject = commit
            lines.append(f"  as it was at commit {id_[:10]} of {date}: {printable(subject)}")
            lines.append("  read-only, with today's permissions")
        errors = [p for p in problems if p.severity == "error"]
        warnings = [] if self.quiet else [p for p in problems if p.severity == "warning"]
        if self.verbose or not warnings:
            lines.extend(self._problems([*errors, *warnings]))
        else:
            more = f" (and {len(warnings) - 1} more)" if len(warnings) > 1 else ""
            lines.extend(self._problems(errors))
            lines.append(_problem(warnings[0], more))
        if studio:
            lines.append(f"  {studio}   to edit")
        _print_lines([*lines, f"  {url}   (Ctrl-C stops it)"])

    def print_change(self, change: Change, elapsed_s: float) -> None:
        if self.quiet:
            return _print_lines(list(self._problems([p for p in change.problems if p.severity == "error"])))
        read = [*_actions(("read", change.changed), ("removed", change.removed))]
        written = [*_actions(("wrote", change.written), ("deleted", change.deleted))]
        if change.reloaded:
            read.insert(0, "site.yaml or a content type has changed")
        took = f"({elapsed_s * 1000:.0f} ms)"
        lines = [
            f"  {sign} {', '.join(parts)} {took}" for sign, parts in (("↻", read), ("✎", written)) if parts
        ]
        paths = (*change.changed, *change.removed, *change.written, *change.deleted)
        if self.verbose and len(paths) > 1:
            lines.extend(f"    {printable(path)}" for path in sorted(paths))
        lines.extend(self._problems(change.problems))
        lines.extend(self._problem_lines([_fix_line(problem) for problem in change.fixed], "fixed"))
        return _print_lines(lines)

    def print_line(self, line: str) -> None:
        _print_lines([line])

    def warn(self, line: str) -> None:
        _print_lines([click.style(f"  ✗ {line}", fg="red")])

    def _problems(self, problems: Sequence[Problem]) -> Iterator[str]:
        return self._problem_lines(
            [_problem(problem) for problem in problems], "to fix; run `bifolio check` to list them"
        )

    def _problem_lines(self, lines: Sequence[str], what: str) -> Iterator[str]:
        shown = len(lines) if self.verbose else MAX_SHOWN_PROBLEMS
        yield from lines[:shown]
        if len(lines) > shown:
            yield f"  … and {len(lines) - shown} more {what}"


def _contents(state: State, seconds: float) -> Iterator[str]:
    # Each document counts once, regardless of its locales and versions.
    counts, drafts = [], False
    for type_ in state.schema.content_types:
        versions = state.snapshot.tables[type_.uid].versions
        found = {document_id for document_id, _, _ in versions}
        drafts |= found != {document_id for document_id, _, status in versions if status == PUBLISHED}
        if found:
            counts.append(f"{len(found)} {type_.plural if len(found) != 1 else type_.singular}")
    files, types = len(state.snapshot.media), len(state.schema.content_types)
    locales = len(state.settings.locales.available) > 1 and any(
        t.localized for t in state.schema.content_types
    )
    counted = [*["all locales"] * locales, *["with drafts"] * drafts]
    yield f"{state.settings.name}: {types} content type{'s' * (types != 1)}, read in {seconds:.2f} s"
    yield (
        f"  {', '.join(counts) or 'no documents yet'}"
        + (f", {files} upload{'s' * (files != 1)}" if files else "")
        + (f" ({', '.join(counted)})" if counts and counted else "")
    )


def _actions(*actions: tuple[str, Sequence[str]]) -> Iterator[str]:
    for what, paths in actions:
        if paths:
            yield f"{what} {printable(paths[0]) if len(paths) == 1 else f'{len(paths)} files'}"


def _problem(problem: Problem, more: str = "") -> str:
    error = problem.severity == "error"
    line = f"  {'✗' if error else '!'} {printable(str(problem))}{more}"
    return click.style(line, fg="red" if error else "yellow")


def _fix_line(problem: Problem) -> str:
    return click.style(f"  ✓ fixed: {printable(f'{problem.path}: {problem.message}')}", fg="green")


def _print_lines(lines: Sequence[str]) -> None:
    with suppress(OSError):  # Writes must succeed even if the terminal has been closed.
        if lines:
            click.echo("\n".join(lines))
