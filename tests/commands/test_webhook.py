"""Tests of `bifolio webhook`: its lists, deliveries and queue, with and without a running server."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import Result
from standardwebhooks.webhooks import Webhook as Verifier

from server.config.reader import read_settings
from server.events.database import EventDatabase
from server.events.model import Event
from server.events.webhooks.delivery_worker import Deliverer, Pace
from server.events.webhooks.queue import update_webhooks
from server.jobs.job import Timing
from server.jobs.runner import Runner
from tests.commands.test_cli import run
from tests.receivers import Receiver, receiving, status
from tests.sites import write
from tests.waiting import until

UID = "api::article.article"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as running:
        yield running


@pytest.fixture
def root(tmp_path: Path, receiver: Receiver) -> Path:
    text = f"""webhooks_allow: 127.0.0.1
webhooks:
  - name: build
    url: {receiver.url}?key=1
    headers: {{X-A: b}}
  - {{name: off, url: env:NOT_SET, enabled: false}}
"""
    write(tmp_path, {"site.yaml": text})
    return tmp_path


def webhook(root: Path, *arguments: str) -> Result:
    return run("webhook", *arguments, "--site", str(root))


def record(root: Path, *names: str) -> None:
    database = EventDatabase(root)
    with database.writing() as transaction:
        events = (Event("entry.update", UID, n, "en", at="2026-11-22T12:00:00.000Z") for n in names)
        transaction.append(events)
    database.close()


@contextmanager
def delivering(root: Path) -> Iterator[None]:
    """Context manager: send queued deliveries, each at most once."""
    database = EventDatabase(root)
    with database.writing() as transaction:
        last = transaction.bounds().last
        update_webhooks(transaction.connection, read_settings(root).webhooks, lambda: last)
    database.close()
    settings, pace = read_settings(root), Pace(backoffs_s=(), timeout_s=2)
    runner = Runner([Deliverer(root, lambda: settings, lambda event, drafts: b"{}", Timing(), pace)])
    runner.start()
    try:
        until(lambda: (root / ".bifolio/events.db").exists() and "waiting" in webhook(root, "list").output)
        yield
    finally:
        runner.stop()


def told(root: Path) -> list[str]:
    """Return the log of deliveries without times and ids."""
    lines = webhook(root, "log", "build").output.splitlines()
    return [re.sub(r"\d{4}-\S+Z|msg_\S+", "…", line) for line in lines]


def test_a_sample_is_sent_and_what_came_back_is_told(root: Path, receiver: Receiver) -> None:
    secret = webhook(root, "secret", "build").output.strip()
    done = webhook(root, "test", "build")
    assert done.exit_code == 0
    assert re.fullmatch(r"✓ 200 in \d\.\d\d s\n", done.output)
    (received,) = receiver.received
    assert (received.path, received.headers["x-a"]) == ("/hook?key=1", "b")
    assert (received.headers["x-strapi-event"], received.data["event"]) == ("trigger-test", "trigger-test")
    assert Verifier(secret).verify(received.body, dict(received.headers))
    receiver.answer = status(500, body="out of \x1b[31morder")
    done = webhook(root, "test", "build")
    assert done.exit_code == 1
    assert done.output.startswith("✗ 500 Said: out of [31morder (")


def test_the_log_and_what_is_replayed(root: Path, receiver: Receiver) -> None:
    assert webhook(root, "list").output == (
        f"build  {receiver.url}?…  0 waiting, nothing sent\noff  env:NOT_SET  off, nothing sent\n"
    )
    record(root, "before")
    with delivering(root):
        until(lambda: webhook(root, "replay", "build", "--since", "9").output.startswith("0 queued"))
        record(root, "a", "b")
        receiver.until(2)
        until(lambda: [line[0] for line in told(root)] == ["✓", "✓"])
        assert told(root)[0] == "✓ …  build  entry.update article a  2  …  1 try: 200"
        assert (
            webhook(root, "replay", "build", "--since", "0").output
            == "3 queued; a running server sends them\n"
        )
        receiver.until(5)
        until(lambda: [line[0] for line in told(root)] == ["✓"] * 3)
        one = receiver.received[0].id
        assert webhook(root, "replay", "build", "--id", one).output.startswith("1 queued")
        assert receiver.until(6)[-1].id == one
        receiver.answer = status(500, body="x" * 900)
        record(root, "long")
        until(lambda: told(root)[-1].endswith(f"1 try: 500 Said: {'x' * 150}…"))
        receiver.answer = status(500, body="broken")
        record(root, "c")
        until(lambda: told(root)[-1] == "✗ …  build  entry.update article c  5  …  1 try: 500 Said: broken")
        assert "0 waiting, last at" in webhook(root, "list").output
        assert "500 Said: broken" in webhook(root, "list").output


def test_a_webhook_that_answered_410_is_enabled_by_name(root: Path, receiver: Receiver) -> None:
    receiver.answer = status(410)
    with delivering(root):
        until(lambda: webhook(root, "replay", "build", "--since", "0").exit_code == 0)
        record(root, "a")
        until(lambda: "disabled by 410 at" in webhook(root, "list").output)
        assert webhook(root, "enable", "build").output == "build is enabled for changes from now on\n"
        assert webhook(root, "enable", "build").output == "build was not disabled\n"
        receiver.answer = status(200)
        record(root, "b")
        receiver.until(2)


def test_a_secret_is_made_once_and_rotated(root: Path) -> None:
    first = webhook(root, "secret", "build").output
    assert webhook(root, "secret", "build").output == first
    rotated = webhook(root, "secret", "build", "--rotate")
    assert rotated.stderr == "The old secret stays valid for 24 hours.\n"
    assert rotated.stdout != first
    assert webhook(root, "secret", "build").output == rotated.stdout


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["test", "biuld"], 'bifolio: biuld: no webhook has this name. Did you mean "build"?'),
        (["log", "x"], "bifolio: x: no webhook has this name. Use one of build, off."),
        (
            ["test", "off"],
            'bifolio: site.yaml:6: the environment variable NOT_SET, which the webhook "off" uses, is '
            "not set",
        ),
        (
            ["replay", "off", "--since", "0"],
            'bifolio: off: this webhook is disabled, so nothing can be resent to it. Set "enabled: true" in',
        ),
        (
            ["replay", "build", "--id", "msg_x"],
            'bifolio: msg_x: the webhook "build" has no delivery with this id. List them with',
        ),
        (["replay", "build"], "Error: Pass either --since or --id."),
    ],
)
def test_what_can_not_be_done_is_told(root: Path, arguments: list[str], error: str) -> None:
    done = webhook(root, *arguments)
    assert done.exit_code != 0
    assert error in done.output


def test_a_site_without_webhooks_says_so(tmp_path: Path) -> None:
    write(tmp_path, {"site.yaml": "name: Site\n"})
    done = webhook(tmp_path, "list")
    assert (done.exit_code, done.output) == (0, "site.yaml has no webhooks.\n")
