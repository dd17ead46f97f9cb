"""Runs, or submits, a pipeline that JARVIS keeps: its command line can only run the one that is current for the whole user. Prints the handle last, as it does."""

import json
import sys

place, name, what, execution_id = sys.argv[1:5]
if place:
    sys.path.insert(0, place)

try:
    from jarvis_cd.core.pipeline import Pipeline

    pipeline = Pipeline(name)
    handle = pipeline.submit(execution_id=execution_id) if what == "submit" else pipeline.run(execution_id=execution_id)
except Exception as error:
    print("Error: " + str(error))
    sys.exit(1)
print(json.dumps(handle.to_dict(), separators=(",", ":"), sort_keys=True))
