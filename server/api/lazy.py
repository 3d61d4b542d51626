"""Values that are created on first use."""

from collections.abc import Callable
from threading import RLock
from typing import Generic, TypeVar

T = TypeVar("T")


class Lazy(Generic[T]):
    """Callable that creates a value when first called, and then always returns it. Thread-safe."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make, self._lock = make, RLock()
        self._made: tuple[T] | None = None

    def __call__(self) -> T:
        if self._made is None:
            with self._lock:
                if self._made is None:
                    self._made = (self._make(),)
        return self._made[0]
