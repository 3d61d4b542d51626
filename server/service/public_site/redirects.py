"""Redirects from former addresses and aliases of documents to their current addresses."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from server.auth.permissions import REDIRECTS, require_of_site
from server.documents.addresses import ALIAS_KEYS
from server.documents.document import Document
from server.errors import BusyError, GitError, LimitError
from server.formats.tree import SyntaxProblem, describe_value
from server.history.former_addresses import FormerAddresses, key_of
from server.history.past import PastStates
from server.index.budget import Budget
from server.problems import Problem
from server.schema.model import Type
from server.service.public_site.public_reader import PublicSite
from server.service.read import Caller
from server.service.render import dumps
from server.site.aliases import Source, parse_address, read_aliases, resolve_alias
from server.site.site import State
from server.storage.git.tree import read_named
from server.storage.read import MAX_FILE_BYTES, read_bytes

MAX_LOOP = 20  # The message about a longer loop does not show the loop.
MAX_SHOWN_CHARS = 200  # limit for an alias in a message
STATUS = 301
_ALIAS_WORDS = re.compile(b"|".join(key.encode() for key in ALIAS_KEYS))
_BATCH_FILES = 500
_INCOMPLETE = "The redirects are not complete yet; try again"


class Redirect(NamedTuple):
    """A redirect from the percent-encoded path `source` on the host `origin` to the URL `target`."""

    origin: str
    source: str
    target: str
    document: Document

    def as_json(self) -> dict[str, Any]:
        _, document_id, locale = self.document.key
        return {
            "from": self.source,
            "to": self.target,
            "status": STATUS,
            "origin": self.origin,
            "type": self.document.type.singular,
            "documentId": document_id,
            "locale": locale,
        }


@dataclass(frozen=True)
class RedirectList:
    """Redirects, sorted by origin and source, and problems with aliases and addresses."""

    redirects: list[Redirect]
    problems: list[Problem]

    @cached_property
    def body(self) -> bytes:
        data = [redirect.as_json() for redirect in self.redirects]
        return dumps({"data": data, "meta": {"total": len(data), "problems": len(self.problems)}})

    @property
    def origins(self) -> list[str]:
        return sorted({redirect.origin for redirect in self.redirects})


class Alias(NamedTuple):
    """An alias in a document's file."""

    document: Document
    address: str
    text: Any
    line: int | None


Aliases = tuple[tuple[Any, int | None], ...]  # the aliases in a file as written, with their lines


