"""The matrix test, which `tests.matrix` describes."""

import logging
import shutil
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from server.api.operations.json_schema import body_of as body_of_json
from server.api.operations.json_schema import in_query
from server.api.operations.operation import Audience, Docs, Operation
from server.api.operations.permission import anyone
from server.api.operations.table import OPERATIONS
from server.auth.permissions import Actor
from tests.matrix import agents
from tests.matrix.cases import make_cases
from tests.matrix.matrix import Logged, Matrix, logging_to, set_up_process
from tests.matrix.requests import VARIATIONS, Request, make_request, vary
from tests.matrix.secrets import BASE, LONGER, Group, Secrets, probes
from tests.matrix.sites import (
    EVERY,
    IDENTITIES,
    Family,
    Identity,
    Twin,
    every_kind,
    families,
    make_twin,
    two_kinds,
)
from tests.torture import LONG, SEED

pytestmark = pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")

REQUESTS = 100_000 if LONG else 3_000
# The minimum share of successful responses, among responses to identities with the permission.
MIN_SUCCESS = 0.5
MAX_TOLD = 20  # the maximum number of findings that are printed
RANDOM_AT_LEAST = 30  # the minimum number of random requests for each identity
RESTORE_EVERY = 10  # random requests until the sites are restored, because some of the requests write
# Operations that are not supported, with the reason that their error gives.
NEVER_SUCCEED = {
    "returnFromProvider": "signing in with an account of another site is not offered",
    "connectProvider": "signing in with an account of another site is not offered",
    "sitemapPart": "only sites with more than 50,000 documents have several sitemaps",
    "createRole": "roles are set in site.yaml",
    "updateRole": "roles are set in site.yaml",
    "deleteRole": "roles are set in site.yaml",
}
# Operations that are not called at random, because they would sign out or delete identities.
_ENDING = frozenset({"logout", "changePassword", "revokeSession", "updateMe", "updateUser", "deleteUser"})
_CHOSEN = tuple(o for o in OPERATIONS if o.id not in _ENDING)
# Operations that read most of the secrets are called more often.
_OFTEN = tuple(
    o for o in OPERATIONS if o.kind or o.path.startswith(("/history", "/search", "/branches", "/events"))
)


@pytest.fixture
def logged() -> Iterator[Logged]:
    with logging_to(Logged()) as handler:
        yield handler


def plan(random: Random, audience: Audience, rounds: int) -> list[Request]:
    """Return random requests.

    In a long run, they include every variation of every operation. Most reads come before the first write,
    because writes add times and ids that differ between twins.
    """
    made: list[Request] = []
    for operation in _CHOSEN if LONG else ():
        made += [vary(make_request(random, operation, audience), variation) for variation in VARIATIONS]
    for operation in OPERATIONS:
        if operation.id in NEVER_SUCCEED:
            made.append(make_request(random, operation, audience))
    while len(made) < rounds:
        operation = random.choice(_OFTEN if random.random() < 0.7 else _CHOSEN)
        request = make_request(random, operation, audience)
        made.append(vary(request, random.choice(VARIATIONS)) if random.random() < 0.2 else request)
    made += agents.random_calls(random)
    made.sort(
        key=lambda request: (
            not (request.is_read or request.method in ("GET", "HEAD")) or random.random() < 0.3
        )
    )
    return [*made, Request("findEvents", "GET", "/events?since=0&limit=1000")]


def audience_of(twin: Twin) -> Audience:
    """Return the actors for whom the operations describe their parameters."""
    state = twin.api.site.state
    return Audience(Actor("full", everything=True), Actor("public"), state.schema, state.settings)


def test_no_identity_is_told_of_a_secret_that_it_may_not_see(
    tmp_path: Path, logged: Logged, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_up_process(monkeypatch)
    random = Random(SEED)
    with families(tmp_path, every_kind if LONG else two_kinds) as made:
        matrix = Matrix(made, logged)
        for case in make_cases():
            matrix.ask_case(case)
        success, never, missing = (
            matrix.success,
            matrix.never_succeeded,
            {operation.id for operation in OPERATIONS} - matrix.operations,
        )
        each = sum(len(family.identities) * len(family.twins) for family in made)
        rounds = max((REQUESTS - matrix.requests) // each, RANDOM_AT_LEAST)
        for number, request in enumerate(plan(random, audience_of(made[0].twins[0]), rounds)):
            if number % RESTORE_EVERY == 0:
                matrix.restore()
            matrix.ask(request)
            if len(matrix.found) >= MAX_TOLD:
                break
        matrix.judge_webhooks()
        signed_in = matrix.are_signed_in()
    print(matrix.describe())
    assert not matrix.found, "\n".join(matrix.found[:MAX_TOLD])
    assert not never, "These never succeed: correct their requests in tests/matrix/cases.py"
    assert missing == NEVER_SUCCEED.keys(), "Add requests that succeed to tests/matrix/cases.py"
    assert agents.parts() <= matrix.parts, "Add calls that succeed to tests/matrix/agents.py"
    assert success >= MIN_SUCCESS
    assert matrix.operations == {operation.id for operation in OPERATIONS}
    assert [identity for family in made for identity in family.identities] == [*IDENTITIES]
    assert signed_in


# --- the matrix itself ----------------------------------------------------------------------------


def test_secrets_that_are_shown_are_found(tmp_path: Path, logged: Logged) -> None:
    """Test the matrix itself: an identity has full access, but the matrix assumes that it may not see any
    secret.
    """
    twins = tuple(make_twin(tmp_path / str(kind), Secrets(EVERY, kind)) for kind in (BASE, LONGER))
    matrix = Matrix([Family((Identity("full"),), twins)], logged)
    for path in (
        "/api/articles/a1?status=draft",
        "/api/vaults",
        "/api/articles/a1?at=main~4",
        "/api/articles/a1?at=next",
        "/source/articles/a1",
        "/tokens",
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
    matrix.ask(Request("nope", "GET", "/nope"))
    assert matrix.never_succeeded == {"nope"}
    logging.getLogger("bifolio").info("It is %s", Secrets().text(Group.NEVER, "pin"))
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


def test_addresses_of_hidden_users_are_guessed_except_where_a_taken_one_is_told_of(tmp_path: Path) -> None:
    twin = make_twin(tmp_path / "site", Secrets())
    guessed: set[str] = set()
    for operation in (o for o in OPERATIONS if o.id in {"register", "forgotPassword", "login"}):
        made = [make_request(Random(seed), operation, audience_of(twin)) for seed in range(200)]
        sent = [body for request in made if isinstance(body := request.body, dict)]
        guessed |= {
            operation.id for body in sent for word in probes(Group.HIDDEN) if f"{word}user@" in str(body)
        }
        assert operation.id != "register" or any("email" in body for body in sent)
    assert guessed == {"forgotPassword"}
    twin.api.accounts.close()
