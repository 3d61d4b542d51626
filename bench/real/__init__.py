"""Test with real repositories, which are served in place. It compares what Bifolio reads and writes with
independent readers.
"""
