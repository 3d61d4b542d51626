"""WSGI app that handles content reads itself, and passes most other requests to Flask."""

import re
from collections.abc import Callable, Iterable
from contextlib import closing, suppress
from functools import partial
from importlib import import_module
from typing import NoReturn, cast

from server.api.accept import MARKDOWN, MARKDOWN_TYPE, prefers_markdown
from server.api.commits import (
    AFTER_KEY,
    COMMIT_HEADER,
    CommitWaiter,
    RequestedCommit,
    commit_of,
    with_commit_caching,
)
from server.api.environ import (
    ADMITTED,
    BUDGET,
    COMMIT,
    COOKIE_USED,
    COSTLY,
    ENTRANCE,
    EXACT_ID,
    FORMAT,
    GONE,
    IDENTITIES,
    IN_PLACE,
    NO_TURN,
    ON_LOOP,
    REFUSED,
    STATE,
    apply_forwarded_headers,
    parse_query,
    response_format_of,
    wsgi_text,
)
from server.api.error_response import cors_headers, cors_vary, error_answer, preflight_headers
from server.api.hints import WITH_EFFECT, Hints
from server.api.identities import Identities
from server.api.limiting.count_table import CountTable
from server.api.operations.content import parse_content_path, parse_markdown_path
from server.api.operations.media import FILES
from server.api.operations.site import HEALTH
from server.api.operations.table import OPERATIONS, area_of, operations_at
from server.api.response import (
    CACHE_TAG,
    JSON,
    NO_STORE,
    READ_METHODS,
    Answer,
    Environ,
    Header,
    Representation,
    StartResponse,
    represent,
    send,
    without,
)
from server.api.response_cache import (
    MAX_RESPONSE_BYTES,
    CachedResponse,
    CacheKey,
    make_response_cache,
    past_answer_cache,
    response_cache_key,
)
from server.api.role_view import HEADER as ROLE_HEADER
from server.api.role_view import is_narrowed, narrow_to_role, without_storage
from server.api.serving.bodies import SMALL_BODY_BYTES
from server.api.source_maps import HEADER as SOURCE_MAPS
from server.api.source_maps import mark
from server.api.studio.cookie import HEADER, authenticate_by_cookie
from server.auth.draft_visibility import has_draft_permission
from server.auth.permissions import Actor, forbidden, may_branch, require_branch, require_source
from server.bounded import work_for
from server.config.model import ResponseFormat, Settings
from server.database.address import is_server
from server.documents.ids import to_nfc
from server.errors import (
    ApiError,
    ClientGone,
    ForbiddenError,
    NeedsThreadPool,
    NotFoundError,
    QueueError,
    RateLimitError,
    ValidationError,
)
from server.history.former_ids import FormerIds
from server.history.past import PastStates
from server.history.remote.wakeup import wake
from server.index.budget import UNLIMITED, Budget, large_responses, turns
from server.paths import UPLOADS_URL
from server.schema.model import Schema, Type
from server.service.markdown.document import ENDING
from server.service.markdown.read import read_markdown
from server.service.read import Params, Reader, Rendering
from server.site.site import Site, State

# Counts a request from a client's address. Returns whether the client is within the rate limit, and the rate
# limit headers.
Count = Callable[[str], tuple[bool, tuple[Header, ...]]]
# Returns the response to a request that is not a content read, or raises the handler's error.
Handle = Callable[[Environ], Answer]
# Paths of health checks, and of the health checks that are handled without Flask.
HEALTH_PATHS = frozenset(o.path for o in HEALTH.operations)
LIVENESS_PATHS = frozenset(o.path for o in HEALTH.operations if o.runs_inline)
WAITING_OPERATIONS = tuple(operation for operation in OPERATIONS if operation.waits)
PREFLIGHT_VARY = ("Access-Control-Request-Headers",)
# Tells browsers to use only HTTPS for one year.
HSTS = ("Strict-Transport-Security", "max-age=31536000")
# Longer query strings are parsed on a thread, because 300 filters (13,000 characters) take 17 ms to parse.
MAX_LOOP_QUERY_CHARS = 2000
READ_ONLY_MESSAGE = "The site is read-only, because it is served as it was at commit {}"
# Matches each spelling of the parameter `at` in a raw query string: percent-encoded, in brackets or without a
# value. It also matches a few other names, such as `at]`.
AT_PARAMETER = re.compile(r"(?:^|&)(?:\[|%5B)?(?:a|%61)(?:t|%74)(?:[=&\[\]]|%5B|%5D|$)", re.IGNORECASE)
READ_VARY = ("Authorization", "Accept", FORMAT, SOURCE_MAPS)
COOKIE_VARY = ("Vary", "Cookie, Bifolio-Studio")


