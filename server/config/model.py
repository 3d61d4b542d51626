"""Dataclasses for the sections of site.yaml."""
# docs/settings.md is generated from KEYS.

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from datetime import timedelta
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import reduce
from typing import Any

from server.config.llms import LlmsSettings
from server.config.mcp import McpSettings
from server.config.media import MediaSettings
from server.config.public_site import Feed, PublicUrl
from server.config.setting import SettingKey, setting
from server.config.webhooks import Webhook
from server.formats.text_positions import Positions
from server.paths import SETTINGS
from server.problems import CONTENT_RULE, RULES, Problem, RuleSeverity
from server.schema.check import RESERVED_IDS

FILE = SETTINGS


class ResponseFormat(StrEnum):
    """Structure of API responses: as in Strapi 5 (`v5`), or as in Strapi 4 (`v4`)."""

    V5 = "v5"
    V4 = "v4"


class TimestampSource(StrEnum):
    """Source of documents' timestamps: the files or the git history."""

    FILE = "file"
    GIT = "git"


@dataclass(frozen=True, slots=True)
class TypeExport:
    """Export settings for a content type. `parameters` contains query parameters as nested dictionaries."""

    parameters: Mapping[str, Any] = field(default_factory=dict)
    line: int | None = None


@dataclass(frozen=True, slots=True)
class QueryExport:
    """An additional API request whose response is included in the export."""

    request: str
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Preview:
    """Settings for the preview of a content type.

    - `url`: the URL of the preview, with placeholders such as `{locale}`.
    - `unmarked`: the paths of attributes whose strings get no invisible source maps in previews.
    """

    # In previews, strings contain invisible source maps, except the strings at the paths in `unmarked`.

    url: str
    unmarked: frozenset[str] = frozenset()

    @property
    def origin(self) -> str:
        # "" if the page is on this server.
        return "" if self.url.startswith("/") else "/".join(re.split("[/?#]", self.url)[:3]).lower()

    @property
    def placeholders(self) -> tuple[str, ...]:
        return tuple(re.findall(r"\{([^{}]*)\}", self.url))


PREVIEW_NAMES = ("documentId", "locale", "status", "branch")


@dataclass(frozen=True, slots=True)
class LocaleSettings:
    """A site's locales."""

    default: str = setting(
        "en",
        "locale",
        "The locale of files without a locale in their name.",
        "the first of `locales.available`, else `en`",
        editable=True,
    )
    available: tuple[str, ...] = setting(
        ("en",), "locales", "The locales that documents can have.", "only `locales.default`", editable=True
    )


@dataclass(frozen=True, slots=True)
class PageSizeSettings:
    """Default and maximum number of documents per page."""

    default: int = setting(
        25,
        "count",
        "The number of documents on a page if the request does not set it.",
        editable=True,
        bounds=("1", "10000"),
    )
    max: int = setting(
        100,
        "count",
        "The maximum number of documents on a page. A request for more gets this number.",
        editable=True,
        bounds=("1", "10000"),
    )


@dataclass(frozen=True, slots=True)
class LimitSettings:
    """Limits on a single API request."""

    size: int = setting(
        16_000_000,
        "size",
        "The maximum size of the response to a read, before compression.",
        "`16 MB`",
        editable=True,
        bounds=("1 MB", "1 GB"),
    )
    steps: int = setting(
        1_000_000,
        "count",
        "The maximum number of documents that one request can read. A document that is read twice"
        " is counted twice ([more](reliability.md)).",
        editable=True,
        bounds=("10000", "1000000000"),
    )
    time: timedelta = setting(
        timedelta(seconds=2),
        "duration",
        "The maximum processor time for one request, such as `10s`. The preparation of a write can take"
        " four times as long ([more](reliability.md#write-limits)).",
        "`2s`",
        editable=True,
        bounds=("1s", "5m"),
    )
    values: int = setting(
        50_000,
        "count",
        "The maximum number of values in a request body ([more](reliability.md#write-limits)).",
        editable=True,
        bounds=("1000", "10000000"),
    )


