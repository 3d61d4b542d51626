"""Record of a soak test: the faults in each round and the broken promises, and a table of both.

A promise is a property that Bifolio guarantees, such as that no confirmed write is lost.
"""

import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

LOST, TORN, STALE, READS = "no write lost", "none torn", "none stale", "reads answered"
EVENTS, WEBHOOKS, GIT, ORPHANS = "events", "webhooks", "git clean", "no orphans"
RECOVERED = "recovered"
PROMISES = (LOST, TORN, STALE, READS, EVENTS, WEBHOOKS, GIT, ORPHANS, RECOVERED)
NO_FAULT = "none"
MAX_PRINTED = 40
MAX_MESSAGE_CHARS = 1500


@dataclass(frozen=True, slots=True)
class Violation:
    """A broken promise, with the round, the fault, the time, and the evidence."""

    promise: str
    message: str
    scene: str
    faults: tuple[str, ...]
    at: float  # seconds since the start of the soak test


@dataclass(slots=True)
class Round:
    """One round of load in a scene, and the faults in this round."""

    scene: str
    faults: tuple[str, ...]
    began: float
    recovery_s: float = 0.0


@dataclass(slots=True)
class Ledger:
    """All rounds and violations. It can be used by several threads."""

    seed: int
    rounds: list[Round] = field(default_factory=list)
    violations: list[Violation] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # lines printed below the table
    began: float = field(default_factory=time.monotonic)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def now(self) -> float:
        """Return the seconds since the start of the soak test."""
        return time.monotonic() - self.began

    def begin(self, scene: str, faults: Sequence[str]) -> Round:
        """Begin a round. Violations are attributed to this round until the next one begins."""
        with self._lock:
            self.rounds.append(Round(scene, tuple(faults) or (NO_FAULT,), self.now))
        return self.rounds[-1]

    def violated(self, promise: str, message: str, at: float | None = None) -> None:
        """Report a broken promise, now or at the given monotonic time."""
        seconds = self.now if at is None else at - self.began
        with self._lock:
            during = [r for r in self.rounds if r.began <= seconds] or self.rounds[:1]
            scene, faults = during[-1].scene, during[-1].faults
            message = message[:MAX_MESSAGE_CHARS]
            self.violations.append(Violation(promise, message, scene, faults, seconds))
        self.say(f"FELL {promise}: {message}")

    def say(self, text: str) -> None:
        """Print a line with the time."""
        print(f"{self.now:7.1f} s  {text}", flush=True)

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Return the header and the rows of the table: for each fault, how often each promise was kept or
        broken.
        """
        counts = Counter(fault for one in self.rounds for fault in one.faults)
        failed = Counter(
            {
                (fault, promise): len({(v.scene, v.at) for v in self._of(fault, promise)})
                for fault in counts
                for promise in PROMISES
            }
        )
        rows = []
        for fault in sorted(counts, key=lambda fault: (fault != NO_FAULT, fault)):
            cells = [f"failed {n}" if (n := failed[fault, promise]) else "held" for promise in PROMISES]
            slowest = max(one.recovery_s for one in self.rounds if fault in one.faults)
            rows.append([fault, str(counts[fault]), *cells, f"{slowest:.1f} s"])
        return ["fault", "times", *PROMISES, "slowest"], rows

    def _of(self, fault: str, promise: str) -> Iterator[Violation]:
        return (v for v in self.violations if v.promise == promise and fault in v.faults)

    def account(self, folder: str) -> Iterator[str]:
        """Describe each broken promise: the evidence, the time, the fault, and the path of the logs."""
        for violation in self.violations[:MAX_PRINTED]:
            yield (
                f"FELL {violation.promise} at {violation.at:.1f} s, {violation.scene}, "
                f"after: {', '.join(violation.faults)}; seed {self.seed}; logs in {folder}\n"
                f"    {violation.message}"
            )
        if len(self.violations) > MAX_PRINTED:
            yield f"and {len(self.violations) - MAX_PRINTED} more"
