"""Benchmark of caches: how much time each one saves (`python -m bench caches`)."""
# `python -m bench.caches FOLDER` runs in a separate process, because the decorators must be replaced before
# the server is imported.

import functools
import resource
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from pathlib import Path
from statistics import median
from time import perf_counter
from timeit import repeat, timeit
from typing import Any

from bench.tables import count, show

# If there were fewer misses, most of them were first calls, which are slow. In this case, the last miss is
# repeated and measured.
FEW_MISSES = 20
# For shorter misses, wall time is used, because they are rarely interrupted.
LONG_S = 0.0005
TIMED_S = 0.02  # how long to repeat a hit or miss
_real_lru_cache = functools.lru_cache


@dataclass
class Probe:
    """Counter for one cache. `look_up` repeats its last lookup, and `compute` repeats its last miss."""

    name: str
    calls: int = 0
    misses: int = 0
    taken: list[float] = field(default_factory=list)  # duration of each miss in seconds
    look_up: Callable[[], Any] | None = None
    compute: Callable[[], Any] | None = None
    infos: list[Callable[[], Any]] = field(default_factory=list)  # `cache_info` functions of its lru_caches

    def totals(self) -> tuple[int, int]:
        found = [info() for info in self.infos]
        misses = self.misses + sum(info.misses for info in found)
        return self.calls + misses - self.misses + sum(info.hits for info in found), misses

    @cached_property
    def miss_s(self) -> float:
        if self.compute and len(self.taken) < FEW_MISSES:
            return _repeated_s(self.compute)
        return median(self.taken) if self.taken else 0.0

    @cached_property
    def hit_s(self) -> float:
        return _repeated_s(self.look_up) if self.look_up else 0.0


def _repeated_s(call: Callable[[], Any]) -> float:
    call()
    once = timeit(call, number=1)
    times = max(1, round(TIMED_S / max(once, 1e-7)))
    return min(repeat(call, timer=_used_s, number=times, repeat=3)) / times


def _used_s() -> float:
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


@dataclass(frozen=True)
class CacheUse:
    """How one kind of work used one cache."""

    work: str
    probe: Probe
    calls: int
    misses: int
    items: int  # number of requests, documents or other units of work
    seconds: float  # processor time of all items

    @property
    def saved_s(self) -> float:
        return (self.calls - self.misses) * (self.probe.miss_s - self.probe.hit_s) / self.items

    @property
    def share(self) -> float:
        # as a share of the time that the work would take without the cache
        return self.saved_s / (self.seconds / self.items + max(self.saved_s, 0.0))


