"""Renames of attributes, forth and back, in memory. Every file must then be the same as before."""

import random
from pathlib import Path

from bench.real.differences import Differences
from server.errors import ApiError
from server.service.opening import Mode, open_site
from server.site.migrations.draft import MIGRATIONS
from server.site.migrations.migration import Migration
from server.site.migrations.plan import NewMigration, plan_new_migration
from server.write.context import Context

NEW_NAME = "renamed-attribute"


def rename_there_and_back(root: Path, limit: int | None, differences: Differences) -> int:
    """Rename at most `limit` random attributes (or all if it is None), and rename them back. Return how many
    were renamed.
    """
    site = open_site(root, Mode.READ).site
    attributes = [
        (type_.uid if type_.kind == "component" else type_.singular, attribute)
        for type_ in site.state.schema.types.values()
        for attribute in (type_.attributes if type_.path else ())
    ]
    if limit is not None:
        attributes = random.Random(root.name).sample(attributes, min(limit, len(attributes)))
    for name, attribute in attributes:
        try:
            writes, changed = site.preview(_there_and_back, (name, attribute))
        except ApiError as error:
            differences.add("migrate: refused", f"{name}.{attribute}: {error.message}")
            continue
        if not changed:
            differences.add("migrate: nothing renamed", f"{name}.{attribute}")
        for write in writes:
            if not write.path.startswith(f"{MIGRATIONS}/"):
                differences.add("migrate: not the same", f"{name}.{attribute}: {write.path}")
    return len(attributes)


def _there_and_back(request: tuple[str, str], context: Context) -> int:
    type_, attribute = request
    there = Migration("rename", {"attribute": f"{type_}.{attribute}", "to": NEW_NAME})
    back = Migration("rename", {"attribute": f"{type_}.{NEW_NAME}", "to": attribute})
    plan = plan_new_migration(NewMigration(there), context)
    plan_new_migration(NewMigration(back), context)
    return len(plan.paths)
