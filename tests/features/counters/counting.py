"""Counts the variants of a scenario, as the worker does at the end of its run: events go to stdout.

The device is called a GPU; the stand-in that is `ncu` here has the steps run on the CPU.
"""

import os
import sys
from pathlib import Path

from msgspec.structs import replace

from gpulab.catalog.catalog import read_file
from gpulab.core.jobs import CountersOptions
from gpulab.engine.measure.process_result import CandidateFacts, ProcessResult
from gpulab.engine.processes.channel import Channel
from gpulab.features.counters import worker
from gpulab.options import Options
from gpulab.proc.fork import become_subreaper
from gpulab.session.requests import request_for

file, asked, limit_s = sys.argv[1:]
job = request_for(read_file(Path(file)), Options(device="cpu", smoke=True)).job
names = {info.name for info in job.subject.variants}
report = str(Path(file).with_suffix(""))
job = replace(job, device="cuda:0", counters=CountersOptions(variant=asked, report=report))
become_subreaper()
worker._LIMIT_S = float(limit_s)
channel = Channel(os.dup(1))
channel.name_variants(job)
facts = {"items": 1, "steps": 1, "step_s": 1, "lead_in": 0, "kept": False}
measured = [CandidateFacts(name=name, variant=name, **facts) for name in names]
worker.count(job, ProcessResult(candidates=measured), channel)
channel.flush()