class Redirects:
    """The redirects of a site. This class is thread-safe."""

    def __init__(self, past: PastStates) -> None:
        self.past, self.site = past, past.site
        self._former = FormerAddresses(past)
        # by commit and path, for the current files (commit "") and for the commit that was requested last
        self._aliases: dict[str, dict[str, tuple[object, Aliases]]] = {}
        self._last: tuple[State, str, RedirectList] | None = None
        self._same: tuple[object, RedirectList] | None = None

    def list_redirects(self, caller: Caller) -> RedirectList:
        """Return the redirects at the caller's state.

        Raises BusyError if reading the files, including git's work, takes longer than `api.limits.time`. The
        next call then continues with the remaining files.
        """
        require_of_site(caller.actor, REDIRECTS, "read", caller.state.schema)
        head = caller.commit or self.site.git.committed.commit
        if (found := self._cached(caller.state, head)) is None:
            caller.budget.take_turn()
            # While this request waited for its turn, another one may have listed them.
            found = self._cached(caller.state, head)
        if found is None:
            public = PublicSite(caller.state, caller.budget)
            found = self._find(public, caller.commit, head, partial(_checkpoint, caller.budget))
            self._last = caller.state, head, found
        return found

    def _cached(self, state: State, head: str) -> RedirectList | None:
        last = self._last
        return last[2] if last and last[1] == head and last[0].shows_same_content(state) else None

    def _find(
        self, public: PublicSite, commit: str, head: str, checkpoint: Callable[[], None]
    ) -> RedirectList:
        documents = list(public.documents())
        declared = list(self._read_aliases(documents, commit, checkpoint))
        try:
            former = self._former.find(
                public.state, head, (d for d, _ in documents), public.types, checkpoint
            )
        except GitError:  # The clone is damaged or incomplete, so only the aliases are known.
            former = []
        owners = _first_of_each(former)
        # Most writes change no address. In that case, the redirects need not be computed again.
        from_root = public.state.settings.redirects.aliases_from_root
        inputs = (
            from_root,
            [(key_of(document), document.path, address) for document, address in documents],
            [(key_of(alias.document), alias.address, alias.text, alias.line) for alias in declared],
            {address: key_of(owner) for address, owner in owners.items()},
        )
        if self._same is None or self._same[0] != inputs:
            self._same = inputs, make_redirects(documents, declared, owners, aliases_from_root=from_root)
        return self._same[1]

    def _read_aliases(
        self, documents: Sequence[tuple[Document, str]], commit: str, checkpoint: Callable[[], None]
    ) -> Iterator[Alias]:
        addresses = {document.path: (document, address) for document, address in documents}
        entries = {} if commit else self.site.basis()[3]
        known = self._aliases.get(commit, {})
        current: dict[str, tuple[object, Aliases]] = {}
        unread: dict[str, tuple[tuple[str, ...], object]] = {}
        types = {document.type.uid: document.type for document, _ in documents}
        public_keys = {uid: _public_keys(type_) for uid, type_ in types.items()}
        for path, (document, _) in addresses.items():
            keys = public_keys[document.type.uid]
            signature: object = commit or (entries[path].signature if path in entries else None)
            mark: object = None if signature is None else (keys, signature)
            if mark and path in known and known[path][0] == mark:
                current[path] = known[path]
            elif keys:
                unread[path] = keys, mark
        for number, (path, data) in enumerate(self._read(unread, commit), start=1):
            keys, mark = unread[path]
            has_aliases = data and _ALIAS_WORDS.search(data)
            current[path] = mark, tuple(read_aliases(path, data, keys)) if data and has_aliases else ()
            if number % _BATCH_FILES == 0:
                self._cache_aliases(commit, {**known, **current})
                checkpoint()
        self._cache_aliases(commit, current)
        for path, (document, address) in addresses.items():
            for text, line in current[path][1] if path in current else ():
                yield Alias(document, address, text, line)

    def _cache_aliases(self, commit: str, aliases: dict[str, tuple[object, Aliases]]) -> None:
        self._aliases = {"": self._aliases.get("", {}), commit: aliases}

    def _read(self, paths: Iterable[str], commit: str) -> Iterator[tuple[str, bytes | None]]:
        if not commit:
            yield from ((path, _bytes(self.site.root, path)) for path in paths)
            return
        rest = iter(paths)
        while part := list(islice(rest, _BATCH_FILES)):
            names = (f"{commit}:./{path}" for path in part)
            yield from zip(part, read_named(self.site.root, names, MAX_FILE_BYTES), strict=False)


def _checkpoint(budget: Budget) -> None:
    try:
        budget.check()
    except LimitError as error:
        if error.details.get("limit") == "time":
            raise BusyError(_INCOMPLETE) from error
        raise
    if budget.is_turn_over:
        raise BusyError(_INCOMPLETE)


def _public_keys(type_: Type) -> tuple[str, ...]:
    attributes = type_.attributes
    return tuple(key for key in ALIAS_KEYS if key not in attributes or attributes[key].visible)


def _bytes(root: Path, path: str) -> bytes | None:
    try:
        return read_bytes(root, path)[0]
    except (OSError, SyntaxProblem):
        return None


# --- redirects ------------------------------------------------------------------------------------


