"""Of several mistakes in a query, which is reported: an unknown key comes before a value that can't be."""

from types import TracebackType

from server.errors import KeyNameError, ValidationError


class Mistakes:
    """Holds back the mistakes in values that its blocks raise, and lets those in keys pass.

    After all blocks, `report` raises the first that was held back.
    """

    __slots__ = ("_first",)

    def __init__(self) -> None:
        self._first: ValidationError | None = None

    def __enter__(self) -> None:
        """Begin a block."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        """Hold back what the block raised, where that is a mistake in a value."""
        if not isinstance(error, ValidationError) or isinstance(error, KeyNameError):
            return False
        self._first = self._first or error
        return True

    def report(self) -> None:
        """Raise the first mistake that was held back, if there is one."""
        if self._first is not None:
            raise self._first
