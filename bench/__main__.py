"""`python -m bench [KIND]` measures speed and memory. Kinds:

  bifolio     loading, reading, writing, memory and more (the default)
  servers   comparison of WSGI servers
  search    building the search index, and searches
  worst     the slowest queries, and how they delay other requests
  attacks   other clients' requests while one client sends expensive ones
  history   reads of git history, and writes with commits
  events    event streams
  webhooks  deliveries of webhooks
  machines  three machines that share a git remote
  studio    load times of the studio's pages in a browser
  size      start, memory and searches of sites with 1,000, 15,000 and N articles
  migrating the rename of an attribute in all documents
  caches    time that each cache saves, by kind of work
  checking  `bifolio check`, and a check of the changes on a branch
  lsp       the language server: start, completions, memory
  publishing feeds, the sitemap and redirects
  images    images by URL, compared with ipx and sharp
  agents    tools for agents, compared with the REST API

Everything runs in a temporary folder and on 127.0.0.1. Compared servers alternate within one run, so the
ratios are reliable even on a busy machine.
"""

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from bench import (
    ablation,
    agents,
    bystanders,
    caches,
    checking,
    cold,
    compare,
    events,
    exporting,
    growth,
    history,
    images,
    live,
    loading,
    lsp,
    machines,
    memory,
    merging,
    migrating,
    publishing,
    reading,
    search,
    size,
    starting,
    studio,
    webhooks,
    worst,
    writing,
)
from bench.effort import scaled
from bench.load import generator
from bench.sites import Sizes, make_site
from tests.signals import restore_in_children

SIZES = (0, *(scaled(size, least) for size, least in ((1000, 50), (10_000, 60), (50_000, 70))))
ATTACKED_ARTICLES, ATTACKED_COMMITS = scaled(5000, 60), scaled(4000, 40)
WORST = scaled(10_000, 50)  # number of articles in the site for costly queries
TO_COMPARE = (
    scaled(1000, 50),
    scaled(15_000, 60),
)  # numbers of articles in the smaller sites
LARGE = scaled(150_000, 70)
MIGRATED = scaled(10_000, 50)
PUBLISHED = scaled(10_000, 50)
SMALL, MEDIUM, _ = GROWTH = SIZES[1:]
KEPT = Path("build/bench.json")  # results, which are the input of `python -m bench.figures`
CHOICES = (
    "bifolio",
    "servers",
    "search",
    "worst",
    "attacks",
    "history",
    "events",
    "webhooks",
    "machines",
    "studio",
    "size",
    "caches",
    "merging",
    "checking",
    "migrating",
    "lsp",
    "publishing",
    "images",
    "agents",
)
BEGAN = time.perf_counter()


