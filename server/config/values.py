"""Readers for single values in site.yaml.

Readers return the default if a value is missing, and raise SetupError if the value is invalid.
"""

import re
from collections.abc import Mapping
from datetime import timedelta
from ipaddress import ip_network
from typing import Any

from server.formats.config_file import ConfigFile
from server.formats.text_positions import attribute_path
from server.formats.tree import Tree, is_null, resolve_plain_values

# --- durations ------------------------------------------------------------------------------------

_DURATION = re.compile(r"([0-9]{1,6})([smhdwy])")
_SECONDS_OF_UNIT = {
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
    "y": timedelta(days=365),
}
_MAX_DURATION = 2000 * _SECONDS_OF_UNIT["y"]  # Python's dates only go up to the year 9999.


def parse_duration(text: str) -> timedelta:
    """Parse a duration such as `90m`. Raises ValueError if the text is not a duration."""
    matched = _DURATION.fullmatch(text.strip())
    duration = int(matched[1]) * _SECONDS_OF_UNIT[matched[2]] if matched else timedelta()
    if not timedelta() < duration <= _MAX_DURATION:
        raise ValueError(text)
    return duration


# --- values ---------------------------------------------------------------------------------------

LOCALE = re.compile(r"[A-Za-z]{2,3}([-_][A-Za-z0-9]{2,8})*")
_SIZE = re.compile(r"(\d{1,12})\s*([kKmMgG]?)[bB]?")
_UNITS = {"": 1, "k": 1000, "m": 1000**2, "g": 1000**3}
# The header `Origin` in requests from browsers is in lower case and omits the default port.
_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://([a-z0-9._-]+|\[[0-9a-f:.]+\])(:[1-9]\d{0,4})?")
_PERSON = re.compile(r"[^<>\x00-\x1f\x7f]*[^<>\x00-\x20\x7f] <[^<>\s\x00-\x1f\x7f]*>")
_RATE = re.compile(r"(0*[1-9]\d{0,8}) (?:per|/) ?(0*[1-9]\d{0,5})? ?(second|minute|hour|day)s?")
MAX_COUNT = 10**12  # SQLite stores integers of up to 64 bits.
_RATE_STORE = re.compile(r"memory|rediss?://\S+|env:\w+")


def read_section(file: ConfigFile, *key_path: str) -> Mapping[str, Tree]:
    value = file.get(*key_path)
    if is_null(value):
        return {}
    if not isinstance(value, dict):
        raise file.refuse_value("be a mapping", 'write it as lines such as "key: value"', *key_path)
    return value


def text(file: ConfigFile, default: str, *key_path: str) -> str:
    value = file.get(*key_path)
    if is_null(value):
        return default
    if not isinstance(value, str):
        raise file.refuse_value("be a string", "write a single string", *key_path)
    return str(value)


def read_count(file: ConfigFile, default: int, *key_path: str) -> int:
    """Read a positive integer."""
    value = scalar(file, *key_path)
    if value is None:
        return default
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        fix = f"write a number such as {default}" if default else ""
        raise file.refuse_value("be a whole number above 0", fix, *key_path)
    if value > MAX_COUNT:
        raise file.refuse_value(f"be at most {MAX_COUNT}", "write a smaller number", *key_path)
    return value


def flag(file: ConfigFile, default: bool, *key_path: str) -> bool:
    value = scalar(file, *key_path)
    if value is None:
        return default
    if not isinstance(value, bool):
        raise file.refuse_value("be true or false", "", *key_path)
    return value


def scalar(file: ConfigFile, *key_path: str | int) -> Any:
    try:
        return resolve_plain_values(file.get(*key_path))
    except ValueError as error:
        raise file.refuse(
            f"{attribute_path(key_path)}: {error}", "use a different value", *key_path
        ) from error


def size(file: ConfigFile, default: int, *key_path: str) -> int:
    # Such as `200 MB`, `512 kB` or `1000`.
    written = parse_size(text(file, str(default), *key_path))
    if written is None:
        raise file.refuse_value("be a size in bytes, kB, MB or GB", "write a size such as 200 MB", *key_path)
    return written


def parse_size(text: str) -> int | None:
    """Return the number of bytes in a size such as `200 MB`, or None if the text is not a size."""
    matched = _SIZE.fullmatch(text.strip())
    return int(matched[1]) * _UNITS[matched[2].lower()] if matched else None


def read_duration(file: ConfigFile, default: timedelta, *key_path: str) -> timedelta:
    """Read a duration such as `30d`."""
    if not (written := text(file, "", *key_path)):
        return default
    try:
        return parse_duration(written)
    except ValueError as error:
        raise file.refuse_value(
            "be a duration", "write a duration such as 30d, 12h or 1y", *key_path
        ) from error


def read_commit_delay(file: ConfigFile, default: timedelta | None, *key_path: str) -> timedelta | None:
    """Read the delay before writes are committed: zero for `each`, `default` for `off`."""
    written = text(file, "", *key_path)
    if written in ("", "off", "each"):
        return timedelta() if written == "each" else default
    try:
        return parse_duration(f"{written}s" if written.isdecimal() else written)
    except ValueError as error:
        must = 'be "off", "each" or a duration'
        raise file.refuse_value(must, "write a duration such as 30s", *key_path) from error


