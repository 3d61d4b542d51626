"""TOML: a parser that also returns positions, and an editor that leaves all unchanged bytes as they are."""
