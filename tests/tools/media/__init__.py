"""Tests for `bifolio media`."""
