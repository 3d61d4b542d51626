"""YAML: a parser that returns positions, a writer, and an editor that leaves all
unchanged bytes as they are.
"""
