"""The handlers of operations, by the ids of their rows in the table (`server.api.operations.table`)."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from werkzeug.wrappers import Response

from server.api.operations.table import BY_ID

Handler = TypeVar("Handler", bound=Callable[..., Response])


class Handlers:
    """A decorator that binds a function to operations: `@handles("findUsers")`."""

    def __init__(self) -> None:
        self._by_id: dict[str, Callable[..., Response]] = {}

    def __call__(self, *ids: str) -> Callable[[Handler], Handler]:
        """Bind a handler to operations: it gets the variables of their paths as arguments.

        Raises KeyError for an id that no row of the table has.
        """

        def bind(handler: Handler) -> Handler:
            self._by_id |= {BY_ID[id_].id: handler for id_ in ids}
            return handler

        return bind

    @property
    def by_id(self) -> Mapping[str, Any]:
        """Every handler by the id of its operation."""
        return self._by_id