class Probes:
    """All probes in this process, and how each kind of work used them."""

    def __init__(self) -> None:
        self.by_name: dict[str, Probe] = {}
        self.uses: list[CacheUse] = []
        self._bounded: dict[tuple[str, int], Probe] = {}

    def of(self, name: str) -> Probe:
        return self.by_name.setdefault(name, Probe(name))

    @contextmanager
    def during(self, work: str, items: int) -> Iterator[None]:
        """Context manager: count the calls and misses in its block as part of one kind of work on `items`
        items.
        """
        before = {name: probe.totals() for name, probe in self.by_name.items()}
        began = _used_s()
        yield
        seconds = _used_s() - began
        for name, probe in self.by_name.items():
            calls, misses = probe.totals()
            calls_before, misses_before = before.get(name, (0, 0))
            if calls > calls_before:
                use = CacheUse(work, probe, calls - calls_before, misses - misses_before, items, seconds)
                self.uses.append(use)

    def install(self) -> None:
        """Replace `lru_cache` and `cache`, and watch the other caches."""
        functools.lru_cache = self._lru_cache
        functools.cache = self._lru_cache(maxsize=None)
        self._watch_bounded(import_module("server.bounded").Cache)
        self._watch_fragments(import_module("server.index.fragments").Fragments)
        text_search, ordering = (import_module(f"server.index.{n}") for n in ("text_search", "ordering"))
        self._watch_pair(text_search, "_join_texts", "_join")
        self._watch_pair(ordering, "_mask", "bits_of")

    def _lru_cache(self, maxsize: Any = 128, typed: bool = False) -> Any:
        if callable(maxsize):
            return self._decorated(maxsize, 128)
        return lambda function: self._decorated(function, maxsize)

    def _decorated(self, function: Callable[..., Any], maxsize: int | None) -> Any:
        if not function.__module__.startswith("server."):
            return _real_lru_cache(maxsize)(function)
        probe = self.of(f"{function.__module__}.{function.__qualname__}")

        @functools.wraps(function)
        def timed(*args: Any, **options: Any) -> Any:
            watch = _Watch()
            found = function(*args, **options)
            probe.taken.append(watch.seconds())
            if probe.compute is None:
                kept = _real_lru_cache(maxsize)(lambda *_, **__: None)
                probe.compute = functools.partial(function, *args, **options)
                probe.look_up = functools.partial(kept, *args, **options)
            return found

        cached = _real_lru_cache(maxsize)(timed)
        probe.infos.append(cached.cache_info)
        return cached

    def _watch_bounded(self, cache: Any) -> None:
        # A miss lasts from a `get` that finds nothing to the `put` with the same key in the same thread.
        get, put, since = cache.get, cache.put, dict[tuple[int, int, Any], _Watch]()

        def counted_get(self_: Any, key: Any) -> Any:
            probe, found = self._probe_of(self_), get(self_, key)
            probe.calls += 1
            if found is None:
                probe.misses += 1
                since[threading.get_ident(), id(self_), key] = _Watch()
            elif probe.look_up is None:
                probe.look_up = functools.partial(get, self_, key)
            return found

        def timed_put(self_: Any, key: Any, value: Any) -> None:
            put(self_, key, value)
            watch = since.pop((threading.get_ident(), id(self_), key), None)
            if watch is not None:
                self._probe_of(self_).taken.append(watch.seconds())

        cache.get, cache.put = counted_get, timed_put

    def _probe_of(self, cache: Any) -> Probe:
        key = cache._size.__module__, cache.most
        found = self._bounded.get(key)
        if found is None:
            found = self._bounded[key] = self.of(f"{key[0]} ({key[1] >> 10:,} kB)")
        return found

    def _watch_fragments(self, fragments: Any) -> None:
        """Count the lookups of documents and components in a `Fragments` object."""
        cached, probe = fragments.cached, self.of("server.index.fragments, an entry")

        def watched_cached(self_: Any, selection: Any, make: Callable[[Any], bytes]) -> Any:
            get = cached(self_, selection, functools.partial(self._timed, probe, make))

            def watched_get(item: Any) -> bytes:
                probe.calls += 1
                return bytes(get(item))

            probe.look_up = probe.look_up or functools.partial(cached(self_, "probe", lambda _: b""), _ITEM)
            return watched_get

        fragments.cached = watched_cached

    def _watch_pair(self, module: Any, look_up: str, compute: str) -> None:
        """Measure a function that has a cache, and the function that it calls for a miss."""
        looks, computes = getattr(module, look_up), getattr(module, compute)
        probe, inside = self.of(f"{module.__name__}.{look_up}"), threading.local()

        def watched_look_up(*args: Any) -> Any:
            probe.calls += 1
            inside.it = True
            try:
                return looks(*args)
            finally:
                inside.it = False
                probe.look_up = probe.look_up or functools.partial(looks, *args)

        def watched_compute(*args: Any) -> Any:
            if not getattr(inside, "it", False):
                probe.compute = probe.compute or functools.partial(computes, *args)
                return computes(*args)
            probe.compute = functools.partial(computes, *args)
            return self._timed(probe, computes, *args)

        setattr(module, look_up, watched_look_up)
        setattr(module, compute, watched_compute)

    def _timed(self, probe: Probe, function: Callable[..., Any], *args: Any) -> Any:
        probe.misses += 1
        watch = _Watch()
        found = function(*args)
        probe.taken.append(watch.seconds())
        return found


class _Watch:
    """Stopwatch. Long durations are measured in processor time, which does not depend on the load of the
    machine.
    """

    def __init__(self) -> None:
        self._used_s, self._began = _used_s(), perf_counter()

    def seconds(self) -> float:
        taken = perf_counter() - self._began
        return _used_s() - self._used_s if taken > LONG_S else taken


class _Item:
    """Placeholder for a cached document."""


_ITEM = _Item()


def measure(folder: Path, *, full: bool) -> None:
    # A new process is used, because the server must not have been imported yet.
    command = [sys.executable, "-m", "bench.caches", str(folder), *(["--full"] if full else [])]
    subprocess.run(command, check=True)


def main() -> None:
    """Print how much time each cache saves in the kind of work where it saves most or, with `--full`, in
    every kind.
    """
    probes = Probes()
    probes.install()
    import_module("bench.cache_work").run(Path(sys.argv[1]), probes.during)
    uses = probes.uses
    if "--full" not in sys.argv:
        uses = [max((u for u in uses if u.probe is probe), key=_share) for probe in _used(uses)]
    head = ["cache", "work", "calls", "hits", "a miss", "a hit", "saved per 1,000", "of them", "share"]
    note = (
        "Calls are in one request, or whatever the work consists of; 1,000 of them take as much of a\n"
        "processor as the next column says. The share is of what they would take without the cache."
    )
    rows = [_row(use) for use in sorted(uses, key=_share, reverse=True)]
    show("What each cache saves", head, rows, note)


def _used(uses: list[CacheUse]) -> list[Probe]:
    return list({id(use.probe): use.probe for use in uses}.values())


def _share(use: CacheUse) -> float:
    return use.share


def _row(use: CacheUse) -> list[str]:
    hits, probe = use.calls - use.misses, use.probe
    return [
        probe.name.removeprefix("server."),
        use.work,
        count(use.calls / use.items),
        f"{100 * hits / use.calls:.0f} %",
        *(f"{count(seconds * 1e6)} µs" for seconds in (probe.miss_s, probe.hit_s)),
        *(f"{count(seconds * 1e6)} ms" for seconds in (use.saved_s, use.seconds / use.items)),
        f"{100 * use.share:.1f} %",
    ]


if __name__ == "__main__":
    main()
