"""Query parser, which converts request parameters to an immutable syntax tree that is valid for the
schema.
"""
