"""Ends a process in the middle of what it does, as kill -9 does."""

import os
import sys
from typing import Any


def die_at(step: int) -> None:
    """End this process at one of the calls by which it changes files or runs git."""
    left = step

    def audit(event: str, arguments: Any) -> None:
        nonlocal left
        writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & os.O_CREAT
        if writes or event in ("os.rename", "os.link", "os.remove", "subprocess.Popen"):
            left -= 1
            if not left:
                os._exit(9)

    sys.addaudithook(audit)
