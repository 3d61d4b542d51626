"""Soak test with one machine and with three machines: each round has load and faults, followed by checks.

`make torture` includes the soak test. To run only the soak test, use `python -m tests.soak`.
"""
