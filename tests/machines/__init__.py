"""Three machines of one site at random: writes from all sides, kills, and what must hold at the end.

`python -m tests.machines` (`make test-machines`) runs it; `--seed` runs the same again.
"""