@dataclass(frozen=True, slots=True)
class ApiSettings:
    """Settings for the REST API."""

    page_size: PageSizeSettings = PageSizeSettings()
    populate_with_pagination: bool = setting(
        False,
        "choice",
        "Whether a request can contain both `populate` and `pagination`: `reject` or `allow`.",
        "`reject`",
        editable=True,
    )
    populate: Mapping[str, Any] = setting(
        {},
        "populates",
        "What a read populates if it does not contain `populate`, such as `article: author`"
        " ([more](querying.md#default-populate)).",
    )
    strict_params: bool = setting(
        False,
        "flag",
        "Whether an unknown query parameter in a request to the content API is an error.",
        editable=True,
    )
    format: ResponseFormat = setting(
        ResponseFormat.V5,
        "format",
        "The default response format: `v5`, or `v4` for clients of Strapi 4.",
        "`v5`",
        editable=True,
    )
    upload_limit: int = setting(
        200_000_000,
        "size",
        "The maximum size of an upload, such as `50 MB`.",
        "`200 MB`",
        editable=True,
        bounds=("10 kB", "1000 GB"),
    )
    limits: LimitSettings = LimitSettings()
    cors: tuple[str, ...] = setting(
        ("*",),
        "origins",
        "The origins whose pages can use the API, such as `https://example.org`. `*` allows all"
        " origins ([more](frontends.md#cors-requests-from-other-origins)).",
    )
    cache_tags: bool = setting(
        False,
        "flag",
        "Whether responses list the documents that they depend on, in the header `Cache-Tag`"
        " ([more](cache-tags.md)).",
        editable=True,
    )
    trusted_proxies: tuple[str, ...] = setting(
        (),
        "networks",
        "The addresses of proxies, such as `127.0.0.1`. In requests from these addresses,"
        " `X-Forwarded-For` and `X-Forwarded-Proto` are trusted.",
        "none",
    )
    rate_limit: str = setting(
        "",
        "rate",
        "The maximum number of requests from one client, such as `100 per minute`.",
        editable=True,
        restart=True,
    )
    rate_store: str = setting(
        "",
        "rate store",
        "The database in which several machines count requests: `redis://…` or `env:NAME`. With"
        " `memory`, each machine counts separately.",
        "PostgreSQL, if it has the accounts",
        secret=True,
        restart=True,
    )


@dataclass(frozen=True, slots=True)
class AuthSettings:
    """Settings for sign-in and sessions."""

    session: timedelta = setting(
        timedelta(days=30),
        "duration",
        "How long a login lasts, such as `12h`.",
        "`30d`",
        editable=True,
        bounds=("5m", "10y"),
        restart=True,
    )
    refresh: bool = setting(
        False,
        "flag",
        "Whether a login returns a short-lived token and a refresh token ([more](access.md#sessions)).",
    )
    access_token: timedelta = setting(
        timedelta(minutes=10),
        "duration",
        "With `auth.refresh`: how long the short-lived token lasts.",
        "`10m`",
    )
    idle: timedelta = setting(
        timedelta(days=14),
        "duration",
        "With `auth.refresh`: how long a session lasts without a refresh.",
        "`14d`",
        editable=True,
        bounds=("5m", "10y"),
    )
    cookie: bool = setting(
        False,
        "flag",
        "With `auth.refresh`: whether the refresh token is sent as a cookie that scripts can't read.",
    )
    confirm_email: bool = setting(
        False, "flag", "Whether a new user must confirm the email address before the first login."
    )
    url: str = setting(
        "", "text", "The page to which emails link, for setting a password or confirming an address."
    )


@dataclass(frozen=True, slots=True)
class MailSettings:
    """Settings for sending emails."""

    host: str = setting("", "text", "The SMTP server. If it is not set, emails are written to the log.")
    port: int = setting(25, "count", "The port of the SMTP server.")
    user: str = setting(
        "",
        "text",
        "The user name for the SMTP server. Set the password in `BIFOLIO_MAIL_PASSWORD`.",
        secret=True,
    )
    tls: bool = setting(False, "flag", "Whether to use STARTTLS.")
    sender: str = setting("no-reply@localhost", "text", "The sender's address in emails.", key="from")


@dataclass(frozen=True, slots=True)
class GitSettings:
    """Settings for automatic commits and a git remote."""

    commit: timedelta | None = setting(
        None,
        "commit",
        "When writes are committed: `off` (never), `each` (every write), or a time such as `30s`,"
        " when the author has written nothing for that time"
        " ([more](history.md#commit-each-write)).",
        "`off`; `each` with `git.push`",
    )
    committer: str = setting(
        "Bifolio <bifolio@localhost>", "person", "The committer of these commits: `Name <e-mail>`."
    )
    remote: str = setting(
        "",
        "remote",
        "The name of the git remote that several machines share: `origin` ([more](machines.md)).",
        "none",
    )
    branch: str = setting(
        "", "branch", "The branch on the remote that the site serves.", "the one that is checked out"
    )
    follow: timedelta | None = setting(
        None,
        "follow",
        "How often new commits are fetched from the remote: a time such as `2s`, or `off`.",
        "`off`",
    )
    push: str = setting(
        "",
        "push",
        "When writes are pushed to the remote: `before` the response is sent, `after` that, or"
        " `off` (never) ([more](machines.md#writing)).",
        "`off`",
    )


