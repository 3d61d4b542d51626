"""Files that contain the generated secrets of webhooks.

After a rotation, the second line contains the previous secret and the time at which it expires.
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from server.config.webhooks import Webhook, check_secret
from server.errors import SetupError, StorageError
from server.events.webhooks.http_client import new_secret
from server.paths import keep_private, state_folder
from server.storage.durable import create_private_file, stage, sync_folder

OVERLAP_S = 24 * 3600.0  # how long requests are also signed with the previous secret
_FIX_HINT = "check its permissions, or delete it to get a new secret, which you must give to the receivers"


def secrets_of(root: Path, webhook: Webhook, now: float | None = None) -> tuple[str, ...]:
    """Return the secrets with which a webhook's requests are signed. If there is none, create one.

    The caller must make sure that the webhook is not deleted at the same time. Otherwise, its secret file
    would remain. Raises SetupError if the file can't be used, or StorageError if it can't be created.
    """
    if webhook.secrets:
        return webhook.secrets
    found = _read_or_create(root, webhook.name)
    now = time.time() if now is None else now
    return (found[0][0], *(secret for secret, until in found[1:] if now < until < now + 2 * OVERLAP_S))


def overlap_until(root: Path, webhook: Webhook, now: float) -> float | None:
    """Return the time until which requests are also signed with the previous secret, or None if they are not.

    Raises SetupError if the secret file can't be used.
    """
    if webhook.secrets:
        return None
    later = [until for _, until in _read(root, webhook.name)[1:] if now < until < now + 2 * OVERLAP_S]
    return later[0] if later else None


def rotate(root: Path, webhook: Webhook) -> str:
    """Generate a new secret for a webhook. The old secret stays valid for OVERLAP_S seconds.

    Raises SetupError if the secret is in site.yaml, or StorageError if the secret file can't be written.
    """
    if webhook.secrets:
        place = f"the secret of webhook {webhook.name} is in site.yaml"
        raise SetupError(place, None, "can't be rotated by this command", "write secret: [NEW, OLD] there")
    before, made = _read_or_create(root, webhook.name)[0][0], new_secret()
    with replacing(root, webhook.name, f"{made}\n{before} {time.time() + OVERLAP_S:.0f}\n"):
        pass
    return made


@contextmanager
def replacing(root: Path, name: str, text: str) -> Iterator[None]:
    """Context manager: write a new secret file, and replace the old one with it after the block has run.

    If the block fails, the old file is kept. Raises StorageError if a file can't be written.
    """
    with _writing(name):
        path = _path(root, name)
        staged = path.with_name(f"{path.name}.{os.getpid()}")
        staged.unlink(missing_ok=True)
        stage(text.encode(), staged, 0o600)
    try:
        yield
        with _writing(name):
            os.replace(staged, path)
            sync_folder(path.parent)
    finally:
        staged.unlink(missing_ok=True)


def discard(root: Path, name: str) -> None:
    """Delete the generated secret of a deleted webhook. Raises StorageError if the file can't be deleted."""
    with _writing(name):
        _path(root, name).unlink(missing_ok=True)


@contextmanager
def _writing(name: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        file = f".bifolio/webhooks/{name}.secret"
        raise StorageError(f"{file} can't be written: {error.strerror or error}") from error


def _read_or_create(root: Path, name: str) -> list[tuple[str, float]]:
    found = _read(root, name)
    if not found:
        with _writing(name):
            create_private_file(_path(root, name), f"{new_secret()}\n".encode())
    return found or _read(root, name)


def _read(root: Path, name: str) -> list[tuple[str, float]]:
    # Returns the secrets and their expiry times, or [] if the file is missing.
    try:
        path = _path(root, name)
        if not path.exists():
            return []
        keep_private(path)
        lines = [line.split() for line in path.read_text("ascii").splitlines()]
        secrets = [(line[0], float(line[1]) if len(line) > 1 else 0.0) for line in lines]
    except (OSError, ValueError, IndexError) as error:
        raise _unusable(name, getattr(error, "strerror", None) or "it is damaged") from error
    if not secrets or any(check_secret(secret) for secret, _ in secrets):
        raise _unusable(name, "it is damaged")
    return secrets


def _path(root: Path, name: str) -> Path:
    folder = state_folder(root) / "webhooks"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder / f"{name}.secret"


def _unusable(name: str, reason: str) -> SetupError:
    return SetupError(f".bifolio/webhooks/{name}.secret", None, f"can't be used: {reason}", _FIX_HINT)
