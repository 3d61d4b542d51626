"""Runner for slow functions, each in a separate process."""

import gc
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from server.site.loading import release_free_memory
from server.storage.helper_processes import end_with_parent, forget_helper, start_helper

Result = TypeVar("Result")
NICENESS = 10
_IMPORT_FOLDER = Path(__file__).resolve().parents[3]  # the new process imports this package from here


def run_in_process(function: Callable[..., Result], *arguments: Any, timeout_s: float) -> Result:
    """Run a module-level function in a separate process with low priority, and return its result.

    Raises TimeoutError if the function takes longer than `timeout_s` seconds, or ChildProcessError if it
    fails.
    """
    path = os.pathsep.join(filter(None, (str(_IMPORT_FOLDER), os.environ.get("PYTHONPATH"))))
    process = start_helper(
        [sys.executable, "-P", "-m", "server.site.background.process"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert process.stdin is not None
    assert process.stdout is not None
    deadline = time.monotonic() + timeout_s
    timer = threading.Timer(timeout_s, process.kill)
    timer.daemon = True
    timer.start()
    try:
        with suppress(BrokenPipeError):  # the process has ended, which is detected below
            pickle.dump((function, arguments), process.stdin, protocol=5)
            process.stdin.close()
        del arguments
        release_free_memory()
        result: Result = pickle.load(process.stdout)
        return result
    except EOFError as error:
        if time.monotonic() >= deadline:
            raise TimeoutError(f"no result within {timeout_s:.0f} s") from error
        raise ChildProcessError(f"its process ended with status {process.wait()}") from error
    finally:
        timer.cancel()
        process.kill()
        with suppress(BrokenPipeError):
            process.stdin.close()
        process.stdout.close()
        process.wait()
        forget_helper(process)


def _main() -> None:
    results = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    # Redirect the function's output, so that it is not mixed with the result.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(NICENESS)
    end_with_parent()
    gc.disable()  # Garbage collection is not needed, because the process exits soon.
    try:
        work, arguments = pickle.load(sys.stdin.buffer)
    except (EOFError, pickle.UnpicklingError):  # the parent process has ended
        sys.exit(1)
    with suppress(BrokenPipeError), results:
        pickle.dump(work(*arguments), results)


if __name__ == "__main__":
    _main()
