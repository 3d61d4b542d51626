"""Ends a process in the middle of what it does, as kill -9 does."""

import os
import sys
from collections.abc import Callable
from typing import Any

KILLED, DONE, FAILED = 9, 7, 8


def die_at(step: int) -> None:
    """End this process at one of the calls by which it changes files or runs git."""
    left = step

    def audit(event: str, arguments: Any) -> None:
        nonlocal left
        writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & os.O_CREAT
        if writes or event in ("os.rename", "os.link", "os.remove", "subprocess.Popen"):
            left -= 1
            if not left:
                os._exit(KILLED)

    sys.addaudithook(audit)


def killed_at(step: int, does: Callable[..., bool], *arguments: object) -> int:
    """Fork a process that does something and dies at a step of it; how it ended.

    KILLED, or DONE or FAILED where it came to its end before that step.
    """
    child = os.fork()
    if not child:
        die_at(step)
        os._exit(DONE if does(*arguments) else FAILED)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
