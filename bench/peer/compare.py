"""Comparison of the responses and the speed of all three servers, with the same requests."""

import json
import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import unquote

from bench.effort import SHARE
from bench.load import Requests, Result, run
from bench.peer.rows import Row
from bench.serving import Serving, hosted
from bench.tables import count, ratio, show, size

CONNECTIONS = 16
_CHECKED = 5  # number of requests that are checked in each row
Turns = dict[str, list[Result]]


@dataclass(frozen=True)
class Servers:
    """The three servers."""

    bifolio: Serving
    strapi: Serving
    json_server: Serving

    def each(self, row: Row) -> dict[str, tuple[Serving, Sequence[str]]]:
        return {
            "bifolio": (self.bifolio, row.bifolio),
            "strapi": (self.strapi, row.strapi),
            "json-server": (self.json_server, row.json_server),
        }


def check(servers: Servers, rows: Sequence[Row]) -> None:
    """Check that all servers return the same documents. Raises RuntimeError."""
    for row in rows:
        for i in range(_CHECKED):
            ours, reference = (
                json.loads(serving.get(paths[i]))
                for serving, paths in ((servers.bifolio, row.bifolio), (servers.strapi, row.strapi))
            )
            third = json.loads(servers.json_server.get(row.json_server[i]))
            if _told(ours) != _told(reference) or ours["meta"] != reference["meta"]:
                raise RuntimeError(f"{row.name}: other documents at {unquote(row.strapi[i])}")
            same = _told({"data": third}) == _told(ours)
            if not same and row.name != "_q":  # Unlike the others, json-server also searches ids and numbers.
                raise RuntimeError(f"{row.name}: other documents at {row.json_server[i]}")


def _told(answer: Mapping[str, Any]) -> list[str]:
    data = answer["data"]
    return [document["slug"] for document in (data if isinstance(data, list) else [data])]


def measure(
    servers: Servers, rows: Sequence[Row], folder: Path, rounds: int, seconds: int, workers: int
) -> list[dict[str, object]]:
    """Measure the servers in turns for every row. Print two tables, and return their figures."""
    answers = {row.bifolio[0]: servers.bifolio.get(row.bifolio[0]) for row in rows}
    file = folder / "answers"
    file.write_bytes(pickle.dumps(answers))
    measured: list[dict[str, object]] = []
    with hosted("granian", "empty", file, workers=workers) as empty:
        for kind, unique in (("again", False), ("new", True)):
            found = []
            for row in rows if SHARE == 1 else rows[::2]:
                each = servers.each(row)
                if not unique:
                    each["empty"] = (empty, row.bifolio[:1])
                turns = _turns(each, rounds, seconds, unique)
                found.append(_figures(row, kind, len(answers[row.bifolio[0]]), turns))
            _PRINTED[kind](found)
            measured += found
    return measured


def _turns(
    each: Mapping[str, tuple[Serving, Sequence[str]]], rounds: int, seconds: int, unique: bool
) -> Turns:
    # The first turn is ignored, because JIT compilers make later turns faster.
    turns: Turns = {name: [] for name in each}
    for turn in range(rounds if unique or SHARE < 1 else rounds + 1):
        for name, (serving, paths) in each.items():
            requests = Requests(paths if unique else paths[:1], unique)
            turns[name].append(run(serving, requests, seconds, turn, CONNECTIONS))
    return {name: results[-rounds:] for name, results in turns.items()}


def _figures(row: Row, kind: str, length: int, turns: Turns) -> dict[str, Any]:
    """Return the results of each server for one row, and Bifolio's ratios to the others."""
    servers = {
        name: {
            "rate": round(median(r.rate for r in results), 1),
            "median_ms": round(median(r.median_ms for r in results), 3),
            "p99_ms": round(median(r.p99_ms for r in results), 3),
        }
        for name, results in turns.items()
    }
    ratios = {
        name: round(median(a.rate / b.rate for a, b in zip(turns["bifolio"], results, strict=True)), 3)
        for name, results in turns.items()
        if name != "bifolio"
    }
    return {
        "row": row.name,
        "requests": kind,
        "bytes": length,
        "json-server asked": row.as_json_server,
        "servers": servers,
        "ratios": ratios,
    }


def _print_again(found: Sequence[Mapping[str, Any]]) -> None:
    rows = []
    for row in found:
        servers, ratios = row["servers"], row["ratios"]
        rows.append(
            [
                row["row"],
                size(row["bytes"]),
                *(_cell(servers[name]) for name in ("bifolio", "empty", "strapi", "json-server")),
                *(ratio(ratios[name]) for name in ("empty", "strapi", "json-server")),
            ]
        )
    head = ["request", "response", "Bifolio", "empty app", "Strapi", "json-server"]
    show("The same request again", [*head, "ratio to empty", "to Strapi", "to json-server"], rows, _NOTE)


def _print_new(found: Sequence[Mapping[str, Any]]) -> None:
    rows = []
    for row in found:
        servers, ratios = row["servers"], row["ratios"]
        rows.append(
            [
                row["row"],
                row["json-server asked"],
                *(_cell(servers[name]) for name in ("bifolio", "strapi", "json-server")),
                *(ratio(ratios[name]) for name in ("strapi", "json-server")),
            ]
        )
    head = [
        "request",
        "json-server's request",
        "Bifolio",
        "Strapi",
        "json-server",
        "to Strapi",
        "to json-server",
    ]
    show("Uncached requests for documents that are already rendered", head, rows, _NOTE)


_NOTE = (
    f"Each cell: requests per second, then median / p99 latency in ms, with {CONNECTIONS} connections."
    " Each number is the median of all rounds."
)
_PRINTED: Mapping[str, Callable[[Sequence[Mapping[str, Any]]], None]] = {
    "again": _print_again,
    "new": _print_new,
}


def _cell(figures: Mapping[str, float]) -> str:
    return f"{count(figures['rate'])}/s, {figures['median_ms']:.1f} / {figures['p99_ms']:.1f}"
