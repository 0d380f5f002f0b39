"""What every worker process needs whatever its job: its pipe, its position, its device, its failures."""
