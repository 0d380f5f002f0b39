"""Many run files of one fleet: each GPU against the median of its model, and why it is slower."""
