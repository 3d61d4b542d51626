"""Table of the trees on standard output, and every difference with an example."""

from collections.abc import Iterable, Sequence

from bench.real.known import reason_of
from bench.real.run import Outcome

HEAD = (
    "tree",
    "files",
    "types",
    "locales",
    "documents",
    "check",
    "values",
    "different",
    "unchanged",
    "with a diff",
    "changed",
    "not one hunk",
    "seconds",
)


def print_report(outcomes: Sequence[Outcome]) -> bool:
    """Print the differences. Return whether all are declared in known.py."""
    for line in _table([HEAD, *map(_row, outcomes)]):
        print(line)
    is_good = True
    for outcome in outcomes:
        for cause, count, example in outcome.differences.rows():
            reason = reason_of(outcome.tree.name, cause, count)
            is_good = is_good and reason is not None
            print(f"\n{outcome.tree.name}: {cause}: {count:,}\n  {example}")
            print(f"  known: {reason}" if reason else "  NOT DECLARED in bench/real/known.py")
    return is_good


def _row(outcome: Outcome) -> tuple[str, ...]:
    differences = outcome.differences
    return (
        outcome.tree.name,
        f"{outcome.files:,}",
        f"{outcome.types:,}",
        f"{outcome.locales:,}",
        f"{outcome.documents:,}",
        f"{outcome.problems:,}",
        f"{outcome.compared:,}",
        f"{differences.count('values: '):,}",
        f"{outcome.unchanged:,}",
        f"{differences.count('unchanged: '):,}",
        f"{outcome.changed:,}",
        f"{differences.count('changed: '):,}",
        f"{outcome.seconds:.0f}",
    )


def _table(rows: Iterable[Sequence[str]]) -> list[str]:
    listed = list(rows)
    widths = [max(map(len, column)) for column in zip(*listed, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if index else cell.ljust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in listed
    ]
