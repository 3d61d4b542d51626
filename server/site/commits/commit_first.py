"""Makes the commit of a write before the write is made, for a git remote to take or refuse."""

import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from server.site.commits.message import Authorship, with_trailers
from server.site.site import Site
from server.storage.git.commit import Made, NewCommit, Person


def commit_ahead(
    site: Site,
    files: Mapping[str, bytes | Path | None],
    message: str,
    documents: Iterable[str],
    by: Authorship,
    base: str,
) -> Made:
    """Make a commit of some files on top of `base`, which nothing leads to; none where git ignores all.

    Trailers name the `documents`. The hooks of the repository agree. Raises CommitError.
    """
    person, now = Person.of(site.state.settings.git.committer), int(time.time())
    author = Person(by.name or person.name, by.email or person.email)
    said = with_trailers(message, by.actor, documents)
    return site.committer.prepare(NewCommit(files, said, author, now, person, now, base))
