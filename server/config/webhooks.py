"""Reader for the `webhooks` section in site.yaml (docs/webhooks.md).

A URL, secret or header value can be written as `env:NAME`. Settings contain that text, so logs and caches
contain no secrets. `resolve_environment` replaces it by the variable's value.
"""

import re
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from fnmatch import fnmatchcase
from typing import Any
from urllib.parse import urlsplit

from server.config import values
from server.errors import SetupError
from server.formats.config_file import ConfigFile
from server.formats.tree import is_null
from server.paths import SETTINGS
from server.schema.spelling import suggestion

# keys in a webhook, with descriptions
WEBHOOK_KEYS: Mapping[str, str] = {
    "name": "What it is called, on the command line and in the log; each once.",
    "url": "Where requests are sent, or `env:NAME`.",
    "events": "Which events are sent: names, or patterns such as `entry.*`; without it, all.",
    "types": "Only those of these content types, by singular API id; `upload` is media.",
    "locales": "Only those of documents in these locales, and of what has no locale.",
    "status": "Only those of `published` or of `draft` documents, and of what has no status.",
    "debounce": "Send one `site.update` instead, when nothing more has changed for so long, such as `10s`.",
    "headers": "Further headers of requests: `Authorization: env:NAME`.",
    "secret": "What signs requests, `whsec_…` or `env:NAME`, or several; without it, one is made.",
    "enabled": "`false` switches it off.",
}
# events.model.KINDS describes these events.
EVENTS = (
    "entry.create", "entry.update", "entry.publish", "entry.unpublish", "entry.delete",
    "media.create", "media.update", "media.delete", "schema.update", "site.update",
)  # fmt: skip
STATUSES = ("published", "draft")
SECRET_PREFIX = "whsec_"
MAX_SECRET_BYTES, MIN_SECRET_BYTES = 64, 24  # required by the Standard Webhooks specification
MAX_DEBOUNCE = timedelta(hours=1)
# by key: how to fix an invalid value
VALUE_FIXES: Mapping[str, str] = {
    "url": "write an address such as https://example.org/hook, and send credentials in a header",
    "secret": "remove it to have one created",
    "headers": "change the value",
}
# Headers that Bifolio sets itself.
_OWN_HEADERS = re.compile(
    r"webhook-.*|x-strapi-event|content-.*|host|connection|transfer-encoding|accept-encoding|te|upgrade"
    r"|expect|keep-alive|trailer|user-agent"
)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_VARIABLE = re.compile(r"env:([A-Za-z_][A-Za-z0-9_]*)")
# prefixes of variables that contain secrets for Bifolio, PostgreSQL and the bucket
_OWN_VARIABLES = ("BIFOLIO_", "PG", "AWS_")


@dataclass(frozen=True, slots=True)
class Webhook:
    """One webhook in site.yaml.

    An empty tuple in `events`, `types`, `locales` or `status` means no restriction. `lines` are the lines of
    its keys.
    """

    name: str
    url: str
    events: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    locales: tuple[str, ...] = ()
    status: tuple[str, ...] = ()
    debounce: timedelta = timedelta()
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)
    enabled: bool = True
    lines: Mapping[str, int] = field(default_factory=dict, compare=False, repr=False)

    def wants(self, event: str) -> bool:
        """Return whether the webhook receives this kind of event."""
        return not self.events or any(fnmatchcase(event, pattern) for pattern in self.events)


def read_webhooks(file: ConfigFile, default: tuple[Webhook, ...], *at: str) -> tuple[Webhook, ...]:
    """Return the webhooks. Raises SetupError."""
    found: dict[str, Webhook] = {}
    for entry in file.entries(*at):
        webhook = _webhook(entry)
        if webhook.name in found:
            raise entry.refuse(f'two webhooks are named "{webhook.name}"', "rename one of them", "name")
        found[webhook.name] = webhook
    return tuple(found.values())


def _webhook(file: ConfigFile) -> Webhook:
    for key in file.data:
        if key not in WEBHOOK_KEYS:
            fix = suggestion(key, WEBHOOK_KEYS) or "use one of " + ", ".join(WEBHOOK_KEYS)
            raise file.refuse_key(f'unknown key "{key}" of a webhook', fix, key)
    name = values.text(file, "", "name")
    if not _NAME.fullmatch(name):
        fix = "use letters, digits, - and _"
        raise file.refuse(f'invalid name "{name}" of a webhook', fix, "name")
    webhook = Webhook(
        name=name,
        url=_check_value(file, check_url, values.text(file, "", "url"), "url"),
        events=tuple(_event(file, pattern) for pattern in values.text_or_texts(file, (), "events")),
        types=values.text_or_texts(file, (), "types"),
        locales=values.text_or_texts(file, (), "locales"),
        status=tuple(_status(file, word) for word in values.text_or_texts(file, (), "status")),
        debounce=_debounce(file),
        headers=dict(_headers(file)),
        secrets=tuple(
            _check_value(file, check_secret, secret, "secret")
            for secret in values.text_or_texts(file, (), "secret")
        ),
        enabled=values.flag(file, True, "enabled"),
    )
    lines = {key: place.line for key in WEBHOOK_KEYS if (place := file.position(key))}
    return replace(webhook, lines=lines)


def _event(file: ConfigFile, pattern: str) -> str:
    if not any(fnmatchcase(event, pattern) for event in EVENTS):
        fix = suggestion(pattern, EVENTS) or "use one of " + ", ".join(EVENTS)
        raise file.refuse(f'unknown event "{pattern}"', fix, "events")
    return pattern


