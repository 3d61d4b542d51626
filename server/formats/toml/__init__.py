"""TOML: a parser that also returns positions, and an editor that leaves all bytes outside of its changes
unchanged.
"""
