"""Floor 2: the background GPU process. torch, cupy, triton and jax are imported here and in scenarios only."""
