"""The configuration of a site: site.yaml and content-types/, read together."""

import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from server.config.model import FILE, Settings
from server.config.reader import check_previews, check_subjects, read_settings
from server.errors import GitError, SetupError, ValidationError
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
    """Settings and schema that belong together, what is odd about them, and the files' signatures."""

    settings: Settings
    schema: Schema
    problems: tuple[Problem, ...]
    mark: Mapping[str, Signature | None]

    @property
    def shape(self) -> object:
        """What the reading of documents depends on: where it is the same, no file need be read again."""
        settings, types = self.settings, self.schema.types
        shapes = sorted((uid, t.path, repr(t.raw)) for uid, t in types.items())
        return (settings.locales.default, settings.locales.available, shapes)

    def says_as_much_as(self, other: "Configuration") -> bool:
        """Whether another one was read from the same files, and says the same."""
        return (self.mark, self.settings, self.shape) == (other.mark, other.settings, other.shape)


def configure(root: Path) -> Configuration:
    """Read the configuration of the site at `root`. Raises SetupError where it is broken."""
    mark = configuration_mark(root)  # before the reading: what changes meanwhile is read again
    for link in configuration_links(root):
        raise link
    settings, schema = read_settings(root), read_content_types(root)
    for populate in wrong_populates(settings, schema):
        raise populate
    problems = (
        *check_subjects(settings, schema.subjects),
        *check_previews(settings, schema),
        *find_mistyped_keys(root, schema.types.values()),
    )
    return Configuration(settings, schema, problems, mark)


def first_configuration(root: Path) -> Configuration:
    """The configuration, once what a crash left of a write is finished or dropped: it may be a part of it.

    Raises SetupError where the configuration is broken, or .bifolio/ is not to be trusted, and BusyError.
    """
    journal, queue = Journal(root, root / STATE_FOLDER), CommitQueue(root / STATE_FOLDER)
    if not journal.empty or queue.is_unsettled:
        check_state_folder(root)
        with suppress(OSError), journal.writing():  # A site that can't be written to keeps it.
            journal.recover()
            queue.settle(root)
    return configure(root)


def configuration_links(root: Path) -> Iterator[SetupError]:
    """A refusal of each link that leads in a circle, to nothing, or out of content-types/; and of site.yaml,
    where that leads out of the site or to content.
    """
    top = os.path.realpath(root)
    folder = os.path.join(top, TYPES)
    inside = (os.path.join(base, n) for base, *names in os.walk(folder) for n in chain(*names))
    for path in (os.path.join(top, FILE), folder, *inside):
        wrong = link_problem(path, os.path.relpath(path, top), top) if os.path.islink(path) else None
        if wrong:
            yield SetupError(wrong.path, None, wrong.message, wrong.fix)


def check_state_folder(root: Path) -> None:
    """Raise SetupError if .bifolio/ comes with the content: who may commit would choose the keys."""
    if (root / STATE_FOLDER).is_symlink():
        raise SetupError(STATE_FOLDER, None, "is a link", "replace it by a folder")
    try:
        tracked = is_tracked(root, STATE_FOLDER)
    except GitError as error:  # A site whose git is damaged is served all the same.
        log.warning("%s: whether the keys in %s are in git is not known: %s", root, STATE_FOLDER, error)
        return
    if tracked:
        fix = f"git rm -r --cached {STATE_FOLDER}, and delete {STATE_FOLDER}/jwt.key, which others may know"
        raise SetupError(STATE_FOLDER, None, "is in git, with the keys of the site", fix)


def wrong_populates(settings: Settings, schema: Schema) -> Iterator[SetupError]:
    """A refusal of each value of `api.populate` that no request may have."""
    for name, value in settings.api.populate.items():
        type_ = schema.subjects.get(name)
        try:
            if type_ is not None:
                read_populate(schema, type_, value)
        except ValidationError as error:
            line, column = line_and_column(nearest(settings.positions, ("api", "populate", name)))
            what = f"api.populate.{name}: {error.message}"
            yield SetupError(FILE, line, what, "write it as a request would have it", column)


def is_configuration(path: str) -> bool:
    """Whether a file of the site is site.yaml or a schema."""
    return path == FILE or path.startswith(f"{TYPES}/")


def configuration_mark(root: Path) -> Mapping[str, Signature | None]:
    """The signatures of site.yaml and the schema files, by path: what differs whenever one has changed."""
    found: dict[str, Signature | None] = {FILE: signature_of(root / FILE), **walk(root, [TYPES]).files}
    # Without the ctime: a file that is only linked must not have everybody told of other settings.
    return {path: signature and (*signature[:3], 0) for path, signature in found.items()}
