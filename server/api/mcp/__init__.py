"""Model Context Protocol: tools through which agents read and write a site (docs/agents.md)."""
