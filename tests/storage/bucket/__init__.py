"""Tests for media in a bucket."""
