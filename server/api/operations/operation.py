"""Data classes for the table of operations: operations, and areas, which are groups of operations."""

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

# For each converter, the regular expression that a path variable must match. It excludes words such as
# `count`, because a different operation has this word at the same place in its path.
CONVERTERS: Mapping[str, str] = {
    "": r"[^/]+",
    "path": r"[^/].*?",
    "user": r"(?!(?:me|count)/?$)[^/]+",
    "file": r"(?!page/?$)[^/]+",
}
# For these path variables, the names of the handlers' arguments. For any other variable, the argument's name
# is the variable's name in snake case.
_ARGUMENTS = {"type": "api_id", "pluralApiId": "api_id", "singularApiId": "api_id", "id": "key"}
_VARIABLE = re.compile(r"\{(\w+)(?::(\w+))?\}")
_CAPITAL = re.compile(r"(?=[A-Z])")
# Whether a write becomes a git commit. "maybe": only if `git.commit` is set, or if the write is to a branch.
Commits = Literal["never", "maybe", "always"]


@dataclass(frozen=True, slots=True)
class Tag:
    """A heading in the OpenAPI document for a group of operations."""

    name: str
    description: str


@dataclass(frozen=True, slots=True)
class TypeView:
    """A content type, as described in the OpenAPI document for one caller. `name` is the name of the type's
    JSON Schema. `examples` contains the examples by name. `drafts_only` is True if the caller may use the
    operation only on drafts.
    """

    type: Type
    name: str
    examples: Mapping[str, Any]
    drafts_only: bool = False


@dataclass(frozen=True, slots=True)
class Audience:
    """The caller for whom operations are described in the OpenAPI document. `public` is the actor for
    requests without credentials.

    `view` is the content type on which the operations work. It is None for operations that are not on a
    content type.
    """

    actor: Actor
    public: Actor
    schema: Schema
    settings: Settings
    view: TypeView | None = None

    @property
    def is_rate_limited(self) -> bool:
        """Whether the site has a rate limit, so that any response can have the status 429."""
        return bool(self.settings.api.rate_limit)

    @property
    def may_branch(self) -> bool:
        """Whether the caller may write to branches other than the served branch."""
        return may_branch(self.actor, "update", self.schema)

    @property
    def may_dry_run(self) -> bool:
        """Whether the caller may request dry runs. Dry runs reveal file paths, so the caller needs the
        permission `source.read`.
        """
        return may_source(self.actor, "read", self.schema)


@dataclass(frozen=True, slots=True)
class Docs:
    """The OpenAPI description of an operation. It does not contain what can be derived from the operation's
    other columns in the table.
    """

    summary: str
    answers: Mapping[int, JsonSchema]
    parameters: Sequence[JsonSchema] = ()
    body: JsonSchema | None = None
    errors: Sequence[int] = READ


@dataclass(frozen=True, slots=True)
class Operation:
    """One HTTP method on a path, as a row in the table of operations.

    - `path`: the path, with variables in OpenAPI's syntax. The name of a variable can be followed by a colon
      and the name of a converter (CONVERTERS).
    - `permission`: the minimum permission that the caller needs. The handler may require more.
    - `docs`: the OpenAPI description. If it is a string, the operation is not part of the OpenAPI document,
      and the string explains why.
    - `max_body`: the size limit for request bodies in bytes, or None for the upload limit. If the caller
      lacks the permission, the limit is always SMALL_BODY_BYTES.
    - `runs_inline`: whether the module `entrance` handles the operation itself, without a Flask handler or a
      thread pool
    - `waits`: whether the operation may wait a long time for another process. If so, it runs in a separate
      thread pool.
    - `branch`, `dry_run`: whether the operation supports the parameters `branch` and `dryRun`
    - `slash`: whether the path may end with a slash
    - `always_fails`: whether all responses are errors that explain what to do instead. If so, the `Allow`
      header does not list the method.
    - `kind`: the kind of content types (collection types or single types) to which the operation applies
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
    commits: Commits = "never"
    slash: bool = True
    always_fails: bool = False
    kind: str = ""

    @property
    def rule(self) -> str:
        """The path as a URL rule for Flask."""
        return _VARIABLE.sub(_as_rule, self.path)

    @property
    def described_path(self) -> str:
        """The path in OpenAPI's syntax. In operations on content, a variable represents the content type."""
        return _VARIABLE.sub(r"{\1}", self.path)

    def matches(self, path: str) -> bool:
        """Whether a path matches this operation's path."""
        return _pattern(self.path, self.slash).fullmatch(path) is not None


@dataclass(frozen=True, slots=True)
class Area:
    """A group of operations whose paths begin with the same prefix. Unknown paths with this prefix are also
    assigned to this area.

    - `name`: the name of the area in metrics
    - `parts`: the prefixes of the paths in this area. A prefix is the first segment of a path, or `api/` and
      the second segment. If a prefix ends with a hyphen, the first segment begins with it.
    - `takes_at`: whether reads support the parameter `at`, which selects a past commit
    - `varies_by_commit`: whether responses depend on the served commit. If so, they contain the header
      `Bifolio-Commit`.
    - `uses_current_settings`: whether responses that read a past commit also depend on the current settings.
      If so, they are never marked as immutable.
    - `ignores_served_commit`: whether operations always use the repository's current state, even if the
      server serves a past commit
    - `may_query_accounts`: whether requests may have to wait for the accounts database, even without
      credentials
    - `writes_site`: whether writes change files. If so, a server for a past commit rejects these writes.
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


def _as_rule(found: re.Match[str]) -> str:
    name, converter = found.groups()
    argument = _ARGUMENTS.get(name) or _CAPITAL.sub("_", name).lower()
    return f"<{converter}:{argument}>" if converter else f"<{argument}>"
