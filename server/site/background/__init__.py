"""What works beside the requests: one follows the log, one scales pictures, one commits, one checks."""
