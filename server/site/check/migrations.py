"""Check for documents to which a migration has not been applied."""

from collections.abc import Iterator

from server.documents.timestamps import now
from server.problems import Problem
from server.site.check.audit import Audit
from server.site.migrations.draft import MIGRATIONS
from server.site.migrations.lacking import unmigrated_problems
from server.storage.changeset import Changeset
from server.storage.git.times import CommitTimes
from server.storage.store import Store
from server.write.context import Context


def find_unmigrated_documents(audit: Audit) -> Iterator[Problem]:
    if (audit.root / MIGRATIONS).is_dir():
        schema, settings = audit.snapshot.schema, audit.settings
        store = Store(audit.root, schema, settings, CommitTimes().timestamps)
        context = Context(audit.snapshot, settings, store, Changeset(audit.root), now())
        yield from unmigrated_problems(context)
