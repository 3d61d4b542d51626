"""Markdown tables on standard output, for docs/performance.md."""

from collections.abc import Sequence
from statistics import median, quantiles


def show(title: str, head: Sequence[str], rows: Sequence[Sequence[str]], note: str = "") -> None:
    """Print a table. All columns but the first contain numbers."""
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    print(f"\n### {title}\n")
    print(_line(head, widths))
    print("|" + "|".join("-" * (w + 1) + ("-" if i == 0 else ":") for i, w in enumerate(widths)) + "|")
    for row in rows:
        print(_line(row, widths))
    if note:
        print(f"\n{note}")
    print(end="", flush=True)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = (
        c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(cells, widths, strict=True))
    )
    return "| " + " | ".join(padded) + " |"


def count(value: float) -> str:
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def size(value: float) -> str:
    return f"{value / 1e6:.1f} MB" if value >= 1e6 else f"{value / 1e3:.1f} kB"


def ratio(value: float) -> str:
    return f"{value:.2f} ×"


def median_and_p99(taken: Sequence[float]) -> tuple[float, float]:
    # In the smallest runs, `taken` can contain a single value.
    if len(taken) < 2:
        return taken[0], taken[0]
    return median(taken), quantiles(taken, n=100)[98]
