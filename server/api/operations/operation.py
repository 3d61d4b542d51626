"""Data classes for the table of operations."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from server.api.operations.json_schema import READ, JsonSchema
from server.api.operations.permission import Permission
from server.api.serving.bodies import SMALL_BODY_BYTES
from server.auth.permissions import Actor, may_branch, may_source
from server.config.model import Settings
from server.schema.model import Schema, Type

# Regular expressions for path variables. They exclude words such as `count` that are part of another
# operation's path in the same position.
CONVERTERS: Mapping[str, str] = {
    "": r"[^/]+",
    "path": r"[^/].*?",
    "user": r"(?!(?:me|count)/?$)[^/]+",
    "file": r"(?!page/?$)[^/]+",
}
# Names of handler arguments for path variables, if they differ from the variable's name in snake case.
_ARGUMENTS = {"type": "api_id", "pluralApiId": "api_id", "singularApiId": "api_id", "id": "key"}
_VARIABLE = re.compile(r"\{(\w+)(?::(\w+))?\}")
_CAPITAL = re.compile(r"(?=[A-Z])")
# Whether a write becomes a git commit. "maybe": only if `git.commit` is set or the write is to a branch.
Commits = Literal["never", "maybe", "always"]
# Who may make dry runs of a write. "source": only callers with the permission `source.read`, because the
# response contains lines of files. "writer": every caller who may make the write.
DryRun = Literal["", "source", "writer"]


@dataclass(frozen=True, slots=True)
class Tag:
    """Heading for a group of operations in the OpenAPI document."""

    name: str
    description: str


@dataclass(frozen=True, slots=True)
class TypeView:
    """A content type as the OpenAPI document describes it.

    - `name`: the name of its JSON Schema.
    - `drafts_only`: whether the caller may use the operation only on drafts.
    """

    type: Type
    name: str
    examples: Mapping[str, Any]
    drafts_only: bool = False


@dataclass(frozen=True, slots=True)
class Audience:
    """The caller and the content type for which operations are described."""

    actor: Actor
    public: Actor
    schema: Schema
    settings: Settings
    view: TypeView | None = None

    @property
    def is_rate_limited(self) -> bool:
        return bool(self.settings.api.rate_limit)

    @property
    def may_branch(self) -> bool:
        return may_branch(self.actor, "update", self.schema)

    def may_dry_run(self, dry_run: DryRun) -> bool:
        return dry_run == "writer" or (dry_run == "source" and may_source(self.actor, "read", self.schema))


@dataclass(frozen=True, slots=True)
class Docs:
    """Handwritten part of an operation's OpenAPI definition."""

    summary: str
    responses: Mapping[int, JsonSchema]
    parameters: Sequence[JsonSchema] = ()
    body: JsonSchema | None = None
    errors: Sequence[int] = READ


@dataclass(frozen=True, slots=True)
class Operation:
    """A row in the table of operations.

    - `path`: the path as in OpenAPI, except that a variable can name a converter, as in `{id:file}`.
    - `permission`: the permission that is always required. A handler can require further permissions.
    - `docs`: the OpenAPI definition, or a string that explains why there is none.
    - `max_body`: the maximum size of the request body in bytes, or None for the site's limit on uploads.
    - `runs_inline`: whether `entrance` handles the request itself, without Flask or a thread pool.
    - `waits`: whether the request might wait a long time for another process. If so, it runs in a separate
      thread pool.
    - `branch`: whether the operation supports the query parameter `branch`.
    - `dry_run`: who may use the query parameter `dryRun`, or "" if the operation does not support it.
    - `branch_only`: whether tokens that may write only to branches can use the operation without the
      parameter `branch`.
    - `commits`: whether a write becomes a git commit.
    - `slash`: whether the path can end with a slash.
    - `always_fails`: whether the response is always an error that says what to do instead. The header `Allow`
      omits such operations.
    - `kind`: the kind of content type that the operation is for, or "" for both kinds.
    """

    id: str
    method: str
    path: str
    permission: Permission
    docs: Docs | Callable[[Audience], Docs] | str
    max_body: int | None = SMALL_BODY_BYTES
    runs_inline: bool = False
    waits: bool = False
    branch: bool = False
    dry_run: DryRun = ""
    branch_only: bool = False
    commits: Commits = "never"
    slash: bool = True
    always_fails: bool = False
    kind: str = ""

    @property
    def rule(self) -> str:
        return _VARIABLE.sub(_as_rule, self.path)

    @property
    def described_path(self) -> str:
        return _VARIABLE.sub(r"{\1}", self.path)

    def matches(self, path: str) -> bool:
        return _pattern(self.path, self.slash).fullmatch(path) is not None


@dataclass(frozen=True, slots=True)
class Area:
    """Operations whose paths begin with the same prefixes.

    Unknown paths with one of these prefixes also belong to the area.

    - `parts`: the prefixes. Each is one path segment, or `api/` and another segment. If a prefix ends with a
      hyphen, any text can follow in the same segment.
    - `takes_at`: whether reads support the parameter `at`, which selects a past commit.
    - `varies_by_commit`: whether responses have a `Bifolio-Commit` header.
    - `uses_current_settings`: whether a response for a past commit depends on current settings, so it is not
      immutable.
    - `ignores_served_commit`: whether operations use the current files even if the server serves a past
      commit.
    - `may_query_accounts`: whether even a request without credentials might wait for the accounts database.
    - `writes_site`: whether writes change the site's files, so they fail if the server serves a past commit.
    """

    name: str
    parts: tuple[str, ...]
    operations: tuple[Operation, ...]
    tag: Tag | None = None
    takes_at: bool = False
    varies_by_commit: bool = False
    uses_current_settings: bool = False
    ignores_served_commit: bool = False
    may_query_accounts: bool = False
    writes_site: bool = True


# The cache saves 12 of the 34 µs between receiving a write's headers and receiving its body.
@lru_cache(maxsize=512)
def _pattern(path: str, slash: bool) -> re.Pattern[str]:
    parts = _VARIABLE.split(path)
    texts = [re.escape(text) for text in parts[::3]]
    variables = [CONVERTERS[converter or ""] for converter in parts[2::3]]
    joined = "".join(text + variable for text, variable in zip(texts, [*variables, ""], strict=True))
    return re.compile(joined + "/?" * slash, re.DOTALL)


def _as_rule(match: re.Match[str]) -> str:
    name, converter = match.groups()
    argument = _ARGUMENTS.get(name) or _CAPITAL.sub("_", name).lower()
    return f"<{converter}:{argument}>" if converter else f"<{argument}>"
