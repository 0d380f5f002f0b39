"""Blocks of each kernel of lessons that fit on an SM: as gpulab works it out, and as the driver
says.

python benchmarks/device/driver_occupancy.py [--smoke] SCENARIO.py...
"""

import json
import sys
from math import prod
from pathlib import Path

import torch
from kernels_per_step import built

from gpulab.catalog.catalog import read_file
from gpulab.features.kernels.compiler import compile_kernel
from gpulab.features.kernels.instructions import occupancy
from gpulab.features.kernels.source import current_arch, kernels_made


def main():
    from cuda.bindings import driver

    torch.zeros(1, device="cuda")
    for path in [Path(argument) for argument in sys.argv[1:] if argument != "--smoke"]:
        for name in read_file(path).scenario.variants:
            built(path, name, torch.device("cuda:0"), smoke=True)
        for text, file in kernels_made():
            compiled = compile_kernel(text, current_arch(), file)
            shared, threads = compiled.shared_bytes + text.shared_bytes, prod(text.threads)
            ours = occupancy(current_arch(), threads, compiled.registers, shared)
            _, module = driver.cuModuleLoadData(compiled.cubin)
            _, function = driver.cuModuleGetFunction(module, compiled.entry.encode())
            attribute = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            driver.cuFuncSetAttribute(function, attribute, text.shared_bytes)
            _, blocks = driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(
                function, threads, text.shared_bytes
            )
            print(
                json.dumps(
                    {"kernel": f"{path.stem} {text.name}", "blocks": ours.blocks, "driver": blocks}
                )
            )


if __name__ == "__main__":
    main()
