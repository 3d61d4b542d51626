"""Tests of the supervisor: the server survives the end of its workers, and ends all workers when it ends."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from server.jobs.job import Timing
from tests.servers import ROOT, free_port, get, is_alive, start, wait, workers
from tests.sites import schema, write
from tests.waiting import until

pytestmark = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="asks /proc")
FILES: dict[str, str | bytes] = {
    "content-types/note.json": schema("note", {"title": "string"}),
    "site.yaml": "roles:\n  public: {note: [find]}\nsearch: {index: false}\n",
}


class Server:
    """A running server with two workers and its output."""

    def __init__(self, folder: Path, timing: Timing | None = None) -> None:
        root, self.log, self.port = folder / "site", folder / "log", free_port()
        write(root, FILES)
        with self.log.open("wb") as out:
            self.process = start(root, self.port, "--workers=2", output=out, timing=timing)
        wait(self.process, self.port)
        until(lambda: len(self.workers) == 2)

    @property
    def workers(self) -> set[int]:
        return workers(self.process.pid)

    @property
    def deaths(self) -> list[str]:
        return [line for line in self.log.read_text().splitlines() if "a new worker starts" in line]

    def answers(self) -> bool:
        return get(self.port, "/api/notes")[0] == 200

    def is_free(self) -> bool:
        """Return whether no process listens on the port."""
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) != 0

    def send_half(self) -> socket.socket:
        """Return a connection on which only half of a request has been sent."""
        client = socket.create_connection(("127.0.0.1", self.port))
        client.sendall(b"POST /api/notes HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{")
        return client


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    running = Server(tmp_path)
    try:
        yield running
    finally:
        left = running.workers if running.process.poll() is None else set()
        running.process.kill()
        running.process.wait(10)
        until(lambda: not any(map(is_alive, left)))


def test_it_stays_up_however_often_workers_die(server: Server) -> None:
    for died in range(1, 4):
        victim = min(server.workers)
        os.kill(victim, signal.SIGKILL if died != 2 else signal.SIGSEGV)
        until(lambda: victim not in server.workers and len(server.workers) == 2, 10)  # noqa: B023
        until(server.answers)
    assert server.process.poll() is None
    assert len(server.deaths) == 3
    assert "was killed by SIGKILL" in server.deaths[0]
    assert "was killed by SIGSEGV" in server.deaths[1]


def test_a_worker_that_was_stopped_is_replaced(tmp_path: Path) -> None:
    server = Server(tmp_path, Timing(heartbeat_timeout_s=3.0))
    try:
        victim = min(server.workers)
        os.kill(victim, signal.SIGSTOP)
        until(lambda: victim not in server.workers and len(server.workers) == 2, 30)
        until(server.answers)
        assert f"(process {victim}) did not respond and was killed; a new worker starts" in server.deaths[0]
    finally:
        server.process.terminate()
        assert server.process.wait(10) == 0


def test_workers_stay_when_the_supervisor_was_stopped_longer_than_a_heartbeat_lasts(tmp_path: Path) -> None:
    server = Server(tmp_path, Timing(heartbeat_timeout_s=1.5))
    try:
        before = server.workers
        stopped = [server.process.pid, *parents(before)]
        for pid in (*before, *stopped):
            os.kill(pid, signal.SIGSTOP)
        time.sleep(4)
        for pid in (*stopped, *before):
            os.kill(pid, signal.SIGCONT)
        until(server.answers)
        assert server.workers == before
        assert not server.deaths
    finally:
        server.process.terminate()
        assert server.process.wait(10) == 0


def parents(processes: set[int]) -> set[int]:
    """Return the parent processes of the given processes."""
    status = (Path(f"/proc/{pid}/stat").read_text() for pid in processes)
    return {int(text.rpartition(")")[2].split()[1]) for text in status}


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGUSR2, signal.SIGPIPE])
def test_signals_that_mean_nothing_do_nothing(server: Server, number: signal.Signals) -> None:
    before = server.workers
    for pid in (server.process.pid, *before):
        os.kill(pid, number)
    time.sleep(0.3)
    assert server.answers()
    assert server.workers == before


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_all(server: Server, number: signal.Signals) -> None:
    workers = server.workers
    server.process.send_signal(number)
    assert server.process.wait(3) == 0
    assert not any(map(is_alive, workers))
    assert server.is_free()
    assert not server.deaths


def test_a_server_under_nohup_ignores_sighup_and_ends_by_sigterm(tmp_path: Path) -> None:
    write(tmp_path, FILES)
    port = free_port()
    process = start(tmp_path, port, "--workers=1", output=subprocess.DEVNULL, inside=("nohup",))
    try:
        wait(process, port)
        for pid in (process.pid, *workers(process.pid)):
            os.kill(pid, signal.SIGHUP)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.3)
        assert get(port, "/api/notes")[0] == 200
    finally:
        process.terminate()
        assert process.wait(10) == 0


def test_a_client_that_stops_in_the_middle_does_not_keep_it_from_ending(server: Server) -> None:
    with server.send_half():
        time.sleep(0.2)
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(6) == 0
    assert server.is_free()


def test_a_second_ctrl_c_ends_it_at_once(server: Server) -> None:
    workers = server.workers
    with server.send_half():
        time.sleep(0.2)
        os.killpg(server.process.pid, signal.SIGINT)  # as a terminal does on Ctrl+C
        time.sleep(0.2)
        os.killpg(server.process.pid, signal.SIGINT)
        server.process.wait(1)
    assert not any(map(is_alive, workers))


def test_a_supervisor_that_is_killed_leaves_no_worker_behind(server: Server) -> None:
    workers = server.workers
    server.process.kill()
    server.process.wait(5)
    until(lambda: not any(map(is_alive, workers)), 6)
    until(server.is_free)


def test_workers_that_can_not_live_are_tried_less_and_less_often() -> None:
    code = "import os, logging; from server.api.serving.supervisor import Supervisor; logging.basicConfig()"
    code += "; Supervisor(1, lambda: os._exit(3)).run()"
    with subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr
        told = [process.stderr.readline().rstrip() for _ in range(4)]
        process.terminate()
        process.communicate(timeout=5)
    assert [line.rpartition("starts ")[2] for line in told] == ["now", "in 1 s", "in 2 s", "in 4 s"]
    assert all("ended with status 3" in line for line in told)


def test_it_goes_on_where_no_process_can_be_had() -> None:
    code = """
import errno, logging, os, time
from server.api.serving.supervisor import Supervisor
logging.basicConfig()
fork, failures = os.fork, [errno.EAGAIN, errno.ENOMEM]
def forked():
    if failures:
        number = failures.pop(0)
        raise OSError(number, os.strerror(number))
    return fork()
os.fork = forked
Supervisor(1, lambda: (print("works", flush=True), time.sleep(60))).run()
"""
    command = [sys.executable, "-c", code]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == "works\n"
        process.terminate()
        told = process.communicate(timeout=5)[1].splitlines()
    assert process.returncode == 0
    assert [line.partition("worker 1 ")[2] for line in told] == [
        "can't start: Resource temporarily unavailable; retrying in 1 s",
        "can't start: Cannot allocate memory; retrying in 1 s",
    ]