def _status(file: ConfigFile, word: str) -> str:
    if word not in STATUSES:
        what = f'status must be {" or ".join(STATUSES)} (found "{word}")'
        raise file.refuse(what, suggestion(word, STATUSES), "status")
    return word


def _debounce(file: ConfigFile) -> timedelta:
    found = values.duration(file, timedelta(), "debounce")
    if found > MAX_DEBOUNCE:
        raise file.refuse_value("not be longer than an hour", "write a time such as 10s", "debounce")
    return found


def _headers(file: ConfigFile) -> Iterator[tuple[str, str]]:
    seen: set[str] = set()
    for name in values.section(file, "headers"):
        at = ("headers", name)
        if not _HEADER.fullmatch(name):
            raise file.refuse_key(f'invalid name "{ascii(name)[1:-1]}" of a header', "rename it", *at)
        if _OWN_HEADERS.fullmatch(name.lower()) or name.lower() in seen:
            raise file.refuse_key(f'the header "{name}" is already set', "remove it", *at)
        seen.add(name.lower())
        yield name, _check_value(file, check_header, values.text(file, "", *at), *at)


def _check_value(file: ConfigFile, check: Callable[[str], str], value: str, *at: str) -> str:
    """Return the value if it is valid or of the form `env:NAME`. Raises SetupError otherwise."""
    if value.startswith("env:"):
        wrong = _wrong_variable(value)
        if wrong:
            raise file.refuse(f"{'.'.join(at)}: {wrong}", "use another variable", *at)
    elif wrong := check(value):
        raise file.refuse(f"{'.'.join(at)} {wrong}", VALUE_FIXES.get(at[0], ""), *at)
    return value


def _wrong_variable(value: str) -> str:
    """Return why `env:…` is rejected, or "". Bifolio's own secrets must not be sent to other servers."""
    matched = _VARIABLE.fullmatch(value)
    if not matched:
        return f'"{value}" is not env: and the name of a variable'
    return f"{matched[1]} is reserved for Bifolio" if matched[1].startswith(_OWN_VARIABLES) else ""


def check_url(url: str) -> str:
    """Return why a webhook's URL is invalid, or ""."""
    if not url:
        return "is missing"
    if not url.isascii() or not url.isprintable() or " " in url or "\\" in url:
        return "has characters that must be percent-encoded"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return "is not an address"
    if parts.scheme not in ("http", "https"):
        return "must begin with https:// or http://"
    if not parts.hostname or port == 0:
        return "is not an address"
    if "@" in parts.netloc:
        return "must not contain a user"
    return ""


def check_secret(secret: str) -> str:
    """Return why a secret is invalid, or ""."""
    try:
        key = b64decode(secret.removeprefix(SECRET_PREFIX), validate=True)
    except (Base64Error, ValueError):
        key = b""
    if secret.startswith(SECRET_PREFIX) and MIN_SECRET_BYTES <= len(key) <= MAX_SECRET_BYTES:
        return ""
    return f"must be {SECRET_PREFIX} and {MIN_SECRET_BYTES} to {MAX_SECRET_BYTES} bytes in base64"


def check_header(value: str) -> str:
    """Return why a header value is invalid, or ""."""
    if not value.isascii() or not value.isprintable() or value != value.strip():
        return "has characters that headers can't contain"
    return "" if value else "is empty"


def resolve_environment(webhook: Webhook, environment: Mapping[str, str]) -> Webhook:
    """Return the webhook with `env:NAME` replaced by the variables' values. Raises SetupError."""

    def value(key: str, written: str, check: Callable[[str], str]) -> str:
        matched = _VARIABLE.fullmatch(written)
        if not matched:
            return written
        found = environment.get(matched[1])
        line = webhook.lines.get(key)
        if found is None:
            fix = "set it, or write enabled: false"
            what = f"the environment variable {matched[1]} of the webhook {webhook.name} is not set"
            raise SetupError(SETTINGS, line, what, fix)
        if wrong := check(found):
            what = f"the environment variable {matched[1]} of the webhook {webhook.name} {wrong}"
            raise SetupError(SETTINGS, line, what, VALUE_FIXES.get(key, ""))
        return found

    return replace(
        webhook,
        url=value("url", webhook.url, check_url),
        headers={name: value("headers", written, check_header) for name, written in webhook.headers.items()},
        secrets=tuple(value("secret", written, check_secret) for written in webhook.secrets),
    )


def check_environment(webhooks: Iterable[Webhook], environment: Mapping[str, str]) -> None:
    """Raise SetupError if an enabled webhook uses a missing or invalid environment variable."""
    for webhook in webhooks:
        if webhook.enabled:
            resolve_environment(webhook, environment)


def hosts(file: ConfigFile, default: tuple[str, ...], *at: str) -> tuple[str, ...]:
    """Return a list of host names and addresses in lower case, such as `127.0.0.1` and `build.internal`."""
    written: tuple[Any, ...] = values.text_or_texts(file, default, *at)
    for i, host in enumerate(written):
        if not host or is_null(host) or any(c in host for c in "/@ \t\r\n[]") or "://" in host:
            what = f'{".".join(at)} must list hosts (found "{host}")'
            raise file.refuse(what, "write them as 127.0.0.1 or build.internal", *at, i)
    return tuple(host.lower() for host in written)
