"""Tests of `bifolio media`."""
