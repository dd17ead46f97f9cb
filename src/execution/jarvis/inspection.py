"""Asks an installed JARVIS-CD what its command line has no verb for. Reads `request`, prints one line of JSON behind `marker`; changes nothing."""

import importlib
import importlib.metadata
import json
import os
import sys

answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
os.dup2(2, 1)


def said(error):
    text = " ".join(str(error).split())
    return (type(error).__name__ + ": " + text)[:1000]


def version():
    try:
        return importlib.metadata.version("jarvis_cd")
    except Exception:
        return None


def look():
    if request["place"] is not None:
        sys.path.insert(0, request["place"])
    try:
        execution = importlib.import_module("jarvis_cd.core.execution")
        config = importlib.import_module("jarvis_cd.core.config")
        pipeline = importlib.import_module("jarvis_cd.core.pipeline")
        known = execution.ExecutionRecord, execution.ExecutionHandle, config.load_class, pipeline.Pipeline
    except Exception as error:
        return {"problem": "jarvis_version", "said": said(error)}
    del known
    jarvis = config.Jarvis.get_instance()
    if not jarvis.is_initialized():
        return {"problem": "jarvis_uninitialized", "said": "no configuration in " + str(jarvis.jarvis_root)}
    answer = {
        "problem": None,
        "version": version(),
        "python": sys.executable,
        "shared_dir": str(jarvis.config["shared_dir"]),
        "config_dir": str(jarvis.config["config_dir"]),
        "packages": {name: package(jarvis, config, pipeline, name) for name in request["packages"]},
    }
    if request["pipeline"] is not None:
        answer["pipeline"] = named(jarvis, request["pipeline"])
    return answer


def named(jarvis, name):
    file = os.path.join(str(jarvis.get_pipeline_dir(name)), "pipeline.yaml")
    if not os.path.isfile(file):
        return None
    with open(file, encoding="utf-8") as stream:
        return stream.read(request["text_max"] + 1)


def package(jarvis, config, pipeline, name):
    parts = name.split(".")
    if len(parts) == 1:
        found = jarvis.find_package(name)
        if not found:
            return {"problem": "package_missing", "said": "no repository has a package " + name}
        parts = found.split(".")
    repository, package_name = parts[0], parts[1]
    if repository == "builtin":
        place = str(jarvis.get_builtin_repo_path())
    else:
        places = [str(one) for one in jarvis.repos["repos"] if os.path.basename(str(one)) == repository]
        if not places:
            return {"problem": "package_missing", "said": "no repository is named " + repository}
        place = places[0]
    if not any(os.path.exists(os.path.join(place, repository, package_name, file)) for file in ("pkg.py", "package.py")):
        return {"problem": "package_missing", "said": "the repository " + repository + " has no package " + package_name}
    class_name = "".join(word.capitalize() for word in package_name.replace("-", "_").split("_"))
    try:
        made = config.load_class(repository + "." + package_name + ".pkg", place, class_name)
        menu = made(pipeline=pipeline.Pipeline()).configure_menu() or []
    except Exception as error:
        return {"problem": "package_broken", "said": said(error)}
    bound = {}
    for setting in menu:
        binding = setting.get("input_binding")
        if binding is None:
            continue
        if not isinstance(binding, dict):
            binding = binding.to_dict()
        bound[str(setting.get("name"))] = {"binding": binding, "default": str(setting.get("default") or "")}
    return {"problem": None, "name": repository + "." + package_name, "bound": bound}


try:
    result = look()
except Exception as error:
    result = {"problem": "jarvis_failed", "said": said(error)}
answers.write("\n" + marker + json.dumps(result) + "\n")
answers.flush()
