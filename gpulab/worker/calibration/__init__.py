"""The ceilings of a device, measured by the lab's own clocks."""
