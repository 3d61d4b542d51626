"""Signals that a test run inherits as ignored, for example from `nohup` or a CI runner."""

import signal
from types import FrameType

INHERITABLE = (signal.SIGINT, signal.SIGHUP)  # subprocess already restores SIGPIPE in each child


def restore_in_children() -> None:
    """Restore the default action of ignored signals in all programs that this process executes from now on.

    An ignored signal stays ignored across execve, but a handled signal is reset to its default. Therefore,
    this process handles these signals with a function that does nothing.
    """
    for number in INHERITABLE:
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, _do_nothing)


def _do_nothing(_number: int, _frame: FrameType | None) -> None:
    """Ignore a signal, as this process did when it was started."""
