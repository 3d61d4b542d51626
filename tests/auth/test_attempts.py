"""Tests of the limit for login attempts. It counts attempts with all spellings of a name, from all addresses
and processes.
"""

import sqlite3
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from server.auth.accounts import Accounts
from server.auth.attempts import AttemptLimiter, AttemptLimits
from server.auth.login_record import Attempt
from server.bounded import network_of
from tests.sites import STRING, Api, collection, make

LIMITS = AttemptLimits(pair=3, account=5, address=8)
SITE = "api: {trusted_proxies: [127.0.0.1]}\nroles: {public: {auth: [callback, register, changePassword]}}\n"
ANN = {"username": "Zoë", "email": "zoe@example.org", "password": "secret12"}


class StoppedClock:
    """A clock that moves only when a test moves it, however slow the machine is."""

    def __init__(self) -> None:
        self._now = time.time()

    def time(self) -> float:
        """Return the seconds since 1970."""
        return self._now

    def move(self, seconds: float) -> None:
        self._now += seconds


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> StoppedClock:
    stopped = StoppedClock()
    monkeypatch.setattr("server.auth.attempts.time", stopped)
    return stopped


@pytest.fixture
def accounts(tmp_path: Path) -> Iterator[Accounts]:
    accounts = Accounts(tmp_path)
    yield accounts
    accounts.close()


def attempt(account: str, address: str) -> Attempt:
    return Attempt(account, account, address)


def is_taken(attempts: AttemptLimiter, account: str, address: str) -> bool:
    return attempts.count_attempt(attempt(account, address)) is not None


def taken(attempts: AttemptLimiter, account: str, *addresses: str) -> list[bool]:
    return [is_taken(attempts, account, address) for address in addresses]


def test_an_account_is_tried_so_often_from_one_address(accounts: Accounts) -> None:
    attempts = AttemptLimiter(accounts.engine, "login", LIMITS)
    assert taken(attempts, "ann", *["1.1.1.1"] * 5) == [True] * 3 + [False] * 2
    assert taken(attempts, "ann", "1.1.1.2") == [True]
    assert taken(attempts, "bob", "1.1.1.1") == [True]
    assert taken(AttemptLimiter(accounts.engine, "mail", LIMITS), "ann", "1.1.1.1") == [True]


def test_how_long_it_takes_until_the_next_attempt_is_told(accounts: Accounts, clock: StoppedClock) -> None:
    attempts = AttemptLimiter(
        accounts.engine, "login", AttemptLimits(pair=2, account=50, address=50, window_s=2)
    )
    assert taken(attempts, "ann", *["1.1.1.1"] * 3) == [True, True, False]
    wait_s = attempts.wait_s(attempt("ann", "1.1.1.1"))
    assert 0 < wait_s <= 1
    assert attempts.wait_s(attempt("bob", "1.1.1.1")) <= 0
    clock.move(wait_s)
    assert attempts.count_attempt(attempt("ann", "1.1.1.1"))


def test_an_account_is_tried_so_often_from_all_addresses(accounts: Accounts) -> None:
    attempts = AttemptLimiter(accounts.engine, "login", LIMITS)
    assert taken(attempts, "ann", *[f"1.1.1.{i}" for i in range(7)]) == [True] * 5 + [False] * 2
    assert taken(attempts, "bob", "1.1.1.6") == [True]


def test_all_accounts_are_tried_so_often_from_one_address(accounts: Accounts) -> None:
    attempts = AttemptLimiter(accounts.engine, "login", LIMITS)
    assert [is_taken(attempts, f"user {i}", "1.1.1.1") for i in range(10)] == [True] * 8 + [False] * 2
    assert attempts.count_attempt(attempt("user 1", "1.1.1.2"))


def test_the_owner_is_not_locked_out_by_who_tries_from_elsewhere(accounts: Accounts) -> None:
    attempts = AttemptLimiter(accounts.engine, "login", LIMITS)
    attempts.record_success(attempt("ann", "9.9.9.9"), attempts.count_attempt(attempt("ann", "9.9.9.9")))
    assert not all(taken(attempts, "ann", *[f"1.1.1.{i}" for i in range(9)]))
    assert taken(attempts, "ann", *["9.9.9.9"] * 4) == [True] * 3 + [False]
    attempts.record_success(attempt("ann", "9.9.9.9"))
    assert attempts.count_attempt(attempt("ann", "9.9.9.9"))


def test_logging_in_costs_nothing(accounts: Accounts) -> None:
    attempts = AttemptLimiter(accounts.engine, "login", LIMITS)
    for i in range(30):
        found = attempts.count_attempt(attempt(f"user {i % 2}", "1.1.1.1"))
        assert found is not None
        attempts.record_success(attempt(f"user {i % 2}", "1.1.1.1"), found)