@dataclass(frozen=True, slots=True)
class BranchSettings:
    """Limit on the number of git branches."""

    max: int = setting(
        500,
        "count",
        "The maximum number of branches. If there are as many, `POST /branches` is rejected"
        " ([more](branches.md)).",
        editable=True,
        bounds=("1", "100000"),
    )


@dataclass(frozen=True, slots=True)
class EventSettings:
    """Settings for events and event streams."""

    bulk: int = setting(
        1000,
        "count",
        "If more documents than this change at once, a single event with their number is recorded"
        " ([more](events.md#bulk-changes)).",
        editable=True,
        bounds=("10", "1000000"),
    )
    keep: tuple[timedelta | None, int | None] = setting(
        (timedelta(days=30), 100_000),
        "keep",
        "How long events are kept: an age such as `90d`, or a number of events such as `500000`.",
        "`30d`, and at most 100,000 events",
        editable=True,
    )
    streams: int = setting(
        2000,
        "count",
        "The maximum number of open event streams, for all workers together"
        " ([more](events.md#event-streams)).",
        editable=True,
        bounds=("10", "1000000"),
    )
    streams_per_client: int = setting(
        500,
        "count",
        "The maximum number of open event streams from one IP address ([more](events.md#event-streams)).",
        editable=True,
        bounds=("5", "1000000"),
    )


@dataclass(frozen=True, slots=True)
class CheckSettings:
    """Settings for `bifolio check`."""

    ignore: Mapping[str, tuple[str, ...]] = setting(
        {}, "ignored", "Warnings that `bifolio check` ignores: `rule: [paths]`, where `*` matches any text."
    )
    rules: Mapping[str, RuleSeverity] = setting(
        {},
        "levels",
        "The levels of [rules](check.md#rules): `rule: off`, `rule: warning` or `rule: error`.",
        "the default of each rule",
    )


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """Settings for ranked search."""

    index: bool = setting(
        True,
        "flag",
        "Whether full-text search uses an index. Without an index, each search reads all documents.",
    )
    weights: Mapping[str, float] = setting(
        {},
        "weights",
        "The weight of matches in an attribute, such as `title: 6` or `article.summary: 3`. With"
        " 0, the attribute is not searched.",
    )


@dataclass(frozen=True, slots=True)
class ExportSettings:
    """Settings for `bifolio export`."""

    types: Mapping[str, TypeExport] = setting(
        {},
        "types",
        "The query parameters that `bifolio export` uses for a type: `article: {populate:"
        " author}` ([more](static.md)).",
    )
    queries: Mapping[str, QueryExport] = setting(
        {}, "queries", "Additional requests whose responses are exported: `NAME: /api/articles?…`."
    )
    redirects: tuple[str, ...] = setting(
        (),
        "redirect formats",
        "The formats in which `bifolio export` writes redirects, such as `netlify` for the file `_redirects`"
        " ([more](redirects.md#in-a-static-export)).",
    )


@dataclass(frozen=True, slots=True)
class RedirectSettings:
    """Settings for redirects."""

    aliases_from_root: bool = setting(
        False,
        "alias base",
        "What an alias such as `old-name` is relative to: the `folder` of the document's URL, as in Hugo, or"
        " the `root` of the website, as in Zola ([more](redirects.md#where-redirects-come-from)).",
        "`folder`",
        key="aliases",
    )


