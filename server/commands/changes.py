"""`bifolio changes`."""

import json
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import click

from server.auth.permissions import Actor, permission_subject
from server.documents.timestamps import from_seconds
from server.errors import ApiError, GoneError, SetupError, StorageError, ValidationError, with_fix
from server.events.change_events import events_since
from server.events.database import Bounds, EventDatabase
from server.events.model import Event
from server.events.reading import Selection, findable_subjects, parse_selection, visible_part
from server.events.resume import id_of, require_available
from server.history.past import PastStates
from server.schema.model import Schema
from server.service.opening import Mode, open_site
from server.site.site import Site
from server.storage.durable import replace_file
from server.storage.git.refs import commit_at, find_commit, head_commit, parse_time
from server.tools.terminal import check_site, one_line_errors, printable, site_option

TERMINAL_ACTOR = Actor("terminal", everything=True)
UNKNOWN_STATUS = 3  # Exit status if the log no longer reaches back to the position.
EMPTY_COLUMN = "-"
BATCH_EVENTS = 1000
# Matches what --save writes, or a sequence number.
_POSITION = re.compile(r"(?:([0-9a-f]{8})-)?([0-9]{1,18})")
_OPTIONS = {"types": "--type", "events": "--event", "locales": "--locale", "status": "--status"}


@click.command("changes")
@site_option
@click.option(
    "--since",
    metavar="PLACE",
    help="Where to start: a position from --save, or a commit, tag, branch or date.",
)
@click.option(
    "--save",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Save the position of the last listed change, for the next --since.",
)
@click.option("--last", is_flag=True, help="Print the current position instead of changes.")
@click.option(
    "--type", "types", multiple=True, help="List only changes to this content type; can be repeated."
)
@click.option(
    "--event",
    "events",
    multiple=True,
    help="List only these events, such as media.*; can be repeated.",
)
@click.option("--locale", "locales", multiple=True, help="List only changes in this locale; can be repeated.")
@click.option(
    "--status",
    type=click.Choice(["published", "draft"]),
    help="List only changes to documents with this status.",
)
@click.option("--paths", "as_paths", is_flag=True, help="Print only the paths of the changed files.")
@click.option("--json", "as_json", is_flag=True, help="Print each event as one line of JSON.")
@one_line_errors
def changes(
    root: Path,
    since: str | None,
    save: Path | None,
    last: bool,
    types: tuple[str, ...],
    events: tuple[str, ...],
    locales: tuple[str, ...],
    status: str | None,
    as_paths: bool,
    as_json: bool,
) -> None:
    """List changes since PLACE, one event per line (docs/events.md).

    Exits with status 3 if the log does not reach back that far; fetch everything instead.
    """
    if (since is None) == (not last):
        raise click.UsageError("Pass either --since or --last.")
    if as_paths and as_json:
        raise click.UsageError("--paths and --json can't be combined.")
    filters = {"types": types, "events": events, "locales": locales, "status": (status or "",)}
    log = _EventLog.open(root)
    is_complete = True
    if since is not None:
        found = _select(log, filters)
        try:
            selected = _select_events(log.events_since(since.strip()), found, log.site.state.schema)
            _print(selected, as_paths=as_paths, as_json=as_json)
        except GoneError as error:
            click.echo(f"bifolio: {with_fix(error.message, 'fetch everything instead')}", err=True)
            is_complete = False
    else:
        click.echo(log.position)
    if save is not None:
        _save(save, log.position)
    sys.exit(0 if is_complete else UNKNOWN_STATUS)


