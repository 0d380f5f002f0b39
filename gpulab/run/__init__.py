"""Floor 1: the parent's side: what can be run, the session that runs it, the file it leaves."""