class Entrance:
    """WSGI app that receives all requests to a site."""

    def __init__(
        self,
        site: Site,
        identities: Identities,
        handle: Handle,
        past: PastStates,
        counted: CountTable | None = None,
        hints: Hints | None = None,
    ) -> None:
        self.site, self.identities, self.handle = site, identities, handle
        self.count = _counter(site.state.settings.api.rate_limit, counted)
        self.cache, self.turns, self.large = make_response_cache(), turns(), large_responses()
        self.hints = hints or Hints()
        self.past, self.past_cache = past, past_answer_cache()
        self.former_ids = FormerIds(past)
        self.arrivals = CommitWaiter(site, partial(wake, site.root))

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """Handle a request.

        Raises NeedsThreadPool if the request can't run on this thread, and ClientGone if the client has
        disconnected.
        """
        state = self.site.state
        budget = UNLIMITED
        counted: tuple[Header, ...] = ()
        try:
            environ[IDENTITIES], environ[ENTRANCE] = self.identities, self
            environ[STATE] = state = self._current(environ)
            within, counted = self._check_rate_limit(environ, state.settings)
            work_for(environ.get("REMOTE_ADDR", ""))
            environ[BUDGET] = budget = self._budget(environ, state.settings)
            if self.past.pinned and _changes_site(environ):
                raise ForbiddenError(READ_ONLY_MESSAGE.format(self.past.pinned.commit[:10]))
            authenticate_by_cookie(environ)
            if ROLE_HEADER in environ:
                narrow_to_role(environ)
            if REFUSED in environ:
                raise environ.pop(REFUSED)
            if not within:
                raise RateLimitError()
            if AFTER_KEY in environ and not self.past.pinned:
                environ[STATE] = state = self.arrivals.wait_for_commit(environ, state)
            if COMMIT in environ or self.past.pinned or AT_PARAMETER.search(environ.get("QUERY_STRING", "")):
                environ[STATE] = state = self._requested_state(environ, state)
            shown = self._answer(environ, state)
        except (NeedsThreadPool, ClientGone):
            raise
        except Exception as error:
            self.hints.note_error(error)
            if isinstance(error, QueueError):
                environ[NO_TURN] = True
            shown = _represent(error_answer(error), environ, state)
        finally:
            budget.close()
        headers = _headers(environ, state)
        if COMMIT in environ:
            shown = with_commit_caching(environ[COMMIT], shown)
        if is_narrowed(environ):
            shown = without_storage(shown)
        if counted and any(name == "Retry-After" for name, _ in shown.headers):
            counted = without(counted, "Retry-After")
        return send(shown, environ, start_response, headers + counted if counted else headers)

    @property
    def kept_bytes(self) -> int:
        return self.cache.bytes + self.past_cache.bytes

    def max_body_bytes(self, environ: Environ) -> int:
        """Return the maximum size in bytes of a request's body, which depends on the caller's permissions.

        Raises UnauthorizedError or ForbiddenError if the credentials are not accepted.
        """
        state = self.site.current()
        if self.past.pinned:
            return SMALL_BODY_BYTES
        for operation, type_ in operations_at(environ["PATH_INFO"], state.schema):
            if operation.method == environ["REQUEST_METHOD"] and operation.max_body != SMALL_BODY_BYTES:
                authenticate_by_cookie(environ)
                actor = self.identities.identify(environ.get("HTTP_AUTHORIZATION", ""), state.settings)
                may = operation.permission(actor, state.schema, type_)
                return (operation.max_body or state.settings.api.upload_limit) if may else SMALL_BODY_BYTES
        return SMALL_BODY_BYTES

    def source_state(self, environ: Environ, branch: str, *, to_write: bool = False) -> State:
        """Return the state to use for reading files on a branch or, if `to_write` is set, for writing them.

        Return the served state if `branch` is "", or if `to_write` is set and the branch does not exist.
        Raises UnauthorizedError or ForbiddenError if the caller lacks access. Errors from PastStates are
        passed on.
        """
        state = self.site.current()
        actor = self.identities.identify(environ.get("HTTP_AUTHORIZATION", ""), state.settings)
        require_source(actor, "read", state.schema)
        if not branch:
            return state
        if to_write:
            require_branch(actor, "update", state.schema)
            commit = self.past.branch(branch)
        else:
            commit = self._resolve(branch, actor, state.schema)
        if not commit:
            return state
        with closing(self._budget(environ, state.settings)) as budget:
            self._limit_state_build(commit, budget)
            return self.past.state_for_request(commit, state.settings)

    def may_wait_long(self, environ: Environ) -> bool:
        """Return whether the request might have to wait a long time for another process."""
        if environ["PATH_INFO"].startswith(UPLOADS_URL):
            return bool(environ.get("QUERY_STRING"))  # probably a transformation of an image
        return any(
            o.method == environ["REQUEST_METHOD"] and o.matches(environ["PATH_INFO"])
            for o in WAITING_OPERATIONS
        )

    def may_query_accounts(self, environ: Environ) -> bool:
        state, path = self.site.state, environ["PATH_INFO"]
        if not is_server(state.settings.accounts):
            return False
        if environ.get("HTTP_AUTHORIZATION") or HEADER in environ or area_of(path).may_query_accounts:
            return True
        is_content = parse_content_path(path, state.schema) or parse_markdown_path(path, state.schema)
        return state.schema.has_user_relations and is_content is not None

    def _check_rate_limit(self, environ: Environ, settings: Settings) -> tuple[bool, tuple[Header, ...]]:
        if ADMITTED not in environ:
            if settings.api.trusted_proxies:
                apply_forwarded_headers(environ, settings.api.trusted_proxies)
            is_health_check = environ["PATH_INFO"] in HEALTH_PATHS
            if self.count is None or environ["REQUEST_METHOD"] == "OPTIONS" or is_health_check:
                environ[ADMITTED] = True, ()
            else:
                environ[ADMITTED] = self.count(environ.get("REMOTE_ADDR", ""))
        admitted: tuple[bool, tuple[Header, ...]] = environ[ADMITTED]
        return admitted

    def _budget(self, environ: Environ, settings: Settings) -> Budget:
        waits, costly = IN_PLACE not in environ, COSTLY in environ
        on_loop, gone = ON_LOOP in environ, environ.get(GONE)
        return Budget(
            settings,
            self.turns,
            waits=waits,
            is_costly=costly,
            on_loop=on_loop,
            is_client_gone=gone,
            large=self.large,
            finishes=environ["REQUEST_METHOD"] not in READ_METHODS,
        )

    def _answer(self, environ: Environ, state: State) -> Representation:
        if environ["REQUEST_METHOD"] in READ_METHODS:
            place = parse_content_path(environ["PATH_INFO"], state.schema)
            if place is not None:
                return self._read(environ, state, *place)
            place = parse_markdown_path(environ["PATH_INFO"], state.schema)
            if place is not None:
                return self._read(environ, state, *place, markdown=True)
            if environ["PATH_INFO"] in LIVENESS_PATHS:
                return _represent(Answer(b"", 204, cache_control=NO_STORE), environ, state)
        preflight = preflight_headers(state.settings.api.cors, environ)
        if preflight is not None:
            return _represent(Answer(b"", 204, vary=PREFLIGHT_VARY, headers=preflight), environ, state)
        if IN_PLACE in environ:
            raise NeedsThreadPool(accounts=self.may_query_accounts(environ))
        return _represent(self.handle(environ), environ, state)

    def _identify(self, environ: Environ, state: State) -> Actor:
        credentials, waits = environ.get("HTTP_AUTHORIZATION", ""), IN_PLACE not in environ
        if ON_LOOP in environ and credentials and not self.identities.are_open:
            raise NeedsThreadPool(long=True)
        return self.identities.identify(credentials, state.settings, waits=waits)

    def _current(self, environ: Environ) -> State:
        if self.site.has_unread_writes:
            if IN_PLACE in environ:
                raise NeedsThreadPool(costly=False)
            self.site.refresh(())
        return self.site.current()

    def _requested_state(self, environ: Environ, state: State) -> State:
        if COMMIT in environ:  # `at` was resolved before the request moved to this thread.
            return self.past.state_for_request(environ[COMMIT].id, state.settings)
        area, params = area_of(environ["PATH_INFO"]), parse_query(environ["QUERY_STRING"])
        is_write = environ["REQUEST_METHOD"] not in READ_METHODS
        if "at" not in params or not (area.takes_at or (is_write and area.writes_site)):
            return self._held(environ, state)
        if is_write:
            raise ValidationError(
                'The "at" parameter can only be used in reads, because a past state can\'t be changed'
            )
        name = params["at"]
        if not isinstance(name, str):
            raise ValidationError('"at" must be a single commit, tag, branch or time')
        if IN_PLACE in environ and not self.past.is_kept(name):
            raise NeedsThreadPool(costly=False)
        actor = self._identify(environ, state)
        commit = self._resolve(name, actor, state.schema)
        self._limit_state_build(commit, environ[BUDGET])
        complete = area is FILES or not self.past.at(commit).unscaled_images
        past = self.past.state_for_request(commit, state.settings)
        uses_current_settings = (
            area.uses_current_settings or not area.varies_by_commit or past.schema.has_user_relations
        )
        parts = environ["QUERY_STRING"].split("&")
        asked = (part for part in parts if not (AT_PARAMETER.match(part) and "at" in parse_query(part)))
        environ["QUERY_STRING"] = "&".join(asked)
        # Transformations depend on the current settings, so their responses can change.
        may_transform = area is FILES and bool(environ["QUERY_STRING"])
        lasting = name == commit and not uses_current_settings and not may_transform
        environ[COMMIT] = RequestedCommit(commit, lasting, complete)
        return past

    def _held(self, environ: Environ, state: State) -> State:
        held = self.past.pinned
        if held is None or area_of(environ["PATH_INFO"]).ignores_served_commit:
            return state
        environ[COMMIT] = RequestedCommit(
            held.commit, is_permanent=False, has_all_images=not held.unscaled_images
        )
        return self.past.state_for_request(held.commit, state.settings)

    def _resolve(self, name: str, actor: Actor, schema: Schema) -> str:
        if actor.may("history", "read"):
            return self.past.resolve(name)
        commit = self.past.branch(name) if may_branch(actor, "find", schema) else ""
        if not commit:
            raise forbidden(actor, "history", "read", is_type=False)
        return commit

    def _limit_state_build(self, commit: str, budget: Budget) -> None:
        if not self.past.is_kept(commit):
            budget.take_turn()

    def _read(
        self, environ: Environ, state: State, type_: Type, document_id: str, *, markdown: bool = False
    ) -> Representation:
        users = self.identities.user_index
        if IN_PLACE in environ and is_server(state.settings.accounts):
            users = _postpone
        elif ON_LOOP in environ:
            users = _leave_loop
        actor = self._identify(environ, state)
        response_format = response_format_of(environ, state.settings)
        at = environ.get(COMMIT)
        commit = at.id if at else ""
        key: CacheKey = response_cache_key(environ, actor, commit, response_format=response_format)
        accept = environ.get("HTTP_ACCEPT")
        if markdown or (accept and accept != "*/*" and prefers_markdown(accept)):
            markdown, key = True, (*key, MARKDOWN)
        cache = self.past_cache if commit else self.cache.for_state(state)
        marked = (
            "HTTP_STRAPI_ENCODE_SOURCE_MAPS" in environ  # a quick test for most requests
            and _wants_marks(environ, response_format=response_format)
            and not markdown
            and has_draft_permission(actor, type_.uid)
        )
        # For other clients, the cached response can be the document ID as Markdown.
        is_exact = EXACT_ID in environ and document_id.endswith(ENDING)
        kept = None if marked or is_exact else cache.get(key)
        if kept is not None and (kept.users is None or kept.users == users().version):
            return kept.answer
        if len(environ.get("QUERY_STRING", "")) > MAX_LOOP_QUERY_CHARS:
            environ[BUDGET].leave_loop()
        params = parse_query(environ.get("QUERY_STRING", ""))
        if not params.keys() <= WITH_EFFECT and not state.settings.api.strict_params:
            self.hints.note_parameters(params, state.settings)
        reader = Reader(
            state, type_, actor, response_format=response_format, users=users, budget=environ[BUDGET]
        )
        wanted = to_nfc(wsgi_text(document_id)) or None
        read = self._render_requested(environ, reader, params, wanted, markdown=markdown)
        if marked and not read.is_markdown:  # Not cached, because only previews request source maps.
            body = mark(read.body, type_, state, environ[BUDGET])
            return _represent(Answer(body, cache_control=NO_STORE, vary=READ_VARY), environ, state)
        # Past commits never change, so their responses have no cache tags.
        tags = ((CACHE_TAG, read.cache_tags),) if read.cache_tags and not commit else ()
        kind = MARKDOWN_TYPE if read.is_markdown else JSON
        answer = Answer(read.body, content_type=kind, etag=read.etag, vary=READ_VARY, headers=tags)
        shown = _represent(answer, environ, state)
        if shown.body and len(read.body) <= MAX_RESPONSE_BYTES and (at is None or at.has_all_images):
            cache.put(key, CachedResponse(shown, read.users))
        return shown

    def _render_requested(
        self, environ: Environ, reader: Reader, params: Params, requested_id: str | None, *, markdown: bool
    ) -> Rendering:
        """Render the requested document or list.

        An id such as `fog.md` requests the document `fog` as Markdown, unless there is a document `fog.md` or
        `environ` contains EXACT_ID.
        """
        try:
            return (
                read_markdown(reader, params, requested_id) if markdown else reader.get(params, requested_id)
            )
        except NotFoundError as error:
            if not requested_id:
                raise
            document_id = requested_id if EXACT_ID in environ else requested_id.removesuffix(ENDING)
            if document_id and document_id != requested_id:
                with suppress(NotFoundError):
                    return read_markdown(reader, params, document_id)
            if COMMIT not in environ:
                self._add_new_id(environ, reader, params, document_id, error)
            raise

    def _add_new_id(
        self, environ: Environ, reader: Reader, params: Params, document_id: str, error: NotFoundError
    ) -> None:
        """Add the new id of a renamed document to `error`, unless the actor may not know one of its ids."""
        former = reader.type.uid, document_id
        with suppress(ApiError):
            if not self.former_ids.is_known(reader.state, former):
                if IN_PLACE in environ:
                    raise NeedsThreadPool(costly=True)
                environ[BUDGET].take_turn()
            drafts = has_draft_permission(reader.actor, reader.type.uid)
            new_id = self.former_ids.new_id(reader.state, former, with_drafts=drafts)
            if new_id:
                reader.get(params, new_id)
                error.details["renamedTo"] = new_id


