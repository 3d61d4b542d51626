"""One row of the table of operations, and the areas that rows belong to."""

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

# Regular expressions of path variables, by converter. They exclude the segments of other paths.
CONVERTERS: Mapping[str, str] = {
    "": r"[^/]+",
    "path": r"[^/].*?",
    "user": r"(?!(?:me|count)/?$)[^/]+",
    "file": r"(?!page/?$)[^/]+",
}
# Names of arguments of handlers, if they are not the variable's name in snake case.
_ARGUMENTS = {"type": "api_id", "pluralApiId": "api_id", "singularApiId": "api_id", "id": "key"}
_VARIABLE = re.compile(r"\{(\w+)(?::(\w+))?\}")
_CAPITAL = re.compile(r"(?=[A-Z])")
# Whether a write becomes a commit. maybe: if `git.commit` is on, or the write is to a branch.
Commits = Literal["never", "maybe", "always"]


@dataclass(frozen=True, slots=True)
class Tag:
    """A group of operations in the OpenAPI document."""

    name: str
    description: str


@dataclass(frozen=True, slots=True)
class TypeView:
    """A content type in the OpenAPI document: its `name` in schemas, and examples by name."""

    type: Type
    name: str
    examples: Mapping[str, Any]
    drafts_only: bool = False


@dataclass(frozen=True, slots=True)
class Audience:
    """The caller for whom operations are described. `public` is a caller without credentials.

    `view` is the content type that an operation is about, if any.
    """

    actor: Actor
    public: Actor
    schema: Schema
    settings: Settings
    view: TypeView | None = None

    @property
    def is_rate_limited(self) -> bool:
        """Whether clients are rate-limited, so that any response may be 429."""
        return bool(self.settings.api.rate_limit)

    @property
    def may_branch(self) -> bool:
        """Whether the caller may write to branches that are not served."""
        return may_branch(self.actor, "update", self.schema)

    @property
    def may_dry_run(self) -> bool:
        """Whether the caller may ask for dry runs, which show file paths."""
        return may_source(self.actor, "read", self.schema)


@dataclass(frozen=True, slots=True)
class Docs:
    """The OpenAPI description of an operation, without the parts that follow from its row."""

    summary: str
    answers: Mapping[int, JsonSchema]
    parameters: Sequence[JsonSchema] = ()
    body: JsonSchema | None = None
    errors: Sequence[int] = READ


@dataclass(frozen=True, slots=True)
class Operation:
    """One method of one path.

    - `path` has variables as in OpenAPI, with an optional converter after a colon (CONVERTERS).
    - `permission`: who may use it at all; the handler may check more.
    - `docs`: its description, or a text: why OpenAPI omits it.
    - `max_body`: maximum body in bytes; None for the limit of uploads. If the caller may not use the
      operation, the server reads at most SMALL_BODY_BYTES.
    - `runs_inline`: the entrance handles it itself, without a handler or thread pool.
    - `waits`: it waits long for another process, so it has its own threads.
    - `branch`, `dry_run`: whether it accepts these parameters.
    - `slash`: its path may end in a slash.
    - `always_fails`: it returns only an error that explains itself, so `Allow` omits the method.
    - `kind`: the kind of content types that it belongs to.
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
        """Return the path as a rule of Flask."""
        return _VARIABLE.sub(_as_rule, self.path)

    @property
    def described_path(self) -> str:
        """Return the path as in OpenAPI, with a variable for the API id of a content type."""
        return _VARIABLE.sub(r"{\1}", self.path)

    def matches(self, path: str) -> bool:
        """Return whether the operation has this path."""
        return _pattern(self.path, self.slash).fullmatch(path) is not None


@dataclass(frozen=True, slots=True)
class Area:
    """Operations whose paths share a prefix, with properties of every path with that prefix, known or not.

    - `name` labels requests in metrics.
    - `parts`: the first segments of the paths, with `api/` before those below /api.
    - `takes_at`: reads accept `at`, a past commit.
    - `varies_by_commit`: the response depends on the served commit, and has `Bifolio-Commit`.
    - `uses_current_settings`: the response also depends on the current settings, so it is never immutable.
    - `ignores_served_commit`: the response describes the repository as it is now.
    - `may_query_accounts`: it may wait for the accounts database, for any caller.
    - `writes_site`: its writes change files of the site, so a server of a past commit refuses them.
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


# Saves 12 µs of 34 before the body of a write is received.
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
