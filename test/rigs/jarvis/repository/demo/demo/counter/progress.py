import re

from jarvis_cd.progress.provider import ProgressObservation
from jarvis_cd.progress.schema import ProgressState


class CounterProgress:
    def __init__(self):
        self.reset_progress()

    def reset_progress(self):
        self.rest = ""

    def observe_progress(self, text):
        *lines, self.rest = (self.rest + text).split("\n")
        found = [re.fullmatch(r"STEP (\d+) of (\d+)", line.strip()) for line in lines]
        return [
            ProgressObservation(label="step", state=ProgressState.RUNNING, current=float(one[1]), total=float(one[2]), unit="step")
            for one in found
            if one
        ]

    def finalize_progress(self):
        return []


def adapter_from_package(package):
    return CounterProgress()
