"""Tests of the times at which tokens and users were last active."""

from pathlib import Path

from server.auth import last_uses
from server.auth.accounts import Accounts


def test_times_are_kept_in_the_database(tmp_path: Path) -> None:
    accounts = Accounts(tmp_path)
    accounts.last_uses.note_token("a")
    noted = accounts.last_uses.all()["token a"]
    accounts.last_uses.save()
    accounts.close()
    again = Accounts(tmp_path)
    assert again.last_uses.all() == {"token a": noted}
    again.last_uses.note_token("a")
    assert again.last_uses.all()["token a"] >= noted
    again.last_uses.forget("token a")
    again.last_uses.save()
    assert again.last_uses.all() == {}
    again.close()


def test_a_caller_is_noted_once_in_a_while(tmp_path: Path) -> None:
    accounts = Accounts(tmp_path)
    for _ in range(3):
        accounts.last_uses.note_user(1)
    assert len(accounts.last_uses._unsaved) == 1
    accounts.last_uses.save()
    accounts.last_uses.note_user(1)
    assert not accounts.last_uses._unsaved
    accounts.close()
    assert last_uses.NOTE_INTERVAL_S >= 60


def test_a_removed_database_is_not_created_again(tmp_path: Path) -> None:
    accounts = Accounts(tmp_path)
    accounts.last_uses.note_user(1)
    for path in (tmp_path / ".bifolio").glob("accounts.db*"):
        path.unlink()
    accounts.last_uses.save()
    assert not (tmp_path / ".bifolio" / "accounts.db").exists()
    accounts.close()
