"""Tests of `quire media`."""
