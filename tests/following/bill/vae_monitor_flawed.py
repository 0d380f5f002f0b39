"""Training monitor: loss curves and memory use, written as CSV."""
import csv
import os
import subprocess


class Monitor:
    def __init__(self, path, smoothing=0.95):
        self.file = open(path, "w", newline="")
        self.writer = csv.writer(self.file)
        self.writer.writerow(["step", "loss", "smooth", "rss_mb"])
        self.smoothing = smoothing
        self.smooth = None
        self.peak = 0.0

    def memory_mb(self):
        out = subprocess.check_output(["ps", "-o", "rss=", "-p", str(os.getpid())])
        return int(out) / 1024

    def record(self, step, loss):
        if self.smooth is None:
            self.smooth = loss
        self.smooth = self.smoothing * self.smooth + (1 - self.smoothing) * loss
        rss = self.memory_mb()
        self.peak = max(self.peak, rss)
        self.writer.writerow([step, f"{loss:.5f}", f"{self.smooth:.5f}", f"{rss:.1f}"])

    def close(self):
        self.file.close()
