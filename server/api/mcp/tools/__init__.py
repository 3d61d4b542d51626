"""The tools of the MCP server. Each sends one or more requests to the REST API."""
