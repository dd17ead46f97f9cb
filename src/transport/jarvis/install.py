"""Puts a JARVIS-CD that was received in its place, tries it, and has JARVIS initialized. Says `done kept|made` or `refused REASON DETAIL` on its last line."""

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile

jarvis, key, archive, wheel = sys.argv[1:5]
place = os.path.join(jarvis, key)
BYTES_MAX = 1 << 30
FILES_MAX = 50_000
# The length of a `#!` line that every kernel reads (execve(2)).
LINE_MAX = 127

LAUNCHER = """import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
from jarvis_cd.core.cli import main

if __name__ == "__main__":
    main()
"""
TRIAL = """import sys
sys.path.insert(0, sys.argv[1])
try:
    import yaml
except ImportError as error:
    sys.exit("refused yaml_missing " + sys.executable)
try:
    from jarvis_cd.core import cli, execution
    known = cli.main, execution.ExecutionRecord, execution.ExecutionHandle
except Exception as error:
    sys.exit("refused jarvis_fails " + type(error).__name__ + ": " + " ".join(str(error).split()))
"""
INITIALIZED = """import sys
sys.path.insert(0, sys.argv[1])
from jarvis_cd.core.config import Jarvis
print("initialized" if Jarvis.get_instance().is_initialized() else "new")
"""


class Refused(Exception):
    pass


def members(file):
    """Name, whether it may be executed, and content of each regular file of an archive."""
    if zipfile.is_zipfile(file):
        with zipfile.ZipFile(file) as opened:
            for one in opened.infolist():
                if not one.is_dir():
                    yield one.filename, bool(one.external_attr >> 16 & 0o100), opened.open(one)
        return
    try:
        opened = tarfile.open(file)
    except tarfile.TarError:
        raise Refused("no_jarvis it is neither a tar archive nor a zip") from None
    with opened:
        for one in opened:
            if one.isfile():
                yield one.name, bool(one.mode & 0o100), opened.extractfile(one)


def unpack(file, into):
    left, files = BYTES_MAX, 0
    for name, executable, content in members(file):
        parts = [part for part in name.split("/") if part not in ("", ".")]
        if name.startswith("/") or ".." in parts or not parts:
            raise Refused("no_jarvis it has a file " + repr(name)[:200])
        files += 1
        target = os.path.join(into, *parts)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "wb") as out:
            while chunk := content.read(min(left + 1, 1 << 20)):
                left -= len(chunk)
                if left < 0 or files > FILES_MAX:
                    raise Refused("no_jarvis it has more than 1 GiB or 50,000 files")
                out.write(chunk)
        os.chmod(target, 0o755 if executable else 0o644)


def tree(into):
    """Where the package lies: at the top, or in the one directory that is there."""
    inner = [os.path.join(into, name) for name in os.listdir(into)]
    for root in [into, *inner]:
        if os.path.isfile(os.path.join(root, "jarvis_cd", "core", "cli.py")):
            return root
    raise Refused("no_jarvis it has no jarvis_cd/core/cli.py")


def add_wheel(root, work):
    into = os.path.join(work, "wheel")
    os.mkdir(into)
    unpack(wheel, into)
    if not os.path.isfile(os.path.join(into, "yaml", "__init__.py")):
        raise Refused("no_jarvis the wheel has no package yaml")
    for name in os.listdir(into):
        if not name.endswith((".dist-info", ".data")):
            os.rename(os.path.join(into, name), os.path.join(root, name))


def write_launcher(root):
    python = sys.executable
    first = "#!" + python
    if len(first) >= LINE_MAX or any(one.isspace() for one in python):
        # A shell reads these lines as a command, and Python as a text.
        first = "#!/bin/sh\n'''exec' \"" + python + '" "$0" "$@"\n\' \'\'\''
    file = os.path.join(root, "bin", "jarvis")
    os.makedirs(os.path.dirname(file), exist_ok=True)
    with open(file, "w", encoding="utf-8") as out:
        out.write(first + "\n" + LAUNCHER)
    os.chmod(file, 0o755)


def run(text, root, *more):
    return subprocess.run(
        [sys.executable, "-c", text, root, *more], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False
    )


def install():
    work = os.path.join(jarvis, ".place-" + key + "." + str(os.getpid()))
    os.mkdir(work)
    try:
        into = os.path.join(work, "tree")
        os.mkdir(into)
        unpack(archive, into)
        root = tree(into)
        if wheel:
            add_wheel(root, work)
        write_launcher(root)
        trial = run(TRIAL, root)
        if trial.returncode != 0:
            said = (trial.stderr.strip().splitlines() or ["it ended with " + str(trial.returncode)])[-1]
            raise Refused(said.removeprefix("refused ") if said.startswith("refused ") else "jarvis_fails " + said)
        try:
            os.rename(root, place)
        except OSError:
            # Somebody else was faster with the same.
            if not os.path.isfile(os.path.join(place, "bin", "jarvis")):
                raise
    finally:
        shutil.rmtree(work, ignore_errors=True)


def initialize():
    asked = run(INITIALIZED, place)
    if asked.returncode != 0:
        raise Refused("jarvis_fails " + (asked.stderr.strip().splitlines() or ["it does not say whether it is initialized"])[-1])
    if asked.stdout.strip() == "initialized":
        return "kept"
    places = [os.path.join(jarvis, name) for name in ("config", "private", "shared")]
    done = subprocess.run(
        [os.path.join(place, "bin", "jarvis"), "init", *places],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if done.returncode != 0:
        raise Refused("jarvis_fails init: " + ((done.stdout + done.stderr).strip().splitlines() or ["it said nothing"])[-1])
    return "made"


try:
    if archive:
        install()
    print("done " + initialize())
except Refused as refusal:
    print("refused " + str(refusal))
    sys.exit(1)
except (OSError, subprocess.TimeoutExpired) as error:
    print("refused unwritable " + str(error) if isinstance(error, OSError) else "refused jarvis_fails " + str(error))
    sys.exit(1)
