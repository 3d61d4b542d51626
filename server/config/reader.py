"""Reads site.yaml into Settings, or refuses it with the line of what is wrong."""

import re
from collections.abc import Iterator, Mapping
from itertools import takewhile
from pathlib import Path
from typing import Any

from server.config.export import read_export
from server.config.model import ACTIONS, FILE, KEYS, LOCALE, Settings
from server.errors import SetupError, noting
from server.formats.positions import Positions, nearest
from server.formats.scalars import is_null, typed
from server.formats.tree import SyntaxProblem
from server.formats.yaml_reader import read_yaml
from server.problems import RULES, Problem
from server.spelling import suggestion

_SIZE = re.compile(r"(\d{1,12})\s*([kKmMgG]?)[bB]?")
MAX_WEIGHT = 100
_UNITS = {"": 1, "k": 1000, "m": 1000**2, "g": 1000**3}
_RATE = re.compile(r"\d+ (per|/) ?\d* ?(second|minute|hour|day)s?")
_SPAN = re.compile(r"[1-9]\d{0,4}[mhdw]|[1-9]\d{0,2}y")


class _Reader:
    """Takes values out of the tree of site.yaml and remembers which keys nobody asked for."""

    def __init__(self, data: Any, lines: Positions) -> None:
        self.data, self.lines = data, lines

    def refuse(self, message: str, fix: str, *at: str | int) -> SetupError:
        position = nearest(self.lines, at)
        return SetupError(
            FILE, position.line if position else 1, message, fix, position.column if position else 1
        )

    def line(self, *at: str | int) -> int | None:
        """The line of a path of keys, or of the nearest one above it."""
        position = nearest(self.lines, at)
        return position.line if position else None

    def forget(self, error: SetupError) -> bool:
        """Take out the key that a refusal is about, so that what else is wrong is found as well."""
        marks = ((at, (position.line, position.column)) for at, position in self.lines.items())
        found = next((at for at, place in marks if place == (error.line, error.column)), ())
        keys = list(takewhile(lambda key: isinstance(key, str), found))
        around = self.get(*map(str, keys[:-1]))
        return bool(keys) and isinstance(around, dict) and around.pop(keys[-1], None) is not None

    def section(self, *at: str) -> Mapping[str, Any]:
        value = self.get(*at)
        if is_null(value):
            return {}
        if not isinstance(value, dict):
            raise self.refuse(f'"{".".join(at)}" must be a mapping', "write it as key: value lines", *at)
        return value

    def get(self, *at: str) -> Any:
        value = self.data
        for key in at:
            value = value.get(key) if isinstance(value, dict) else None
        return value

    def text(self, default: str, *at: str) -> str:
        value = self.get(*at)
        if value is None:
            return default
        if not isinstance(value, str):
            raise self.refuse(f'"{".".join(at)}" must be text', "write one word", *at)
        return str(value)

    def count(self, default: int, *at: str) -> int:
        value = typed(self.get(*at))
        if value is None:
            return default
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise self.refuse(f'"{".".join(at)}" must be a whole number above 0', f"such as {default}", *at)
        return value

    def flag(self, default: bool, *at: str) -> bool:
        value = typed(self.get(*at))
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self.refuse(f'"{".".join(at)}" must be true or false', "write true or false", *at)
        return value

    def size(self, default: int, *at: str) -> int:
        """A number of bytes: `200 MB`, `512 kB`, `1000`."""
        text = self.text(str(default), *at)
        found = _SIZE.fullmatch(text.strip())
        if not found:
            raise self.refuse(f'"{".".join(at)}" must be a size', "such as 200 MB", *at)
        return int(found[1]) * _UNITS[found[2].lower()]

    def texts(self, *at: str, default: list[str] | None = None) -> list[str]:
        value = self.get(*at)
        if is_null(value):
            return default or []
        if isinstance(value, str) and default is not None:
            return [str(value)]
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.refuse(f'"{".".join(at)}" must be a list', "write it as [a, b]", *at)
        return [str(item) for item in value]


