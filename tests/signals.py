"""Signals that a test run inherits as ignored, from `nohup` or a CI runner."""

import signal
from types import FrameType

INHERITABLE = (signal.SIGINT, signal.SIGHUP)  # subprocess restores SIGPIPE in each child by itself


def restore_in_children() -> None:
    """Give every process that this one executes from now on the default action of signals ignored here.

    An ignored signal stays ignored across execve; a handled one becomes the default. So this process, which
    goes on as if it ignored them, handles them by doing nothing.
    """
    for number in INHERITABLE:
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, _do_nothing)


def _do_nothing(_number: int, _frame: FrameType | None) -> None:
    """Handle a signal that this process was started to ignore."""
