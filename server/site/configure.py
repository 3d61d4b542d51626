"""What a site says of itself: site.yaml and content-types/, read together."""

from dataclasses import dataclass
from pathlib import Path

from server.config.model import FILE, Settings
from server.config.reader import check_subjects, read_settings
from server.problems import Problem
from server.schema.load import read_content_types
from server.schema.model import Schema
from server.storage.files import signature_of, walk

TYPES = "content-types"


@dataclass(frozen=True, slots=True)
class Configuration:
    """Settings and schema that belong together, what is odd about them, and the files' signatures."""

    settings: Settings
    schema: Schema
    problems: tuple[Problem, ...]
    mark: object

    @property
    def shape(self) -> object:
        """What the reading of documents depends on: where it is the same, no file need be read again."""
        settings, types = self.settings, self.schema.types
        shapes = sorted((uid, t.path, repr(t.raw)) for uid, t in types.items())
        return (settings.default_locale, settings.locales, shapes)


def configure(root: Path) -> Configuration:
    """Read the configuration of the site at `root`. Raises SetupError where it is broken."""
    mark = configuration_mark(root)  # before the reading: what changes meanwhile is read again
    settings, schema = read_settings(root), read_content_types(root)
    return Configuration(settings, schema, tuple(check_subjects(settings, schema.subjects)), mark)


def configuration_mark(root: Path) -> object:
    """What differs whenever site.yaml or a schema file has changed."""
    found = [signature_of(root / FILE), *sorted(walk(root, [TYPES]).files.items())]
    return tuple(found)
