"""What site.yaml says of a bucket of media: its address, and the URLs that lead to it."""

import re
from collections.abc import Iterator
from urllib.parse import urlsplit

from server.config import values
from server.errors import SetupError
from server.formats.config_file import ConfigFile

# Names of buckets as S3 allows them, and keys that need no escaping in a URL.
_STORE = re.compile(r"s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[A-Za-z0-9_-][A-Za-z0-9._-]*)*/?")
SERVE = ("redirect", "stream", "sign")
CREDENTIALS = "credentials come from the environment: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
_SECRET = re.compile(r"access|secret|token|key|password|credential", re.IGNORECASE)


def store(file: ConfigFile, default: str, *at: str) -> str:
    """Where media are: `s3://BUCKET/PREFIX`, without a slash at its end."""
    written = values.text(file, default, *at)
    if written and not _STORE.fullmatch(written):
        fix = CREDENTIALS if "@" in written else "write s3://BUCKET or s3://BUCKET/PREFIX"
        raise file.refuse(f'"{".".join(at)}" is no address of a bucket', fix, *at)
    return written.rstrip("/")


def web_url(file: ConfigFile, default: str, *at: str) -> str:
    """A URL of HTTP without credentials, a query and a slash at its end."""
    written = values.text(file, default, *at)
    if not written:
        return written
    try:
        parts = urlsplit(written)
    except ValueError as error:
        raise file.refuse(f'"{written}" is no URL', "write it as https://example.org/path", *at) from error
    if "@" in parts.netloc:
        raise file.refuse(f'"{".".join(at)}" has credentials in it', CREDENTIALS, *at)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise file.refuse(f'"{written}" is no URL', "write it as https://example.org/path", *at)
    return written.rstrip("/")


def serve(file: ConfigFile, default: str, *at: str) -> str:
    """How files of a bucket are answered: one of SERVE."""
    written = values.text(file, default, *at)
    if written and written not in SERVE:
        raise file.refuse(f'{at[-1]} is "{written}"', f"use {', '.join(SERVE)}", *at)
    return written


def fix_of_secret(path: tuple[str, ...]) -> str:
    """How to fix a key that seems to be for credentials of the bucket; "" for any other."""
    return CREDENTIALS if path[0] == "media" and _SECRET.search(path[-1]) else ""


def check(store: str, public_url: str, serve: str, file: ConfigFile) -> Iterator[SetupError]:
    """What the keys of `media` say that does not go together."""
    if serve == "redirect" and not public_url:
        what = "media.serve is redirect, and nothing says where to"
        yield file.refuse(what, "set media.public_url, or use stream or sign", "media", "serve")
    if not store and (public_url or serve):
        key = "public_url" if public_url else "serve"
        what = f"media.{key} is for media in a bucket, and none is set"
        yield file.refuse(what, "set media.store", "media", key)
