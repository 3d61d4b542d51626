"""Creating, changing and deleting webhooks in site.yaml over the API (docs/webhooks.md)."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import timedelta
from enum import StrEnum
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from server.auth.permissions import WEBHOOK, has_site_permission, require_of_site
from server.config.model import FILE, Settings
from server.config.settings_file import WEBHOOKS, change_settings_text, mask_settings_text
from server.config.webhooks import WEBHOOK_KEYS, Webhook, address_of, check_url, host_and_port
from server.errors import (
    BusyError,
    ConflictError,
    ForbiddenError,
    NotFoundError,
    SetupError,
    StorageError,
    ValidationError,
    with_fix,
)
from server.events.database import EventDatabase
from server.events.webhooks.http_client import is_public, new_secret
from server.events.webhooks.queue import remove
from server.events.webhooks.secret_files import discard, replacing
from server.formats.edits import REMOVE
from server.schema.spelling import suggestion
from server.service.dry_run import FileChange
from server.service.read import Caller
from server.service.settings import (
    SettingsFile,
    invalid,
    parse_settings,
    read_settings_file,
    settings_diff,
    settings_errors,
    text_before,
)
from server.service.webhooks import may_read_sent
from server.service.write import Writes
from server.write.context import Context

log = logging.getLogger("bifolio")
MAX_WEBHOOKS = 100  # limit for the API; site.yaml can contain more
LOG_TIMEOUT_S = 1.0  # short, because the write lock is held while the database is written
MAX_ITEMS = 100  # maximum number of headers, or of items in a list
# Keys that the API can't change, with the reason.
_FIXED: Mapping[str, str] = {
    "name": "a webhook can't be renamed, because its deliveries and secret belong to its name",
    "secret": "Bifolio generates the secret; to set your own, edit site.yaml",
}


class Verb(StrEnum):
    """The kinds of changes to webhooks."""

    CREATE = "Create"
    CHANGE = "Change"
    DELETE = "Delete"


@dataclass(frozen=True, slots=True)
class WebhookChange:
    """A request to change a webhook.

    In `values`, None restores the default of a key; inside `headers`, it removes a header. `types` contains
    the names that `values["types"]` may list.
    """

    verb: Verb
    name: str
    if_match: str
    values: Mapping[str, Any] = field(default_factory=dict)
    types: Sequence[str] = ()

    @property
    def message(self) -> str:
        return f"{self.verb} the webhook {self.name}"

    @property
    def sent(self) -> frozenset[str]:
        headers = self.values.get("headers") or {}
        return frozenset(filter(None, (self.values.get("url"), *headers.values())))


@dataclass(frozen=True, slots=True)
class MadeChange:
    """A change that was made. `caller` has the state after the change.

    - `webhook`: the webhook that was created or changed, or None after a deletion
    - `secret`: the generated secret of a new webhook, or "" if there is none
    - `version`: the version of site.yaml, as `version_for` returns it
    """

    caller: Caller
    webhook: Webhook | None
    secret: str
    version: str
    commit: str


# --- permissions ----------------------------------------------------------------------------------


def may_change_webhooks(caller: Caller) -> bool:
    return has_site_permission(caller.actor, WEBHOOK, "write", caller.state.schema)


def require_change(caller: Caller, *, sends: bool) -> None:
    """Raise ForbiddenError if the caller may not change webhooks.

    If `sends` is set, the caller must also have permission to read all content that webhooks send.
    """
    for action in ("read", "write"):
        require_of_site(caller.actor, WEBHOOK, action, caller.state.schema)
    if sends and not may_read_sent(caller.actor, caller.state.schema):
        raise ForbiddenError("Webhooks send all content; your role or token can't read all of it")


# --- requests -------------------------------------------------------------------------------------


def parse_creation(caller: Caller, if_match: str, data: object) -> WebhookChange:
    require_change(caller, sends=True)
    values = dict(_values(data, fixed=("secret",)))
    for key in ("name", "url"):
        if not values.get(key):
            raise invalid([(key, f"{key} is missing")])
    return WebhookChange(Verb.CREATE, values.pop("name"), if_match, values, _types(caller))


def parse_change(caller: Caller, if_match: str, name: str, data: object) -> WebhookChange:
    """Parse a request to change a webhook. Raises ForbiddenError or ValidationError."""
    require_change(caller, sends=True)
    if isinstance(data, dict) and data.get("name") == name:
        data = {key: value for key, value in data.items() if key != "name"}
    values = dict(_values(data, fixed=tuple(_FIXED)))
    if "url" in values and not values["url"]:
        raise invalid([("url", "url is missing")])
    return WebhookChange(Verb.CHANGE, name, if_match, values, _types(caller))


def parse_deletion(caller: Caller, if_match: str, name: str) -> WebhookChange:
    require_change(caller, sends=False)
    return WebhookChange(Verb.DELETE, name, if_match)


def _values(data: object, *, fixed: Sequence[str]) -> Iterator[tuple[str, Any]]:
    if not isinstance(data, dict) or not data:
        raise ValidationError('The request body must look like {"data": {"name": "…", "url": "…"}}')
    known = [key for key in WEBHOOK_KEYS if key not in fixed]
    # New keys are written in the order of the documentation.
    for key in sorted(data, key=lambda key: known.index(key) if key in known else -1):
        value = data[key]
        if key in fixed:
            raise invalid([(key, f"{key} can't be set over the API: {_FIXED[key]}")])
        if key not in known:
            fix = suggestion(str(key), known) or "use one of " + ", ".join(known)
            raise invalid([(str(key)[:100], with_fix(f'unknown key "{str(key)[:100]}" in a webhook', fix))])
        is_valid, must = _FORMS[key]
        if value is not None and not is_valid(value):
            raise invalid([(key, f"{key} must be {must}")])
        if key == "url":
            _refuse_variable(value, "url")
        for name, header in value.items() if key == "headers" and value else ():
            if header is not None and not _is_text(header):
                raise invalid([(("headers", name), f"headers.{name[:100]} must be {_TEXT[1]}, or null")])
            _refuse_variable(header, "headers", name)
        yield key, f"{value}s" if key == "debounce" and isinstance(value, int) and value else value


def _refuse_variable(value: str | None, *path: str) -> None:
    if value and value.startswith("env:"):
        # The variables of the server can contain secrets that callers of the API may not know. A value that
        # the webhook already has is refused too: otherwise, a caller could guess the variable's name.
        message = f"environment variables can't be used over the API; write env:NAME into {FILE} instead"
        raise invalid([(path, message)])


def _is_text(value: object) -> bool:
    return isinstance(value, str) and len(value) <= 2000


def _is_list(value: object) -> bool:
    return isinstance(value, list) and len(value) <= MAX_ITEMS and all(map(_is_text, value))


def _is_headers(value: object) -> bool:
    return isinstance(value, dict) and len(value) <= MAX_ITEMS


def _is_pause(value: object) -> bool:
    return (isinstance(value, str) and value == value.strip()) or (type(value) is int and 0 <= value <= 3600)


_TEXT = (_is_text, "a string of at most 2,000 characters")
_LIST = (_is_list, f"a list of at most {MAX_ITEMS} strings")
_FORMS: Mapping[str, tuple[Callable[[object], bool], str]] = {
    "name": _TEXT,
    "url": _TEXT,
    "events": _LIST,
    "types": _LIST,
    "locales": _LIST,
    "status": _LIST,
    "debounce": (_is_pause, 'a duration such as "10s", or a number of seconds up to 3600'),
    "headers": (_is_headers, "an object of strings; null removes a header"),
    "enabled": (lambda value: isinstance(value, bool), "true or false"),
}


def _types(caller: Caller) -> Sequence[str]:
    return [*(type_.singular for type_ in caller.state.schema.content_types), "upload"]


# --- changes --------------------------------------------------------------------------------------


def version_for(writes: Writes, settings: Settings) -> str:
    """Return the version of site.yaml.

    Return "" if the file can't be read, or if it is valid but its webhooks differ from those in `settings`.
    """
    try:
        file = read_settings_file(writes)
    except (ConflictError, StorageError):
        return ""
    return file.version if file.problem or file.settings.webhooks == settings.webhooks else ""


def try_change(writes: Writes, caller: Caller, change: WebhookChange) -> Sequence[FileChange]:
    """Return the diff that a change would make.

    Comments are masked, and secrets, except those in the request.
    """
    _, (before, after) = writes.planned_files(caller, _prepare, change)
    if before == after:
        return []
    shown = mask_settings_text(after, change.sent)
    return [settings_diff(before, mask_settings_text(before, ()), shown)]


def make_change(
    writes: Writes, database: EventDatabase, caller: Caller, change: WebhookChange, message: str
) -> MadeChange:
    """Create, change or delete a webhook in site.yaml.

    When a webhook is created or deleted, the deliveries and the secret of an earlier webhook with the same
    name are deleted, too. Raises PreconditionError, ValidationError, NotFoundError, ConflictError or any
    error of `Writes.save`.
    """
    root, secret = writes.site.root, new_secret() if change.verb is Verb.CREATE else ""
    around = (
        None if change.verb is Verb.CHANGE else lambda _: _replacing_state(root, database, change, secret)
    )
    outcome = writes.save(caller, _prepare, change, message=message, around=around)
    writes.refresh_configuration((FILE,))
    # Another program could have changed the file again.
    state, written = writes.site.state, parse_settings(outcome.result[1]).settings.webhooks
    webhook = next((webhook for webhook in written if webhook.name == change.name), None)
    version = version_for(writes, state.settings)
    return MadeChange(replace(caller, state=state), webhook, secret, version, outcome.commit)


@contextmanager
def _replacing_state(
    root: Path, database: EventDatabase, change: WebhookChange, secret: str
) -> Iterator[None]:
    """Context manager: replace a webhook's secret, and delete its deliveries. The block writes site.yaml.

    If `secret` is "", the old secret is only deleted. Raises StorageError if `secret` can't be stored.
    """
    with replacing(root, change.name, f"{secret}\n") if secret else nullcontext():
        yield
    with _logging_failure(change), database.writing(LOG_TIMEOUT_S) as transaction:
        remove(transaction.connection, change.name)
    # The deliveries are deleted first: another attempt to deliver could create the secret again.
    if not secret:
        with _logging_failure(change):
            discard(root, change.name)


@contextmanager
def _logging_failure(change: WebhookChange) -> Iterator[None]:
    try:
        yield
    except (BusyError, StorageError) as error:  # site.yaml has already been written.
        log.warning("the deliveries or the secret of webhook %s can't be deleted: %s", change.name, error)


def _prepare(change: WebhookChange, context: Context) -> tuple[str, str]:
    before = text_before(context, change.if_match)
    old = parse_settings(before)
    if old.problem:
        raise ConflictError(f"{old.problem}; fix the file first")
    entries, i = _edited(old, change)
    after = change_settings_text(before, {(WEBHOOKS,): entries or REMOVE}, prune=False)
    new = parse_settings(after)
    wrong = settings_errors(new, context.store.layout.schema)
    if wrong:
        raise invalid([_described(error, new, i) for error in wrong])
    if after != before:
        context.changeset.put(FILE, after)
    return before, after


def _edited(old: SettingsFile, change: WebhookChange) -> tuple[list[Any], int]:
    written, names = old.file.get(WEBHOOKS), [webhook.name for webhook in old.settings.webhooks]
    entries: list[Any] = list(written) if isinstance(written, list) else []
    if change.verb is Verb.CREATE:
        # The secrets of two names that differ only in case could be in the same file.
        same = next((name for name in names if name.lower() == change.name.lower()), None)
        if same:
            raise ConflictError(f'There is already a webhook named "{same}"')
        if len(names) >= MAX_WEBHOOKS:
            raise ConflictError(f"There are already {MAX_WEBHOOKS} webhooks; delete one first")
        new = _with_values({"name": change.name}, Webhook(change.name, ""), old.settings, change)
        return [*entries, new], len(entries)
    if change.name not in names:
        listed = ", ".join(names) or "none"
        raise NotFoundError(f"Webhook not found; the webhooks in {FILE} are: {listed}")
    i = names.index(change.name)
    if change.verb is Verb.DELETE:
        return [*entries[:i], *entries[i + 1 :]], i
    entries[i] = _with_values(entries[i], old.settings.webhooks[i], old.settings, change)
    return entries, i


def _with_values(
    entry: Mapping[str, Any], webhook: Webhook, settings: Settings, change: WebhookChange
) -> dict[str, Any]:
    new = dict(entry)
    for key, value in change.values.items():
        if key == "headers":
            value = _new_headers(webhook, value)
        elif key == "url":
            _require_address(webhook, value, settings, change)
        elif key == "types":
            _require_types(value or (), change.types)
        if _is_same(webhook, key, value):
            continue
        # An empty list, and `true` for `enabled`, are the defaults.
        if (not value and value is not False) or (key == "enabled" and value):
            new.pop(key, None)
        else:
            new[key] = value
    return new


def _is_same(webhook: Webhook, key: str, value: Any) -> bool:
    current = getattr(webhook, key)
    if isinstance(current, tuple):
        return tuple(value or ()) == current
    if isinstance(current, timedelta):
        return f"{current.total_seconds():.0f}s" == (value or "0s")
    if isinstance(current, bool):
        return (value is not False) == current
    return bool((value or {}) == current)


def _new_headers(webhook: Webhook, sent: Mapping[str, str | None] | None) -> dict[str, str]:
    sent = dict.fromkeys(webhook.headers) if sent is None else sent
    return {name: value for name, value in {**webhook.headers, **sent}.items() if value is not None}


def _require_address(webhook: Webhook, url: str, settings: Settings, change: WebhookChange) -> None:
    if url == webhook.url:
        return
    if wrong := check_url(url):
        raise invalid([("url", f"url {wrong}")])
    _require_allowed_port(url, settings)
    # Otherwise, the caller could read the hidden values of headers with a receiver of their own. Receivers of
    # different people can have the same host.
    sent = change.values.get("headers", {})
    kept = [] if sent is None else [name for name in webhook.headers if name not in sent]
    if kept:
        names = ", ".join(kept)
        raise invalid(
            [
                (
                    "headers",
                    f"The URL changes, so the values of these headers are not kept: {names}; "
                    "set them again, or remove them with null",
                )
            ]
        )


def _require_allowed_port(url: str, settings: Settings) -> None:
    """Raise ValidationError if the URL's host is private, unless site.yaml allows this host with this port.

    If any port were accepted, callers could reach all services on the host.
    """
    host, port = address_of(url)
    if host not in settings.webhooks_allow and not _is_private(host):
        return
    address, urls = host_and_port(host, port), [webhook.url for webhook in settings.webhooks]
    named = {address_of(one) for one in urls if not one.startswith("env:")}
    if address in settings.webhooks_allow or (host in settings.webhooks_allow and (host, port) in named):
        return
    message = f"{host} is not a public address; to allow it, add {address} to webhooks_allow in {FILE}"
    raise invalid([("url", message)])


def _is_private(host: str) -> bool:
    try:
        return not is_public(ip_address(host))
    except ValueError:
        return host == "localhost"  # Other names are resolved when a request is sent.


def _require_types(names: Sequence[str], known: Sequence[str]) -> None:
    for name in names:
        if name not in known:
            fix = suggestion(name, known) or "use one of " + ", ".join(known)
            raise invalid([("types", with_fix(f'unknown content type "{name[:100]}"', fix))])


def _described(error: SetupError, new: SettingsFile, i: int) -> tuple[tuple[str, ...], str]:
    """Return the path of the value in the webhook that an error is about, and the error's message.

    The path is a key, or `headers` and the name of a header. If the error is not about such a value, the path
    is ("",).
    """
    for path, place in new.file.positions.items():
        is_here = place.line == error.line and error.column in (place.column, place.value_column)
        if path[:2] == (WEBHOOKS, i) and len(path) > 2 and is_here:
            return tuple(map(str, path[2 : 4 if path[2] == "headers" else 3])), with_fix(
                error.message, error.fix
            )
    return ("",), str(error)
