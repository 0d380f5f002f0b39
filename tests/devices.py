"""Devices as torch describes them."""

from gpulab.core.machine import Device
from gpulab.scenario import GiB

H200 = Device(
    kind="cuda",
    name="NVIDIA H200",
    memory_bytes=140 * GiB,
    capability="9.0",
    sms=132,
    sm_mhz=1980,
    memory_mhz=3201,
    bus_bits=6016,
)
