"""Executions as JARVIS-CD keeps them: a directory with a record, written whole."""

import datetime
import json
import os

RECORD = ".jarvis-execution.json"


class ExecutionHandle:
    def __init__(self, document):
        self.document = document

    def to_dict(self):
        names = ("execution_id", "pipeline_id", "mode", "scheduler_provider", "scheduler_native_id", "cluster")
        return {**{name: self.document[name] for name in names}, "schema_version": "jarvis.execution.handle.v1"}


class ExecutionRecord:
    """Only its name is asked for."""


def now():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class Store:
    def __init__(self, shared, pipeline_id):
        self.root = os.path.join(shared, pipeline_id, "executions")
        self.pipeline_id = pipeline_id

    def directory(self, execution_id):
        return os.path.join(self.root, execution_id)

    def create(self, execution_id, mode="direct", provider=None):
        os.makedirs(self.root, exist_ok=True)
        os.mkdir(self.directory(execution_id))
        document = {
            "schema_version": "jarvis.execution.record.v1",
            "execution_id": execution_id,
            "pipeline_id": self.pipeline_id,
            "pipeline_name": self.pipeline_id,
            "mode": mode,
            "scheduler_provider": provider,
            "scheduler_native_id": None,
            "cluster": None,
            "state": "preparing",
            "submitted": False,
            "terminal": False,
            "created_at": now(),
            "updated_at": now(),
            "return_code": None,
            "error": None,
            "metadata": {},
        }
        self.write(document)
        return document

    def update(self, execution_id, **changes):
        document = {**self.get(execution_id), **changes, "updated_at": now()}
        self.write(document)
        return document

    def write(self, document):
        file = os.path.join(self.directory(document["execution_id"]), RECORD)
        with open(file + ".tmp", "w") as stream:
            json.dump(document, stream)
        os.replace(file + ".tmp", file)

    def get(self, execution_id):
        with open(os.path.join(self.directory(execution_id), RECORD)) as stream:
            return json.load(stream)

    def lines(self, execution_id, kind):
        found = {}
        place = os.path.join(self.directory(execution_id), kind)
        for name in sorted(os.listdir(place)) if os.path.isdir(place) else []:
            with open(os.path.join(place, name)) as stream:
                found[name[: -len(".jsonl")]] = [json.loads(line) for line in stream if line.endswith("\n")]
        return found
