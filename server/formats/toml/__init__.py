"""TOML: a parser that also returns positions, and an editor that leaves all other bytes unchanged."""
