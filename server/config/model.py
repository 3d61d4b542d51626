"""site.yaml: what a site says of itself. Every key is optional; an unknown one is refused by name.

A key is said once, as a field of Settings; docs/settings.md is made from KEYS.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import timedelta
from typing import Any

from server.formats.positions import Positions
from server.paths import SETTINGS

FILE = SETTINGS

# What may be granted, by subject; "" stands for every content type.
ACTIONS: Mapping[str, tuple[str, ...]] = {
    "": ("find", "findOne", "create", "update", "delete", "readDraft"),
    "upload": ("upload", "find", "findOne", "destroy"),
    "user": ("me", "updateMe", "find", "findOne", "create", "update", "destroy", "count"),
    "auth": (
        "callback", "register", "changePassword", "forgotPassword", "resetPassword",
        "sendEmailConfirmation", "emailConfirmation", "connect",
        "refresh", "logout", "getSessions", "revokeSession",
    ),
    "role": ("find", "findOne"),
    "locale": ("find",),
    "content-type": ("find", "findOne"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class TypeExport:
    """What is asked of a type: read parameters as a query string has them, and the line that says so."""

    parameters: Mapping[str, Any] = field(default_factory=dict)
    line: int | None = None


@dataclass(frozen=True, slots=True)
class QueryExport:
    """A further request, `/api/articles?…`, and the line that names it."""

    request: str
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Key:
    """One key of site.yaml: its dotted name, what it holds (of `reader.READERS`), and what it is for.

    `otherwise` says what counts where it is not there, if the default has to be told in words.
    """

    name: str
    holds: str
    sentence: str
    otherwise: str = ""

    @property
    def path(self) -> tuple[str, ...]:
        """The keys that lead to it."""
        return tuple(self.name.split("."))


def _key(name: str, holds: str, sentence: str, otherwise: str = "") -> Mapping[str, Key]:
    return {"key": Key(name, holds, sentence, otherwise)}


@dataclass(frozen=True, slots=True)
class Settings:
    """site.yaml with its defaults filled in. `roles` maps a role to its permissions, `article.find`."""

    name: str = field(default="Quire", metadata=_key("name", "text", "What the site is called."))
    default_locale: str = field(
        default="en",
        metadata=_key(
            "locales.default",
            "locale",
            "The locale of files whose name has none.",
            "the first of `locales.available`, else `en`",
        ),
    )
    locales: tuple[str, ...] = field(
        default=("en",),
        metadata=_key(
            "locales.available",
            "locales",
            "Every locale that documents can have.",
            "`locales.default` alone",
        ),
    )
    page_size: int = field(
        default=25,
        metadata=_key("api.page_size.default", "count", "Documents on a page when the request does not say."),
    )
    max_page_size: int = field(
        default=100,
        metadata=_key(
            "api.page_size.max", "count", "The most documents on a page; larger requests get this many."
        ),
    )
    populate_with_pagination: bool = field(
        default=False,
        metadata=_key(
            "api.populate_with_pagination",
            "choice",
            "`reject` (spec.md 4.4) or `allow` populate and pagination in one request.",
            "`reject`",
        ),
    )
    populate: Mapping[str, Any] = field(
        default_factory=dict,
        metadata=_key(
            "api.populate",
            "populates",
            "What a read populates that does not say: `article: author` ([more](querying.md#by-default)).",
        ),
    )
    v4: bool = field(
        default=False,
        metadata=_key(
            "api.format",
            "format",
            "The response format of requests that do not say: `v5`, or `v4` for clients of Strapi 4.",
            "`v5`",
        ),
    )
    upload_limit: int = field(
        default=200_000_000,
        metadata=_key("api.upload_limit", "size", "The largest upload, such as `50 MB`.", "`200 MB`"),
    )
    limit_size: int = field(
        default=16_000_000,
        metadata=_key(
            "api.limits.size", "size", "The largest answer to a read, before compression.", "`16 MB`"
        ),
    )
    limit_steps: int = field(
        default=1_000_000,
        metadata=_key(
            "api.limits.steps",
            "count",
            "How often one request may look at a document ([more](reliability.md)).",
        ),
    )
    limit_time: timedelta = field(
        default=timedelta(seconds=2),
        metadata=_key(
            "api.limits.time",
            "duration",
            "The processor time that one request may take, such as `10s`.",
            "`2s`",
        ),
    )
    cors: tuple[str, ...] = field(
        default=("*",),
        metadata=_key(
            "api.cors",
            "origins",
            "The origins whose pages may use the API, such as `https://example.org`; `*` is any.",
        ),
    )
    trusted_proxies: tuple[str, ...] = field(
        default=(),
        metadata=_key(
            "api.trusted_proxies",
            "networks",
            "The proxies, such as `127.0.0.1`, whose `X-Forwarded-For` and `X-Forwarded-Proto` are believed.",
            "none",
        ),
    )
    rate_limit: str = field(
        default="",
        metadata=_key("api.rate_limit", "rate", "Requests per client, such as `100 per minute`."),
    )
    session: timedelta = field(
        default=timedelta(days=30),
        metadata=_key("auth.session", "duration", "How long a login lasts, such as `12h`.", "`30d`"),
    )
    refresh_tokens: bool = field(
        default=False,
        metadata=_key(
            "auth.refresh",
            "flag",
            "Whether a login gives a short-lived token and one that renews it ([more](access.md#sessions)).",
        ),
    )
    access_token: timedelta = field(
        default=timedelta(minutes=10),
        metadata=_key(
            "auth.access_token",
            "duration",
            "With `auth.refresh`: how long the short-lived token lasts.",
            "`10m`",
        ),
    )
    idle_session: timedelta = field(
        default=timedelta(days=14),
        metadata=_key(
            "auth.idle",
            "duration",
            "With `auth.refresh`: how long a session lasts that nobody refreshes.",
            "`14d`",
        ),
    )
    refresh_cookie: bool = field(
        default=False,
        metadata=_key(
            "auth.cookie",
            "flag",
            "With `auth.refresh`: whether the refresh token is a cookie that scripts can't read.",
        ),
    )
    confirm_email: bool = field(
        default=False,
        metadata=_key(
            "auth.confirm_email",
            "flag",
            "Whether a new user must confirm the e-mail address before the first login.",
        ),
    )
    auth_url: str = field(
        default="",
        metadata=_key(
            "auth.url",
            "text",
            "The address of the page that mails lead to, to set a password or confirm an address.",
        ),
    )
    mail_host: str = field(
        default="",
        metadata=_key("mail.host", "text", "The SMTP server; where there is none, mails go to the log."),
    )
    mail_port: int = field(default=25, metadata=_key("mail.port", "count", "Its port."))
    mail_user: str = field(
        default="",
        metadata=_key("mail.user", "text", "The user to log in as; the password is in QUIRE_MAIL_PASSWORD."),
    )
    mail_tls: bool = field(default=False, metadata=_key("mail.tls", "flag", "Whether to use STARTTLS."))
    mail_from: str = field(
        default="no-reply@localhost", metadata=_key("mail.from", "text", "The sender's address.")
    )
    ignored: Mapping[str, tuple[str, ...]] = field(
        default_factory=dict,
        metadata=_key(
            "check.ignore",
            "rules",
            "Warnings that `quire check` leaves out: `rule: [paths]`, `*` for any text.",
        ),
    )
    accounts: str = field(
        default="",
        metadata=_key(
            "accounts",
            "url",
            "The accounts database; several machines can share one at `postgresql://…`.",
            "SQLite in `.quire/accounts.db`",
        ),
    )
    search_index: bool = field(
        default=True,
        metadata=_key(
            "search.index",
            "flag",
            "Whether search keeps an index; without one, each search looks at all documents.",
        ),
    )
    search_weights: Mapping[str, float] = field(
        default_factory=dict,
        metadata=_key(
            "search.weights",
            "weights",
            "What a word counts in an attribute: `title: 6`, `article.summary: 3`; 0 leaves it out.",
        ),
    )
    roles: Mapping[str, frozenset[str]] = field(
        default_factory=lambda: {"public": frozenset(), "authenticated": frozenset()},
        metadata=_key(
            "roles",
            "roles",
            "What each role may do: `role: {subject: [actions]}`.",
            "`public` and `authenticated`, which may do nothing",
        ),
    )
    exported_types: Mapping[str, TypeExport] = field(
        default_factory=dict,
        metadata=_key(
            "export.types",
            "types",
            "What `quire export` asks of each type: `article: {populate: author}` ([more](static.md)).",
        ),
    )
    exported_queries: Mapping[str, QueryExport] = field(
        default_factory=dict,
        metadata=_key(
            "export.queries", "queries", "Further requests that it exports: `NAME: /api/articles?…`."
        ),
    )
    positions: Positions = field(default_factory=dict, compare=False, repr=False)


DEFAULTS = Settings()
# The key behind each field that has one.
FIELDS: Mapping[str, Key] = {f.name: f.metadata["key"] for f in fields(Settings) if "key" in f.metadata}
KEYS: Mapping[str, Key] = {key.name: key for key in FIELDS.values()}
