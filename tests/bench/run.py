"""Implementation of `make test-bench`: run each benchmark at its smallest size, two at a time, until one
fails.
"""

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from bench.__main__ import CHOICES
from tests.servers import ROOT
from tests.signals import restore_in_children

SHARE = "0.005"
AT_ONCE = 2  # The benchmarks mostly wait for servers to start.
# The kind `bifolio` runs these benchmarks too, with the same functions.
INCLUDED = ("history", "lsp", "publishing")
COMMANDS = {kind: ["bench", kind] for kind in CHOICES if kind not in INCLUDED}
RECORDED = "--site rules --documents 2 --reads 80 --writes 40 --replay tests/bench/strapi-rules.json"
COMMANDS["differential"] = ["bench.differential", *RECORDED.split()]
COMMANDS["peers"] = ["bench.peer", "--stand-in", "--json", "build/test-bench-peers.json"]


def main(kinds: list[str]) -> int:
    """Run the given benchmarks, or all, two at a time. Return the status of the first one that fails."""
    restore_in_children()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for kind, done, seconds in pool.map(run, kinds or COMMANDS):
            if done.returncode:
                print(f"{done.stdout}\nbench {kind}: FAILED with status {done.returncode}")
                pool.shutdown(wait=False, cancel_futures=True)
                return done.returncode
            print(f"bench {kind}: {seconds:.0f} s", flush=True)
    return 0


def run(kind: str) -> tuple[str, "subprocess.CompletedProcess[str]", float]:
    """Run a benchmark at its smallest size. Return its name, its process and the duration in seconds."""
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
    return kind, done, time.monotonic() - began


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
