"""File formats. The parsers return trees with positions, and the editors leave all unchanged bytes as they
are.
"""
