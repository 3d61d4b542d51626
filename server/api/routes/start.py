"""GET /: what there is to ask, as a page for people and as JSON for programs.

It shows whoever asks what they may read and nothing more: without credentials that is what the public may.
"""
