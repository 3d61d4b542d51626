"""Work in a process of its own: one forked from this, whose copy of the memory is gone when it ends."""

import gc
import multiprocessing
import os
import signal
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import TypeVar

Found = TypeVar("Found")
NICE = 10


def in_process(work: Callable[[], Found], seconds: float) -> Found:
    """What some work comes to in a process forked from this one, which lets those that answer go first.

    Raises TimeoutError where it takes more than some seconds, and EOFError where it fails.
    """
    forking = multiprocessing.get_context("fork")
    receiver, sender = forking.Pipe(duplex=False)
    process = forking.Process(target=_send, args=(work, sender), daemon=True)
    process.start()
    sender.close()
    try:
        if not receiver.poll(seconds):
            raise TimeoutError(f"no answer within {seconds:.0f} s")
        found: Found = receiver.recv()
        return found
    finally:
        receiver.close()
        process.kill()
        process.join()


def _send(work: Callable[[], Found], sender: Connection) -> None:
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(NICE)
    gc.disable()  # A collection would touch, and so copy, everything.
    sender.send(work())
