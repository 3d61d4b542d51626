"""Benchmark of exports: documents per second, compared with only writing the same bytes to files."""

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.sites import Sizes, article_path
from bench.tables import count, ratio, show
from server.site.site import Site
from server.tools.export.run import ExportOptions, export

POPULATED = '\nexport: {types: {article: {populate: "*"}}}\n'


def measure(sites: dict[int, Path]) -> None:
    rows = [row for articles, root in sites.items() for row in _rows(articles, root)]
    head = ["export", "documents/s", "seconds", "files", "ratio to writing the same bytes"]
    show("Exporting all lists, pages and documents", head, rows)


def _rows(articles: int, root: Path) -> Iterator[list[str]]:
    target = root.parent / f"{root.name}-export"
    settings, article = root / "site.yaml", root / article_path(articles // 2)
    before = {path: path.read_bytes() for path in (settings, article)}
    try:
        for what, more in (("", ""), (", populate=*", POPULATED)):
            settings.write_bytes(before[settings] + more.encode())
            site = Site(root)
            site.load()
            shutil.rmtree(target, ignore_errors=True)
            took, files = _export(site, target), _files(target)
            plain = _write(files, target.with_name("plain"))
            shutil.rmtree(target.with_name("plain"))
            named = f"{count(articles)} articles{what}"
            yield _row(f"{named}: everything", articles, took, len(files), ratio(took / plain))
            yield _row(f"{named}: nothing changed", articles, _export(site, target), 0)
            article.write_bytes(before[article] + b"\nMore.\n")
            site.refresh()
            yield _row(f"{named}: one article changed", articles, _export(site, target), 2)
            article.write_bytes(before[article])
    finally:
        for path, text in before.items():
            path.write_bytes(text)
        shutil.rmtree(target, ignore_errors=True)


def _row(name: str, articles: int, took: float, files: int, plain: str = "") -> list[str]:
    documents = articles + Sizes(articles).authors + Sizes(articles).tags + Sizes(articles).categories
    return [name, count(documents / took), f"{took:.2f}", f"{files:,}" if files > 2 else "", plain]


def _export(site: Site, target: Path) -> float:
    began = time.perf_counter()
    export(site, target, ExportOptions(), _silent)
    return time.perf_counter() - began


@contextmanager
def _silent(label: str) -> Iterator[Callable[[int, int], None]]:
    yield lambda done, total: None


def _files(target: Path) -> dict[str, bytes]:
    found = (path for path in target.rglob("*") if path.is_file())
    return {path.relative_to(target).as_posix(): path.read_bytes() for path in found}


def _write(files: dict[str, bytes], target: Path) -> float:
    began = time.perf_counter()
    for path, body in files.items():
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        (target / path).write_bytes(body)
    return time.perf_counter() - began
