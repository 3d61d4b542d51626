"""The tools of the MCP server. Each tool sends one or more requests to the REST API."""
