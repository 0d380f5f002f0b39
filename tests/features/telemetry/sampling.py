"""A telemetry process against the stand-in driver, without a run around it."""

import os

from conftest import MARK, wait_for

from gpulab.core.events import WorkerReady
from gpulab.core.machine import Device
from gpulab.features.telemetry.events import Telemetry, TelemetryLost, TelemetryStarted
from gpulab.features.telemetry.process import TelemetryProcess
from gpulab.features.telemetry.report import TelemetryState
from gpulab.report.build import fold_all


class Sampling:
    """The process, and the events that it has sent so far."""

    def __init__(self, gpu, device, root=None):
        self.process = TelemetryProcess(gpu)
        self.events = []
        ready = WorkerReady(pid=os.getpid(), device=device, environment={})
        self.process.target(ready, root or ready.pid)

    def poll(self):
        self.events += self.process.stream.take()[0]

    def wait_for(self, event_type, count=1):
        """The events of the type, once there are so many."""
        wait_for(lambda: len(self.of_type(event_type)) >= count)
        return self.of_type(event_type)

    def of_type(self, event_type):
        self.poll()
        return [event for event in self.events if isinstance(event, event_type)]

    def stop(self):
        """All events of the process."""
        self.events += self.process.stop()
        return self.events

    @property
    def started(self):
        return self.wait_for(TelemetryStarted)[0]

    @property
    def lost(self):
        return self.wait_for(TelemetryLost)[0]

    def readings(self, count):
        return self.wait_for(Telemetry, count)

    @property
    def telemetry(self):
        """What the events so far mean."""
        return fold_all(self.events).part(TelemetryState)


class Driver:
    """Starts sampling with a driver that behaves as told, now or later."""

    def __init__(self, lab, standin, monkeypatch):
        self._monkeypatch, self._says, self._library = monkeypatch, lab.folder / "standin", standin
        self._started = []
        monkeypatch.setenv(MARK, lab.mark)
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        self.behave("")

    def behave(self, text):
        """From now on, also of a process that runs."""
        new = self._says.with_suffix(".new")
        new.write_text(text)
        new.rename(self._says)

    def sample(self, behaviour=None, *, gpu="0", uuid=None, library=None):
        """A process of its own; one with a `behaviour` keeps it, another follows `behave`."""
        self._monkeypatch.setenv("LD_LIBRARY_PATH", str(library or self._library))
        self._monkeypatch.setenv("STANDIN", f"@{self._says}" if behaviour is None else behaviour)
        device = (
            Device(kind="cuda", name="GPU", uuid=uuid) if uuid else Device(kind="cpu", name="cpu")
        )
        sampling = Sampling(gpu, device)
        self._started.append(sampling)
        return sampling

    def stop(self):
        for sampling in self._started:
            if sampling.process._process.poll() is None:
                sampling.process.stop()
