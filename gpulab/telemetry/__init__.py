"""Floor 2: the telemetry process. It alone talks to the driver, so that a driver that hangs stops nothing else."""
