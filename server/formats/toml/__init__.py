"""TOML: a parser that returns positions, and an editor that leaves all unchanged bytes as they are."""
