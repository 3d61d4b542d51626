"""The documents and files that a check examines."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, islice
from pathlib import Path

from server.config.model import Settings
from server.documents.document import Document, make_version
from server.documents.encode import Reading, read_attributes, read_document_id
from server.documents.file_keys import collect_other_keys
from server.documents.path_rules import Layout, PathClaim
from server.formats.text_positions import KeyPath, Position, Positions, nearest_position
from server.formats.tree import SyntaxProblem, Tree
from server.index.dangling import MEDIA, Key
from server.index.snapshot import Snapshot
from server.paths import UPLOADS, cache_folder
from server.schema.model import UPLOAD, Type
from server.schema.spelling import SpellingCorrector
from server.site.check.page_addresses import PageAddresses
from server.site.check.readings import ProseCache
from server.storage.files import walk
from server.storage.git.log import CommitLog
from server.storage.git.refs import head_commit
from server.storage.git.uncommitted import staged_renames
from server.storage.read import parse_text, parsed, read_text
from server.write.renaming.renames import MAX_COMMITS, Rename, find_renames


@dataclass(frozen=True)
class Audit:
    """The documents and files of a site that are to be checked.

    `texts` maps the paths of unsaved files to their texts. `checkpoint` is called before each document is
    checked. It can raise an exception to stop the check.
    """

    root: Path
    settings: Settings
    snapshot: Snapshot
    texts: Mapping[str, str] = field(default_factory=dict)
    prose_cache: ProseCache = field(default_factory=ProseCache, compare=False)
    checkpoint: Callable[[], None] = field(default=lambda: None, compare=False)

    @cached_property
    def layout(self) -> Layout:
        return Layout(self.snapshot.schema, self.settings)

    @cached_property
    def addresses(self) -> PageAddresses:
        return PageAddresses(self.snapshot, self.settings, self.layout)

    @cached_property
    def files(self) -> frozenset[str]:
        unsaved = (path for path in self.texts if self.layout.claim(path) or is_upload(path))
        return frozenset((*walk(self.root, self.layout.roots).files, *unsaved))

    @cached_property
    def claims(self) -> Mapping[str, PathClaim]:
        found = ((path, self.layout.claim(path)) for path in self.files if not is_upload(path))
        return {path: claim for path, claim in found if claim}

    @cached_property
    def claimed_keys(self) -> frozenset[Key]:
        return frozenset((claim.type.uid, claim.document_id) for claim in self.claims.values())

    @cached_property
    def documents(self) -> Mapping[str, Document]:
        found = chain.from_iterable(self.snapshot.claims.values())
        return {d.path: d for d in found if d.type.uid != UPLOAD}

    def limited(self, paths: Collection[str]) -> "Audit":
        audit = Audit(self.root, self.settings, self.snapshot, prose_cache=self.prose_cache)
        claims = {path: claim for path, claim in self.claims.items() if path in paths}
        documents = {path: document for path, document in self.documents.items() if path in paths}
        audit.__dict__.update(files=self.files, claims=claims, documents=documents)
        return audit

    @cached_property
    def invalid_documents(self) -> tuple[Document, ...]:
        """The documents in invalid files. They contain only the values that could be read."""
        paths = sorted(self.claims.keys() - self.documents.keys())
        return tuple(self.read_document(self.claims[path], path, self.parse_file(path)[0]) for path in paths)

    def read_document(self, claim: PathClaim, path: str, tree: dict[str, Tree]) -> Document:
        reading = Reading(self.snapshot.schema.types, path, keeps_targets=True)
        values = read_attributes(claim.type, collect_other_keys(claim.type, tree), (), reading)
        document_id = read_document_id(tree, claim.document_id, reading)
        return make_version(claim.type, document_id, values, ("", "", None), claim.locale, path)

    @cached_property
    def renames(self) -> Mapping[Key, Rename]:
        log, head = CommitLog(self.root, cache_folder(self.root)), head_commit(self.root)
        if not head:
            return {}
        log.update(head)
        commits = islice(log.history_of(head), MAX_COMMITS)
        changes = chain([("", staged_renames(self.root))], ((one.id, one.changes) for one in commits))
        return find_renames(changes, self.layout)

    @cached_property
    def id_correctors(self) -> Mapping[str, SpellingCorrector]:
        tables = self.snapshot.tables.items()
        ids = {uid: SpellingCorrector(key[0] for key in table.versions) for uid, table in tables}
        return {**ids, MEDIA: SpellingCorrector(self.snapshot.media)}

    @property
    def types(self) -> tuple[Type, ...]:
        return self.snapshot.schema.content_types

    def position(self, path: str, key_path: KeyPath) -> Position | None:
        return nearest_position(self.parse_file(path)[1], key_path)

    def parse_file(self, path: str) -> tuple[dict[str, Tree], Positions]:
        """Return the values in a file, and their positions. Both are empty if the file is invalid."""
        if path not in self.texts:
            return parsed(self.root, path)
        try:
            return parse_text(path, self.texts[path])
        except SyntaxProblem:
            return {}, {}

    def text(self, path: str) -> str:
        return self.texts[path] if path in self.texts else read_text(self.root, path)[0]


def is_upload(path: str) -> bool:
    return path.startswith(f"{UPLOADS}/")
