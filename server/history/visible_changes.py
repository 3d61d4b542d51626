"""Filter for the versions in which a viewer can see a change."""

from collections.abc import Sequence

from server.history.differences import changed_attributes, values_of
from server.history.versions import Version
from server.history.viewer import Viewer
from server.index.budget import Budget
from server.storage.store import Store

MAX_EXAMINED = 500


def find_visible_changes(
    store: Store,
    versions: Sequence[Version],
    viewers: Sequence[Viewer],
    budget: Budget,
    *,
    default: bool,
) -> list[bool]:
    """Return, for each version, whether its viewer can see a difference from the previous version.

    A version is uncertain if hidden values may be all that changed. At most MAX_EXAMINED uncertain versions
    are compared. For the others, the result is `default`. Raises LimitError if the request's budget runs out.
    """
    misses: dict[tuple[int, ...], bool] = {}
    doubtful = []
    for number, (version, viewer) in enumerate(zip(versions, viewers, strict=True)):
        if version.action != "update" or version.type is None or viewer.actor.everything:
            continue
        key = (id(version.type), *map(id, viewer.other_schemas))
        if key not in misses:
            misses[key] = viewer.may_hide_values(version.type)
        if misses[key]:
            doubtful.append(number)
    shown = [True] * len(versions)
    for number in doubtful[MAX_EXAMINED:]:
        shown[number] = default
    examined = doubtful[:MAX_EXAMINED]
    read = [versions[number] for number in examined], [viewers[number] for number in examined]
    values = values_of(store, read[0], budget, read[1])
    for number, version, viewer, (before, after) in zip(examined, *read, values, strict=True):
        if version.type and before is not None and after is not None:
            attributes = viewer.attributes(version.type)
            shown[number] = bool(changed_attributes(attributes, before, after, viewer))
    return shown
