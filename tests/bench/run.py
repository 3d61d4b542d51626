"""`make test-bench`: runs every kind of benchmark at its smallest size; the first that fails ends it."""

import os
import subprocess
import sys
import time

from bench.__main__ import CHOICES
from tests.servers import ROOT
from tests.signals import restore_in_children

SHARE = "0.005"
COMMANDS = {kind: ["bench", kind] for kind in CHOICES}
RECORDED = "--site rules --documents 2 --reads 80 --writes 40 --replay tests/bench/strapi-rules.json"
COMMANDS["differential"] = ["bench.differential", *RECORDED.split()]
COMMANDS["peers"] = ["bench.peer", "--stand-in", "--json", "build/test-bench-peers.json"]


def main(kinds: list[str]) -> int:
    """Run the kinds that are named, else all; the status of the first that fails."""
    restore_in_children()
    for kind in kinds or COMMANDS:
        began = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-m", *COMMANDS[kind]],
            cwd=ROOT,
            env={**os.environ, "BENCH_SHARE": SHARE},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if done.returncode:
            print(f"{done.stdout}\nbench {kind}: FAILED with status {done.returncode}")
            return done.returncode
        print(f"bench {kind}: {time.monotonic() - began:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
