"""The matrix: see `tests.matrix`."""

import logging
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from random import Random
from typing import Any

import pytest

from server.api.operations.json_schema import body_of as body_of_json
from server.api.operations.json_schema import in_query
from server.api.operations.operation import Audience, Docs, Operation
from server.api.operations.permission import anyone
from server.api.operations.table import OPERATIONS
from server.api.webhooks import body_of
from server.auth.permissions import Actor
from server.events.database import EventDatabase
from tests.auth.test_attempts import StoppedClock
from tests.matrix.compare import LENGTH, TAG, Shown, difference, find_leaks, secrets_in
from tests.matrix.requests import KNOWN_TAG, KNOWN_UNDO, VARIATIONS, Request, make_request, vary
from tests.matrix.secrets import BASE, LONGER, WORDS, Group, Secrets, probes
from tests.matrix.sites import EVERY, IDENTITIES, Family, Identity, Twin, families, make_twin
from tests.torture import LONG, SEED

pytestmark = pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")

REQUESTS = 100_000 if LONG else 5_000
IN_MOTION = frozenset({"metrics"})  # Operations whose answers are of this moment; no secret may be in them.
# Operations that send mails, later: that one could not be sent is logged with the address.
MAILS = frozenset({"forgotPassword", "sendConfirmation"})
MAX_TOLD = 20  # findings
# Operations that have most of the secrets behind them are asked more often.
_OFTEN = tuple(
    o for o in OPERATIONS if o.kind or o.path.startswith(("/history", "/search", "/branches", "/events"))
)


class Logged(logging.Handler):
    """All that is logged, as text."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.setFormatter(logging.Formatter("%(message)s"))
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep one line, with its traceback."""
        self.lines.append(self.format(record).lower())


@pytest.fixture
def logged() -> Iterator[Logged]:
    handler, root = Logged(), logging.getLogger()
    before, own = root.level, logging.getLogger("quire").level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    logging.getLogger("quire").setLevel(logging.DEBUG)
    yield handler
    root.removeHandler(handler)
    root.setLevel(before)
    logging.getLogger("quire").setLevel(own)


def send(twin: Twin, identity: Identity, request: Request) -> Shown:
    """Send a request to a twin in somebody's name."""
    place = (identity.name, request.path.partition("?")[0])
    headers = {
        name: twin.tags.get(place, '"none"') if value == KNOWN_TAG else value
        for name, value in request.headers.items()
    }
    options: dict[str, Any] = {"json": request.body} if request.body is not None else {}
    if request.form:
        options = {"data": {**request.form, "files": (BytesIO(b"A new file"), "new.txt")}}
    path = request.path.replace(KNOWN_UNDO, twin.undo.get(identity.name, "none"))
    answer = twin.api.ask(request.method, path, identity.name, headers=headers, **options)
    if tag := answer.headers.get("ETag"):
        twin.tags[place] = tag
    if undo := answer.headers.get("Quire-Undo"):
        twin.undo[identity.name] = undo
    return Shown.of(answer)


def plan(random: Random, audience: Audience, rounds: int) -> list[Request]:
    """Requests of every operation, in a long run with every variation, and then of those that matter most.

    Most reads come before the first write, since all that is written has a time and an id of its own.
    """
    made: list[Request] = []
    for number, operation in enumerate(OPERATIONS):
        chosen = VARIATIONS if LONG else [VARIATIONS[number % len(VARIATIONS)]]
        made += [vary(make_request(random, operation, audience), variation) for variation in chosen]
    while len(made) < rounds:
        operation = random.choice(_OFTEN if random.random() < 0.7 else OPERATIONS)
        made.append(make_request(random, operation, audience))
    made.sort(key=lambda request: request.method not in ("GET", "HEAD") or random.random() < 0.3)
    return [*made, Request("findEvents", "GET", "/events?since=0&limit=1000")]


def audience_of(twin: Twin) -> Audience:
    """For whom the operations describe what they take."""
    state = twin.api.site.state
    return Audience(Actor("full", everything=True), Actor("public"), state.schema, state.settings)


