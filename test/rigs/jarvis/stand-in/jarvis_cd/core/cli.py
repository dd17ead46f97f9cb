"""The verbs that a worker uses, with the output that they have in JARVIS-CD."""

import json
import os
import sys

from jarvis_cd.core.config import Jarvis
from jarvis_cd.core.execution import Store
from jarvis_cd.core.pipeline import Pipeline


def main(argv=None):
    argv = sys.argv[1:] if argv is None else argv
    try:
        if argv[:1] == ["init"]:
            initialize(*argv[1:4])
            return
        if not Jarvis.get_instance().is_initialized():
            print("Error: Jarvis not initialized. Run 'jarvis init' first.")
            sys.exit(1)
        if argv[:3] == ["ppl", "run", "yaml"]:
            run(argv)
        elif argv[:2] == ["ppl", "submit"]:
            submit(argv)
        elif argv[:2] == ["ppl", "in-allocation"]:
            Pipeline().load(argv[2]).run_submitted(argv[argv.index("--execution-id") + 1])
        elif argv[0] == "execution":
            print(json.dumps(answer(argv[1], argv[2], argv[argv.index("--pipeline-id") + 1]), separators=(",", ":")))
        else:
            raise ValueError("no such verb: " + " ".join(argv))
    except Exception as error:
        print("Error: " + str(error))
        sys.exit(1)


def initialize(config_dir, private_dir, shared_dir):
    place = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
    jarvis = Jarvis.get_instance()
    os.makedirs(jarvis.jarvis_root)
    with open(jarvis.file, "w", encoding="utf-8") as stream:
        repos = [os.path.join(place, "builtin"), os.path.join(place, "demo")]
        json.dump({"config_dir": config_dir, "private_dir": private_dir, "shared_dir": shared_dir, "repos": repos}, stream)


def run(argv):
    execution_id = argv[argv.index("--execution-id") + 1]
    pipeline = Pipeline().load(argv[3])
    print("Loaded pipeline: " + pipeline.name, flush=True)
    handle = pipeline.run(execution_id)
    print(json.dumps(handle.to_dict(), separators=(",", ":")))


def submit(argv):
    execution_id = argv[argv.index("--execution-id") + 1]
    pipeline = Pipeline().load(argv[2])
    print("Submitting pipeline: " + pipeline.name, flush=True)
    handle = pipeline.submit(execution_id, os.path.abspath(sys.argv[0]))
    print(json.dumps(handle.to_dict(), separators=(",", ":")))


def answer(verb, execution_id, pipeline_id):
    store = Store(Jarvis.get_instance().config["shared_dir"], pipeline_id)
    record = store.get(execution_id)
    # Set by tests that want another answer than the true one.
    if os.path.exists(os.path.join(store.directory(execution_id), verb + ".instead")):
        with open(os.path.join(store.directory(execution_id), verb + ".instead")) as stream:
            return json.load(stream)
    around = {"execution_id": execution_id, "pipeline_id": pipeline_id, "execution_state": record["state"], "terminal": record["terminal"]}
    if verb == "get":
        return record
    if verb == "progress":
        packages = [
            {"package_id": name, "package_name": lines[-1]["package_name"], "event_count": len(lines), "latest": lines[-1]}
            for name, lines in store.lines(execution_id, "progress").items()
            if lines
        ]
        return {**around, "schema_version": "jarvis.execution.progress.v1", "packages": packages}
    if verb == "artifacts":
        there = os.path.exists(os.path.join(store.directory(execution_id), "result.txt"))
        listed = {
            "schema_version": "jarvis.artifact.v1",
            "logical_name": "result",
            "state": "finalized",
            "location": {"kind": "execution_path", "value": "result.txt"},
        }
        return {**around, "schema_version": "jarvis.execution.artifacts.v1", "artifacts": [listed] if there else []}
    if verb == "service-runtimes":
        return {**around, "schema_version": "jarvis.execution.service-runtimes.v1", "service_runtimes": []}
    raise ValueError("no such verb: " + verb)