def _headers(environ: Environ, state: State) -> tuple[Header, ...]:
    headers = cors_headers(state.settings.api.cors, environ.get("HTTP_ORIGIN", ""))
    if environ.get("wsgi.url_scheme") == "https":
        headers = (*headers, HSTS)
    if COOKIE_USED in environ:
        headers = (*headers, COOKIE_VARY)
    if COMMIT in environ:
        return (*headers, (COMMIT_HEADER, environ[COMMIT].id))
    varies = environ["REQUEST_METHOD"] in READ_METHODS and area_of(environ["PATH_INFO"]).varies_by_commit
    return (*headers, (COMMIT_HEADER, commit_of(state))) if state.commit and varies else headers


def _counter(rate: str, table: CountTable | None) -> Count | None:
    if not rate:
        return None
    limiter = import_module("server.api.limiting.limiter").Limiter
    return cast(Count, limiter(rate, table or CountTable()).count)


def _changes_site(environ: Environ) -> bool:
    reads = environ["REQUEST_METHOD"] in (*READ_METHODS, "OPTIONS")
    return not reads and area_of(environ["PATH_INFO"]).writes_site


def _wants_marks(environ: Environ, *, response_format: ResponseFormat) -> bool:
    return environ.get("HTTP_STRAPI_ENCODE_SOURCE_MAPS") == "true" and response_format is ResponseFormat.V5


def _postpone() -> NoReturn:
    raise NeedsThreadPool(accounts=True)


def _leave_loop() -> NoReturn:
    raise NeedsThreadPool(long=True)


def _represent(answer: Answer, environ: Environ, state: State) -> Representation:
    return represent(answer, environ, cors_vary(state.settings.api.cors))
