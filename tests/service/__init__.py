"""Tests for `server.service`, the operations on a site without HTTP."""
