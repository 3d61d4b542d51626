"""Load generator that uses wrk if it is installed, and otherwise threads."""

import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.host import HOST
from bench.serving import Serving, fetch
from bench.tables import median_and_p99

CONNECTIONS = 4  # not more than Bifolio's threads, so that no request waits in a queue
LONGEST_RUN_S = 60.0

_SCRIPT = """
local paths, n = {}, %(start)d
wrk.headers["Host"] = "%(host)s"
for line in io.lines("%(paths)s") do paths[#paths + 1] = wrk.format("GET", line) end
request = function()
  n = n + 1
  local text = paths[(n - 1) %% #paths + 1]
  if %(unique)s then text = text:gsub(" HTTP", "&n=" .. n .. " HTTP", 1) end
  return text
end
done = function(summary, latency)
  local e = summary.errors
  io.write(string.format("RESULT %%d %%d %%d %%d %%d\\n", summary.requests, summary.duration,
    latency:percentile(50), latency:percentile(99), e.connect + e.read + e.write + e.status + e.timeout))
end
"""


@dataclass(frozen=True)
class Result:
    """Result of one run of the load generator."""

    rate: float  # responses per second
    median_ms: float
    p99_ms: float


@dataclass(frozen=True)
class Requests:
    """Requests to send in turn. With `unique`, a number makes each one different."""

    paths: Sequence[str]
    unique: bool = False


def generator() -> str:
    return "wrk" if shutil.which("wrk") else "the built-in client (slower: Python threads)"


def run(
    serving: Serving, requests: Requests, duration_s: float, turn: int = 0, connections: int = CONNECTIONS
) -> Result:
    """Send requests for `duration_s` seconds. Each `turn` starts at a different request in the list."""
    start = turn * 1_000_003
    if shutil.which("wrk"):
        result = None
        # On a busy machine, wrk may not receive any response. The run is then repeated.
        while result is None and duration_s <= LONGEST_RUN_S:
            result = _run_wrk(serving.port, requests, duration_s, start, connections)
            duration_s *= 2
        if result is None:
            raise RuntimeError(f"the server does not respond to requests such as {requests.paths[0]}")
        return result
    return _run_threads(serving, requests, duration_s, start, connections)


def _run_wrk(port: int, requests: Requests, seconds: float, start: int, connections: int) -> Result | None:
    """Send requests with wrk. Return None if no response arrives in time. Raises RuntimeError."""
    with tempfile.TemporaryDirectory(prefix="bifolio-bench-") as folder:
        paths, script = Path(folder, "paths"), Path(folder, "requests.lua")
        paths.write_text("\n".join(requests.paths) + "\n")
        unique = "true" if requests.unique else "false"
        script.write_text(
            _SCRIPT % {"start": start, "paths": paths, "unique": unique, "host": f"{HOST}:{port}"}
        )
        command = [
            "wrk",
            "--threads",
            "1",
            "--connections",
            str(connections),
            "--duration",
            f"{max(1, round(seconds))}s",
        ]
        command += ["--timeout", "30s"]  # Do not treat slow responses as failures.
        url = f"http://{HOST}:{port}/"
        done = subprocess.run(
            [*command, "--script", str(script), url], capture_output=True, text=True, check=True
        )
    line = next(line for line in done.stdout.splitlines() if line.startswith("RESULT "))
    count, micros, median, p99, errors = map(int, line.split()[1:])
    if errors:
        raise RuntimeError(f"{errors} of {count} requests failed, such as {requests.paths[0]}")
    if not count:
        return None
    return Result(count / (micros / 1e6), median / 1000, p99 / 1000)


def _run_threads(
    serving: Serving, requests: Requests, seconds: float, start: int, connections: int
) -> Result:
    taken: list[float] = []
    began = time.perf_counter()
    end = began + seconds

    def send(number: int) -> None:
        connection, n, done = serving.connect(), start + number, 0.0
        while done < end:  # at least once, even if a busy machine starts this thread late
            path, sent = requests.paths[n % len(requests.paths)], time.perf_counter()
            fetch(connection, f"{path}&n={n}" if requests.unique else path)
            done = time.perf_counter()
            taken.append(done - sent)
            n += connections
        connection.close()

    threads = [threading.Thread(target=send, args=(number,)) for number in range(connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.perf_counter() - began
    typical, long = median_and_p99(taken)
    return Result(len(taken) / seconds, typical * 1000, long * 1000)
