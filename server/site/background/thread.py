"""A thread that works in the background until it is stopped."""

import threading
from collections.abc import Callable


class Background:
    """One thread; `work` is given an event that is set when it is to end."""

    def __init__(self, name: str, work: Callable[[threading.Event], None]) -> None:
        self._stop = threading.Event()
        self._thread = threading.Thread(target=work, args=(self._stop,), name=name, daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """Stop; returns when nothing is at work."""
        self._stop.set()
        self._thread.join(timeout=5)
