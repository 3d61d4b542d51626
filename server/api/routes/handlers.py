"""Registry of handlers by operation id (`server.api.operations.table`)."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from werkzeug.wrappers import Response

from server.api.operations.table import BY_ID

Handler = TypeVar("Handler", bound=Callable[..., Response])


class Handlers:
    """Registry and decorator that binds a function to operations: `@handles("findUsers")`."""

    def __init__(self) -> None:
        self._by_id: dict[str, Callable[..., Response]] = {}

    def __call__(self, *ids: str) -> Callable[[Handler], Handler]:
        """Bind a handler to operations; it receives their path variables as arguments.

        Raises KeyError for an id that is missing from the table.
        """

        def bind(handler: Handler) -> Handler:
            self._by_id |= {BY_ID[id_].id: handler for id_ in ids}
            return handler

        return bind

    @property
    def by_id(self) -> Mapping[str, Any]:
        """Return the handlers by operation id."""
        return self._by_id
