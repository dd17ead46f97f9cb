"""What a run has to know of this API that its document cannot say: which records there are, and what would go on for ever."""

import json
import os
import random

import schemathesis

KNOWN = json.loads(os.environ["RELAY_KNOWN"])
CHOICE = random.Random(int(os.environ["RELAY_SEED"]))


def known_id(path):
    return KNOWN["task"] if "/tasks/" in path else KNOWN["artifact"] if "/artifacts/{id}" in path else KNOWN["job"]


@schemathesis.hook
def map_case(context, case):
    path = case.operation.path
    # Most requests are about something that is there.
    if CHOICE.random() < 0.7 and isinstance(case.path_parameters, dict):
        for name, value in (("id", known_id(path)), ("name", KNOWN["cluster"]), ("stream", "stdout"), ("attempt", 1)):
            if name in case.path_parameters:
                case.path_parameters[name] = value
    if isinstance(case.query, dict):
        # Whatever follows a job ends with it; this would not.
        if "stop_on_terminal" in case.query:
            case.query["stop_on_terminal"] = "true"
    body = case.body
    if path.endswith("/jobs") and isinstance(body, dict):
        made_wrong = case.meta is not None and case.meta.generation.mode.is_negative
        if made_wrong and body.get("cluster") == KNOWN["worker"]:
            body["cluster"] = "elsewhere"
        if not made_wrong and CHOICE.random() < 0.3:
            body["cluster"] = KNOWN["worker"]
        # What is made up is not to be run.
        if body.get("cluster") == KNOWN["worker"] and body.get("kind") == "command":
            body["spec"] = {"argv": ["true"], "workdir": "/"}
    return case


@schemathesis.hook
def filter_failure(context, failure, case, response):
    """A refusal for want of room is a server's error by its number only; 413 and 426 are refusals whatever else is wrong."""
    name = type(failure).__name__
    if response is None:
        return True
    no_room = response.status_code == 507 and "storage_admission_refused" in response.text and name == "ServerError"
    refused_before = response.status_code in (413, 426) and name == "AcceptedNegativeData"
    return not (no_room or refused_before)
