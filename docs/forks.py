"""Process that has already imported Bifolio, and that is forked for each `bifolio` command on a page.

A short command takes 0.7 s, of which 0.6 s are spent on imports, and the pages contain about 150 commands.
The command itself is `bifolio.py` in this folder, which imports almost nothing. It sends its arguments,
environment, folder and open files to this process, forwards signals to the fork, and exits with the fork's
exit status.
"""

import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.zygote import MODULES

ROOT = Path(__file__).resolve().parent.parent
COMMAND = (sys.executable, "-I", "-S", str(Path(__file__).with_name("bifolio.py")))
ADDRESS = "BIFOLIO_FORKS"  # environment variable that contains the path of the socket
MOST_BYTES = 200_000
PROGRAM = """
import sys
from docs.forks import serve
if serve(int(sys.argv[1])):
    from server.commands.cli import main
    from tests.zygote import run_and_exit
    run_and_exit(main)
"""


@contextmanager
def forking(folder: Path) -> Iterator[None]:
    """Context manager: make COMMAND run `bifolio` in forks. The socket for this is created in `folder`."""
    path = folder / "forks"
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(str(path))
        listener.listen(100)
        command = [sys.executable, "-c", PROGRAM, str(listener.fileno())]
        process = subprocess.Popen(command, cwd=ROOT, pass_fds=[listener.fileno()], start_new_session=True)
    os.environ[ADDRESS] = str(path)
    try:
        yield
    finally:
        process.kill()
        process.wait()


def serve(descriptor: int) -> bool:
    """Fork for each connection, and report the fork's exit status when the fork ends. Returns True in each
    fork.
    """
    for module in MODULES:
        import_module(module)
    gc.collect()
    gc.freeze()  # Otherwise the garbage collector of each fork would copy the memory that all forks share.
    assert len(os.listdir("/proc/self/task")) == 1, "a process with threads can't be forked"
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET, fileno=descriptor)
    running: dict[int, tuple[int, socket.socket]] = {}  # The keys are the pidfds of the forks.
    waiting = select.poll()
    waiting.register(listener, select.POLLIN)
    while True:
        for ready, _ in waiting.poll():
            if ready in running:
                waiting.unregister(ready)
                _tell_status(ready, *running.pop(ready))
                continue
            asked, _ = listener.accept()
            message, files, _, _ = socket.recv_fds(asked, MOST_BYTES, 3)
            pid = os.fork()
            if not pid:
                listener.close()
                for _, other in running.values():
                    other.close()
                _become(json.loads(message), files, asked)
                return True
            for file in files:
                os.close(file)
            process = os.pidfd_open(pid)
            running[process] = pid, asked
            waiting.register(process, select.POLLIN)


def _tell_status(process: int, pid: int, asked: socket.socket) -> None:
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os.close(process)
    with asked, suppress(BrokenPipeError):  # The command was killed.
        asked.send(str(status if status >= 0 else 128 - status).encode())


def _become(told: dict[str, Any], files: list[int], asked: socket.socket) -> None:
    """Replace the fork's open files, arguments, environment and folder with those of the command."""
    os.setsid()
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    asked.send(str(os.getpid()).encode())
    asked.close()
    sys.stdin = os.fdopen(0, closefd=False)
    sys.stdout = os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", 1, errors="backslashreplace", closefd=False)
    sys.argv[1:] = told["arguments"]
    os.environ.clear()
    os.environ.update(told["environment"])
    os.chdir(told["folder"])
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
