"""Reader for site.yaml."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from server.config import mcp, media, sections, values
from server.config.llms import check_llms_names
from server.config.model import (
    ACTIONS,
    DEFAULTS,
    FILE,
    KEYS,
    ResponseFormat,
    Settings,
    TimestampSource,
    known_actions,
    value_of,
    with_values,
)
from server.config.public_site import (
    check_feed_names,
    check_url_names,
    read_feed,
    read_public_url,
    read_redirect_formats,
)
from server.config.sections import check_preview_names, read_preview, read_query, read_type
from server.config.setting import SettingKey
from server.config.webhooks import read_hosts, read_webhooks
from server.errors import SetupError, collect_setup_errors
from server.formats.config_file import ConfigFile, read_config_file
from server.formats.text_positions import KeyPath, nearest_position
from server.formats.tree import is_null
from server.problems import RULE_SEVERITIES, RULES, Problem, RuleSeverity
from server.schema.model import Schema
from server.schema.spelling import suggestion

MAX_WEIGHT = 100
COMMIT_EACH_WRITE = timedelta()
# Minimum similarity between a mistyped name and the correct one, such as `publik` and `public`.
MIN_SIMILARITY = 0.8


def read_settings(root: Path) -> Settings:
    settings, wrong = survey_settings(root)
    if wrong:
        raise wrong[0]
    return settings


def survey_settings(root: Path) -> tuple[Settings, list[SetupError]]:
    """Return a site's settings, and a list of all errors in site.yaml.

    Each invalid value is replaced by the setting's default.
    """
    try:
        return survey_file(read_config_file(root, FILE, optional=True))
    except SetupError as error:
        return DEFAULTS, [error]


def survey_file(file: ConfigFile) -> tuple[Settings, list[SetupError]]:
    wrong: list[SetupError] = []
    file = replace(file, secret_paths=[key.path for key in KEYS.values() if key.secret])
    wrong.extend(_refuse_unknown_keys(file))
    settings = _settings(file, wrong)
    wrong.extend(error for check in _CHECKS for error in check(file, settings))
    return settings, wrong


def _refuse_unknown_keys(file: ConfigFile) -> Iterator[SetupError]:
    for at, siblings in unknown_keys(file):
        name = ".".join(map(str, at))
        fix = media.fix_of_secret(tuple(map(str, at))) or suggestion(str(at[-1]), siblings)
        fix = fix or "use one of " + ", ".join(sorted(siblings))
        yield file.refuse_key(f'unknown key "{name}"', fix, *at)


def unknown_keys(file: ConfigFile) -> Iterator[tuple[KeyPath, list[str]]]:
    """Yield the path of each unknown key, and the names of the keys that are allowed in its place."""
    leaves = {key.path for key in KEYS.values()}
    known = {path[:end] for path in leaves for end in range(1, len(path) + 1)}
    for at in file.positions:
        names = tuple(map(str, at))
        inside_leaf = any(names[:end] in leaves for end in range(1, len(names)))
        if names not in known and not inside_leaf and (not names[:-1] or names[:-1] in known):
            yield at, [key[-1] for key in known if len(key) == len(names) and key[:-1] == names[:-1]]


def _settings(file: ConfigFile, wrong: list[SetupError]) -> Settings:
    for path in _SECTIONS:
        with collect_setup_errors(wrong):
            values.read_section(file, *path)
    read: dict[str, Any] = {}
    for name, key in KEYS.items():
        with collect_setup_errors(wrong):
            if not is_null(file.get(*key.path)):
                read[name] = _read(file, key, value_of(DEFAULTS, name), wrong)
    if "locales.available" in read:
        read.setdefault("locales.default", read["locales.available"][0])
    elif "locales.default" in read:
        read["locales.available"] = (read["locales.default"],)
    if size := read.get("api.page_size.default"):
        read.setdefault("api.page_size.max", max(DEFAULTS.api.page_size.max, size))
    if read.get("git.push"):
        read.setdefault("git.commit", COMMIT_EACH_WRITE)
    return with_values(replace(DEFAULTS, positions=file.positions), read)


def is_invalid(file: ConfigFile, key: SettingKey) -> bool:
    wrong: list[SetupError] = []
    with collect_setup_errors(wrong):
        if not is_null(file.get(*key.path)):
            _read(file, key, value_of(DEFAULTS, key.name), wrong)
    return bool(wrong)


# outer sections before the sections inside them
_SECTIONS = sorted({key.path[:end] for key in KEYS.values() for end in range(1, len(key.path))})


def _read(file: ConfigFile, key: SettingKey, default: Any, wrong: list[SetupError]) -> Any:
    # In sections such as `roles`, users choose the names of the entries, which are added to the default
    # entries.
    if key.value_type in READERS:
        return READERS[key.value_type](file, default, *key.path)
    entries = dict(default)
    for name in values.read_section(file, *key.path):
        with collect_setup_errors(wrong):
            entries[str(name)] = ENTRIES[key.value_type](file, *key.path, name)
    return entries


def _two_word_reader(false_word: str, true_word: str) -> Callable[..., bool]:
    def read(file: ConfigFile, default: bool, *key_path: str) -> bool:
        word = values.text(file, "", *key_path)
        if word not in (false_word, true_word):
            raise file.refuse_value(
                f'be "{false_word}" or "{true_word}"', suggestion(word, (false_word, true_word)), *key_path
            )
        return word == true_word

    return read


def _timestamps(file: ConfigFile, default: TimestampSource, *key_path: str) -> TimestampSource:
    return (
        TimestampSource.GIT
        if _two_word_reader("file", "git")(file, False, *key_path)
        else TimestampSource.FILE
    )


def _response_format(file: ConfigFile, default: ResponseFormat, *key_path: str) -> ResponseFormat:
    return ResponseFormat.V4 if _two_word_reader("v5", "v4")(file, False, *key_path) else ResponseFormat.V5


def _weight(file: ConfigFile, *key_path: str) -> float:
    weight = values.scalar(file, *key_path)
    if not isinstance(weight, int | float) or isinstance(weight, bool) or not 0 <= weight <= MAX_WEIGHT:
        raise file.refuse_value(f"be a number from 0 to {MAX_WEIGHT}", "", *key_path)
    return float(weight)


def _role(file: ConfigFile, *key_path: str) -> frozenset[str]:
    return frozenset(
        f"{subject}.{action}"
        for subject in values.read_section(file, *key_path)
        for action in values.read_texts(file, (), *key_path, subject)
    )


def _populate(file: ConfigFile, *key_path: str) -> Any:
    return values.to_query_parameter(file.get(*key_path))


def _paths(file: ConfigFile, *key_path: str) -> tuple[str, ...]:
    return values.text_or_texts(file, (), *key_path)


def _level(file: ConfigFile, *key_path: str) -> RuleSeverity:
    word = values.text(file, "", *key_path)
    found: RuleSeverity | None = next((level for level in RULE_SEVERITIES if level == word), None)
    if found is None:
        raise file.refuse_value(
            'be "off", "warning" or "error"', suggestion(word, RULE_SEVERITIES), *key_path
        )
    return found


# Readers for each kind of value. Their arguments are the file, the default, and the path of keys.
READERS: Mapping[str, Callable[..., Any]] = {
    "text": values.text,
    "origins": values.read_origins,
    "networks": values.read_networks,
    "url": values.text,
    "URL": media.web_url,
    "bucket": media.store,
    "serve": media.serve,
    "locale": values.locale,
    "locales": values.locales,
    "count": values.read_count,
    "size": values.size,
    "duration": values.read_duration,
    "rate": values.rate,
    "rate store": values.read_rate_store,
    "commit": values.read_commit_delay,
    "remote": sections.remote,
    "branch": values.branch,
    "follow": sections.follow,
    "push": sections.read_push_mode,
    "keep": values.read_retention,
    "person": values.person,
    "flag": values.flag,
    "hosts": read_hosts,
    "names": values.text_or_texts,
    "webhooks": read_webhooks,
    "choice": _two_word_reader("reject", "allow"),
    "alias base": _two_word_reader("folder", "root"),
    "format": _response_format,
    "timestamps": _timestamps,
    "redirect formats": read_redirect_formats,
    "numbers": media.read_numbers,
    "image formats": media.read_formats,
    "agents' writes": mcp.read_write_mode,
    "agents' branch": mcp.read_branch_pattern,
    "result size": mcp.read_result_size,
    "result text": mcp.read_result_text,
}
# Readers for an entry in a section such as `roles`, where users choose the names of the entries. Their
# arguments are the file and the path of keys.
ENTRIES: Mapping[str, Callable[..., Any]] = {
    "weights": _weight,
    "roles": _role,
    "ignored": _paths,
    "levels": _level,
    "populates": _populate,
    "types": read_type,
    "queries": read_query,
    "previews": read_preview,
    "urls": read_public_url,
    "feeds": read_feed,
    "presets": media.read_preset,
    "named formats": media.read_named_format,
}


def _check_locales(file: ConfigFile, settings: Settings) -> Iterator[SetupError]:
    if settings.locales.default not in settings.locales.available:
        must = "be one of the locales in locales.available"
        yield file.refuse_value(must, "add it to locales.available", "locales", "default")


def _check_page_sizes(file: ConfigFile, settings: Settings) -> Iterator[SetupError]:
    most = settings.api.page_size.max
    if settings.api.page_size.default > most:
        what = (
            "api.page_size.default must not be greater than api.page_size.max (found "
            f"{settings.api.page_size.default} and {most})"
        )
        yield file.refuse(what, "increase api.page_size.max", "api", "page_size")
    for name, wanted in settings.export.types.items():
        size = wanted.parameters.get("pagination", {}).get("pageSize", "1")
        if int(size) > most:
            at = ("export", "types", name, "page_size")
            must = f"not be greater than api.page_size.max, which is {most}"
            yield file.refuse_value(must, "increase api.page_size.max", *at)


def _check_actions(file: ConfigFile, settings: Settings) -> Iterator[SetupError]:
    for role, permissions in settings.roles.items():
        for permission in sorted(permissions):
            subject, _, action = permission.rpartition(".")
            known = known_actions(subject)
            if action not in known:
                at = ("roles", role, subject, file.get("roles", role, subject).index(action))
                fix = suggestion(action, known, MIN_SIMILARITY) or "use one of " + ", ".join(known)
                yield file.refuse(f'unknown action "{action}" in the permissions for {subject}', fix, *at)


def _check_locales_of_webhooks(file: ConfigFile, settings: Settings) -> Iterator[SetupError]:
    for i, webhook in enumerate(settings.webhooks):
        for j, locale in enumerate(webhook.locales):
            if locale not in settings.locales.available:
                what = f'unknown locale "{locale}" in the webhook "{webhook.name}"'
                fix = suggestion(locale, settings.locales.available) or "use one of " + ", ".join(
                    settings.locales.available
                )
                yield file.refuse(what, fix, "webhooks", i, "locales", j)


def _check_rules(file: ConfigFile, settings: Settings) -> Iterator[SetupError]:
    for key, named in (("ignore", settings.check.ignore), ("rules", settings.check.rules)):
        for rule in named:
            at = ("check", key, rule)
            if rule not in RULES:
                fix = suggestion(rule, RULES) or "use one of " + ", ".join(RULES)
                yield file.refuse_key(f'unknown rule "{rule}" in check.{key}', fix, *at)
            elif key == "rules" and RULES[rule].is_fixed:
                what = f'the level of the rule "{rule}" can\'t be changed'
                fix = "remove this key: files with such problems are not served"
                yield file.refuse_key(what, fix, *at)


def _check_git(file: ConfigFile, settings: Settings) -> Iterator[SetupError]:
    if settings.git.push and settings.git.commit != COMMIT_EACH_WRITE:
        must = f'be "each", because git.push is "{settings.git.push}"'
        yield file.refuse_value(must, 'set it to "each", or remove git.commit', "git", "commit")
    wanted = {"branch": settings.git.branch, "follow": settings.git.follow, "push": settings.git.push}
    for key, value in wanted.items():
        if value and not settings.git.remote:
            yield file.refuse(
                f"git.{key} requires git.remote, which is not set",
                'add "remote: origin" to the `git` section',
                "git",
                key,
            )


def _check_media(file: ConfigFile, settings: Settings) -> Iterator[SetupError]:
    yield from media.check_number_lists(settings.media.transform, file)
    yield from media.check_preset_sizes(settings.media, file)
    yield from media.check_storage(
        settings.media.store, settings.media.public_url, settings.media.serve, file
    )
    yield from media.check_format_names(settings.media, file)


_CHECKS = (
    _check_locales,
    _check_page_sizes,
    _check_actions,
    _check_rules,
    _check_locales_of_webhooks,
    _check_git,
    _check_media,
)


def check_subjects(settings: Settings, singulars: Mapping[str, Any]) -> list[Problem]:
    """Return a warning for each unknown content type and each misspelled built-in role in the settings."""
    wrong = list(_check_role_names(settings))
    for role, permissions in settings.roles.items():
        for subject in sorted({permission.rsplit(".", 1)[0] for permission in permissions}):
            if subject not in singulars and subject not in ACTIONS:
                known = [*singulars, *ACTIONS]
                wrong.append(_no_type(settings, subject, f'the role "{role}"', known, "roles", role, subject))
    for i, webhook in enumerate(settings.webhooks):
        known = [*singulars, "upload"]
        where = f'the webhook "{webhook.name}"'
        for j, name in enumerate(webhook.types):
            if name not in known:
                wrong.append(_no_type(settings, name, where, known, "webhooks", i, "types", j))
    sections = {("export", "types"): settings.export.types, ("api", "populate"): settings.api.populate}
    for at, named in sections.items():
        unknown = (name for name in named if name not in singulars)
        wrong.extend(_no_type(settings, name, ".".join(at), singulars, *at, name) for name in unknown)
    return wrong


def check_previews(settings: Settings, schema: Schema) -> list[Problem]:
    return [
        _warning(settings, what, fix, *at) for what, fix, at in check_preview_names(settings.preview, schema)
    ]


def check_public_url(settings: Settings) -> list[Problem]:
    if settings.public_url or not settings.mail.host or not settings.api.trusted_proxies:
        return []
    what = "links in invitations contain the Host header that the proxy sends"
    return [_warning(settings, what, "set public_url to the URL at which people reach the server", "mail")]


def check_named_formats(settings: Settings) -> list[Problem]:
    if not settings.media.formats or settings.media.transform.enabled:
        return []
    what = "media.formats has no effect, because media.transform.enabled is false"
    return [_warning(settings, what, "remove one of the two settings", "media", "formats")]


def check_publishing(settings: Settings, schema: Schema) -> list[Problem]:
    """Return warnings about mistakes in the `urls`, `feeds` and `llms` sections."""
    locales = settings.locales.available
    found = [
        *check_url_names(settings.urls, schema, locales),
        *check_feed_names(settings.feeds, settings.urls, schema, locales),
        *check_llms_names(settings.llms, settings.roles, schema),
    ]
    for name, feed in settings.feeds.items():
        for i, subject in enumerate(feed.types):
            if subject not in schema.subjects or f"{subject}.find" in settings.roles["public"]:
                continue
            what = f"feeds.{name} contains no {subject} documents: the public role lacks the find permission"
            found.append((what, f"add find to roles.public.{subject}", ("feeds", name, "type", i)))
    return [_warning(settings, what, fix, *at) for what, fix, at in found]


def _check_role_names(settings: Settings) -> Iterator[Problem]:
    for role in settings.roles.keys() - DEFAULTS.roles.keys():
        if fix := suggestion(role, DEFAULTS.roles, MIN_SIMILARITY):
            what = f'"{role}" is not a built-in role: it applies only to users to whom you assign it'
            yield _warning(settings, what, fix, "roles", role)


def _no_type(
    settings: Settings, name: str, where: str, known: Iterable[str], *key_path: str | int
) -> Problem:
    fix = suggestion(name, known) or "use the singular API id of a content type"
    return _warning(settings, f'unknown content type "{name}" in {where}', fix, *key_path)


def _warning(settings: Settings, what: str, fix: str, *key_path: str | int) -> Problem:
    position = nearest_position(settings.positions, key_path)
    line, column = (position.line, position.column) if position else (None, None)
    return Problem(FILE, line, what, fix, "warning", column, "settings")
