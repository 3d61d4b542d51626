"""Parsers that also return the positions of values, and editors that leave all bytes outside of their changes
unchanged.
"""