def read_settings(root: Path) -> Settings:
    """The settings of the site at `root`. Raises SetupError with the line of what is wrong."""
    settings, wrong = survey_settings(root)
    if wrong:
        raise wrong[0]
    return settings


def survey_settings(root: Path) -> tuple[Settings, list[SetupError]]:
    """The settings of the site at `root`, or the default ones, and what is wrong with site.yaml."""
    settings, wrong = Settings(), list[SetupError]()
    with noting(wrong):
        reader = _read(root)
        wrong.extend(_unknown(reader))
        while (error := _try(reader)) is not None:
            wrong.append(error)
            if not reader.forget(error):
                break
        else:
            settings = _settings(reader)
    return settings, wrong


def _try(reader: _Reader) -> SetupError | None:
    """The first thing that is wrong with the settings, or None."""
    try:
        _settings(reader)
    except SetupError as error:
        return error
    return None


def _read(root: Path) -> _Reader:
    lines: Positions = {}
    try:
        text = (root / FILE).read_bytes().decode("utf-8-sig")
        data = read_yaml(text, lines)
    except FileNotFoundError:
        return _Reader({}, lines)
    except OSError as error:
        raise SetupError(FILE, None, f"can't be read: {error.strerror}", "look at its permissions") from error
    except UnicodeDecodeError as error:
        raise SetupError(FILE, None, "is not UTF-8", "save it as UTF-8") from error
    except SyntaxProblem as error:
        raise SetupError(FILE, error.line, error.message, error.fix, error.column) from error
    reader = _Reader({} if is_null(data) else data, lines)
    if not isinstance(reader.data, dict):
        raise reader.refuse("is no mapping", "write it as key: value lines")
    return reader


def _unknown(reader: _Reader) -> Iterator[SetupError]:
    """A refusal of each key that the table KEYS does not have."""
    known = {tuple(key.split(".")[:end]) for key in KEYS for end in range(1, key.count(".") + 2)}
    leaves = {tuple(key.split(".")) for key in KEYS}
    for at in reader.lines:
        names = tuple(str(part) for part in at)
        inside_leaf = any(names[:end] in leaves for end in range(1, len(names)))
        if names not in known and not inside_leaf and (not names[:-1] or names[:-1] in known):
            siblings = [key[-1] for key in known if len(key) == len(names) and key[:-1] == names[:-1]]
            fix = suggestion(names[-1], siblings) or "known here: " + ", ".join(sorted(siblings))
            yield reader.refuse(f'the key "{".".join(names)}" is not known', fix, *at)


def _settings(reader: _Reader) -> Settings:
    for at in (("api",), ("api", "page_size"), ("auth",), ("mail",), ("search",)):
        reader.section(*at)
    default, available = _locales(reader)
    page_size = reader.count(25, "api", "page_size", "default")
    largest = reader.count(max(100, page_size), "api", "page_size", "max")
    if page_size > largest:
        raise reader.refuse(
            f"page_size.default {page_size} is above page_size.max {largest}", "raise max", "api", "page_size"
        )
    choice = reader.text("reject", "api", "populate_with_pagination")
    if choice not in ("reject", "allow"):
        raise reader.refuse(
            f'populate_with_pagination is "{choice}"',
            "use reject or allow",
            "api",
            "populate_with_pagination",
        )
    return Settings(
        name=reader.text("Quire", "name"),
        default_locale=default,
        locales=available,
        page_size=page_size,
        max_page_size=largest,
        populate_with_pagination=choice == "allow",
        accounts=reader.text("", "accounts"),
        upload_limit=reader.size(200_000_000, "api", "upload_limit"),
        cors=tuple(reader.texts("api", "cors", default=["*"])),
        rate_limit=_rate(reader),
        session=_span(reader),
        confirm_email=reader.flag(False, "auth", "confirm_email"),
        auth_url=reader.text("", "auth", "url"),
        mail_host=reader.text("", "mail", "host"),
        mail_port=reader.count(25, "mail", "port"),
        mail_user=reader.text("", "mail", "user"),
        mail_tls=reader.flag(False, "mail", "tls"),
        mail_from=reader.text("no-reply@localhost", "mail", "from"),
        search_index=reader.flag(True, "search", "index"),
        search_weights=_weights(reader),
        roles=_roles(reader),
        ignored=_ignored(reader),
        lines=reader.lines,
        export=read_export(reader, largest),
    )


