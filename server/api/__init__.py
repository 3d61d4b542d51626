"""HTTP: one entrance for requests and answers, the handlers behind it, and how documents become JSON."""