@dataclass
class _Builder:
    current: Mapping[Source, tuple[Document, str]]
    found: dict[Source, Redirect] = field(default_factory=dict)
    refused: set[Source] = field(default_factory=set)
    problems: list[Problem] = field(default_factory=list)
    from_root: bool = False  # whether relative aliases start at the root

    def fail(self, alias: Alias, message: str, fix: str) -> None:
        what = f"the alias {_shown(alias.text)} {message}"
        self.problems.append(Problem(alias.document.path, alias.line, what, fix, "warning"))


def make_redirects(
    documents: Iterable[tuple[Document, str]],
    aliases: Iterable[Alias],
    former_addresses: Mapping[str, Document],
    *,
    aliases_from_root: bool = False,
) -> RedirectList:
    """Return the redirects of a site. An alias takes precedence over a former address.

    `former_addresses` maps each address to the last document that had it. If `aliases_from_root` is set,
    aliases without a leading slash are relative to the root, not to the document's folder.
    """
    current: dict[Source, tuple[Document, str]] = {}
    builder = _Builder(current, from_root=aliases_from_root)
    targets = {}
    for document, address in documents:
        targets[key_of(document)] = address
        other = current.setdefault(parse_address(address), (document, address))[0]
        if other is not document:
            what = f"the document has the same address as {other.path}: {address}"
            builder.problems.append(
                Problem(document.path, None, what, "change the attributes in the address", "warning")
            )
    _add_aliases(builder, aliases)
    for address, document in former_addresses.items():
        source = parse_address(address)
        if source not in current and source not in builder.refused and source not in builder.found:
            builder.found[source] = Redirect(*source, targets[key_of(document)], document)
    redirects = sorted(builder.found.values(), key=itemgetter(0, 1))
    return RedirectList(redirects, sorted(builder.problems))


def _first_of_each(former: Iterable[tuple[Document, str]]) -> dict[str, Document]:
    found: dict[str, Document] = {}
    for document, address in former:
        found.setdefault(address, document)
    return found


def _add_aliases(builder: _Builder, declared: Iterable[Alias]) -> None:
    claims: dict[Source, list[Alias]] = {}
    for alias in declared:
        try:
            source = resolve_alias(alias.text, alias.address, from_root=builder.from_root)
        except ValueError as error:
            builder.fail(alias, str(error), "write a path such as /old-name")
            continue
        claims.setdefault(source, []).append(alias)
    edges = {source: _target(source, aliases) for source, aliases in claims.items()}
    for source, aliases in claims.items():
        first = aliases[0]
        if source in builder.current:
            for alias in aliases:
                _refuse_existing(builder, alias, source, edges)
        elif any(alias.document is not first.document for alias in aliases):
            builder.refused.add(source)
            for alias in aliases:
                others = {other.document.path for other in aliases} - {alias.document.path}
                fix = "remove it from all documents except one"
                builder.fail(alias, f"is also an alias of {', '.join(sorted(others))}", fix)
        else:
            builder.found[source] = Redirect(*source, first.address, first.document)


def _target(source: Source, aliases: Iterable[Alias]) -> Source:
    targets = [parse_address(alias.address) for alias in aliases]
    return next((target for target in targets if target != source), targets[0])


def _refuse_existing(builder: _Builder, alias: Alias, source: Source, edges: Mapping[Source, Source]) -> None:
    other, _ = builder.current[source]
    loop = _find_loop(source, parse_address(alias.address), edges)
    if loop:
        message = f"makes a loop: {' → '.join(path for _, path in loop)}"
    else:
        message = f"is the address of {other.path}"
    builder.fail(alias, message, "remove the alias")


def _find_loop(source: Source, target: Source, edges: Mapping[Source, Source]) -> list[Source]:
    chain = [source, target]
    while chain[-1] != source and chain[-1] in edges and len(chain) < MAX_LOOP:
        chain.append(edges[chain[-1]])
    return chain if chain[-1] == source else []


def _shown(text: Any) -> str:
    if isinstance(text, dict | list) or text is None:
        return f"({describe_value(text)})"
    shown = str(text)
    return f'"{shown if len(shown) <= MAX_SHOWN_CHARS else shown[: MAX_SHOWN_CHARS - 1] + "…"}"'
