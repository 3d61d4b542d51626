"""`python -m tests.torture` (`make torture`): a soak test with faults, then the robustness tests again and
again.

The soak test (`tests.soak`) gets half of the time. The other parts share the rest equally; each runs at least
once, each time with another seed. Failures are printed with their seed. Tables at the end show for each fault
which promises were kept, and how often each part ran.
"""

import argparse
import os
import random
import re
import secrets
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from bench.tables import show
from tests.signals import restore_in_children
from tests.soak.run import soak

SOAK_SHARE = 0.5  # the share of the time for the soak test


@dataclass
class Part:
    """A group of tests and its results."""

    name: str
    tests: Sequence[str]
    runs: int = 0
    held: int = 0
    failed: list[int] = field(default_factory=list)  # the seeds of failed runs
    seconds: float = 0.0

    def run(self, seconds: float, chance: random.Random) -> None:
        """Run the tests again and again for some seconds, each time with another seed."""
        began = time.monotonic()
        while not self.runs or self.seconds < seconds:
            seed = chance.randrange(2**31) + 1
            done = subprocess.run(
                [sys.executable, "-m", "pytest", f"--hypothesis-seed={seed}", *self.tests],
                env={**os.environ, "BIFOLIO_SEED": str(seed)},
                capture_output=True,
                text=True,
            )
            self.runs += 1
            passed = re.findall(r"(\d+) passed", done.stdout)
            self.held += int(passed[-1]) if passed else 0
            if done.returncode:
                self.failed.append(seed)
                print(
                    f"{done.stdout}{done.stderr}\nBIFOLIO_SEED={seed} is what {self.name!r} failed with",
                    flush=True,
                )
            self.seconds = time.monotonic() - began


PARTS = (
    Part("kills, two servers", ["tests/storage/test_journal.py", "tests/storage/test_edits_by_hand.py"]),
    Part("workers, killed and replaced", ["tests/site/test_workers.py", "tests/api/test_supervisor.py"]),
    Part("edits, checkouts, writes: the same states", ["tests/site/test_same_states.py"]),
    Part("branches, merged and killed", ["tests/history/test_merging.py"]),
    Part("the log of events", ["tests/events/test_killed.py", "tests/events/test_hard.py"]),
    Part("disks that fill", ["tests/storage/test_full_disk.py"]),
    Part("leaks, doors, anything at all", ["tests/api/test_attacks.py", "tests/api/test_secrets.py"]),
    Part("secrets on twin sites: 100,000 requests", ["tests/matrix"]),
    Part("requests hidden from proxies", ["tests/api/test_smuggling.py"]),
    Part("what is refused leaves nothing", ["tests/api/test_nothing_left.py"]),
)


def main() -> int:
    """Run the soak test and all parts. Return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.torture", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0, help="how long, in all")
    parser.add_argument("--seed", type=int, help="repeat the random numbers of a run; timing differs")
    options = parser.parse_args()
    seed = secrets.randbelow(2**31) if options.seed is None else options.seed
    print(f"seed {seed} (SEED={seed} repeats it)", flush=True)
    restore_in_children()
    seconds = options.minutes * 60
    failed = soak(seconds * SOAK_SHARE, seed)
    chance = random.Random(seed)
    for part in PARTS:
        print(f"{part.name} …", file=sys.stderr, flush=True)
        part.run(seconds * (1 - SOAK_SHARE) / len(PARTS), chance)
    rows = [
        [p.name, f"{p.runs:,}", f"{p.held:,}", f"{p.seconds:.0f} s", ", ".join(map(str, p.failed)) or "none"]
        for p in PARTS
    ]
    show("Torture", ["what", "runs", "tests that held", "time", "seeds that failed"], rows, "")
    return int(bool(failed) or any(part.failed for part in PARTS))


if __name__ == "__main__":
    sys.exit(main())
