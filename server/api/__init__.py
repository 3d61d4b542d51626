"""HTTP: one entrance for requests and answers, the table of operations, and the handlers behind it."""
