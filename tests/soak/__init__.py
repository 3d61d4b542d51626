"""Soak test of one machine and of three: load and faults in rounds, with checks after each.

`make torture` includes it; `python -m tests.soak` runs only the soak.
"""
