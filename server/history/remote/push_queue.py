"""A line of threads that wait for the same thing: the first does it for as many as there are.

What is a thread's own is run by itself meanwhile, one after the other, when the first says so.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterable
from queue import SimpleQueue
from typing import Generic, TypeVar

Result = TypeVar("Result")


class Turn:
    """A thread in a line."""

    def __init__(self) -> None:
        self._thread = threading.get_ident()
        self._jobs: SimpleQueue[Callable[[], object] | bool] = SimpleQueue()
        self._ended: SimpleQueue[tuple[object, BaseException | None]] = SimpleQueue()
        self.is_over = False

    def run(self, job: Callable[[], Result]) -> Result:
        """What a job comes to that is run by the thread; it raises what that raises."""
        if threading.get_ident() == self._thread:
            return job()
        found: list[Result] = []
        self._jobs.put(lambda: found.append(job()))
        _, error = self._ended.get()
        if error:
            raise error
        return found[0]

    def end(self) -> None:
        """Let the thread go."""
        self.is_over = True
        self._jobs.put(False)

    def lead(self) -> None:
        """Let the thread be the first."""
        self._jobs.put(True)

    def wait(self) -> bool:
        """Run what is given, until it is over or the thread is the first; whether it is that."""
        while not isinstance(job := self._jobs.get(), bool):
            try:
                self._ended.put((job(), None))
            except BaseException as error:
                self._ended.put((None, error))
        return job


Waiting = TypeVar("Waiting", bound=Turn)


class PushQueue(Generic[Waiting]):
    """The threads that wait, in the order in which they came."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: deque[Waiting] = deque()
        self._is_led = False

    def stand(self, turn: Waiting, lead: Callable[[], None]) -> None:
        """Wait until a turn is over; `lead` is called where it is the first, and sees to that."""
        with self._lock:
            self._waiting.append(turn)
            leads, self._is_led = not self._is_led, True
        if not (leads or turn.wait()):
            return
        try:
            lead()
        finally:
            with self._lock:
                if turn in self._waiting:
                    self._waiting.remove(turn)
                if self._waiting:
                    self._waiting[0].lead()
                else:
                    self._is_led = False

    def take(self, most: int) -> list[Waiting]:
        """Take the first out of the line, so many of them."""
        with self._lock:
            return [self._waiting.popleft() for _ in range(min(most, len(self._waiting)))]

    def put_back(self, turns: Iterable[Waiting]) -> None:
        """Let some be the first again, in their order, but for those that are over."""
        with self._lock:
            self._waiting.extendleft(reversed([turn for turn in turns if not turn.is_over]))
