"""A soak of one machine and of three: load and faults in rounds, and what was promised, checked after each.

`make torture` runs it; `python -m tests.soak` runs it by itself.
"""
