"""Reader and validator for site.yaml and the schemas in content-types/."""

import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from server.config.model import FILE, Settings
from server.config.reader import (
    check_named_formats,
    check_previews,
    check_public_url,
    check_publishing,
    check_subjects,
    read_settings,
)
from server.documents.option_values import find_invalid_options
from server.errors import GitError, SetupError, StorageError, ValidationError
from server.formats.text_positions import line_and_column, nearest_position
from server.paths import STATE_FOLDER, TYPES
from server.problems import Problem
from server.query.populate import read_populate
from server.schema.load import read_content_types
from server.schema.model import Schema
from server.schema.spelling import find_mistyped_keys
from server.storage.files import Signature, signature_of, walk
from server.storage.git.commit_queue import CommitQueue
from server.storage.git.repository import is_tracked
from server.storage.journal import Journal
from server.storage.links import link_problem

log = logging.getLogger("bifolio")


@dataclass(frozen=True, slots=True)
class Configuration:
    """Settings and schemas, their problems, and the signatures of their files."""

    settings: Settings
    schema: Schema
    problems: tuple[Problem, ...]
    signatures: Mapping[str, Signature | None]

    @property
    def parse_key(self) -> object:
        """A value that represents all settings and schemas that affect parsing.

        If it changes, all documents must be parsed again.
        """
        settings, types = self.settings, self.schema.types
        schemas = sorted((uid, t.path, repr(t.raw)) for uid, t in types.items())
        return (settings.locales.default, settings.locales.available, schemas)

    def is_equivalent(self, other: "Configuration") -> bool:
        return (self.signatures, self.settings, self.parse_key) == (
            other.signatures,
            other.settings,
            other.parse_key,
        )


def configure(root: Path) -> Configuration:
    """Read site.yaml and the schemas. Raises SetupError if they are invalid."""
    # Taken before reading, so that a change during the read will be noticed.
    mark = configuration_signatures(root)
    for link in check_configuration_links(root):
        raise link
    settings, schema = read_settings(root), read_content_types(root)
    for populate in check_populates(settings, schema):
        raise populate
    problems = (
        *check_subjects(settings, schema.subjects),
        *check_previews(settings, schema),
        *check_named_formats(settings),
        *check_public_url(settings),
        *check_publishing(settings, schema),
        *find_mistyped_keys(root, schema.types.values()),
        *find_invalid_options(root, schema.types.values()),
    )
    return Configuration(settings, schema, problems, mark)


def recover_configuration(root: Path) -> Configuration:
    """Finish interrupted writes, then read the configuration.

    Raises SetupError if the configuration or .bifolio/ is invalid, and BusyError if the write lock can't be
    acquired.
    """
    journal, queue = Journal(root, root / STATE_FOLDER), CommitQueue(root / STATE_FOLDER)
    if not journal.is_empty or queue.has_staged_writes:
        check_state_folder(root)
        # In a read-only site, interrupted writes are left as they are.
        with suppress(OSError, StorageError), journal.writing():
            journal.recover()
            queue.recover(root)
    return configure(root)


def check_configuration_links(root: Path) -> Iterator[SetupError]:
    """Yield an error for each symbolic link in the configuration that is not allowed."""
    top = os.path.realpath(root)
    folder = os.path.join(top, TYPES)
    inside = (os.path.join(base, n) for base, *names in os.walk(folder) for n in chain(*names))
    for path in (os.path.join(top, FILE), folder, *inside):
        problem = link_problem(path, os.path.relpath(path, top), top) if os.path.islink(path) else None
        if problem:
            yield SetupError(problem.path, None, problem.message, problem.fix)


def check_state_folder(root: Path, name: str = STATE_FOLDER) -> None:
    """Raise SetupError if .bifolio/ is a symbolic link or tracked by git."""
    if (root / name).is_symlink():
        raise SetupError(
            name, None, "is a symbolic link, but must be a folder", "replace the link with a folder"
        )
    try:
        tracked = is_tracked(root, name)
    except GitError as error:  # Continue, because a site with a damaged repository can still be served.
        log.warning("%s: can't check whether the keys in %s are stored in git: %s", root, name, error)
        return
    if tracked:
        fix = f"run `git rm -r --cached {name}` and delete {name}/jwt.key"
        raise SetupError(name, None, "is tracked by git, although it contains the site's secret keys", fix)


def check_populates(settings: Settings, schema: Schema) -> Iterator[SetupError]:
    """Yield an error for each invalid `api.populate` value."""
    for name, value in settings.api.populate.items():
        type_ = schema.subjects.get(name)
        try:
            if type_ is not None:
                read_populate(schema, type_, value)
        except ValidationError as error:
            line, column = line_and_column(nearest_position(settings.positions, ("api", "populate", name)))
            message = f"api.populate.{name} is not a valid populate value: {error.message}"
            yield SetupError(
                FILE, line, message, 'use the syntax of the "populate" parameter, such as author', column
            )


def is_configuration(path: str) -> bool:
    return path == FILE or path.startswith(f"{TYPES}/")


def configuration_signatures(root: Path) -> Mapping[str, Signature | None]:
    found: dict[str, Signature | None] = {FILE: signature_of(root / FILE), **walk(root, [TYPES]).files}
    # Ignore the ctime, because a new hard link changes the ctime but not the content.
    return {path: signature and (*signature[:3], 0) for path, signature in found.items()}
