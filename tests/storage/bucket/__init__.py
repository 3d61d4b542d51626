"""Tests of media in a bucket."""
