"""Data classes for the table of operations: the rows, and the areas that contain them."""

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

# Regular expressions for path variables, by converter. They exclude words that other paths use.
CONVERTERS: Mapping[str, str] = {
    "": r"[^/]+",
    "path": r"[^/].*?",
    "user": r"(?!(?:me|count)/?$)[^/]+",
    "file": r"(?!page/?$)[^/]+",
}
# Handlers' argument names, for variables whose argument is not just the name in snake case.
_ARGUMENTS = {"type": "api_id", "pluralApiId": "api_id", "singularApiId": "api_id", "id": "key"}
_VARIABLE = re.compile(r"\{(\w+)(?::(\w+))?\}")
_CAPITAL = re.compile(r"(?=[A-Z])")
# Whether a write becomes a commit. "maybe": only if `git.commit` is on or the write is to a branch.
Commits = Literal["never", "maybe", "always"]


@dataclass(frozen=True, slots=True)
class Tag:
    """A heading for a group of operations in the OpenAPI document."""

    name: str
    description: str


@dataclass(frozen=True, slots=True)
class TypeView:
    """A content type in the OpenAPI document, with the name of its schema and its examples by name."""

    type: Type
    name: str
    examples: Mapping[str, Any]
    drafts_only: bool = False


@dataclass(frozen=True, slots=True)
class Audience:
    """The caller for whom operations are described. `public` is a caller without credentials.

    If the operations apply to a content type, `view` describes this type.
    """

    actor: Actor
    public: Actor
    schema: Schema
    settings: Settings
    view: TypeView | None = None

    @property
    def is_rate_limited(self) -> bool:
        """Whether the site has a rate limit. If so, any response can have status 429."""
        return bool(self.settings.api.rate_limit)

    @property
    def may_branch(self) -> bool:
        """Whether the caller may write to branches that are not the served branch."""
        return may_branch(self.actor, "update", self.schema)

    @property
    def may_dry_run(self) -> bool:
        """Whether the caller may request dry runs, which reveal file paths."""
        return may_source(self.actor, "read", self.schema)


@dataclass(frozen=True, slots=True)
class Docs:
    """The OpenAPI description of an operation, without the parts that can be derived from its row."""

    summary: str
    answers: Mapping[int, JsonSchema]
    parameters: Sequence[JsonSchema] = ()
    body: JsonSchema | None = None
    errors: Sequence[int] = READ


@dataclass(frozen=True, slots=True)
class Operation:
    """One method of one path.

    - `path`: the variables are written as in OpenAPI, optionally with a converter after a colon (CONVERTERS)
    - `permission`: the minimum permission that the caller needs. The handler may require more.
    - `docs`: the OpenAPI description. If this is a string, the OpenAPI document omits the operation, and the
      string contains the reason.
    - `max_body`: the size limit for bodies in bytes, or None for the upload limit. If the caller lacks the
      permission, the limit is SMALL_BODY_BYTES.
    - `runs_inline`: whether the entrance handles the operation itself, without a handler or thread pool
    - `waits`: whether the operation may wait long for another process. It then uses a separate thread pool.
    - `branch`, `dry_run`: whether these parameters are supported
    - `slash`: whether the path may end with a slash
    - `always_fails`: whether every response is an error with an explanation. The `Allow` header does not list
      the method.
    - `kind`: the kind of content types to which the row applies
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
        """The path as a Flask rule."""
        return _VARIABLE.sub(_as_rule, self.path)

    @property
    def described_path(self) -> str:
        """The path in OpenAPI syntax, with a variable for the content type's API id."""
        return _VARIABLE.sub(r"{\1}", self.path)

    def matches(self, path: str) -> bool:
        """Whether a path matches this operation's path."""
        return _pattern(self.path, self.slash).fullmatch(path) is not None


@dataclass(frozen=True, slots=True)
class Area:
    """A group of operations whose paths begin with the same prefix. Unknown paths with this prefix have the
    same properties.

    - `name`: the label for requests in metrics
    - `parts`: the first segments of paths in this area. For paths below /api, each is `api/` and the second
      segment.
    - `takes_at`: reads accept the parameter `at`, a past commit
    - `varies_by_commit`: responses depend on the served commit, and contain `Bifolio-Commit`
    - `uses_current_settings`: responses also depend on the current settings, so they are never immutable
    - `ignores_served_commit`: responses describe the repository's current state
    - `may_query_accounts`: requests by any caller may wait for the accounts database
    - `writes_site`: writes change files, so a server of a past commit rejects them
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


# Saves 12 µs of the 34 µs before a write's body is received.
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
