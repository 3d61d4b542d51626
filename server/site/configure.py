"""What a site says of itself: site.yaml and content-types/, read together."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from server.config.model import FILE, Settings
from server.config.reader import check_subjects, read_settings
from server.problems import Problem
from server.schema.load import read_content_types
from server.schema.model import Schema
from server.storage.files import Signature, signature_of, walk

TYPES = "content-types"


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
        return (settings.default_locale, settings.locales, shapes)


def configure(root: Path) -> Configuration:
    """Read the configuration of the site at `root`. Raises SetupError where it is broken."""
    mark = configuration_mark(root)  # before the reading: what changes meanwhile is read again
    settings, schema = read_settings(root), read_content_types(root)
    return Configuration(settings, schema, tuple(check_subjects(settings, schema.subjects)), mark)


def configuration_mark(root: Path) -> Mapping[str, Signature | None]:
    """The signatures of site.yaml and the schema files, by path: what differs whenever one has changed."""
    return {FILE: signature_of(root / FILE), **walk(root, [TYPES]).files}
