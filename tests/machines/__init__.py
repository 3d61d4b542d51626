"""Fault-injection test: three machines serve clones of one site while clients write and processes are killed.

To run it, use `python -m tests.machines` or `make test-machines`. `--seed` repeats the same writes and kills.
"""
