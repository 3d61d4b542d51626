"""site.yaml: what a site says of itself. Every key is optional; an unknown one is refused by name.

The table KEYS says what there is; docs/settings.md is checked against it.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from server.config.export import Export
from server.formats.positions import Positions

FILE = "site.yaml"
LOCALE = re.compile(r"[A-Za-z]{2,3}([-_][A-Za-z0-9]{2,8})*")

# Each key of site.yaml: its dotted path, what it holds, and a sentence.
KEYS: Mapping[str, tuple[str, str]] = {
    "name": ("text", "What the site is called."),
    "locales.default": ("locale", "The locale of files whose name has none."),
    "locales.available": ("locales", "Every locale that documents can have."),
    "api.page_size.default": ("count", "Documents on a page when the request does not say."),
    "api.page_size.max": ("count", "The most documents on a page; larger requests get this many."),
    "api.populate_with_pagination": (
        "choice",
        "`reject` (spec.md 4.4) or `allow` populate and pagination in one request.",
    ),
    "api.upload_limit": ("size", "The largest upload, such as `200 MB`."),
    "api.cors": ("texts", "The origins whose pages may use the API; `*` is any, without credentials."),
    "api.rate_limit": ("text", "Requests per client, such as `100 per minute`; none where it is not set."),
    "auth.session": ("text", "How long a login lasts: `30d`, `12h`."),
    "auth.confirm_email": (
        "flag",
        "Whether a new user must confirm the e-mail address before the first login.",
    ),
    "auth.url": (
        "text",
        "The address of the page that mails lead to, to set a password or confirm an address.",
    ),
    "mail.host": ("text", "The SMTP server; where there is none, mails go to the log."),
    "mail.port": ("count", "Its port."),
    "mail.user": ("text", "The user to log in as; the password is in QUIRE_MAIL_PASSWORD."),
    "mail.tls": ("flag", "Whether to use STARTTLS."),
    "mail.from": ("text", "The sender's address."),
    "check.ignore": ("rules", "Warnings that `quire check` leaves out: `rule: [paths]`, `*` for any text."),
    "accounts": ("url", "The accounts database, where it is not `.quire/accounts.db`."),
    "search.index": (
        "flag",
        "Whether search keeps an index; without one, each search looks at all documents.",
    ),
    "search.weights": (
        "weights",
        "What a word counts in an attribute: `title: 6`, `article.summary: 3`; 0 leaves it out of search.",
    ),
    "roles": ("roles", "What each role may do: `role: {subject: [actions]}`."),
    "export.types": ("types", "What `quire export` asks of each type: `article: {populate: author}`."),
    "export.queries": ("queries", "Further requests that it exports: `NAME: /api/articles?…`."),
}
ACTIONS: Mapping[str, tuple[str, ...]] = {
    "": ("find", "findOne", "create", "update", "delete", "readDraft"),
    "upload": ("upload", "find", "findOne", "destroy"),
    "user": ("me", "updateMe", "find", "findOne", "create", "update", "destroy", "count"),
    "auth": (
        "callback", "register", "changePassword", "forgotPassword", "resetPassword",
        "sendEmailConfirmation", "emailConfirmation", "connect",
    ),
    "role": ("find", "findOne"),
    "locale": ("find",),
    "content-type": ("find", "findOne"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Settings:
    """site.yaml with its defaults filled in. `roles` maps a role to its permissions, `article.find`."""

    name: str = "Quire"
    default_locale: str = "en"
    locales: tuple[str, ...] = ("en",)
    page_size: int = 25
    max_page_size: int = 100
    populate_with_pagination: bool = False
    accounts: str = ""
    upload_limit: int = 200_000_000
    cors: tuple[str, ...] = ("*",)
    rate_limit: str = ""
    session: str = "30d"
    confirm_email: bool = False
    auth_url: str = ""
    mail_host: str = ""
    mail_port: int = 25
    mail_user: str = ""
    mail_tls: bool = False
    mail_from: str = "no-reply@localhost"
    search_index: bool = True
    search_weights: Mapping[str, float] = field(default_factory=dict)
    roles: Mapping[str, frozenset[str]] = None  # type: ignore[assignment]
    ignored: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    lines: Positions = field(default_factory=dict, compare=False, repr=False)
    export: Export = field(default_factory=Export)

    def __post_init__(self) -> None:
        roles = {"public": frozenset[str](), "authenticated": frozenset[str](), **(self.roles or {})}
        object.__setattr__(self, "roles", roles)
