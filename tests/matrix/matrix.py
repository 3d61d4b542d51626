"""The matrix: sends requests to the twins of all families, and collects leaks and differences."""

import logging
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from io import BytesIO
from typing import Any

import pytest
from argon2 import PasswordHasher

from server.api.operations.table import OPERATIONS
from server.api.webhooks import body_of
from server.events.database import EventDatabase
from tests.auth.test_attempts import StoppedClock
from tests.matrix.agents import status_of
from tests.matrix.cases import GIT_HOOK_SECRET, WHO, Case, filled
from tests.matrix.compare import LENGTH, TAG, Shown, difference, find_leaks, secrets_in
from tests.matrix.requests import KNOWN_TAG, KNOWN_UNDO, Request
from tests.matrix.secrets import WORDS, Group, probes
from tests.matrix.sites import IDENTITIES, Family, Identity, Twin

# Operations whose responses change all the time, so they are checked for secrets but not compared.
IN_MOTION = frozenset({"metrics"})
# Operations that send emails in the background. If an email can't be sent, the log contains its address.
MAILS = frozenset({"forgotPassword", "sendConfirmation"})
KEPT = frozenset(o.id for o in OPERATIONS if o.kind)  # cached in `api.response_cache`
PUBLIC, FULL = IDENTITIES[0], IDENTITIES[-1]
READS = ("GET", "HEAD", "OPTIONS")
# Password hashes that take 0.1 ms instead of a tenth of a second.
_QUICK_HASHER = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)


class Logged(logging.Handler):
    """A log handler that stores everything as text."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.setFormatter(logging.Formatter("%(message)s"))
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Store one log line, with its traceback."""
        self.lines.append(self.format(record).lower())


@contextmanager
def logging_to(handler: Logged) -> Iterator[Logged]:
    """Context manager: send everything that is logged to a handler."""
    root, own = logging.getLogger(), logging.getLogger("bifolio")
    before = root.level, own.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    own.setLevel(logging.DEBUG)
    try:
        yield handler
    finally:
        root.removeHandler(handler)
        root.setLevel(before[0])
        own.setLevel(before[1])


