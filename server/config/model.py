"""The settings of a site, site.yaml. Every key is optional; an unknown one is refused by name.

Each key is declared once, as a field of Settings; docs/settings.md is made from KEYS."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import timedelta
from fnmatch import fnmatchcase
from typing import Any

from server.config.webhooks import Webhook
from server.formats.text_positions import Positions
from server.paths import SETTINGS
from server.problems import Problem
from server.schema.check import RESERVED

FILE = SETTINGS


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
class Preview:
    """Where the documents of a type are previewed: an address with {placeholders}.

    `unmarked` are the paths of attributes, `seo.canonical`, whose texts never get the marks of a preview.
    """

    url: str
    unmarked: frozenset[str] = frozenset()

    @property
    def origin(self) -> str:
        """The origin of its pages, `https://example.org`; "" where they are those of this server."""
        return "" if self.url.startswith("/") else "/".join(re.split("[/?#]", self.url)[:3]).lower()

    @property
    def placeholders(self) -> tuple[str, ...]:
        """The names in braces: attributes, and those of PREVIEW_NAMES."""
        return tuple(re.findall(r"\{([^{}]*)\}", self.url))


PREVIEW_NAMES = ("documentId", "locale", "status")


@dataclass(frozen=True, slots=True)
class SettingKey:
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


def _setting(default: object, name: str, holds: str, sentence: str, otherwise: str = "") -> Any:
    """A field of Settings and the key of site.yaml that sets it, whose parts follow the default."""
    key = {"key": SettingKey(name, holds, sentence, otherwise)}
    if isinstance(default, dict):  # Each Settings has its own.
        return field(default_factory=default.copy, metadata=key)
    return field(default=default, metadata=key)


@dataclass(frozen=True, slots=True)
class Settings:
    """site.yaml with its defaults filled in. `roles` maps a role to its permissions, `article.find`."""

    name: str = _setting("Quire", "name", "text", "What the site is called.")
    default_locale: str = _setting(
        "en",
        "locales.default",
        "locale",
        "The locale of files whose name has none.",
        "the first of `locales.available`, else `en`",
    )
    locales: tuple[str, ...] = _setting(
        ("en",),
        "locales.available",
        "locales",
        "Every locale that documents can have.",
        "`locales.default` alone",
    )
    page_size: int = _setting(
        25, "api.page_size.default", "count", "Documents on a page when the request does not say."
    )
    max_page_size: int = _setting(
        100, "api.page_size.max", "count", "The most documents on a page; larger requests get this many."
    )
    populate_with_pagination: bool = _setting(
        False,
        "api.populate_with_pagination",
        "choice",
        "Whether one request may populate and paginate: `reject` or `allow`.",
        "`reject`",
    )
    populate: Mapping[str, Any] = _setting(
        {},
        "api.populate",
        "populates",
        "What a read populates that does not say: `article: author` ([more](querying.md#by-default)).",
    )
    v4: bool = _setting(
        False,
        "api.format",
        "format",
        "The response format of requests that do not say: `v5`, or `v4` for clients of Strapi 4.",
        "`v5`",
    )
    upload_limit: int = _setting(
        200_000_000, "api.upload_limit", "size", "The largest upload, such as `50 MB`.", "`200 MB`"
    )
    limit_size: int = _setting(
        16_000_000, "api.limits.size", "size", "The largest answer to a read, before compression.", "`16 MB`"
    )
    limit_steps: int = _setting(
        1_000_000,
        "api.limits.steps",
        "count",
        "How often one request may look at a document ([more](reliability.md)).",
    )
    limit_time: timedelta = _setting(
        timedelta(seconds=2),
        "api.limits.time",
        "duration",
        "The processor time that one request may take, such as `10s`.",
        "`2s`",
    )
    limit_values: int = _setting(
        50_000,
        "api.limits.values",
        "count",
        "How many values one body may have ([more](reliability.md#what-one-write-may-cost)).",
    )
    cors: tuple[str, ...] = _setting(
        ("*",),
        "api.cors",
        "origins",
        "The origins whose pages may use the API, such as `https://example.org`; `*` is any.",
    )
    cache_tags: bool = _setting(
        False,
        "api.cache_tags",
        "flag",
        "Whether answers say in `Cache-Tag` what they were made of ([more](cache-tags.md)).",
    )
    trusted_proxies: tuple[str, ...] = _setting(
        (),
        "api.trusted_proxies",
        "networks",
        "The proxies, such as `127.0.0.1`, whose `X-Forwarded-For` and `X-Forwarded-Proto` are believed.",
        "none",
    )
    rate_limit: str = _setting("", "api.rate_limit", "rate", "Requests per client, such as `100 per minute`.")
    rate_store: str = _setting(
        "",
        "api.rate_store",
        "rate store",
        "Where machines count requests together: `redis://…`, `env:NAME` with it; `memory`: each by itself.",
        "PostgreSQL, where the accounts are there",
    )
    session: timedelta = _setting(
        timedelta(days=30), "auth.session", "duration", "How long a login lasts, such as `12h`.", "`30d`"
    )
    refresh_tokens: bool = _setting(
        False,
        "auth.refresh",
        "flag",
        "Whether a login gives a short-lived token and one that renews it ([more](access.md#sessions)).",
    )
    access_token: timedelta = _setting(
        timedelta(minutes=10),
        "auth.access_token",
        "duration",
        "With `auth.refresh`: how long the short-lived token lasts.",
        "`10m`",
    )
    idle_session: timedelta = _setting(
        timedelta(days=14),
        "auth.idle",
        "duration",
        "With `auth.refresh`: how long a session lasts that nobody refreshes.",
        "`14d`",
    )
    refresh_cookie: bool = _setting(
        False,
        "auth.cookie",
        "flag",
        "With `auth.refresh`: whether the refresh token is a cookie that scripts can't read.",
    )
    confirm_email: bool = _setting(
        False,
        "auth.confirm_email",
        "flag",
        "Whether a new user must confirm the e-mail address before the first login.",
    )
    auth_url: str = _setting(
        "",
        "auth.url",
        "text",
        "The address of the page that mails lead to, to set a password or confirm an address.",
    )
    mail_host: str = _setting(
        "", "mail.host", "text", "The SMTP server; where there is none, mails go to the log."
    )
    mail_port: int = _setting(25, "mail.port", "count", "Its port.")
    mail_user: str = _setting(
        "", "mail.user", "text", "The user to log in as; the password is in QUIRE_MAIL_PASSWORD."
    )
    mail_tls: bool = _setting(False, "mail.tls", "flag", "Whether to use STARTTLS.")
    mail_from: str = _setting("no-reply@localhost", "mail.from", "text", "The sender's address.")
    commit: timedelta | None = _setting(
        None,
        "git.commit",
        "commit",
        "Whether writes are committed: `off`, `each`, or so long after an author's last write, such as `30s`"
        " ([more](history.md#commits)).",
        "`off`; `each` with `git.push`",
    )
    committer: str = _setting(
        "Quire <quire@localhost>", "git.committer", "person", "Who makes these commits: `Name <e-mail>`."
    )
    remote: str = _setting(
        "",
        "git.remote",
        "remote",
        "The git remote that several machines share, by its name: `origin` ([more](machines.md)).",
        "none",
    )
    branch: str = _setting(
        "", "git.branch", "branch", "The branch there that is served.", "the one that is checked out"
    )
    follow: timedelta | None = _setting(
        None,
        "git.follow",
        "follow",
        "How often the remote is asked for new commits, such as `2s`, or `off`.",
        "`off`",
    )
    push: str = _setting(
        "",
        "git.push",
        "push",
        "Whether the remote gets each write `before` it is answered, soon `after`, or not: `off`"
        " ([more](machines.md#writing)).",
        "`off`",
    )
    media_store: str = _setting(
        "",
        "media.store",
        "bucket",
        "A bucket that media are kept in: `s3://BUCKET/PREFIX` ([more](media.md)).",
        "files in `content/uploads/`",
    )
    media_endpoint: str = _setting(
        "", "media.endpoint", "URL", "The server of the bucket.", "that of Amazon S3 in the region"
    )
    media_region: str = _setting("us-east-1", "media.region", "text", "The region of the bucket.")
    media_public_url: str = _setting(
        "",
        "media.public_url",
        "URL",
        "Where everybody can read the objects of the bucket, such as `https://media.example.org`.",
    )
    media_serve: str = _setting(
        "",
        "media.serve",
        "serve",
        "How `/uploads/…` answers with files of the bucket: `redirect`, `stream` or `sign`.",
        "`redirect` where `media.public_url` is set, else `stream`",
    )
    media_cache: int = _setting(
        1_000_000_000,
        "media.cache",
        "size",
        "How much of the bucket is kept on disk, for `stream`.",
        "`1 GB`",
    )
    events_bulk: int = _setting(
        1000,
        "events.bulk",
        "count",
        "Above this many documents that change at once, one event tells how many"
        " ([more](events.md#many-at-once)).",
    )
    events_keep: tuple[timedelta | None, int | None] = _setting(
        (timedelta(days=30), 100_000),
        "events.keep",
        "keep",
        "How long events are kept, such as `90d`, or how many, such as `500000`.",
        "`30d`, and 100,000 at most",
    )
    events_streams: int = _setting(
        2000,
        "events.streams",
        "count",
        "How many event streams may be open at a time, in all workers ([more](events.md#streams)).",
    )
    events_streams_per_client: int = _setting(
        500,
        "events.streams_per_client",
        "count",
        "How many of them one client may have, by its address ([more](events.md#streams)).",
    )
    ignored: Mapping[str, tuple[str, ...]] = _setting(
        {},
        "check.ignore",
        "rules",
        "Warnings that `quire check` leaves out: `rule: [paths]`, `*` for any text.",
    )
    accounts: str = _setting(
        "",
        "accounts",
        "url",
        "The accounts database; at `postgresql://…`, several machines share it, and the log of events.",
        "SQLite in `.quire/accounts.db`",
    )
    search_index: bool = _setting(
        True,
        "search.index",
        "flag",
        "Whether search keeps an index; without one, each search looks at all documents.",
    )
    search_weights: Mapping[str, float] = _setting(
        {},
        "search.weights",
        "weights",
        "What a word counts in an attribute: `title: 6`, `article.summary: 3`; 0 leaves it out.",
    )
    roles: Mapping[str, frozenset[str]] = _setting(
        {"public": frozenset(), "authenticated": frozenset()},
        "roles",
        "roles",
        "What each role may do: `role: {subject: [actions]}`.",
        "`public` and `authenticated`, which may do nothing",
    )
    exported_types: Mapping[str, TypeExport] = _setting(
        {},
        "export.types",
        "types",
        "What `quire export` asks of each type: `article: {populate: author}` ([more](static.md)).",
    )
    exported_queries: Mapping[str, QueryExport] = _setting(
        {}, "export.queries", "queries", "Further requests that it exports: `NAME: /api/articles?…`."
    )
    previews: Mapping[str, Preview] = _setting(
        {},
        "preview",
        "previews",
        "Where the studio shows documents of a type: `article: https://…?slug={slug}`"
        " ([more](preview.md#in-the-studio)).",
    )
    webhooks: tuple[Webhook, ...] = _setting(
        (),
        "webhooks",
        "webhooks",
        "Who is told of changes: a list of `{name, url, …}` ([more](webhooks.md)).",
    )
    webhooks_allow: tuple[str, ...] = _setting(
        (),
        "webhooks_allow",
        "hosts",
        "Hosts that webhooks may reach although their addresses are private: `127.0.0.1`, `build.internal`.",
    )
    positions: Positions = field(default_factory=dict, compare=False, repr=False)

    def ignores(self, problem: Problem) -> bool:
        """Whether `check.ignore` leaves a problem out, which can only be a warning."""
        patterns = self.ignored.get(problem.rule, ())
        return problem.severity == "warning" and any(fnmatchcase(problem.path, p) for p in patterns)


DEFAULTS = Settings()
# The key behind each field that has one.
FIELDS: Mapping[str, SettingKey] = {
    f.name: f.metadata["key"] for f in fields(Settings) if "key" in f.metadata
}
KEYS: Mapping[str, SettingKey] = {key.name: key for key in FIELDS.values()}


# --- actions --------------------------------------------------------------------------------------

# What may be granted, by subject; "" stands for every content type.
ACTIONS: Mapping[str, tuple[str, ...]] = {
    "": ("find", "findOne", "create", "update", "delete", "readDraft", "updateDraft"),
    "upload": ("upload", "find", "findOne", "destroy"),
    "user": ("me", "updateMe", "find", "findOne", "create", "update", "destroy", "count"),
    "auth": (
        "callback", "register", "changePassword", "forgotPassword", "resetPassword",
        "sendEmailConfirmation", "emailConfirmation", "connect",
        "refresh", "logout", "getSessions", "revokeSession",
    ),
    "role": ("find", "findOne"),
    "locale": ("find",),
    "history": ("read", "restore", "commit"),
    "metrics": ("read",),
    "branch": ("find", "create", "update", "delete", "merge"),
    "source": ("read", "write"),
    "problems": ("find", "fix"),
    "content-type": ("find", "findOne"),
}  # fmt: skip


def known_actions(subject: str) -> tuple[str, ...]:
    """What may be granted on a subject, and, where that can be a content type as well, on such a type."""
    own = ACTIONS.get(subject, ())
    return own if subject in RESERVED else tuple(dict.fromkeys((*own, *ACTIONS[""])))
