"""Commits that are created before their write. The git remote accepts or rejects them."""

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
    """Create a commit of some files on top of `base`. No ref points to it.

    `documents` are listed in the trailers. If git ignores all the files, the result is empty. Runs the
    repository's hooks. Raises CommitError.
    """
    person, now = Person.of(site.state.settings.git.committer), int(time.time())
    author = Person(by.name or person.name, by.email or person.email)
    full_message = with_trailers(message, by.actor, documents)
    return site.committer.prepare(NewCommit(files, full_message, author, now, person, now, base))