def read_retention(
    file: ConfigFile, default: tuple[timedelta | None, int | None], *key_path: str
) -> tuple[timedelta | None, int | None]:
    """Read the maximum age or the maximum number of events.

    The setting contains only one of the two. The other is returned as None.
    """
    written = file.get(*key_path)
    if is_null(written):
        return default
    if isinstance(scalar(file, *key_path), int):
        return None, read_count(file, 0, *key_path)
    return read_duration(file, timedelta(), *key_path), None


def person(file: ConfigFile, default: str, *key_path: str) -> str:
    written = text(file, default, *key_path)
    if not _PERSON.fullmatch(written):
        raise file.refuse_value(
            "be a name and an e-mail address", "write it as Name <name@example.org>", *key_path
        )
    return written


def rate(file: ConfigFile, default: str, *key_path: str) -> str:
    written = text(file, default, *key_path)
    if written and not _RATE.fullmatch(written):
        raise file.refuse_value("be a rate limit", "write a limit such as 100 per minute", *key_path)
    return written


def parse_rate(text: str) -> tuple[int, timedelta]:
    """Parse a rate such as `100 per minute`. Return the number of requests and the period.

    Raises ValueError if the text is not a rate.
    """
    matched = _RATE.fullmatch(text)
    if not matched:
        raise ValueError(text)
    return int(matched[1]), int(matched[2] or 1) * _SECONDS_OF_UNIT[matched[3][0]]


def read_rate_store(file: ConfigFile, default: str, *key_path: str) -> str:
    """Read where requests are counted: `memory`, the URL of a Redis server, or `env:NAME`."""
    written = text(file, default, *key_path)
    if written and not _RATE_STORE.fullmatch(written):
        fix = "write redis://HOST:PORT/0, env:NAME or memory"
        raise file.refuse(
            f'{".".join(key_path)} must be "memory" or the URL of a Redis server', fix, *key_path
        )
    return written


def to_query_parameter(tree: Tree) -> Any:
    if isinstance(tree, dict):
        return {str(key): to_query_parameter(value) for key, value in tree.items()}
    if isinstance(tree, list):
        return [to_query_parameter(value) for value in tree]
    return None if is_null(tree) else str(tree)


def read_texts(file: ConfigFile, default: tuple[str, ...], *key_path: str) -> tuple[str, ...]:
    """Read a list of strings."""
    value = file.get(*key_path)
    if is_null(value):
        return default
    must, fix = "be a list of strings", "write a list such as [a, b]"
    if not isinstance(value, list):
        raise file.refuse_value(must, fix, *key_path)
    for i, item in enumerate(value):
        if not isinstance(item, str):
            raise file.refuse_value(must, fix, *key_path, i)
    return tuple(map(str, value))


def text_or_texts(file: ConfigFile, default: tuple[str, ...], *key_path: str) -> tuple[str, ...]:
    value = file.get(*key_path)
    one = isinstance(value, str) and not is_null(value)
    return (str(value),) if one else read_texts(file, default, *key_path)


def read_origins(file: ConfigFile, default: tuple[str, ...], *key_path: str) -> tuple[str, ...]:
    """Read a list of origins, or `*` for all origins."""
    written = text_or_texts(file, default, *key_path)
    for i, origin in enumerate(written):
        if origin not in ("*", "null") and not _ORIGIN.fullmatch(origin):
            fix = "write origins such as https://example.org, in lower case and without a path"
            raise file.refuse(
                f'{".".join(key_path)} must be a list of origins (found "{origin}")', fix, *key_path, i
            )
    return written


def read_networks(file: ConfigFile, default: tuple[str, ...], *key_path: str) -> tuple[str, ...]:
    """Read a list of IP addresses and networks."""
    written = text_or_texts(file, default, *key_path)
    for i, network in enumerate(written):
        try:
            ip_network(network)
        except ValueError as error:
            what = f'{".".join(key_path)} must be a list of IP addresses or networks (found "{network}")'
            raise file.refuse(what, "write values such as 10.0.0.1 or 10.0.0.0/8", *key_path, i) from error
    return written


def locale(file: ConfigFile, default: str, *key_path: str) -> str:
    code = text(file, default, *key_path)
    _check_locale(file, code, *key_path)
    return code


def locales(file: ConfigFile, default: tuple[str, ...], *key_path: str) -> tuple[str, ...]:
    codes = read_texts(file, (), *key_path)
    for i, code in enumerate(codes):
        _check_locale(file, code, *key_path, i)
    return tuple(dict.fromkeys(codes)) or default


def _check_locale(file: ConfigFile, code: str, *key_path: str | int) -> None:
    if not LOCALE.fullmatch(code):
        must = "be a list of locale codes" if isinstance(key_path[-1], int) else "be a locale code"
        raise file.refuse_value(must, "use codes such as en or pt-BR", *key_path)


# --- branches -------------------------------------------------------------------------------------

# the same rules as `git check-ref-format`
_BRANCH = re.compile(r"(?![-./])[^\x00-\x20\x7f~^:?*\[\\]{1,200}")
_NO_BRANCH = re.compile(r"\.\.|//|/\.|@\{|\.lock(/|$)|[./]$")


def branch(file: ConfigFile, default: str, *key_path: str) -> str:
    name = text(file, default, *key_path)
    if name:
        require_branch_name(file, name, *key_path)
    return name


def require_branch_name(file: ConfigFile, name: str, *key_path: str) -> None:
    if not _BRANCH.fullmatch(name) or _NO_BRANCH.search(name):
        raise file.refuse_value("be a valid branch name", "use a name such as main", *key_path)
