"""Limits the requests of each client. Loaded where a site asks for it, since few do and it takes long."""

from flask import Flask
from flask_limiter import Limiter
from flask_limiter.util import get_remote_address


def limit(app: Flask, rate: str) -> None:
    """Answer 429 to a client that sends more requests than `rate` (`100 per minute`)."""
    Limiter(
        get_remote_address,
        app=app,
        default_limits=[rate],
        storage_uri="memory://",
        headers_enabled=True,
    )