class Matrix:
    """Asks all families, and keeps what it finds."""

    def __init__(self, made: list[Family], logged: Logged) -> None:
        self.families, self.logged = made, logged
        self.found: list[str] = []
        self.mailed: set[str] = set()  # words of addresses that mails were asked for
        self.asked: Counter[str] = Counter()
        self.statuses: Counter[int] = Counter()

    def ask(self, request: Request) -> None:
        """Ask every twin in the name of every identity."""
        self.logged.lines.clear()
        for family in self.families:
            for identity in family.identities:
                answers = [send(twin, identity, request) for twin in family.twins]
                self.asked[request.operation] += len(answers)
                self.statuses.update(shown.status for shown in answers)
                self._judge(identity, request, family, answers)
        self.judge_log(request)

    def judge_log(self, request: Request) -> None:
        """Look at what was logged during a request."""
        self.mailed |= {word for word in WORDS if word in request.text and request.operation in MAILS}
        for line in self.logged.lines:
            for word in secrets_in(line, request) - self.mailed:
                self._tell(f"log of {word}", "", request, line[:500])

    def _judge(self, identity: Identity, request: Request, family: Family, answers: list[Shown]) -> None:
        for shown in answers:
            if shown.status >= 500 and shown.status != 503:
                self._tell("error", identity.name, request, shown.text[:500])
            for word in find_leaks(identity, request, shown):
                self._tell(f"leak of {word}", identity.name, request, shown.text[:1500])
        busy = any(shown.status == 503 for shown in answers)  # on a machine that has much else to do
        if busy or request.operation in IN_MOTION:
            return
        told = difference(identity, request, family.twins, answers)
        if told.startswith((TAG, LENGTH)) and not all(shown.body for shown in answers):
            # A tag stands for bytes, which may be random: those of the same read with its body.
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
        """Look at what a webhook would be sent of every event."""
        hidden = {word for group in (Group.NEVER, Group.PRIVATE) for word in probes(group)}
        nothing = Request("webhook", "POST", "")
        for family in self.families:
            for twin in family.twins:
                for event in EventDatabase(twin.api.root).read(0, 10_000):
                    body = body_of(twin.api.site.state, event).decode()
                    self.found += [f"webhook: {one} in {body}" for one in secrets_in(body, nothing) & hidden]


def test_no_identity_is_told_of_a_secret_that_it_may_not_see(
    tmp_path: Path, logged: Logged, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("server.auth.attempts.time", StoppedClock())
    random = Random(SEED)
    with families(tmp_path, every_kind=LONG) as made:
        matrix = Matrix(made, logged)
        each = sum(len(family.identities) * len(family.twins) for family in made)
        for request in plan(random, audience_of(made[0].twins[0]), REQUESTS // each):
            matrix.ask(request)
            if len(matrix.found) >= MAX_TOLD:
                break
        matrix.judge_webhooks()
    print(f"{matrix.asked.total():,} requests:", dict(sorted(matrix.statuses.items())))
    assert not matrix.found, "\n".join(matrix.found[:MAX_TOLD])
    assert matrix.asked.keys() == {operation.id for operation in OPERATIONS}
    assert [identity for family in made for identity in family.identities] == [*IDENTITIES]


# --- the matrix itself ----------------------------------------------------------------------------


def test_secrets_that_are_shown_are_found(tmp_path: Path, logged: Logged) -> None:
    """Somebody with full access, of whom the matrix is told that they may see nothing."""
    twins = tuple(make_twin(tmp_path / str(kind), Secrets(EVERY, kind)) for kind in (BASE, LONGER))
    matrix = Matrix([Family((Identity("full"),), twins)], logged)
    for path in (
        "/api/articles/a1?status=draft",
        "/api/vaults",
        "/api/articles/a1?at=main~4",
        "/api/articles/a1?at=next",
        "/source/articles/a1",
    ):
        matrix.ask(Request("findDocument", "GET", path))
    leaks = {found.partition(" (")[0] for found in matrix.found if found.startswith("leak")}
    shown = EVERY - {Group.NEVER}
    assert leaks == {f"leak of {probes(group)[kind]}" for group in shown for kind in (BASE, LONGER)}
    matrix.found.clear()
    matrix.ask(Request("findDocument", "HEAD", "/api/vaults"))
    guess = f"filters[title][$startsWith]={probes(Group.HIDDEN)[0]}&fields=id"
    matrix.ask(Request("findDocument", "GET", f"/api/vaults?{guess}"))
    assert [found.partition(":")[0] for found in matrix.found] == ["difference (full)"] * 2
    matrix.found.clear()
    logging.getLogger("quire").info("It is %s", Secrets().text(Group.NEVER, "pin"))
    matrix.judge_log(Request("findDocument", "GET", "/api/vaults"))
    assert len(matrix.found) == 1
    for twin in twins:
        twin.api.accounts.close()


def test_an_operation_is_asked_by_what_its_row_says(tmp_path: Path) -> None:
    body = body_of_json({"type": "object", "properties": {"of": {"type": "integer"}}, "required": ["of"]})
    docs = Docs("Something new", {}, [in_query("thing", {"type": "string"}, required=True)], body)
    new = Operation("new", "POST", "/new/{thing}/of/{documentId:path}", anyone, docs)
    twin = make_twin(tmp_path / "site", Secrets())
    made = [make_request(Random(seed), new, audience_of(twin)) for seed in range(50)]
    assert {request.operation for request in made} == {"new"}
    assert all(new.matches(request.path.partition("?")[0]) for request in made)
    assert any("thing=" in request.path for request in made)
    assert any(request.body and "of" in request.body for request in made)
    twin.api.accounts.close()
