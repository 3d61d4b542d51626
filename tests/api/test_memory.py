"""Tests that the memory in use stays limited, however many different queries arrive."""

import gc
import resource
from collections.abc import Iterator
from itertools import permutations
from pathlib import Path

import pytest

from server.index import fragments, orders, text_search
from tests.conftest import MakeApi
from tests.sites import STRING, collection, documents, relation

PYTHON_GC_THRESHOLDS = (700, 10, 10)
NAMES = ("title", "a", "b", "c", "d")
ORDERS = [",".join(names) for names in permutations(NAMES)]
STATM = Path("/proc/self/statm")


def query(i: int) -> str:
    """Return a query of 32 kB, of one of six kinds. Every `i` produces a different query."""
    long, names = f"{i:08}" * 4000, ORDERS[i // 6 % len(ORDERS)]
    kinds = (
        f"_q={long}",
        f"filters[title][$ne]={long}",
        f"populate[author][filters][name][$ne]={long}",
        f"fields={names}&populate[author][filters][name][$containsi]={long}",
        f"sort=author.name,{names}&unknown={long}",
        f"filters[author][name][$notIn]={long}&sort={names}",
    )
    return kinds[i % len(kinds)]


def resident() -> int:
    """Return this process's resident memory in bytes."""
    return int(STATM.read_text().split()[1]) * resource.getpagesize()


@pytest.fixture
def collected_often() -> Iterator[None]:
    """Free reference cycles as often as Python does by default, so that only what is kept takes memory."""
    before = gc.get_threshold()
    gc.set_threshold(*PYTHON_GC_THRESHOLDS)
    yield
    gc.set_threshold(*before)


@pytest.mark.usefixtures("collected_often")
@pytest.mark.skipif(not STATM.exists(), reason="only Linux tells how much memory a process takes")
def test_long_queries_of_all_kinds_leave_little_memory_taken(make_api: MakeApi) -> None:
    """Send only about 1,200 queries, because they take seconds. `bench.memory` sends 20,000 to a running
    server.
    """
    api = make_api(
        {
            **collection("note", {**dict.fromkeys(NAMES, STRING), "author": relation("manyToOne", "person")}),
            **collection("person", {"name": STRING}),
            **documents("notes", **{f"n{i}": {"title": str(i), "author": "ann"} for i in range(10)}),
            **documents("persons", ann={"name": "Ann"}),
            "site.yaml": "roles:\n  public:\n    note: [find]\n    person: [find]\n",
        }
    )
    for i in range(60):
        assert len(api.get(f"/api/notes?{query(i)}", "public").data) in (0, 10)
    before = resident()
    for i in range(60, 1260):
        assert api.get(f"/api/notes?{query(i)}", "public").status == 200
    taken = resident() - before
    snapshot = api.site.state.snapshot
    assert 0 < snapshot.fragments.cache.bytes <= fragments.MAX_BYTES
    assert 0 < snapshot.rendered.cache.bytes <= fragments.MAX_BYTES
    assert snapshot.search_results.cache.bytes <= text_search.MAX_BYTES
    assert 0 < snapshot.orders.cache.bytes <= orders.MAX_BYTES
    assert taken < 30_000_000  # The queries were 38 MB; the responses occupy about 4 MB.
