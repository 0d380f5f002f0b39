"""Recordings of Nsight Systems and of rocprof, as they were exported, for `--why`."""