def set_up_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Allow unlimited login attempts, make password hashing fast, and set the secret for the git hook."""
    monkeypatch.setattr("server.auth.attempts.time", StoppedClock())
    monkeypatch.setattr("server.auth.passwords._HASHER", _QUICK_HASHER)
    monkeypatch.setattr("server.auth.passwords._NOBODY", _QUICK_HASHER.hash("nobody"))
    monkeypatch.setenv("BIFOLIO_GIT_HOOK_SECRET", GIT_HOOK_SECRET)


def send(twin: Twin, identity: Identity, request: Request, who: str = "") -> Shown:
    """Send a request to a twin as an identity.

    `who` is the token of another actor with the same permissions, which is used instead.
    """
    place = (identity.name, request.path.partition("?")[0])
    headers = {
        name: twin.tags.get(place, '"none"') if value == KNOWN_TAG else value
        for name, value in request.headers.items()
    }
    options: dict[str, Any] = {"json": request.body} if request.body is not None else {}
    if request.form:
        options = {"data": {**request.form, "files": (BytesIO(b"A new file"), "new.txt")}}
    path = request.path.replace(KNOWN_UNDO, twin.undo.get(identity.name, "none"))
    answer = twin.api.ask(request.method, path, who or identity.name, headers=headers, **options)
    if tag := answer.headers.get("ETag"):
        twin.tags[place] = tag
    if undo := answer.headers.get("Bifolio-Undo"):
        twin.undo[identity.name] = undo
    twin.written |= request.method not in READS and not request.is_read and answer.status < 400
    return Shown.of(answer)


class Matrix:
    """A test run that sends requests to all families and collects the findings."""

    def __init__(self, made: list[Family], logged: Logged) -> None:
        self.families, self.logged = made, logged
        self.found: list[str] = []
        self.mailed: set[str] = set()  # words in email addresses to which emails were requested
        self.statuses: dict[tuple[str, str], Counter[int]] = defaultdict(Counter)  # by operation and identity
        self.parts: set[str] = set()  # the parts of operations that succeeded
        self._number = 0
        self._anonymous = 0  # the status of the response to the public

    def ask(self, request: Request) -> None:
        """Send a request to every twin site as every identity."""
        self.ask_case(Case(request), restores=False)

    def ask_case(self, case: Case, *, restores: bool = True) -> None:
        """Prepare every twin site for a request, and send the request as every identity.

        With `restores`, each twin is restored before each identity's request.
        """
        self.logged.lines.clear()
        for family in self.families:
            for identity in family.identities:
                self._number += 1
                prepared: list[Mapping[str, Any]] = []
                for twin in family.twins:
                    if restores:
                        twin.restore()
                    prepared.append(case.prepare(twin, identity, self._number) if case.prepare else {})
                    twin.written |= case.prepare is not None
                if case.request.operation in KEPT and case.request.method == "GET" and identity is not FULL:
                    for twin in family.twins:  # A cached response of one identity must not reach another.
                        twin.api.ask("GET", case.request.path)
                requests = [filled(case.request, values) for values in prepared]
                answers = [
                    send(twin, identity, request, values.get(WHO, ""))
                    for twin, request, values in zip(family.twins, requests, prepared, strict=True)
                ]
                statuses = [status_of(case.request, one) for one in answers]
                self.statuses[case.request.operation, identity.name].update(statuses)
                if min(statuses) < 400:
                    self.parts.add(case.request.part)
                self._judge(identity, requests[0], family, answers)
        self.judge_log(case.request)

    def are_signed_in(self) -> bool:
        """Return whether every identity can still read articles on every twin."""
        return all(
            twin.api.get("/api/articles", identity.name).status == 200
            for family in self.families
            for identity in family.identities
            for twin in family.twins
        )

    def restore(self) -> None:
        """Undo all writes to all twin sites."""
        for family in self.families:
            for twin in family.twins:
                twin.restore()

    def judge_log(self, request: Request) -> None:
        """Check what was logged during a request."""
        self.mailed |= {word for word in WORDS if word in request.text and request.operation in MAILS}
        twins = [twin for family in self.families for twin in family.twins]
        tokens = {token.lower() for twin in twins for token in twin.api.tokens.values()}
        for line in self.logged.lines:
            if any(token in line for token in tokens):
                self._tell("log of a token", "", request, line[:500])
            for word in secrets_in(line, request) - self.mailed:
                self._tell(f"log of {word}", "", request, line[:500])

    def _judge(self, identity: Identity, request: Request, family: Family, answers: list[Shown]) -> None:
        for shown in answers:
            if shown.status >= 500 and shown.status != 503:
                self._tell("error", identity.name, request, shown.text[:500])
            for word in find_leaks(identity, request, shown):
                self._tell(f"leak of {word}", identity.name, request, shown.text[:1500])
            if identity == PUBLIC:
                self._anonymous = shown.status
            elif shown.is_public and self._anonymous >= 400:
                self._tell("kept by shared caches", identity.name, request, shown.text[:500])
        busy = any(shown.status == 503 for shown in answers)  # because the machine is busy
        if busy or request.operation in IN_MOTION:
            return
        told = difference(identity, request, family.twins, answers)
        if told.startswith((TAG, LENGTH)) and not all(shown.body for shown in answers):
            # An entity tag may depend on random bytes, so it is only compared if the bodies are identical.
            whole = replace(request, method="GET", headers={})
            answers = [send(twin, identity, whole) for twin in family.twins]
            told = difference(identity, whole, family.twins, answers)
        if told:
            self._tell("difference", identity.name, request, told[:3000])

    def _tell(self, what: str, who: str, request: Request, text: str) -> None:
        self.found.append(
            f"{what} ({who}): {request.operation} {request.method} {request.path} {dict(request.headers)} "
            f"{request.body}\n{text}\n"
        )

    def judge_webhooks(self) -> None:
        """Check what webhooks would be sent for every event."""
        hidden = {word for group in (Group.NEVER, Group.TOKEN, Group.PRIVATE) for word in probes(group)}
        nothing = Request("webhook", "POST", "")
        for family in self.families:
            for twin in family.twins:
                for event in EventDatabase(twin.api.root).read(0, 10_000):
                    body = body_of(twin.api.site.state, event).decode()
                    self.found += [f"webhook: {one} in {body}" for one in secrets_in(body, nothing) & hidden]

    @property
    def requests(self) -> int:
        """The number of requests that were sent."""
        return sum(statuses.total() for statuses in self.statuses.values())

    @property
    def operations(self) -> set[str]:
        """The operations that were called."""
        return {operation for operation, _ in self.statuses}

    @property
    def never_succeeded(self) -> set[str]:
        """The operations for which no identity received a response with status 2xx or 3xx."""
        return self.operations - {operation for operation, _ in self._able()}

    @property
    def success(self) -> float:
        """The share of responses with status 2xx or 3xx, among responses to identities that have the
        permission.
        """
        answers = Counter[int]()
        for key in self._able():
            answers += self.statuses[key]
        return sum(n for status, n in answers.items() if status < 400) / answers.total()

    def _able(self) -> set[tuple[str, str]]:
        """Pairs of operations and identities with the permission. These received 2xx or 3xx at least once."""
        return {key for key, statuses in self.statuses.items() if min(statuses) < 400}

    def describe(self) -> str:
        """Describe how many requests were sent, and how many responses had each status."""
        answers = sum(self.statuses.values(), Counter[int]())
        return f"{self.requests:,} requests, {self.success:.0%} succeed: {dict(sorted(answers.items()))}"