def _weights(reader: _Reader) -> Mapping[str, float]:
    found: dict[str, float] = {}
    for attribute in reader.section("search", "weights"):
        value = typed(reader.get("search", "weights", attribute))
        if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= MAX_WEIGHT:
            fix = f"write a number from 0 to {MAX_WEIGHT}"
            raise reader.refuse(
                f'the weight of "{attribute}" is no such number', fix, "search", "weights", attribute
            )
        found[str(attribute)] = float(value)
    return found


def _rate(reader: _Reader) -> str:
    text = reader.text("", "api", "rate_limit")
    if text and not _RATE.fullmatch(text):
        raise reader.refuse(f'the rate "{text}" is not known', "write 100 per minute", "api", "rate_limit")
    return text


def _span(reader: _Reader) -> str:
    text = reader.text("30d", "auth", "session")
    if not _SPAN.fullmatch(text):
        raise reader.refuse(f'"{text}" is no span of time', "write 30d, 12h or 1y", "auth", "session")
    return text


def _locales(reader: _Reader) -> tuple[str, tuple[str, ...]]:
    reader.section("locales")
    available = reader.texts("locales", "available")
    default = reader.text(available[0] if available else "en", "locales", "default")
    for i, code in enumerate([default, *available]):
        if not LOCALE.fullmatch(code):
            at = ("locales", "available", i - 1) if i else ("locales", "default")
            raise reader.refuse(f'"{code}" is no locale code', "use codes such as en or pt-BR", *at)
    if not available:
        available = [default]
    if default not in available:
        raise reader.refuse(
            f'the default locale "{default}" is not among the available',
            "add it to locales.available",
            "locales",
            "default",
        )
    return default, tuple(dict.fromkeys(available))


def _roles(reader: _Reader) -> Mapping[str, frozenset[str]]:
    roles: dict[str, frozenset[str]] = {}
    for role in reader.section("roles"):
        granted: list[str] = []
        for subject in reader.section("roles", role):
            known = ACTIONS.get(subject, ACTIONS[""])
            for i, action in enumerate(reader.texts("roles", role, subject)):
                if action not in known:
                    fix = suggestion(action, known) or "use " + ", ".join(known)
                    raise reader.refuse(
                        f'the action "{action}" of {subject} is not known', fix, "roles", role, subject, i
                    )
                granted.append(f"{subject}.{action}")
        roles[role] = frozenset(granted)
    return roles


def _ignored(reader: _Reader) -> Mapping[str, tuple[str, ...]]:
    at = ("check", "ignore")
    for rule in reader.section("check") and reader.section(*at):
        if rule not in RULES:
            fix = suggestion(rule, RULES) or "known are " + ", ".join(RULES)
            raise reader.refuse(f'there is no rule "{rule}" of quire check', fix, *at, rule)
    return {rule: tuple(reader.texts(*at, rule, default=[])) for rule in reader.section(*at)}


def check_subjects(settings: Settings, singulars: Mapping[str, Any]) -> list[Problem]:
    """A warning for each subject of a role, and each type to export, that is no content type."""
    wrong = []
    for role, permissions in settings.roles.items():
        for subject in sorted({permission.rsplit(".", 1)[0] for permission in permissions}):
            if subject not in singulars and subject not in ACTIONS:
                what = f'role {role} names "{subject}", which is no content type'
                fix = suggestion(subject, [*singulars, *ACTIONS]) or "fix the name"
                position = nearest(settings.lines, ("roles", role, subject))
                line, column = (position.line, position.column) if position else (None, None)
                wrong.append(Problem(FILE, line, what, fix, "warning", column, "settings"))
    for name, wanted in settings.export.types.items():
        if name not in singulars:
            what = f'export.types names "{name}", which is no content type'
            fix = suggestion(name, singulars) or "fix the name"
            wrong.append(Problem(FILE, wanted.line, what, fix, "warning", None, "settings"))
    return wrong
