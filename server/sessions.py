"""JSON web tokens: proof of a login, for a while, until the password changes.

The key is QUIRE_JWT_SECRET, or one made at the first start in .quire/.
"""

import os
import secrets
import time
from collections import defaultdict, deque
from pathlib import Path
from threading import Lock

import jwt

from server.errors import SetupError
from server.state import state_folder
from server.users import User

ALGORITHM = "HS256"
VARIABLE = "QUIRE_JWT_SECRET"
ATTEMPTS, WINDOW_S = 10, 15 * 60


class Sessions:
    """Makes and reads the tokens of one site."""

    def __init__(self, root: Path, lifetime_s: float) -> None:
        self._key, self.lifetime_s = _key(root), lifetime_s

    def token(self, user: User) -> str:
        """A token for a user who has just proved who it is."""
        issued = int(time.time())
        claims = {"id": user.id, "s": user.sessions, "iat": issued, "exp": issued + int(self.lifetime_s)}
        return jwt.encode(claims, self._key, ALGORITHM)

    def read(self, token: str) -> tuple[int, int] | None:
        """(user id, sessions number) of a sound token that has not expired, or None."""
        try:
            options: jwt.types.Options = {"require": ["id", "s", "exp"]}
            claims = jwt.decode(token, self._key, [ALGORITHM], options=options)
            return int(claims["id"]), int(claims["s"])
        except (jwt.PyJWTError, ValueError, TypeError):
            return None


def _key(root: Path) -> str:
    given = os.environ.get(VARIABLE)
    if given is not None:
        if len(given) < 32:
            raise SetupError(VARIABLE, None, "is shorter than 32 characters", "make a longer one at random")
        return given
    path = state_folder(root) / "jwt.key"
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return path.read_text().strip()
    with open(descriptor, "w") as file:
        file.write(secrets.token_hex(32))
    return path.read_text().strip()


class Attempts:
    """Counts failed logins for each account and address; too many, and the next has to wait."""

    def __init__(self, most: int = ATTEMPTS, window_s: float = WINDOW_S) -> None:
        self.most, self.window_s = most, window_s
        self._failed: dict[tuple[str, str], deque[float]] = defaultdict(deque)
        self._lock = Lock()

    def exhausted(self, account: str, address: str) -> bool:
        """Whether an account has been tried too often from an address."""
        with self._lock:
            return len(self._recent(account, address)) >= self.most

    def failed(self, account: str, address: str) -> None:
        """Count a failed login."""
        with self._lock:
            if len(self._failed) > 100_000:
                self._failed.clear()
            self._recent(account, address).append(time.monotonic())

    def succeeded(self, account: str, address: str) -> None:
        """Forget the failed ones."""
        with self._lock:
            self._failed.pop((account.lower(), address), None)

    def _recent(self, account: str, address: str) -> deque[float]:
        times = self._failed[(account.lower(), address)]
        while times and times[0] < time.monotonic() - self.window_s:
            times.popleft()
        return times