@dataclass(frozen=True, slots=True)
class _EventLog:
    """A site's event log, up to the event number `bounds.last`."""

    site: Site
    database: EventDatabase
    bounds: Bounds

    @classmethod
    def open(cls, root: Path) -> "_EventLog":
        """Record all changes to files in the event log, and open the log.

        Raises SetupError if the folder is not a site, and StorageError or BusyError if changes can't be
        recorded.
        """
        check_site(root)
        opened = open_site(root, Mode.READ, records=True)
        site, recorder = opened.site, opened.recorder
        site.record()
        bounds = recorder.database.bounds()
        site.refresh()  # A change may be listed twice, but must never be missed.
        if recorder.missed:
            site.record()
        if recorder.missed:
            raise StorageError("The changes can't be recorded now; try again")
        for problem in site.problems:
            if problem.severity == "error":
                click.echo(f"bifolio: changes not listed: {printable(str(problem))}", err=True)
        return cls(site, recorder.database, bounds)

    @property
    def position(self) -> str:
        # The position after the last event, for the next `--since`.
        return id_of(self.bounds.id, self.bounds.last)

    def events_since(self, text: str) -> Iterable[Event]:
        """Return the events since a position, commit or date.

        Raises GoneError if the log does not reach back that far, and SetupError if `text` is invalid.
        """
        if not text:
            raise GoneError("The position in --since is empty")
        position = _POSITION.fullmatch(text)
        if position is None:
            return self._since_commit(text)
        if position[1] and position[1] != self.bounds.id:
            raise GoneError(f"The event log {position[1]} was replaced by a new log")
        return self._after(int(position[2]))

    def _after(self, seq: int) -> Iterator[Event]:
        require_available(self.bounds, seq)
        return self._read(seq)

    def _read(self, seq: int) -> Iterator[Event]:
        while part := self.database.read(seq, BATCH_EVENTS, with_paths=True):
            yield from (event for event in part if event.seq <= self.bounds.last)
            seq = part[-1].seq

    def _since_commit(self, text: str) -> Iterable[Event]:
        root, past, time = self.site.root, PastStates(self.site), parse_time(text, end=False)
        head = head_commit(root)
        try:
            if time is None or find_commit(root, text):
                return events_since(past, past.resolve(text))
            if head:
                commit = commit_at(past.log, head, time)
                if not commit:
                    raise GoneError(f"There is no commit at or before {text}")
                return events_since(past, commit)
        except GoneError:
            raise
        except ApiError as error:
            raise SetupError("--since", None, printable(error.message)) from error
        seq = self.database.last_number_before(from_seconds(time))
        if seq is None:
            raise GoneError(f"The event log does not reach back to {text}")
        return self._after(seq)


def _select(log: _EventLog, filters: dict[str, tuple[str, ...]]) -> Selection:
    # Messages name the options instead of the API's parameters.
    parameters = {name: list(values) for name, values in filters.items()}
    try:
        return parse_selection(parameters, findable_subjects(TERMINAL_ACTOR, log.site.state.schema))
    except ValidationError as error:
        message = error.message
        for name, option in _OPTIONS.items():
            message = message.replace(f'"{name}"', option, 1) if message.startswith(f'"{name}"') else message
        raise click.UsageError(message) from error


def _select_events(events: Iterable[Event], selection: Selection, schema: Schema) -> Iterator[Event]:
    return (
        event for event in events if selection.matches(event) and visible_part(event, TERMINAL_ACTOR, schema)
    )


def _print(events: Iterable[Event], *, as_paths: bool, as_json: bool) -> None:
    if as_paths:
        for path in dict.fromkeys(path for event in events for path in event.paths):
            click.echo(path)
        return
    for event in events:
        click.echo(json.dumps(event.shown(), ensure_ascii=False) if as_json else _line(event))


def _line(event: Event) -> str:
    # Scripts parse these columns: keep their order, and add new ones at the end.
    uids = [event.uid] if event.counts is None else event.counts
    types = [permission_subject(uid) if "::" in uid else uid for uid in uids]
    changed = "?" if event.changed is None else ",".join(event.changed)
    columns = (
        str(event.seq or ""),
        event.at,
        event.kind,
        ",".join(types),
        event.document_id,
        event.locale,
        event.status,
        changed,
    )
    return "\t".join(printable(column) or EMPTY_COLUMN for column in columns)


def _save(path: Path, position: str) -> None:
    try:
        replace_file(path, f"{position}\n".encode())
    except OSError as error:
        raise StorageError(f"{path} can't be written: {error.strerror}") from error
