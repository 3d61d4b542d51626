"""`bifolio webhook`. Except for `bifolio webhook test`, all requests are sent by servers."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from server.config.model import FILE, Settings
from server.config.reader import read_settings
from server.config.webhooks import Webhook, resolve_environment
from server.database.engine import Connection
from server.documents.timestamps import from_seconds
from server.errors import SetupError
from server.events.database import EventDatabase
from server.events.model import Event
from server.events.tables import DELIVERED, FAILED
from server.events.webhooks.delivery_table import MAX_DONE_DELIVERIES, Delivery, newest, webhook_status
from server.events.webhooks.http_client import brief
from server.events.webhooks.queue import enable, replay_one, requeue_since, update_webhooks
from server.events.webhooks.sample import send_sample
from server.events.webhooks.secret_files import OVERLAP_S, rotate, secrets_of
from server.schema.spelling import suggestion
from server.tools.terminal import Part, check_site, one_line_errors, print_lines, printable, site_option

_BATCH_EVENTS = 1000


@contextmanager
def _log_of(root: Path, settings: Settings) -> Iterator[EventDatabase]:
    database = EventDatabase(root, settings.accounts)
    try:
        yield database
    finally:
        database.close()


def _settings(root: Path) -> Settings:
    check_site(root)
    return read_settings(root)


def _find_webhook(settings: Settings, name: str) -> Webhook:
    found = {webhook.name: webhook for webhook in settings.webhooks}
    if name not in found:
        fix = suggestion(name, found) or (
            f"use one of {', '.join(found)}" if found else f"add the webhook to {FILE}"
        )
        raise SetupError(name, None, "no webhook has this name", fix)
    return found[name]


@click.group()
def webhook() -> None:
    """List, test and replay webhooks."""


@webhook.command("list")
@site_option
@one_line_errors
def list_webhooks(root: Path) -> None:
    """List webhooks with their waiting deliveries and last results."""
    settings = _settings(root)
    if not settings.webhooks:
        click.echo(f"{FILE} has no webhooks.")
        return
    with _log_of(root, settings) as database:
        for one in settings.webhooks:
            stands = database.query(lambda c, name=one.name: webhook_status(c, name))  # type: ignore[misc]
            last, state = stands.last_attempted, f"{stands.waiting:,} waiting"
            if not one.enabled:
                state = "off"
            elif stands.disabled is not None:
                since = from_seconds(stands.disabled)
                state = f"disabled by 410 at {since}; run `bifolio webhook enable {one.name}`"
            came = (
                f"last at {from_seconds(last.attempted_at)}: {_outcome(last)}"
                if last and last.attempted_at
                else "nothing sent"
            )
            click.echo(f"{one.name}  {_public_url(one)}  {state}, {came}")


def _public_url(webhook: Webhook) -> str:
    # The query string may contain a secret.
    address, question, _ = webhook.url.partition("?")
    return f"{address}?…" if question else address


def _outcome(delivery: Delivery) -> str:
    if delivery.state == DELIVERED:
        return f"{delivery.status}"
    return brief(printable(delivery.error)) or "no response yet"


@webhook.command("test")
@click.argument("name")
@site_option
@one_line_errors
def test(root: Path, name: str) -> None:
    """Send a sample event to a webhook and print the response status."""
    settings = _settings(root)
    one = resolve_environment(_find_webhook(settings, name), os.environ)
    outcome = send_sample(settings, one, secrets_of(root, one))
    seconds = f"{outcome.seconds:.2f} s"
    if outcome.succeeded:
        print_lines([[("✓ ", {"fg": "green"}), (f"{outcome.status} in {seconds}", {})]])
        return
    print_lines([[("✗ ", {"fg": "red"}), (f"{printable(outcome.error)} ({seconds})", {})]])
    sys.exit(1)


@webhook.command("log")
@click.argument("name", required=False)
@site_option
@click.option(
    "--limit",
    default=20,
    show_default=True,
    type=click.IntRange(1, 10_000),
    help="Show at most this number of deliveries.",
)
@one_line_errors
def log(root: Path, name: str | None, limit: int) -> None:
    """Show recent deliveries and their results, newest last."""
    settings = _settings(root)
    names = [_find_webhook(settings, name).name] if name else [one.name for one in settings.webhooks]
    with _log_of(root, settings) as database:
        for one in database.query(lambda c: newest(c, names, limit)):
            print_lines([_line(one)])


def _line(delivery: Delivery) -> list[Part]:
    marks = {DELIVERED: ("✓", "green"), FAILED: ("✗", "red")}
    mark, colour = marks.get(delivery.state, ("…", "yellow"))
    seqs = (
        f"{delivery.first_event}"
        if delivery.first_event == delivery.last_event
        else f"{delivery.first_event}-{delivery.last_event}"
    )
    document = f" {delivery.event.model} {delivery.event.document_id}" if delivery.event.document_id else ""
    tries = f"{delivery.attempts} tries" if delivery.attempts != 1 else "1 try"
    came = _outcome(delivery) if delivery.attempts else delivery.error or delivery.state
    if delivery.state not in marks and delivery.attempts:
        came += f"; next at {from_seconds(delivery.due)}"
    what = f"{delivery.webhook}  {delivery.event.kind}{document}  {seqs}  {delivery.id}"
    told = f" {from_seconds(delivery.created_at)}  {what}  {tries}: {came}"
    return [(mark, {"fg": colour}), (told, {})]


@webhook.command("replay")
@click.argument("name")
@site_option
@click.option(
    "--since", type=click.IntRange(0), metavar="SEQ", help="Resend all events after this sequence number."
)
@click.option(
    "--id",
    "webhook_id",
    metavar="DELIVERY-ID",
    help="Resend the delivery with this id, which `bifolio webhook log` lists.",
)
@one_line_errors
def replay(root: Path, name: str, since: int | None, webhook_id: str | None) -> None:
    """Resend deliveries. They keep their webhook-id, but contain the documents' current content."""
    if (since is None) == (webhook_id is None):
        raise click.UsageError("Pass either --since or --id.")
    settings = _settings(root)
    one = _find_webhook(settings, name)
    if not one.enabled:
        raise SetupError(
            name,
            None,
            "this webhook is disabled, so nothing can be resent to it",
            'set "enabled: true" in site.yaml',
        )
    with _log_of(root, settings) as database:
        last = database.bounds().last
        events = _events(database, since) if since is not None else []
        with database.writing() as transaction:
            connection = transaction.connection
            update_webhooks(connection, settings.webhooks, lambda: last)
            if webhook_id is not None:
                _replay_one(connection, name, webhook_id)
                count = 1
            else:
                count = requeue_since(connection, one, events, since or 0, time.time())
    click.echo(f"{count:,} queued; a running server sends them")


