"""A pipeline, as far as the tests' packages need one. Its texts are JSON, which is YAML."""

import json
import os
import shlex
import subprocess
import sys
import time

from jarvis_cd.core.config import Jarvis
from jarvis_cd.core.execution import ExecutionHandle, Store


class Pipeline:
    def __init__(self, name=None):
        self.name = name
        self.definition = {}
        if name is not None:
            with open(os.path.join(Jarvis.get_instance().get_pipeline_dir(name), "pipeline.yaml")) as stream:
                self.definition = json.load(stream)

    def load(self, file):
        with open(file) as stream:
            self.definition = json.load(stream)
        self.name = self.definition["name"]
        return self

    def store(self):
        return Store(Jarvis.get_instance().config["shared_dir"], self.name)

    def submit(self, execution_id, program):
        """Has the configured stand-in for sbatch(1) accept a script that runs the pipeline; its output goes to the execution's directory."""
        store = self.store()
        store.create(execution_id, mode="scheduler", provider="slurm")
        store.update(execution_id, state="submitting")
        place = store.directory(execution_id)
        with open(os.path.join(place, "pipeline.yaml"), "w") as stream:
            json.dump(self.definition, stream)
        script = os.path.join(place, "submit.slurm")
        with open(script, "w") as stream:
            arguments = [sys.executable, program, "ppl", "in-allocation", os.path.join(place, "pipeline.yaml"), "--execution-id", execution_id]
            root = Jarvis.get_instance().jarvis_root
            stream.write("#!/bin/sh\nexport JARVIS_ROOT=" + shlex.quote(root) + "\nexec " + shlex.join(arguments) + "\n")
        asked = [*Jarvis.get_instance().config["sbatch"], self.definition["scheduler"]["job_name"], script, os.path.join(place, "stdout.log")]
        native = subprocess.run(asked, stdout=subprocess.PIPE, check=True, text=True).stdout.strip()
        return ExecutionHandle(store.update(execution_id, state="submitted", submitted=True, scheduler_native_id=native))

    def run_submitted(self, execution_id):
        # The record is written by one at a time.
        until = time.monotonic() + 5
        while self.store().get(execution_id)["state"] == "submitting" and time.monotonic() < until:
            time.sleep(0.02)
        self.work(execution_id)

    def run(self, execution_id):
        self.store().create(execution_id)
        return self.work(execution_id)

    def work(self, execution_id):
        store = self.store()
        store.update(execution_id, state="running", metadata={"progress_files": {"any": {}}, "service_runtime_files": {"any": {}}})
        try:
            for package in self.definition["pkgs"]:
                self.start(store, execution_id, package)
        except BaseException as error:
            store.update(execution_id, state="failed", terminal=True, return_code=1, error=str(error) or type(error).__name__)
            raise
        return ExecutionHandle(store.update(execution_id, state="completed", terminal=True, return_code=0))

    def start(self, store, execution_id, package):
        name = package.get("pkg_name", package["pkg_type"].split(".")[-1])
        place = store.directory(execution_id)
        os.makedirs(os.path.join(place, "progress"), exist_ok=True)
        if package.get("listing"):
            with open(os.path.join(place, "result.txt"), "w") as stream:
                stream.write("result of " + name + "\n")
        steps = package.get("steps", 1)
        for step in range(1, steps + 1):
            print("JARVIS_STEP %d/%d" % (step, steps), flush=True)
            report = {
                "schema_version": package.get("progress_version", "jarvis.progress.v1"),
                "execution_id": execution_id,
                "package_id": name,
                "package_name": package["pkg_type"],
                "sequence": step,
                "state": "running",
                "label": "step",
                "current": step,
                "total": steps,
                "unit": "step",
            }
            with open(os.path.join(place, "progress", name + ".jsonl"), "a") as stream:
                stream.write(json.dumps(report) + "\n")
            if "deck" in package and package["deck"]:
                with open(package["deck"]) as stream:
                    print("deck: " + stream.read().strip(), flush=True)
            # An application has a session of its own, and survives a signal to JARVIS.
            subprocess.run(["sleep", str(package.get("delay", 0))], start_new_session=True)
        if package.get("lose_handle"):
            store.update(execution_id, state="completed", terminal=True, return_code=0)
            os._exit(0)
        if package.get("rc", 0) != 0 and not package["pkg_type"].endswith("my_shell"):
            raise RuntimeError("Pipeline startup failed at package '%s': counter exited %d" % (name, package["rc"]))
