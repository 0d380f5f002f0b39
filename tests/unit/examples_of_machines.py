"""Findings about machines, telemetry and rooflines, with values as they are given where each is
made.
"""

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
    "probe_ended": (
        {"code": -11, "message": "Fatal Python error"},
        "the probe ended with -11: Fatal Python error",
    ),
    "probe_hangs": ({"timeout_s": 120.0}, "no answer within 120 s: the driver hangs"),
    "devices_hidden_by": (
        {"version": "580.1", "value": "-1"},
        "580.1; CUDA_VISIBLE_DEVICES='-1' hides every device",
    ),
    "torch_without_driver": (
        {"version": "580.1", "message": "no device"},
        "580.1; torch: no device",
    ),
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
        {
            "columns": 80,
            "lines": 24,
            "unicode": True,
            "locale": "C.UTF-8",
            "colours": 256,
            "tmux": True,
            "ssh": False,
        },
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
    "telemetry_not_started": (
        {"message": "no memory"},
        "the telemetry process could not be started: no memory",
    ),
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
    "first_touches": ({"pages": 256}, "first touches of 256 pages, one by one"),
    "datasheet": ({"device": "NVIDIA H200"}, "datasheet of NVIDIA H200"),
    "memory_clock": ({"mhz": 3201.0, "transfers": 2, "bits": 6016}, "3201 MHz x 2 x 6016 bit"),
    "sm_clock": (
        {"sms": 132, "per_clock": 256, "unit": "FLOP", "mhz": 1980.0},
        "132 SMs x 256 FLOP x 1980 MHz",
    ),
    "arrays": ({"bytes": 268435456}, "arrays of 256 MiB"),
    "product": ({"size": 4096}, "product of 4096^3, random data"),
    "fma_chains": (
        {"chains": 8, "blocks": 264, "threads": 256},
        "8 chains of FMAs a thread, 264 blocks of 256",
    ),
    "additions": ({"count": 200}, "additions of one element, 200 in a row"),
    "additions_on_device_clock": (
        {"count": 200},
        "additions of one element, 200 in a row, on the device's clock",
    ),
    "graph_of_additions": ({"count": 200}, "a graph of 200 additions"),
    "host_clock": ({}, "on the host's clock"),
    "pinned_for_one_copy": ({}, "page-locked for this one copy"),
    "matrix_product_units": ({}, "the matrix product's, by the same units"),
}
"""Code to values and sentence: the sentence that the lab said before findings had codes."""
REWORDED = {
    "probe_unreadable": (
        {"message": "Expected object"},
        "the answer of the probe cannot be read: Expected object",
    ),
    "needs_cuda_torch": ({"package": None}, "not installed; it requires a torch built for CUDA"),
    "cpu_device": (
        {"device": "AMD EPYC", "cores": 1, "capability": "AVX512", "memory_bytes": 25769803776},
        "AMD EPYC, 1 usable core, AVX512, 24.0 GiB",
    ),
    "gpu_device": (
        {
            "device": "NVIDIA H200",
            "capability": "9.0",
            "memory_bytes": 150323855360,
            "uuid": "GPU-1",
        },
        "NVIDIA H200, compute capability 9.0, 140 GiB, GPU-1",
    ),
    "ask_nvidia_smi_or_reboot": (
        {},
        "nvidia-smi shows more; after an update of the driver, reboot",
    ),
    "ask_nvidia_smi_and_kernel_log": (
        {},
        "nvidia-smi; then read the kernel's log (dmesg | grep -i nvrm)",
    ),
    "keeps_failing": ({}, "the driver fails to read it"),
    "no_driver_permission": ({}, "no permission to use the NVIDIA driver"),
    "no_such_gpu": ({}, "the driver lists no such GPU"),
    "driver_error": ({"message": "Unknown Error"}, "the NVIDIA driver reports: Unknown Error"),
    "telemetry_failed": ({"message": "OSError: boom"}, "telemetry failed: OSError: boom"),
    "telemetry_ended_early": (
        {"cause": "gpu_lost"},
        (
            "GPU telemetry ended early, GPU not monitored afterwards: GPU lost: the kernel's log "
            "(dmesg) has its Xid line"
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
    "repeated_reads": ({"passes": 8, "bytes": 26214400}, "8 reads of 25.0 MiB in one launch"),
}
"""The same of sentences that are new, or have other words than before."""
