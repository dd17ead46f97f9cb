"""Holds crates against RO-Crate and Process Run Crate, and reads PROV-JSON; what it finds is printed as JSON. Needs no network: contexts are served from here."""

import collections
import importlib.util
import json
import os
import pathlib
import sys

import requests


def contexts():
    """What JSON-LD contexts say, by address."""
    # Its place is all that is wanted of the package, which needs others to be imported.
    (package,) = importlib.util.find_spec("rocrate").submodule_search_locations
    yield "https://w3id.org/ro/crate/1.1/context", json.loads(pathlib.Path(package, "data", "ro-crate.jsonld").read_text())
    # The terms of runs that crates use which the context above does not have.
    terms = {"sha256": "https://w3id.org/ro/terms/workflow-run#sha256"}
    yield "https://w3id.org/ro/terms/workflow-run/context", {"@context": terms}


CONTEXTS = dict(contexts())


def send(_adapter, request, **_options):
    if request.url not in CONTEXTS:
        raise requests.ConnectionError(f"{request.url} is not to be asked")
    response = requests.Response()
    response.status_code = 200
    response.headers["Content-Type"] = "application/ld+json"
    response._content = json.dumps(CONTEXTS[request.url]).encode()
    response.url = request.url
    response.request = request
    return response


requests.adapters.HTTPAdapter.send = send


def findings(crate):
    from rocrate_validator.services import validate

    settings = {
        "rocrate_uri": crate,
        "profile_identifier": "process-run-crate",
        "requirement_severity": "RECOMMENDED",
        "no_cache": True,
        # What is found by a requirement of one profile is found, too, where another extends it.
        "disable_check_for_duplicates": True,
    }
    for issue in validate(settings).get_issues():
        yield {
            "severity": issue.severity.name,
            "check": issue.check.identifier,
            "message": issue.message,
            "entity": None if issue.violatingEntity is None else str(issue.violatingEntity),
        }


def records(file):
    from prov.model import ProvDocument

    document = ProvDocument.deserialize(file, format="json")
    # Every record, and every attribute in it, has to survive the way back.
    assert document == ProvDocument.deserialize(content=document.serialize(format="json"), format="json")
    return collections.Counter(record.get_type().localpart.lower() for record in document.get_records())


if __name__ == "__main__":
    _, what, *paths = sys.argv
    look = {"crates": lambda path: list(findings(path)), "prov": records}[what]
    # A validator that meets something odd says so on standard output, at the very end.
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    json.dump({path: look(path) for path in paths}, answer)
