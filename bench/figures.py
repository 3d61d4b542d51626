"""`python -m bench.figures`: draws docs/figures/*.svg from the results of `make bench-peers` and `make
bench`.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from bench.__main__ import KEPT
from bench.tables import count

PEERS = Path("build/bench-peers.json")
FOLDER = Path("docs/figures")
WIDTH, LABELS, ROW = 760, 240, 15
COLOURS: Mapping[str, str] = {"bifolio": "#0b7285", "json-server": "#b08900", "strapi": "#8d4e9f"}
NAMES: Mapping[str, str] = {"bifolio": "Bifolio", "json-server": "json-server", "strapi": "Strapi"}
_STYLE = """text{font:12px system-ui,sans-serif;fill:#333}.small{font-size:11px}.head{font-weight:600}
line{stroke:#bbb}@media(prefers-color-scheme:dark){text{fill:#ddd}line{stroke:#555}}"""


def main() -> None:
    """Draw every figure for which there are measurements."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    if PEERS.exists():
        measured = json.loads(PEERS.read_text())["rows"]
        titles = {
            "new": "Uncached requests for documents that are already rendered",
            "again": "The same request again",
        }
        for kind, title in titles.items():
            rows = [row for row in measured if row["requests"] == kind]
            for figure, key in (("rate", "requests a second"), ("median_ms", "median latency, ms")):
                text = _bars(f"{title}: {key}", rows, figure)
                (FOLDER / f"peers-{kind}-{figure.partition('_')[0]}.svg").write_text(text)
    if KEPT.exists():
        (FOLDER / "growth.svg").write_text(_growth(json.loads(KEPT.read_text())["growth"]))


def _bars(title: str, rows: Sequence[Mapping[str, Any]], figure: str) -> str:
    """Return a bar chart with a logarithmic scale."""
    values = [row["servers"][name][figure] for row in rows for name in COLOURS]
    scale = _Scale(min(values), max(values), LABELS, WIDTH - 70)
    out, y = [_text(8, 20, title, "head")], 36
    out += _legend(y)
    y += 14
    top = y
    for row in rows:
        out.append(_text(LABELS - 8, y + 2 * ROW, row["row"], anchor="end"))
        for name, colour in COLOURS.items():
            value = row["servers"][name][figure]
            width = max(scale(value) - LABELS, 1)
            out.append(f'<rect x="{LABELS}" y="{y}" width="{width:.1f}" height="{ROW - 3}" fill="{colour}"/>')
            out.append(_text(LABELS + width + 5, y + ROW - 5, _shown(value), "small"))
            y += ROW
        y += 10
    return _svg(title, y + 24, [*scale.grid(top, y), *out])


def _growth(grown: Mapping[str, Mapping[str, float]]) -> str:
    """Return a line chart of durations by the size of the site, with logarithmic scales."""
    title = "Growth: median latency of new requests, in ms, by articles"
    sizes = sorted({int(n) for found in grown.values() for n in found})
    values = [value for found in grown.values() for value in found.values()]
    height, right = 380, WIDTH - 270
    across = _Scale(sizes[0], sizes[-1], 60, right)
    down = _Scale(min(values), max(values), height, 50)
    out = [_text(8, 20, title, "head")]
    out += [_text(across(n), height + 20, count(n), "small", "middle") for n in sizes]
    for power in down.powers():
        out.append(f'<line x1="60" x2="{right}" y1="{down(power):.1f}" y2="{down(power):.1f}"/>')
        out.append(_text(54, down(power) + 4, _shown(power), "small", "end"))
    ends = _apart([(down(found[str(sizes[-1])]), name) for name, found in grown.items()])
    for i, (name, found) in enumerate(grown.items()):
        colour = f"hsl({i * 360 // len(grown)} 60% 45%)"
        points = " ".join(f"{across(n):.1f},{down(found[str(n)]):.1f}" for n in sizes)
        out.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        out.append(f'<circle cx="{right + 12}" cy="{ends[name] - 4:.1f}" r="4" fill="{colour}"/>')
        out.append(_text(right + 22, ends[name], name, "small"))
    return _svg(title, height + 36, out)


def _apart(places: list[tuple[float, str]]) -> dict[str, float]:
    found: dict[str, float] = {}
    last = 20.0
    for y, name in sorted(places):
        last = found[name] = max(y + 4, last + 14)
    return found


class _Scale:
    """Logarithmic scale from values to pixels."""

    def __init__(self, low: float, high: float, start: float, end: float) -> None:
        self.low, self.high = math.log10(low) - 0.1, math.log10(high) + 0.1
        self.start, self.end = start, end

    def __call__(self, value: float) -> float:
        part = (math.log10(value) - self.low) / (self.high - self.low)
        return self.start + part * (self.end - self.start)

    def powers(self) -> list[float]:
        return [10.0**p for p in range(math.ceil(self.low), math.floor(self.high) + 1)]

    def grid(self, top: float, bottom: float) -> list[str]:
        lines = [
            f'<line x1="{self(p):.1f}" x2="{self(p):.1f}" y1="{top}" y2="{bottom}"/>' for p in self.powers()
        ]
        return lines + [_text(self(p), bottom + 14, _shown(p), "small", "middle") for p in self.powers()]


def _legend(y: float) -> list[str]:
    out, x = [], LABELS
    for name, colour in COLOURS.items():
        out.append(f'<rect x="{x}" y="{y - 9}" width="10" height="10" fill="{colour}"/>')
        out.append(_text(x + 15, y, NAMES[name]))
        x += 110
    return out


def _shown(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:g}" if value in (0.01, 0.1, 1) else f"{value:.2f}"


def _text(x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}">{escape(text)}</text>'


def _svg(title: str, height: float, parts: Iterable[str]) -> str:
    inner = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" role="img"'
        f' aria-label="{escape(title)}">\n<style>{_STYLE}</style>\n{inner}\n</svg>\n'
    )


if __name__ == "__main__":
    main()
