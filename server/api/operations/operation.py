"""One row of the table of operations, and the areas that rows belong to."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from server.api.operations.json_schema import READ, JsonSchema
from server.api.operations.permission import Permission
from server.api.serving.bodies import SMALL
from server.auth.permissions import Actor, may_branch, may_source
from server.config.model import Settings
from server.schema.model import Schema, Type

# What a variable of a path stands for, by the word behind its colon: whatever no other path has there.
CONVERTERS: Mapping[str, str] = {
    "": r"[^/]+",
    "path": r"[^/].*?",
    "user": r"(?!(?:me|count)/?$)[^/]+",
    "file": r"(?!page/?$)[^/]+",
}
# What handlers call a variable, where that is not its name in snake case.
_ARGUMENTS = {"type": "api_id", "pluralApiId": "api_id", "singularApiId": "api_id", "id": "key"}
_VARIABLE = re.compile(r"\{(\w+)(?::(\w+))?\}")
_CAPITAL = re.compile(r"(?=[A-Z])")
# Whether a write becomes a commit: never, where the site commits writes or one is to a branch, or always.
Commits = Literal["never", "maybe", "always"]


@dataclass(frozen=True, slots=True)
class Tag:
    """A group of operations in the OpenAPI document."""

    name: str
    description: str


@dataclass(frozen=True, slots=True)
class TypeView:
    """A content type as a caller is told of it: `name` in schemas, `examples` by name."""

    type: Type
    name: str
    examples: Mapping[str, Any]
    drafts_only: bool = False


@dataclass(frozen=True, slots=True)
class Audience:
    """For whom operations are described; `public` is whoever sends no credentials.

    `view` is the content type that an operation is about, if it is about one.
    """

    actor: Actor
    public: Actor
    schema: Schema
    settings: Settings
    view: TypeView | None = None

    @property
    def limited(self) -> bool:
        """Whether the requests of a client are limited, so that any answer may be 429."""
        return bool(self.settings.rate_limit)

    @property
    def branches(self) -> bool:
        """Whether the caller may write to branches that are not served."""
        return may_branch(self.actor, "update", self.schema)

    @property
    def tries(self) -> bool:
        """Whether the caller may ask for dry runs, which tell of files."""
        return may_source(self.actor, "read", self.schema)


@dataclass(frozen=True, slots=True)
class Docs:
    """What OpenAPI says of an operation, beside what follows from its row."""

    summary: str
    answers: Mapping[int, JsonSchema]
    parameters: Sequence[JsonSchema] = ()
    body: JsonSchema | None = None
    errors: Sequence[int] = READ


@dataclass(frozen=True, slots=True)
class Operation:
    """One method of one path.

    - `path` names variables as OpenAPI does, with a converter of CONVERTERS behind a colon.
    - `permission` says who may use it at all; the handler may ask for more.
    - `docs` describes it, or says why OpenAPI leaves it out.
    - `max_body` is how many bytes the body may have, None as many as an upload may have. Of a caller who may
      not use the operation, no more than SMALL is read.
    - `in_place`: the entrance answers it itself, without a handler and a thread pool.
    - `branch` and `dry_run` say which of these parameters it takes.
    - `slash`: its path may end in one.
    - `refused`: there is only an error to explain, so `Allow` leaves the method out.
    - `kind`: of which content types it is.
    """

    id: str
    method: str
    path: str
    permission: Permission
    docs: Docs | Callable[[Audience], Docs] | str
    max_body: int | None = SMALL
    in_place: bool = False
    branch: bool = False
    dry_run: bool = False
    commits: Commits = "never"
    slash: bool = True
    refused: bool = False
    kind: str = ""

    @property
    def rule(self) -> str:
        """The path as Flask writes it."""
        return _VARIABLE.sub(_as_rule, self.path)

    @property
    def described_path(self) -> str:
        """The path as OpenAPI writes it; of a content type, still with the variable for its API id."""
        return _VARIABLE.sub(r"{\1}", self.path)

    def matches(self, path: str) -> bool:
        """Whether a path is the operation's."""
        return _pattern(self.path, self.slash).fullmatch(path) is not None


@dataclass(frozen=True, slots=True)
class Area:
    """Operations whose paths begin alike, and what is true of every path that begins so, known or not.

    - `name` is what requests are counted as in metrics.
    - `parts` are the first parts of the paths, with `api/` before those below /api.
    - `takes_at`: a read may be from a past commit (`at`).
    - `of_commit`: what is read depends on the commit that is served, which the answer names.
    - `of_today`: it depends on today's settings as well.
    - `of_repository`: it tells of today's repository, whatever is served.
    - `asks_accounts`: it may have to wait for the accounts database, whoever asks.
    - `writes_site`: its writes change files of the site, so a server of a past commit refuses them.
    """

    name: str
    parts: tuple[str, ...]
    operations: tuple[Operation, ...]
    tag: Tag | None = None
    takes_at: bool = False
    of_commit: bool = False
    of_today: bool = False
    of_repository: bool = False
    asks_accounts: bool = False
    writes_site: bool = True


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
