"""Work in a process of its own, so that requests are answered meanwhile.

The process is started anew, not forked: the fork of a process with threads has the locks that other threads
held at that moment, and nobody to release them. So the work is a function of a module, and its arguments are
sent.
"""

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

from server.site.loading import end_with_parent, give_back

Found = TypeVar("Found")
NICENESS = 10
_IMPORT_FOLDER = Path(__file__).resolve().parents[3]  # The process imports this package from here.


def run_in_process(work: Callable[..., Found], *arguments: Any, timeout_s: float) -> Found:
    """Return what a function of a module comes to, in a process that lets those that answer go first.

    Arguments that only the call refers to, such as a packed snapshot, are freed once they are sent.
    Raises TimeoutError if it takes longer, and ChildProcessError if it fails.
    """
    path = os.pathsep.join(filter(None, (str(_IMPORT_FOLDER), os.environ.get("PYTHONPATH"))))
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "server.site.background.process"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": path},
        start_new_session=True,  # Ctrl-C in a terminal goes to the server, which ends this process.
    )
    assert process.stdin is not None
    assert process.stdout is not None
    deadline = time.monotonic() + timeout_s
    timer = threading.Timer(timeout_s, process.kill)
    timer.daemon = True
    timer.start()
    try:
        with suppress(BrokenPipeError):  # It has ended; that is found below.
            pickle.dump((work, arguments), process.stdin, protocol=5)
            process.stdin.close()
        del arguments
        give_back()
        found: Found = pickle.load(process.stdout)
        return found
    except EOFError as error:
        if time.monotonic() >= deadline:
            raise TimeoutError(f"no answer within {timeout_s:.0f} s") from error
        raise ChildProcessError(f"its process ended with status {process.wait()}") from error
    finally:
        timer.cancel()
        process.kill()
        with suppress(BrokenPipeError):
            process.stdin.close()
        process.stdout.close()
        process.wait()


def _main() -> None:
    """Do the work that stdin has, and write what it comes to."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # What is printed does not come between.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(NICENESS)
    end_with_parent()
    gc.disable()  # It ends soon.
    try:
        work, arguments = pickle.load(sys.stdin.buffer)
    except (EOFError, pickle.UnpicklingError):  # The process that sends it has ended.
        sys.exit(1)
    with suppress(BrokenPipeError), answers:
        pickle.dump(work(*arguments), answers)


if __name__ == "__main__":
    _main()
