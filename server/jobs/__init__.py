"""Jobs: work that is done in the background again and again, when it runs, and where it goes on."""
