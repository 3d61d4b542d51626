"""The command `bifolio` in examples. To start faster, it runs in a fork of a process that has already
imported Bifolio (docs/forks.py).
"""

import os
import signal
import socket
import sys
from json import dumps
from types import FrameType

folder, environment = os.getcwd(), dict(os.environ)
told = {"arguments": sys.argv[1:], "environment": environment, "folder": folder}
with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as forks:
    forwarded = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    # Block signals until the id of the fork is known, because they are forwarded to the fork.
    signal.pthread_sigmask(signal.SIG_BLOCK, forwarded)
    forks.connect(environment["BIFOLIO_FORKS"])
    socket.send_fds(forks, [dumps(told).encode()], [0, 1, 2])
    pid = int(forks.recv(20))

    def forward(number: int, _frame: FrameType | None) -> None:
        os.kill(pid, number)

    for number in forwarded:
        signal.signal(number, forward)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, forwarded)
    sys.exit(int(forks.recv(20) or 1))
