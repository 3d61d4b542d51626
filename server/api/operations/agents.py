"""The operation `POST /mcp` for the Model Context Protocol (docs/agents.md)."""

from server.api.operations.operation import Area, Operation
from server.api.operations.permission import may_send_files
from server.api.serving.bodies import MAX_BODY_BYTES

MCP = Area(
    "mcp",
    parts=("mcp",),
    ignores_served_commit=True,
    writes_site=False,  # Each tool sends requests of its own, which are rejected if the site is read-only.
    operations=(
        Operation(
            "mcp",
            "POST",
            "/mcp",
            may_send_files,  # Other callers have a lower limit on the size of their messages.
            "A protocol of its own, whose clients ask it for a description.",
            MAX_BODY_BYTES,
            waits=True,  # as uploads do
            branch_only=True,  # The requests of the tools are checked.
        ),
    ),
)