def test_an_attempt_comes_back_with_time(accounts: Accounts, clock: StoppedClock) -> None:
    attempts = AttemptLimiter(
        accounts.engine, "login", AttemptLimits(pair=2, account=9, address=9, window_s=3)
    )
    assert taken(attempts, "ann", *["1.1.1.1"] * 3) == [True, True, False]
    clock.move(1.6)
    assert taken(attempts, "ann", *["1.1.1.1"] * 2) == [True, False]


def test_of_many_at_once_no_more_than_allowed_are_let_through(tmp_path: Path) -> None:
    opened = [Accounts(tmp_path) for _ in range(4)]  # like four processes
    barrier = threading.Barrier(8)

    def take(i: int) -> bool:
        barrier.wait()
        return is_taken(AttemptLimiter(opened[i % 4].engine, "login", LIMITS), "ann", "1.1.1.1")

    with ThreadPoolExecutor(8) as pool:
        assert sorted(pool.map(take, range(8))) == [False] * 5 + [True] * 3
    for accounts in opened:
        accounts.close()


def test_what_is_counted_is_forgotten_in_time_and_says_nobodys_name(
    tmp_path: Path, clock: StoppedClock
) -> None:
    accounts = Accounts(tmp_path)
    short = AttemptLimiter(
        accounts.engine, "login", AttemptLimits(pair=9, account=9, address=9, window_s=0.01)
    )
    for i in range(50):
        short.count_attempt(attempt("ann" + "x" * 10_000 + str(i), f"1.1.1.{i}"))
    clock.move(0.05)
    short.count_attempt(attempt("ann", "1.1.1.1"))
    accounts.close()
    with sqlite3.connect(tmp_path / ".bifolio/accounts.db") as database:
        assert database.execute("SELECT count(*), max(length(key)) FROM attempts").fetchone() == (3, 64)
    database.close()
    assert b"1.1.1.1" not in (tmp_path / ".bifolio/accounts.db").read_bytes()


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("1.2.3.4", "1.2.3.4"),
        ("::ffff:1.2.3.4", "1.2.3.4"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff::1", "2001:db8:1:2::/64"),
        ("", ""),
        ("no address", "no address"),
    ],
)
def test_whose_an_address_is(address: str, network: str) -> None:
    assert network_of(address) == network


# --- over HTTP ------------------------------------------------------------------------------------


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    api = make(tmp_path, {**collection("note", {"text": STRING}), "site.yaml": SITE})
    assert api.ask("POST", "/api/auth/local/register", "public", json=ANN).status == 200
    yield api
    api.accounts.close()


def login(
    api: Api, identifier: str, password: str = "wrong", address: str = "1.1.1.1", device: str = ""
) -> int:
    form = {"identifier": identifier, "password": password, **({"deviceId": device} if device else {})}
    headers = {"X-Forwarded-For": address}
    return api.ask("POST", "/api/auth/local", "public", json=form, headers=headers).status


def test_all_spellings_of_an_identifier_are_one(api: Api) -> None:
    for spellings in (
        ("Zoë", "zoë", " ZOË", "Zoe\u0308", "\u00a0zoë\u3000"),
        ("zoe@example.org", "ZOE@Example.org ", "\u00a0zoe@example.org"),
    ):
        statuses = [login(api, spelling) for spelling in spellings * 4]
        assert statuses == [400] * 10 + [429] * (len(statuses) - 10)
        assert login(api, spellings[0], "secret12") == 429
        assert login(api, spellings[0], "secret12", "1.1.1.2") == 200


def test_what_is_counted_does_not_tell_whose_address_it_is(api: Api) -> None:
    assert [login(api, "Zoë") for _ in range(11)] == [400] * 10 + [429]
    assert login(api, "zoe@example.org") == login(api, "nobody@example.org") == 400


def test_a_name_and_an_address_count_for_the_account_together(api: Api) -> None:
    spellings = ("Zoë", "zoe@example.org")
    statuses = [login(api, spellings[i % 2], "wrong", f"1.1.{i}.1") for i in range(103)]
    assert statuses == [400] * 100 + [429] * 3


def test_an_owner_is_known_by_name_and_by_address(api: Api) -> None:
    assert login(api, "Zoë", "secret12", "9.9.9.9") == 200
    for i in range(101):
        login(api, "Zoë", "wrong", f"1.1.{i}.1")
    assert login(api, "zoe@example.org", "secret12", "8.8.8.8") == 429
    assert login(api, "zoe@example.org", "secret12", "9.9.9.9") == 200


def test_a_refused_login_says_when_the_next_may_be_tried(api: Api) -> None:
    for _ in range(10):
        login(api, "zoe@example.org")
    form = {"identifier": "zoe@example.org", "password": "wrong"}
    answer = api.ask("POST", "/api/auth/local", "public", json=form, headers={"X-Forwarded-For": "1.1.1.1"})
    assert answer.error["name"] == "RateLimitError"
    assert 0 < int(answer.headers["Retry-After"]) <= 90


