"""YAML: a parser that also returns positions, a writer, and an editor that leaves all unchanged bytes as they
are.
"""
