"""Findings about machines, telemetry and rooflines, with values as they are given where each is made."""

AS_BEFORE = {
    "torch_not_installed": ({}, "torch is not installed"),
    "torch_without_cuda": ({}, "this torch is a build without CUDA"),
    "devices_hidden": ({}, "CUDA_VISIBLE_DEVICES hides every device"),
    "no_gpu": ({}, "no NVIDIA device in this machine"),
    "not_installed": (
        {"package": "CuPy", "install": "gpulab[cuda13]"},
        "CuPy is not installed: pip install 'gpulab[cuda13]'",
    ),
    "compiler_not_installed": ({}, "no C++ compiler: install g++"),
    "no_compiler": ({}, "no C++ compiler"),
    "versions": ({"gpulab": "0.1.0", "python": "3.11.7"}, "0.1.0, Python 3.11.7"),
    "not_there": ({}, "not installed"),
    "torch_build": (
        {"torch": "2.13.0", "cuda": None, "gpu_unused": True},
        "2.13.0, a build without CUDA, in a machine with an NVIDIA device",
    ),
    "torch_broken": ({"message": "ImportError: libtorch"}, "ImportError: libtorch"),
    "probe_failed": ({"message": "No such file"}, "No such file"),
    "probe_ended": ({"code": -11, "message": "Fatal Python error"}, "the probe ended with -11: Fatal Python error"),
    "probe_hangs": ({"timeout_s": 120.0}, "no answer within 120 s: the driver hangs"),
    "devices_hidden_by": ({"version": "580.1", "value": "-1"}, "580.1; CUDA_VISIBLE_DEVICES='-1' hides every device"),
    "torch_without_driver": ({"version": "580.1", "message": "no device"}, "580.1; torch: no device"),
    "driver_answers": (
        {"version": "580.1", "devices": ["H200 (GPU-1)", "H200 (GPU-2)"]},
        "580.1, H200 (GPU-1), H200 (GPU-2)",
    ),
    "gpu_without_driver": ({}, "an NVIDIA device without its driver"),
    "no_gpu_and_no_driver": ({}, "none, and no NVIDIA device"),
    "comes_with_cuda_torch": ({}, "it comes with a torch built for CUDA"),
    "package_of_other_cuda": (
        {"package": "cupy-cuda12x 13.0", "cuda": "13.0"},
        "cupy-cuda12x 13.0, beside a torch for CUDA 13.0",
    ),
    "package": ({"package": "triton 3.7.1"}, "triton 3.7.1"),
    "file": ({"path": "/usr/bin/g++"}, "/usr/bin/g++"),
    "folder_not_writable": ({"path": "/root"}, "/root cannot be written"),
    "terminal": (
        {"columns": 80, "lines": 24, "unicode": True, "locale": "C.UTF-8", "colours": 256, "tmux": True, "ssh": False},
        "80x24, UTF-8, 256 colours, in tmux",
    ),
    "run_command": ({"command": "pip install jax"}, "pip install jax"),
    "reboot": ({}, "reboot"),
    "install_driver": ({}, "install the NVIDIA driver that your distribution packages"),
    "use_gpu_machine": ({}, "a machine with an NVIDIA GPU"),
    "install_compiler": ({}, "install g++"),
    "set_state_home": ({}, "export XDG_STATE_HOME=FOLDER, one that can be written"),
    "not_supported": ({}, "not supported by this device"),
    "not_in_driver": ({}, "not in this driver"),
    "not_permitted": ({}, "not permitted"),
    "not_in_client": ({}, "not in this version of nvidia-ml-py"),
    "run_on_cpu": ({}, "this run is on the CPU"),
    "nvml_client_broken": ({"message": "no module"}, "nvidia-ml-py cannot be used: no module"),
    "no_driver": ({}, "no NVIDIA driver found: telemetry shows the host only"),
    "driver_not_loaded": ({}, "the NVIDIA driver is not loaded: telemetry shows the host only"),
    "driver_was_updated": ({}, "the driver was updated: reboot, or reload its module"),
    "gpu_lost": ({}, "GPU lost: the kernel's log (dmesg) has its Xid line"),
    "gpu_needs_reset": ({}, "the GPU needs a reset: the kernel's log (dmesg) has its Xid line"),
    "driver_did_not_answer": ({}, "the driver did not answer before the run ended"),
    "telemetry_not_started": ({"message": "no memory"}, "the telemetry process could not be started: no memory"),
    "telemetry_process_ended": ({}, "the telemetry process ended"),
    "clocks_slowed": (
        {"dropped": 180, "blocks": 200, "reasons": ["thermal slowdown", "power brake"]},
        "thermal slowdown, power brake: 180 of 200 blocks dropped",
    ),
    "gpu_shared": (
        {"dropped": 180, "blocks": 200, "processes": ["python 7", "3 more"]},
        "another process on the GPU (python 7, 3 more): 180 of 200 blocks dropped",
    ),
    "power_capped": (
        {"capped": 5, "readings": 7},
        "power cap in 5 of 7 readings of the rounds: times hold for this limit",
    ),
    "ecc_errors": ({"count": 2}, "2 uncorrected memory errors (ECC) since the driver was loaded"),
    "row_remapping_pending": ({}, "memory rows wait for a reset to be remapped"),
    "pcie_narrow": (
        {"width": 8, "full": 16},
        "PCIe width 8 of 16: copies from and to the host are slower than they could be",
    ),
    "above_compute_roof": (
        {"memory": 0.5, "arithmetic": 1.2, "dtype": "fp32"},
        "memory 50%, fp32 arithmetic 120%: above the roof, so what is declared or the ceiling is wrong",
    ),
    "near_compute_roof": (
        {"arithmetic": 0.9, "dtype": "bf16"},
        "bf16 arithmetic 90%: fewer or cheaper operations make it faster",
    ),
    "above_memory_roof": ({"memory": 1.3}, "memory 130%: above the roof, so what is declared or the ceiling is wrong"),
    "near_memory_roof": (
        {"memory": 0.46, "as_fast_as": "copy"},
        "memory 46%, as fast as a copy moves its bytes: fewer bytes make it faster",
    ),
    "bytes_stay_in_cache": (
        {"memory": 2.5, "cache": 0.8, "arithmetic": 0.1, "dtype": "fp32", "may_move_fewer_bytes": True},
        (
            "2.5x of what device memory can: its bytes stay in the cache, or it moves fewer than are "
            "declared, 80% of the last-level cache's roof"
        ),
    ),
    "few_bytes_in_memory": (
        {"memory": 0.9, "counted": 0.014},
        "the device counted only 1% of its bytes in memory: cached",
    ),
    "bytes_fit_cache": (
        {"memory": 0.7, "cache": 2.8, "nearer_cache": True},
        (
            "its bytes fit into the cache, and so may stay there, 280% of the last-level cache's roof, so a "
            "nearer one has them"
        ),
    ),
    "launches_take_the_time": (
        {"memory": 0.01, "operations": 4, "share": 0.8},
        (
            "starting its 4 operations takes 80% of its time, and no roof is near (memory 1%): fewer, larger "
            "operations make it faster"
        ),
    ),
    "device_waits_for_launches": (
        {"memory": 0.01, "share": 0.3},
        (
            "the device waits for the host 30% of the time, and no roof is near (memory 1%): fewer, larger "
            "operations make it faster"
        ),
    ),
    "ceilings_missing": (
        {"memory": 0.01, "arithmetic": None, "dtype": "fp16", "missing": "unsteady"},
        (
            "not every ceiling is known (memory 1%, fp16 arithmetic: no steady ceiling): measure again when "
            "the machine is quiet"
        ),
    ),
    "device_waits_for_host": (
        {"memory": 0.01, "share": 0.9, "operations": 3, "launching": 0.02},
        "the device waits for the host 90% of the time; starting 3 operations bare takes 2% (memory 1%)",
    ),
    "counted_near_memory_roof": (
        {"memory": 0.23, "sm": 0.8, "dram": 0.75, "ratio": 2.85},
        (
            "the device moves 75% of what its memory can, 2.9x of what is declared (memory 23%): fewer bytes make it "
            "faster"
        ),
    ),
    "pipe_is_busy": (
        {"arithmetic": 0.2, "dtype": "fp16", "sm": 0.9, "tensor": 0.7, "pipe": "tensor"},
        (
            "the tensor cores work 70% of the time (SMs busy 90%, tensor 70%), on more than is declared (fp16 "
            "arithmetic 20%): fewer or cheaper operations make it faster"
        ),
    ),
    "at_power_cap": (
        {"arithmetic": 0.55, "dtype": "fp32", "sm": 0.97, "tensor": 0.32, "fp16": 0.0, "power": 699.0, "limit": 700.0},
        (
            "it draws all the power there is (SMs busy 97%, tensor 32%, 699 of 700 W), and no roof is near (fp32 "
            "arithmetic 55%): what takes less energy is faster"
        ),
    ),
    "too_little_in_flight": (
        {"memory": 0.03, "sm": 0.44, "occupancy": 0.02, "dram": 0.0},
        (
            "too little in flight: SMs busy 44%, occupancy 2%, DRAM 0%, and no roof is near (memory 3%): more, or "
            "larger, work at once"
        ),
    ),
    "warps_wait": (
        {"memory": 0.13, "sm": 0.99, "occupancy": 0.9, "dram": 0.37},
        (
            "the SMs are full of warps that wait: SMs busy 99%, occupancy 90%, DRAM 37%, and no roof is near (memory "
            "13%): accesses that waste bandwidth, or atomics"
        ),
    ),
    "strided_accesses": (
        {"memory": 0.05, "share": 0.99},
        (
            "99% of the bytes of its operands are not gone through in their order in memory, and no roof is near "
            "(memory 5%): read and write contiguously"
        ),
    ),
    "page_faults_take_the_time": (
        {"memory": 0.2, "faults": 4096.0, "share": 0.6},
        (
            "4096 page faults a step take 60% of its time, and no roof is near (memory 20%): reuse memory instead of "
            "allocating it"
        ),
    ),
    "thread_is_preempted": (
        {"memory": 0.3, "share": 0.45},
        ("its thread does not run 45% of the time, and no roof is near (memory 30%): measure on a quiet machine"),
    ),
    "unexplained": (
        {
            **{"memory": 0.13, "arithmetic": 0.35, "dtype": "fp32", "launching": 0.02, "preempted": 0.0, "waited": 0.1},
            **{"outside": 0.05, "operation": "aten::erf", "share": 0.9},
        },
        (
            "no roof is near (memory 13%, fp32 arithmetic 35%), and nothing that was measured says why (launches 2%, "
            "preempted 0%, waiting 10%, outside of torch's operations 5%; aten::erf 90%)"
        ),
    ),
    "random_accesses": (
        {"memory": 0.02, "share": 0.97},
        (
            "operations that read or write at indices take 97% of the time, and no roof is near (memory 2%): sort the "
            "indices, or keep what they reach small enough for a cache"
        ),
    ),
    "thread_waits": (
        {"share": 0.99},
        (
            "its thread sleeps, or waits for another thread, a process or a device, 99% of the time: overlap that with "
            "work, or wait less"
        ),
    ),
    "interpreter_takes_the_time": (
        {"share": 0.97, "interpreted": 0.95},
        (
            "97% of what its thread runs is outside of torch's operations, and 95% Python's bytecode: one operation on "
            "a whole tensor instead of a loop"
        ),
    ),
    "outside_of_torch": (
        {"share": 0.99, "interpreted": 0.02},
        (
            "99% of what its thread runs is outside of torch's operations, and 2% Python's bytecode: the code of "
            "another library"
        ),
    ),
    "no_work_declared": (
        {"operation": "aten::mm", "share": 0.98},
        "it declares no work (bytes, flops) that a roof could limit; aten::mm takes 98% of its time",
    ),
    "link_and_near_compute_roof": (
        {"link": "host to device", "share": 0.2, "arithmetic": 0.9, "dtype": "fp32"},
        "20% of the host to device link, fp32 arithmetic 90%: fewer or cheaper operations make it faster",
    ),
    "above_link_roof": (
        {"link": "host to device", "share": 1.4},
        "140% of the host to device link: above the roof, so what is declared or the ceiling is wrong",
    ),
    "near_link_roof": (
        {"link": "device to host", "share": 0.9},
        "90% of the device to host link: fewer bytes make it faster",
    ),
    "far_from_link_roof": (
        {"link": "host to device", "share": 0.2},
        (
            "only 20% of the host to device link: copies that wait for other work, that are too small, or "
            "from pageable memory"
        ),
    ),
    "ceiling_cache_unreadable": (
        {"file": "c.json"},
        "c.json cannot be read: what it held of ceilings counts as not measured; delete it",
    ),
    "ceilings_failed": ({"message": "boom"}, "the ceilings could not be measured: boom"),
    "ceiling_failed": (
        {"ceiling": "cache read", "message": "boom"},
        "the ceiling cache read could not be measured: boom",
    ),
    "ceilings_not_used": (
        {"ceilings": ["cache read", "device memory triad"], "times": 1.5},
        (
            "not used as ceilings: cache read, device memory triad: their best is over 1.5x their median, on "
            "a machine that was disturbed"
        ),
    ),
    "flops_differ": (
        {"declared": 2000000.0, "counted": 1500000.0},
        "declares 2e+06 FLOPs a step, and torch counts 1.5e+06 in its products and convolutions",
    ),
    "moves_more_bytes": (
        {"ratio": 3.04},
        "moves 3.0x of the bytes that it declares, which are the least it must: by the device's own counters",
    ),
    "declares_more_bytes": (
        {"declared": 419430400, "operands": 52428800},
        "declares 400 MiB a step, and the operands of its operations are 50.0 MiB",
    ),
    "above_roof": (
        {
            **{"declared": 1.0e12, "unit": "FLOP", "time_s": 1.42e-3, "rate": 7.03e14, "roof": "matrix fp32"},
            **{"roof_rate": 1.454e11, "ratio": 4834.8, "allowed": 1.1},
        },
        (
            "declares 1.00 TFLOP in 1.42 ms: 703 TFLOP/s, 4,835x of matrix fp32 (145 GFLOP/s), and more than 1.1x is "
            "not possible"
        ),
    ),
    "first_touches": ({"pages": 256}, "first touches of 256 pages, one by one"),
    "datasheet": ({"device": "NVIDIA H200"}, "datasheet of NVIDIA H200"),
    "memory_clock": ({"mhz": 3201.0, "transfers": 2, "bits": 6016}, "3201 MHz x 2 x 6016 bit"),
    "sm_clock": ({"sms": 132, "per_clock": 256, "unit": "FLOP", "mhz": 1980.0}, "132 SMs x 256 FLOP x 1980 MHz"),
    "arrays": ({"bytes": 268435456}, "arrays of 256 MiB"),
    "product": ({"size": 4096}, "product of 4096^3, random data"),
    "fma_chains": ({"chains": 8, "blocks": 264, "threads": 256}, "8 chains of FMAs a thread, 264 blocks of 256"),
    "additions": ({"count": 200}, "additions of one element, 200 in a row"),
    "additions_on_device_clock": ({"count": 200}, "additions of one element, 200 in a row, on the device's clock"),
    "graph_of_additions": ({"count": 200}, "a graph of 200 additions"),
    "host_clock": ({}, "on the host's clock"),
    "pinned_for_one_copy": ({}, "page-locked for this one copy"),
    "matrix_product_units": ({}, "the matrix product's, by the same units"),
}
"""Code to values and sentence: the sentence that the lab said before findings had codes."""
REWORDED = {
    "probe_unreadable": ({"message": "Expected object"}, "the answer of the probe cannot be read: Expected object"),
    "needs_cuda_torch": ({"package": None}, "not installed; it requires a torch built for CUDA"),
    "cpu_device": (
        {"device": "AMD EPYC", "cores": 1, "capability": "AVX512", "memory_bytes": 25769803776},
        "AMD EPYC, 1 usable core, AVX512, 24.0 GiB",
    ),
    "gpu_device": (
        {"device": "NVIDIA H200", "capability": "9.0", "memory_bytes": 150323855360, "uuid": "GPU-1"},
        "NVIDIA H200, compute capability 9.0, 140 GiB, GPU-1",
    ),
    "ask_nvidia_smi_or_reboot": ({}, "nvidia-smi shows more; after an update of the driver, reboot"),
    "ask_nvidia_smi_and_kernel_log": ({}, "nvidia-smi; then read the kernel's log (dmesg | grep -i nvrm)"),
    "keeps_failing": ({}, "the driver fails to read it"),
    "no_driver_permission": ({}, "no permission to use the NVIDIA driver"),
    "no_such_gpu": ({}, "the driver lists no such GPU"),
    "driver_error": ({"message": "Unknown Error"}, "the NVIDIA driver reports: Unknown Error"),
    "telemetry_failed": ({"message": "OSError: boom"}, "telemetry failed: OSError: boom"),
    "telemetry_ended_early": (
        {"cause": "gpu_lost"},
        (
            "GPU telemetry ended early, GPU not monitored afterwards: GPU lost: the kernel's log (dmesg) has "
            "its Xid line"
        ),
    ),
    "clocks_not_checked": (
        {"cause": "not_permitted"},
        "could not check whether the clocks were held back: not permitted",
    ),
    "processes_not_checked": (
        {"cause": "not_in_driver"},
        "could not check whether other processes used the GPU: not in this driver",
    ),
    "xid": ({"xid": 79}, "the driver reported Xid 79: the kernel's log (dmesg) has more"),
    "row_remapping_failed": ({}, "a remapping of memory rows failed: the device needs replacement"),
    "phase_waits": (
        {"memory": 0.01, "phase": "data", "share": 0.57},
        "its data phase takes 57% of the time, and no roof is near (memory 1%): fix that first",
    ),
    "repeated_reads": ({"passes": 8, "bytes": 26214400}, "8 reads of 25.0 MiB in one launch"),
}
"""The same of sentences that are new, or have other words than before."""
