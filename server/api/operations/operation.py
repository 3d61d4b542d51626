"""Data classes for the table of operations: operations, and the areas that group them."""

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
# Names of handler arguments for path variables, where they differ from the variable's name in snake case.
_ARGUMENTS = {"type": "api_id", "pluralApiId": "api_id", "singularApiId": "api_id", "id": "key"}
_VARIABLE = re.compile(r"\{(\w+)(?::(\w+))?\}")
_CAPITAL = re.compile(r"(?=[A-Z])")
# Whether a write becomes a git commit. "maybe": only if `git.commit` is set or the write is to a branch.
Commits = Literal["never", "maybe", "always"]


@dataclass(frozen=True, slots=True)
class Tag:
    """Heading for a group of operations in the OpenAPI document."""

    name: str
    description: str


@dataclass(frozen=True, slots=True)
class TypeView:
    """A content type as one caller sees it in the OpenAPI document.

    - `name`: the name of the content type's JSON Schema
    - `examples`: example documents, as `example_documents` returns them
    - `drafts_only`: whether the caller may use the operation being described only on drafts
    """

    type: Type
    name: str
    examples: Mapping[str, Any]
    drafts_only: bool = False


@dataclass(frozen=True, slots=True)
class Audience:
    """The caller for whom an OpenAPI document is made, and the content type being described, if any."""

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

    @property
    def may_dry_run(self) -> bool:
        """Return whether dry runs are allowed. Dry runs reveal file paths, so they require `source.read`."""
        return may_source(self.actor, "read", self.schema)


@dataclass(frozen=True, slots=True)
class Docs:
    """The handwritten part of an operation's OpenAPI description."""

    summary: str
    responses: Mapping[int, JsonSchema]
    parameters: Sequence[JsonSchema] = ()
    body: JsonSchema | None = None
    errors: Sequence[int] = READ


@dataclass(frozen=True, slots=True)
class Operation:
    """An HTTP method on a path: one row in the table of operations.

    - `path`: in OpenAPI syntax, except that a colon and a converter (CONVERTERS) can follow a variable
    - `permission`: the permission that is always required; handlers can require more
    - `docs`: the OpenAPI description, or the reason why there is none
    - `max_body`: the maximum size of a request body in bytes, or None for the upload limit (callers without
      permission can send at most SMALL_BODY_BYTES)
    - `runs_inline`: whether `entrance` handles the operation, without Flask or a thread pool
    - `waits`: whether the operation might wait a long time for another process, and runs in a separate
      thread pool
    - `branch`, `dry_run`: whether the operation supports the `branch` or `dryRun` query parameter
    - `branch_only`: whether tokens that may write only to branches can use the operation, although it has
      no `branch` parameter
    - `commits`: whether a write becomes a git commit
    - `slash`: whether the path can end with a slash
    - `always_fails`: whether the operation only returns an error with advice, and is not listed in `Allow`
    - `kind`: the kind of content type that the operation applies to, or "" for both kinds
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
    dry_run: bool = False
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
    """Group of operations under common path prefixes. Unknown paths with these prefixes also belong to it.

    - `name`: the area's name in metrics
    - `parts`: the path prefixes, each of which is one segment, or `api/` and another segment; a final
      hyphen matches any continuation
    - `takes_at`: whether reads support the `at` parameter, which selects a past commit
    - `varies_by_commit`: whether responses depend on the served commit, and have a `Bifolio-Commit` header
    - `uses_current_settings`: whether responses for past commits depend on current settings, and therefore
      are never immutable
    - `ignores_served_commit`: whether the operations use the current state of the repository even if the
      server serves a past commit
    - `may_query_accounts`: whether even requests without credentials might wait for the accounts database
    - `writes_site`: whether writes change the site's files; if so, a server that serves a past commit rejects
      the writes
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
