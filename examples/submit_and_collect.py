#!/usr/bin/env python3
"""Submits a job, follows it, and brings home what it leaves, with nothing but the HTTP API and the standard library.

    clio-relay api start
    python3 examples/submit_and_collect.py CLUSTER DIRECTORY

CLIO_RELAY_API_URL says where the API is (http://127.0.0.1:8765), CLIO_RELAY_API_TOKEN_FILE where its token is
(that of the installation: CLIO_RELAY_HOME/config/api-token, or ~/.config/clio-relay/api-token).
"""

import hashlib
import http.client
import json
import os
import pathlib
import sys
import time
import urllib.error
import urllib.request
import uuid

URL = os.environ.get("CLIO_RELAY_API_URL", "http://127.0.0.1:8765")
HOME = os.environ.get("CLIO_RELAY_HOME")
TOKEN_FILE = os.environ.get("CLIO_RELAY_API_TOKEN_FILE", f"{HOME}/config/api-token" if HOME else "~/.config/clio-relay/api-token")

# Straight to this machine, whatever proxy the environment names: the token is nobody else's.
OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))

SCRIPT = """
for i in 1 2 3; do echo "step $i"; done
mkdir "$1"
seq 1 1000 > "$1/numbers"
"""


# What becomes of a connection that cannot be made, or breaks off.
BROKEN = (OSError, http.client.HTTPException)


class Problem(Exception):
    """A problem document (RFC 9457). Decide on `reason` and `retryable`; the rest is for people."""

    def __init__(self, document):
        hint = document.get("hint")
        super().__init__(f"{document['reason']}: {document['detail']}" + (f" ({hint})" if hint else ""))
        self.reason = document["reason"]
        self.retryable = document["retryable"]


class Cluster:
    """One cluster's worker, through the desktop."""

    def __init__(self, name, token):
        self.name = name
        self._base = f"{URL}/clusters/{name}"
        self._token = token

    def call(self, method, path, body=None, headers=None, timeout=60):
        """The open answer; raises Problem."""
        request = urllib.request.Request(self._base + path, method=method, headers=headers or {})
        request.add_header("Authorization", f"Bearer {self._token}")
        if body is not None:
            request.data = json.dumps(body).encode()
            request.add_header("Content-Type", "application/json")
        try:
            return OPENER.open(request, timeout=timeout)
        except urllib.error.HTTPError as error:
            raise Problem(problem_in(error)) from None

    def json(self, method, path, body=None, headers=None):
        with self.call(method, path, body, headers) as answer:
            return json.load(answer)

    def submit(self, spec, key):
        # The same key and the same body: the same job, however often it is sent.
        body = {"cluster": self.name, "kind": "command", "spec": spec}
        return self.json("POST", "/jobs", body, {"Idempotency-Key": key})

    def events(self, job_id):
        """Every event once, however often the stream breaks off: it goes on behind the last one that was seen."""
        last = 0
        while True:
            try:
                # A quiet stream has a sign of life every 15 s.
                with self.call("GET", f"/jobs/{job_id}/events/sse", headers={"Last-Event-ID": str(last)}, timeout=60) as answer:
                    for name, number, data in messages(answer):
                        if name == "terminal":
                            return
                        last = number
                        yield data
            except Problem as problem:
                if not problem.retryable:
                    raise
                print(f"{problem}; trying again", file=sys.stderr)
            except BROKEN as error:
                print(f"{error!r}; trying again", file=sys.stderr)
            time.sleep(1)

    def artifacts(self, job_id):
        cursor = 1
        while True:
            page = self.json("GET", f"/jobs/{job_id}/artifacts?cursor={cursor}")
            if not page["artifacts"]:
                return
            yield from page["artifacts"]
            cursor = page["next_cursor"]

    def download(self, artifact, path):
        digest = hashlib.sha256()
        with self.call("GET", f"/artifacts/{artifact['artifact_id']}/content") as answer, open(path, "wb") as file:
            while chunk := answer.read(1 << 16):
                digest.update(chunk)
                file.write(chunk)
        if digest.hexdigest() != artifact["sha256"]:
            raise ValueError(f"{path} is not what the cluster has")


def problem_in(answer):
    try:
        return json.load(answer)
    except (ValueError, *BROKEN):
        # Something on the way has answered.
        return {"reason": "answer_malformed", "detail": f"{answer.code} {answer.reason}", "retryable": answer.code >= 500}


def messages(stream):
    """Server-sent events (HTML standard, section 9.2): name, id, and data as JSON."""
    name, number, data = "message", 0, []
    for line in stream:
        field, _, value = line.decode().rstrip("\n").partition(": ")
        if field == "event":
            name = value
        elif field == "id":
            number = int(value)
        elif field == "data":
            data.append(value)
        elif field == "" and data:
            yield name, number, json.loads("\n".join(data))
            name, data = "message", []


def main(name="local", directory="results"):
    token = pathlib.Path(TOKEN_FILE).expanduser().read_text().strip()
    cluster = Cluster(name, token)
    key = f"example-{uuid.uuid4()}"
    spec = {"argv": ["sh", "-ec", SCRIPT, "sh", key], "workdir": "/tmp", "outputs": [f"{key}/*"]}
    job = cluster.submit(spec, key)
    print(f"submitted {job['job_id']}")
    for event in cluster.events(job["job_id"]):
        print(event["seq"], event["event_type"])
    pathlib.Path(directory).mkdir(parents=True, exist_ok=True)
    for artifact in cluster.artifacts(job["job_id"]):
        path = pathlib.Path(directory) / f"{artifact['kind']}-{artifact['artifact_id']}"
        cluster.download(artifact, path)
        print(f"{path}: {artifact['size_bytes']} bytes")
    ended = cluster.json("GET", f"/jobs/{job['job_id']}")
    print(f"{ended['state']}: {ended['outcome']['reason']}")
    return 0 if ended["state"] == "succeeded" else 1


if __name__ == "__main__":
    try:
        sys.exit(main(*sys.argv[1:3]))
    except Problem as problem:
        sys.exit(str(problem))
    except BROKEN as error:
        sys.exit(f"{error}: no API at {URL}, or no token in {TOKEN_FILE}; both are there by: clio-relay api start")
