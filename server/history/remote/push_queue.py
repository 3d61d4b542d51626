"""Queue of threads that wait to push. The first thread in the queue pushes the writes of all threads."""

import threading
from collections import deque
from collections.abc import Callable, Iterable
from queue import SimpleQueue
from typing import Generic, TypeVar

Result = TypeVar("Result")


class Turn:
    """A thread's place in the queue."""

    def __init__(self) -> None:
        self._thread = threading.get_ident()
        self._jobs: SimpleQueue[Callable[[], object] | bool] = SimpleQueue()
        self._ended: SimpleQueue[tuple[object, BaseException | None]] = SimpleQueue()
        self.is_over = False

    def run(self, function: Callable[[], Result]) -> Result:
        """Call a function in the thread that waits for this turn.

        Returns the function's result, or raises its exception.
        """
        if threading.get_ident() == self._thread:
            return function()
        results: list[Result] = []
        self._jobs.put(lambda: results.append(function()))
        _, error = self._ended.get()
        if error:
            raise error
        return results[0]

    def end(self) -> None:
        self.is_over = True
        self._jobs.put(False)

    def lead(self) -> None:
        self._jobs.put(True)

    def wait(self) -> bool:
        # Run jobs until the turn ends. Return whether this thread is now the leader.
        while not isinstance(job := self._jobs.get(), bool):
            try:
                self._ended.put((job(), None))
            except BaseException as error:
                self._ended.put((None, error))
        return job


Waiting = TypeVar("Waiting", bound=Turn)


class PushQueue(Generic[Waiting]):
    """Queue of waiting threads, in the order in which they arrived."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: deque[Waiting] = deque()
        self._is_led = False

    def wait_in_line(self, turn: Waiting, process_queue: Callable[[], None]) -> None:
        """Add a turn to the queue, and wait until the turn is over.

        If the turn reaches the front of the queue, its thread calls `process_queue`, which must end the turn.
        """
        with self._lock:
            self._waiting.append(turn)
            is_leader, self._is_led = not self._is_led, True
        if not (is_leader or turn.wait()):
            return
        try:
            process_queue()
        finally:
            with self._lock:
                if turn in self._waiting:
                    self._waiting.remove(turn)
                if self._waiting:
                    self._waiting[0].lead()
                else:
                    self._is_led = False

    def take(self, limit: int) -> list[Waiting]:
        with self._lock:
            return [self._waiting.popleft() for _ in range(min(limit, len(self._waiting)))]

    def put_back(self, turns: Iterable[Waiting]) -> None:
        with self._lock:
            self._waiting.extendleft(reversed([turn for turn in turns if not turn.is_over]))
