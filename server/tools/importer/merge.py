"""Merge of imported content into a site.

Files that were edited, moved or deleted in the site are left unchanged, unless `overwrite` is set.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from server.errors import ConflictError
from server.storage.changeset import Changeset
from server.tools.importer.record import ImportedDigests, SourceRecord, digest, file_digest

OUTCOMES = ("new", "changed", "same", "kept")


@dataclass(slots=True)
class OutcomeCounts:
    """The number of documents, and the number of files for each outcome, such as "new" or "changed"."""

    document_count: int = 0
    files: dict[str, int] = field(default_factory=lambda: dict.fromkeys(OUTCOMES, 0))


@dataclass(slots=True)
class Merge:
    """The changes that an import will make to a site.

    `kept` contains a (path, reason) pair for each file that is not updated because of changes in the site.
    """

    root: Path
    changeset: Changeset
    record: SourceRecord
    overwrite: bool
    counts: dict[str, OutcomeCounts] = field(default_factory=dict)
    kept: list[tuple[str, str]] = field(default_factory=list)  # (path, reason)
    removed: list[str] = field(default_factory=list)

    @property
    def changed_file_count(self) -> int:
        changed_files = (counts.files["new"] + counts.files["changed"] for counts in self.counts.values())
        return sum(changed_files) + len(self.removed)

    def outcome_counts(self, subject: str) -> OutcomeCounts:
        return self.counts.setdefault(subject, OutcomeCounts())

    def merge_text(
        self,
        subject: str,
        path: str,
        source_version: str,
        create: Callable[[], str],
        convert: Callable[[str], str],
    ) -> None:
        """Merge a text file, and count its outcome in the group `subject`.

        `create` returns the text of a new file. `convert` returns the new text of an existing file.
        """
        known = self.record.files.get(path)
        if known and known.source == source_version and not self.overwrite:
            self._count(subject, "same")
        elif not self.changeset.exists(path):
            if known and not self.overwrite:
                self._keep(subject, path, "was deleted in this site, but has changed in Strapi")
            else:
                self._put(subject, path, source_version, create(), "new")
        else:
            self._merge_change(subject, path, source_version, convert)

    def _merge_change(
        self, subject: str, path: str, source_version: str, convert: Callable[[str], str]
    ) -> None:
        known = self.record.files.get(path)
        try:
            old = self.changeset.text(path)
            text = convert(old)
        except ConflictError as error:
            self._keep(subject, path, error.message.removeprefix(path).lstrip(":, "))
            return
        if text == old:
            self.record.files[path] = ImportedDigests(source_version, digest(old))
            self._count(subject, "same")
        elif self.overwrite or (known and known.file == digest(old)):
            self._put(subject, path, source_version, text, "changed")
        elif known:
            self._keep(subject, path, "was changed both in this site and in Strapi")
        else:
            self._keep(subject, path, "already exists with other content and was not imported")

    def record_if_current(
        self, subject: str, path: str, source_version: str, content_digest: str | None
    ) -> bool:
        """Return whether a media file is up to date. If it is, record its digest and count it as "same".

        `content_digest` is the digest of the file in the source, or None if it is unknown.
        """
        known = self.record.files.get(path)
        if not (known and known.source == source_version and not self.overwrite):
            if content_digest is None or file_digest(self.root / path) != content_digest:
                return False
            self.record.files[path] = ImportedDigests(source_version, content_digest)
        self._count(subject, "same")
        return True

    def count_file(self, subject: str, path: str, content_digest: str | None) -> None:
        outcome, why = self._file_outcome(path, content_digest or file_digest(self.root / path))
        if outcome == "kept":
            self._keep(subject, path, why)
        else:
            self._count(subject, outcome)

    def merge_file(
        self, subject: str, path: str, source_version: str, content_digest: str, source: Path
    ) -> None:
        outcome, why = self._file_outcome(path, content_digest)
        if outcome == "kept":
            self._keep(subject, path, why)
            return
        if outcome != "same":
            self.changeset.put_file(path, source)
        self.record.files[path] = ImportedDigests(source_version, content_digest)
        self._count(subject, outcome)

    def _file_outcome(self, path: str, content_digest: str | None) -> tuple[str, str]:
        known, there = self.record.files.get(path), file_digest(self.root / path)
        if there == content_digest and content_digest:
            return "same", ""
        if there is None:
            gone = known is not None and not self.overwrite
            return ("kept", "was deleted in this site, but has changed in Strapi") if gone else ("new", "")
        if self.overwrite or (known and known.file == there):
            return "changed", ""
        return "kept", "already exists with other content"

    def remove(self, path: str) -> None:
        """Remove a file that the source no longer contains.

        A file that was edited in the site is kept, unless `overwrite` is set.
        """
        known = self.record.files.pop(path, None)
        if known is None or not self.changeset.exists(path):
            return
        if known.file == digest(self.changeset.text(path)) or self.overwrite:
            self.changeset.delete(path)
            self.removed.append(path)
        else:
            self.kept.append((path, "was changed in this site, but deleted in Strapi"))

    def _put(self, subject: str, path: str, source_version: str, text: str, outcome: str) -> None:
        self.changeset.put(path, text)
        self.record.files[path] = ImportedDigests(source_version, digest(text))
        self._count(subject, outcome)

    def _keep(self, subject: str, path: str, reason: str) -> None:
        self.kept.append((path, reason))
        self._count(subject, "kept")

    def _count(self, subject: str, outcome: str) -> None:
        self.outcome_counts(subject).files[outcome] += 1