@dataclass(frozen=True, slots=True)
class Settings:
    """All of a site's settings, including defaults."""

    name: str = setting("Bifolio", "text", "The name of the site.", editable=True)
    public_url: str = setting(
        "", "URL", "The server's URL in links, as in invitations ([more](deployment.md#nginx-in-front))."
    )
    locales: LocaleSettings = LocaleSettings()
    api: ApiSettings = ApiSettings()
    auth: AuthSettings = AuthSettings()
    mail: MailSettings = MailSettings()
    git: GitSettings = GitSettings()
    branches: BranchSettings = BranchSettings()
    media: MediaSettings = MediaSettings()
    events: EventSettings = EventSettings()
    check: CheckSettings = CheckSettings()
    mcp: McpSettings = McpSettings()
    accounts: str = setting(
        "",
        "url",
        "The accounts database. With `postgresql://…`, several machines share the accounts and"
        " the event log ([more](access.md#accounts-in-postgresql)).",
        "SQLite in `.bifolio/accounts.db`",
        secret=True,
        restart=True,
    )
    search: SearchSettings = SearchSettings()
    timestamps: TimestampSource = setting(
        TimestampSource.FILE,
        "timestamps",
        "Whether the times of writes are stored in the `file`, or only in `git`"
        " ([more](files.md#timestamps)).",
        "`file`",
    )
    roles: Mapping[str, frozenset[str]] = setting(
        {"public": frozenset(), "authenticated": frozenset()},
        "roles",
        "The permissions of each role: `role: {subject: [actions]}`.",
        "`public` and `authenticated`, without permissions",
    )
    export: ExportSettings = ExportSettings()
    redirects: RedirectSettings = RedirectSettings()
    preview: Mapping[str, Preview] = setting(
        {},
        "previews",
        "The preview URL for documents of a type: `article: https://…?slug={slug}`"
        " ([more](preview.md#preview-in-the-studio)).",
    )
    urls: Mapping[str, PublicUrl] = setting(
        {},
        "urls",
        "The public URL of the documents of a type: `article: https://…/{locale}/{slug}`"
        " ([more](feeds.md#the-public-urls-of-documents)).",
    )
    feeds: Mapping[str, Feed] = setting(
        {},
        "feeds",
        "The feeds at `/feeds/NAME.rss`, `.atom` and `.json`: `NAME: {type: article}`"
        " ([more](feeds.md#feeds)).",
    )
    llms: LlmsSettings = LlmsSettings()
    webhooks: tuple[Webhook, ...] = setting(
        (),
        "webhooks",
        "The receivers of change notifications: a list of `{name, url, …}` ([more](webhooks.md)).",
        secret=True,
    )
    webhooks_allow: tuple[str, ...] = setting(
        (),
        "hosts",
        "Hosts with private addresses to which webhooks can connect, such as `build.internal` or"
        " `127.0.0.1:8080`.",
    )
    positions: Positions = field(default_factory=dict, compare=False, repr=False)

    def ignores(self, problem: Problem) -> bool:
        # Errors are never suppressed, except for errors from rules in schemas.
        if problem.severity != "warning" and problem.rule != CONTENT_RULE:
            return False
        patterns = self.check.ignore.get(problem.rule, ())
        is_off = self.check.rules.get(problem.rule) == "off"
        return is_off or any(fnmatchcase(problem.path, p) for p in patterns)

    def severity_of(self, rule: str) -> RuleSeverity:
        return self.check.rules.get(rule, RULES[rule].default_severity)


def _keys(section: type, names: tuple[str, ...], attributes: tuple[str, ...]) -> Iterator[SettingKey]:
    for declared in fields(section):
        here = (*attributes, declared.name)
        if key := declared.metadata.get("key"):
            yield replace(key, name=".".join((*names, key.name or declared.name)), attributes=here)
        elif is_dataclass(declared.default):
            yield from _keys(type(declared.default), (*names, declared.name), here)


DEFAULTS = Settings()
KEYS: Mapping[str, SettingKey] = {key.name: key for key in _keys(Settings, (), ())}


def value_of(settings: Settings, key: str) -> Any:
    return reduce(getattr, KEYS[key].attributes, settings)


def with_values(settings: Settings, values: Mapping[str, Any]) -> Settings:
    for key, value in values.items():
        settings = _replace(settings, KEYS[key].attributes, value)
    return settings


def _replace(section: Any, attributes: tuple[str, ...], value: object) -> Any:
    first, *rest = attributes
    inner = _replace(getattr(section, first), tuple(rest), value) if rest else value
    return replace(section, **{first: inner})


# --- actions --------------------------------------------------------------------------------------

# The actions that can be permitted, by subject. "" stands for any content type.
ACTIONS: Mapping[str, tuple[str, ...]] = {
    "": ("find", "findOne", "create", "update", "delete", "readDraft", "updateDraft"),
    "upload": ("upload", "find", "findOne", "destroy"),
    "user": ("me", "updateMe", "find", "findOne", "create", "update", "destroy", "count"),
    "auth": (
        "callback", "register", "changePassword", "forgotPassword", "resetPassword",
        "sendEmailConfirmation", "emailConfirmation", "connect",
        "refresh", "logout", "getSessions", "revokeSession",
    ),
    "role": ("find", "findOne", "update"),
    "locale": ("find",),
    "history": ("read", "restore", "commit"),
    "metrics": ("read",),
    "branch": ("find", "create", "update", "delete", "merge"),
    "source": ("read", "write"),
    "problems": ("find", "fix"),
    "redirects": ("read",),
    "content-type": ("find", "findOne", "write"),
    "settings": ("read", "write"),
    "token": ("read", "create", "revoke"),
    "webhook": ("read", "write", "send", "rotate"),
}  # fmt: skip


def known_actions(subject: str) -> tuple[str, ...]:
    own = ACTIONS.get(subject, ())
    return own if subject in RESERVED_IDS else tuple(dict.fromkeys((*own, *ACTIONS[""])))