def _events(database: EventDatabase, since: int) -> list[Event]:
    found: list[Event] = []
    while part := database.read(found[-1].seq if found else since, _BATCH_EVENTS):
        found.extend(part)
    return found


def _replay_one(connection: Connection, name: str, webhook_id: str) -> None:
    if replay_one(connection, name, webhook_id, time.time()) is None:
        fix = (
            f"list them with `bifolio webhook log {name}`; "
            f"the last {MAX_DONE_DELIVERIES:,} deliveries are kept for up to 7 days"
        )
        raise SetupError(webhook_id, None, f'the webhook "{name}" has no delivery with this id', fix)


@webhook.command("secret")
@click.argument("name")
@site_option
@click.option(
    "--rotate",
    "wants_another",
    is_flag=True,
    help="Create a new secret. The old secret stays valid for a day.",
)
@one_line_errors
def secret(root: Path, name: str, wants_another: bool) -> None:
    """Print the secret with which a webhook's requests are signed, creating it if needed."""
    one = resolve_environment(_find_webhook(_settings(root), name), os.environ)
    if wants_another:
        made = rotate(root, one)
        click.echo(f"The old secret stays valid for {OVERLAP_S / 3600:.0f} hours.", err=True)
        click.echo(made)
        return
    click.echo(secrets_of(root, one)[0])


@webhook.command("enable")
@click.argument("name")
@site_option
@one_line_errors
def enable_webhook(root: Path, name: str) -> None:
    """Re-enable a webhook that was disabled by a 410 response."""
    settings = _settings(root)
    _find_webhook(settings, name)
    with _log_of(root, settings) as database:
        last = database.bounds().last
        with database.writing() as transaction:
            was_disabled = enable(transaction.connection, name, last)
    click.echo(f"{name} is enabled for changes from now on" if was_disabled else f"{name} was not disabled")
