"""Configuration of a site: site.yaml and the schemas in content-types/. They are read together."""

import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from server.config.model import FILE, Settings
from server.config.reader import check_previews, check_publishing, check_subjects, read_settings
from server.errors import GitError, SetupError, StorageError, ValidationError
from server.formats.text_positions import line_and_column, nearest
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
    """The settings and the schemas that were read together, their problems, and the signatures of their
    files.
    """

    settings: Settings
    schema: Schema
    problems: tuple[Problem, ...]
    mark: Mapping[str, Signature | None]

    @property
    def shape(self) -> object:
        """Return everything in the configuration that affects how documents are parsed.

        If the configuration changes but the returned value stays the same, no document has to be read again.
        """
        settings, types = self.settings, self.schema.types
        shapes = sorted((uid, t.path, repr(t.raw)) for uid, t in types.items())
        return (settings.locales.default, settings.locales.available, shapes)

    def is_equivalent(self, other: "Configuration") -> bool:
        return (self.mark, self.settings, self.shape) == (other.mark, other.settings, other.shape)


def configure(root: Path) -> Configuration:
    """Read site.yaml and the schemas of the site at `root`. Raises SetupError if they are invalid."""
    # Computed before reading, so that a change to these files during the read will be noticed.
    mark = configuration_mark(root)
    for link in configuration_links(root):
        raise link
    settings, schema = read_settings(root), read_content_types(root)
    for populate in wrong_populates(settings, schema):
        raise populate
    problems = (
        *check_subjects(settings, schema.subjects),
        *check_previews(settings, schema),
        *check_publishing(settings, schema),
        *find_mistyped_keys(root, schema.types.values()),
    )
    return Configuration(settings, schema, problems, mark)


def first_configuration(root: Path) -> Configuration:
    """Finish or discard an interrupted write, then read site.yaml and the schemas of the site at `root`.

    The interrupted write is handled first because it may affect site.yaml or the schemas. Raises SetupError
    if they are invalid or .bifolio/ can't be trusted. Raises BusyError.
    """
    journal, queue = Journal(root, root / STATE_FOLDER), CommitQueue(root / STATE_FOLDER)
    if not journal.empty or queue.is_unsettled:
        check_state_folder(root)
        with suppress(OSError, StorageError), journal.writing():  # A read-only site can't be recovered.
            journal.recover()
            queue.settle(root)
    return configure(root)


def configuration_links(root: Path) -> Iterator[SetupError]:
    """Yield an error if site.yaml, or a file in content-types/, is a forbidden symbolic link.

    A link in content-types/ is forbidden if it is circular or broken, or if its target is outside that
    folder. site.yaml must not be a link to a target that is outside the site or is content.
    """
    top = os.path.realpath(root)
    folder = os.path.join(top, TYPES)
    inside = (os.path.join(base, n) for base, *names in os.walk(folder) for n in chain(*names))
    for path in (os.path.join(top, FILE), folder, *inside):
        problem = link_problem(path, os.path.relpath(path, top), top) if os.path.islink(path) else None
        if problem:
            yield SetupError(problem.path, None, problem.message, problem.fix)


def check_state_folder(root: Path, name: str = STATE_FOLDER) -> None:
    """Raise SetupError if .bifolio/ is a symbolic link, or if git tracks files in .bifolio/.

    Otherwise anyone who can commit could replace the secret keys in .bifolio/.
    """
    if (root / name).is_symlink():
        raise SetupError(
            name, None, "is a symbolic link, but must be a folder", "replace the link with a folder"
        )
    try:
        tracked = is_tracked(root, name)
    except GitError as error:  # A site with a damaged repository can still be served.
        log.warning("%s: can't check whether the keys in %s are stored in git: %s", root, name, error)
        return
    if tracked:
        fix = f"run `git rm -r --cached {name}` and delete {name}/jwt.key"
        raise SetupError(name, None, "is stored in git, including the site's secret keys", fix)


def wrong_populates(settings: Settings, schema: Schema) -> Iterator[SetupError]:
    """Yield an error for each value in the setting `api.populate` that is not a valid `populate`
    parameter.
    """
    for name, value in settings.api.populate.items():
        type_ = schema.subjects.get(name)
        try:
            if type_ is not None:
                read_populate(schema, type_, value)
        except ValidationError as error:
            line, column = line_and_column(nearest(settings.positions, ("api", "populate", name)))
            message = f"api.populate.{name} is not a valid populate value: {error.message}"
            yield SetupError(
                FILE, line, message, 'use the syntax of the "populate" parameter, such as author', column
            )


def is_configuration(path: str) -> bool:
    """Whether the file at a path is site.yaml or a schema."""
    return path == FILE or path.startswith(f"{TYPES}/")


def configuration_mark(root: Path) -> Mapping[str, Signature | None]:
    """Return the signatures of site.yaml and the schemas, by path.

    The files are unchanged as long as this function returns the same signatures.
    """
    found: dict[str, Signature | None] = {FILE: signature_of(root / FILE), **walk(root, [TYPES]).files}
    # The ctime is ignored, because a new hard link to a file does not change settings.
    return {path: signature and (*signature[:3], 0) for path, signature in found.items()}