def test_all_spellings_of_a_name_that_nobody_has_are_one(api: Api) -> None:
    spellings = ("nobody", " Nobody", "NOBODY\u00a0", "\u3000nobody\u3000", "ｎobody")
    assert [login(api, spelling) for spelling in spellings * 3] == [400] * 10 + [429] * 5


def test_a_name_in_another_case_does_not_log_in_but_counts_for_the_account(api: Api) -> None:
    assert [login(api, "ZOË", "secret12") for _ in range(10)] == [400] * 10
    assert login(api, "Zoë", "secret12") == 429


@pytest.mark.parametrize("identifier", ["  Zoe\u0308 ", "\u3000Zoë\u00a0", "ZOE@example.org"])
def test_other_spellings_log_in(api: Api, identifier: str) -> None:
    assert login(api, identifier, "secret12") == 200


def test_many_accounts_can_not_be_tried_from_one_address(api: Api) -> None:
    statuses = [login(api, f"user{i}") for i in range(103)]
    assert statuses == [400] * 100 + [429] * 3
    assert login(api, "Zoë", "secret12", "2.2.2.2") == 200


def test_an_owner_gets_in_while_others_try_from_everywhere(api: Api) -> None:
    assert login(api, "Zoë", "secret12", "9.9.9.9") == 200
    statuses = [login(api, "Zoë", "wrong", f"1.1.{i}.1") for i in range(110)]
    assert statuses.count(400) == 100
    assert login(api, "Zoë", "secret12", "9.9.9.9") == 200


def test_another_worker_has_counted_as_well(api: Api) -> None:
    assert [login(api, "Zoë") for _ in range(10)] == [400] * 10
    api.accounts.revoke_token("full")
    other = Api.of(api.site)
    assert login(other, "Zoë", "secret12") == 429
    other.accounts.close()


# --- known devices --------------------------------------------------------------------------------

DEVICE = "0b6f2a3c-5d1e-4f7a-9c8b-2e4d6f8a0c1e"
BOB = {"username": "Bob", "email": "bob@example.org", "password": "secret34"}


def use_up(api: Api, address: str = "1.1.1.1") -> None:
    """Try to log in with different names from one address until the limit is reached."""
    assert [login(api, f"user{i}", address=address) for i in range(101)][-2:] == [400, 429]


def test_a_known_device_signs_in_from_an_address_that_others_have_used_up(api: Api) -> None:
    assert login(api, "Zoë", "secret12", "9.9.9.9", DEVICE) == 200
    use_up(api)
    assert login(api, "Zoë", "secret12") == 429
    assert login(api, "Zoë", "secret12", device="another device, never seen") == 429
    for identifier in ("Zoë", "zoe@example.org") * 6:
        assert login(api, identifier, "secret12", device=DEVICE) == 200


def test_a_known_device_may_guess_a_few_times_whatever_it_is_called(api: Api) -> None:
    devices = [f"{DEVICE}{i}" for i in range(3)]
    for device in devices:
        assert login(api, "Zoë", "secret12", "9.9.9.9", device) == 200
    use_up(api)
    assert [login(api, "Zoë", device=devices[i % 3]) for i in range(7)] == [400] * 5 + [429] * 2
    assert login(api, "Zoë", "secret12", device=DEVICE) == 429


def test_a_login_of_ones_own_gives_no_attempt_at_others_back(api: Api) -> None:
    assert api.ask("POST", "/api/auth/local/register", "public", json=BOB).status == 200
    assert login(api, "Bob", "secret34", "9.9.9.9", DEVICE) == 200
    use_up(api)
    for _ in range(5):
        assert login(api, "Bob", "secret34", device=DEVICE) == 200
        assert login(api, "Zoë", device=DEVICE) == 429


def test_a_device_is_known_for_its_own_account_and_by_a_long_id(api: Api) -> None:
    assert api.ask("POST", "/api/auth/local/register", "public", json=BOB).status == 200
    assert login(api, "Bob", "secret34", "9.9.9.9", DEVICE) == 200
    assert login(api, "Zoë", "secret12", "9.9.9.9", "phone") == 200
    use_up(api)
    assert login(api, "Zoë", "secret12", device=DEVICE) == 429
    assert login(api, "Zoë", "secret12", device="phone") == 429


def test_a_device_is_known_for_ninety_days(api: Api, clock: StoppedClock) -> None:
    assert login(api, "Zoë", "secret12", "9.9.9.9", DEVICE) == 200
    clock.move(91 * 24 * 3600)
    use_up(api)
    assert login(api, "Zoë", "secret12", device=DEVICE) == 429