# With this variable, each measured process would compile all modules, which takes longer than starting.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def main() -> None:
    """Run the measurements that the command line selects."""
    parser = argparse.ArgumentParser(
        prog="python -m bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", nargs="?", choices=CHOICES, default="bifolio")
    parser.add_argument("--full", action="store_true", help="more rounds, all site sizes, all work of caches")
    parser.add_argument("--docs", help="search: folder or .tar.gz of the Astro docs (bench/quality.py)")
    parser.add_argument("--articles", type=int, help="size, history: articles (default: 150,000; 2,500)")
    parser.add_argument("--small", action="store_true", help="size: articles of 200 bytes instead of 2 kB")
    parser.add_argument("--commits", type=int, default=history.COMMITS, help="history: number of commits")
    options = parser.parse_args()
    restore_in_children()
    print(_machine())
    with tempfile.TemporaryDirectory(prefix="bifolio-bench-") as folder:
        if options.what == "servers":
            compare.measure(Path(folder), rounds=scaled(5 if options.full else 3, 1))
        elif options.what == "search":
            search.measure(Path(folder), options.docs, full=options.full)
        elif options.what == "worst":
            make_site(Path(folder), WORST)
            worst.measure(Path(folder), WORST, queries=scaled(5000 if options.full else 500))
        elif options.what == "merging":
            merging.measure(Path(folder))
        elif options.what == "attacks":
            bystanders.measure(Path(folder), ATTACKED_ARTICLES, ATTACKED_COMMITS)
        elif options.what == "size":
            counts = (*TO_COMPARE, options.articles or LARGE)
            size.measure(_make_sites(Path(folder), counts, small=options.small))
        elif options.what == "events":
            make_site(Path(folder), SMALL)
            events.measure(Path(folder), SMALL, rounds=5 if options.full else 3)
        elif options.what == "webhooks":
            webhooks.measure(Path(folder), SMALL)
        elif options.what == "machines":
            machines.measure()
        elif options.what == "studio":
            studio.measure(Path(folder))
        elif options.what == "checking":
            articles = options.articles or scaled(10_000, 60)
            checking.measure(Path(folder), articles, rounds=scaled(7, 1))
        elif options.what == "caches":
            caches.measure(Path(folder), full=options.full)
        elif options.what == "migrating":
            migrating.measure(Path(folder), options.articles or MIGRATED)
        elif options.what == "lsp":
            lsp.measure(_make_sites(Path(folder), (MEDIUM,)))
        elif options.what == "publishing":
            publishing.measure(Path(folder), options.articles or PUBLISHED)
        elif options.what == "images":
            images.measure(Path(folder))
        elif options.what == "agents":
            agents.measure(Path(folder))
        elif options.what == "history":
            history.measure(Path(folder), options.articles or history.ARTICLES, options.commits)
        else:
            _measure(Path(folder), full=options.full)
    print(f"\nmeasured in {time.perf_counter() - BEGAN:.0f} s")


def _make_sites(folder: Path, sizes: Iterable[int], *, small: bool = False) -> dict[int, Path]:
    sites = {articles: folder / str(articles) for articles in sizes}
    for articles, root in sites.items():
        _say(f"making {articles:,} articles")
        root.mkdir()
        make_site(root, articles, small=small)
    return sites


def _measure(folder: Path, *, full: bool) -> None:
    sites = _make_sites(folder, SIZES)
    some = {n: sites[n] for n in (SMALL, MEDIUM)}
    _say("loading")
    loading.print_table({n: loading.measure(root) for n, root in some.items()})
    _say("starting")
    starting.measure(some)
    for articles in some if full else (SMALL,):
        _say(f"reading, {articles:,} articles")
        reading.measure(sites[articles], Sizes(articles), rounds=5 if full else 2)
    _say("ablation")
    ablation.measure(sites[SMALL], SMALL)
    _say("growth")
    grown = growth.measure({n: sites[n] for n in GROWTH})
    KEPT.parent.mkdir(exist_ok=True)
    KEPT.write_text(json.dumps({"about": _machine(), "growth": grown}, indent=1) + "\n")
    _say("exporting")
    exporting.measure(some)
    _say("memory")
    memory.measure(sites)
    memory.measure_flood(sites[SMALL], SMALL)
    _say("language server")
    lsp.measure({MEDIUM: sites[MEDIUM]})
    _say("changing files")
    live.print_table([row for n, root in some.items() for row in live.measure(root, Sizes(n))])
    _say("writing")
    writing.measure(some)  # Like the previous measurement, this one changes the sites, so both come last.
    _say("history")
    history.measure(folder / "history", history.ARTICLES, history.COMMITS)
    _say("feeds, sitemap and redirects")
    (folder / "publishing").mkdir()
    publishing.measure(folder / "publishing", PUBLISHED)
    _say("what is rendered for the first time")
    cold.measure(sites[MEDIUM], Sizes(MEDIUM))


def _say(what: str) -> None:
    print(f"{time.perf_counter() - BEGAN:4.0f} s  {what}", file=sys.stderr, flush=True)


def _machine() -> str:
    system = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    return f"Python {platform.python_version()}, {system}; load by {generator()}; {time.strftime('%Y-%m-%d')}"


if __name__ == "__main__":
    main()
