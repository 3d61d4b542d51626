"""Helpers that kill a process in the middle of its work, as `kill -9` does."""

import os
import sys
from collections.abc import Callable
from typing import Any

KILLED, DONE, FAILED = 9, 7, 8


def die_at(step: int) -> None:
    """Kill this process at the given step. Each call that changes files or runs git is a step."""
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
    """Run `does` in a forked process that dies at the given step, and return how the process ended.

    The result is KILLED. If the process finished before that step, it is DONE or FAILED.
    """
    child = os.fork()
    if not child:
        die_at(step)
        os._exit(DONE if does(*arguments) else FAILED)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
