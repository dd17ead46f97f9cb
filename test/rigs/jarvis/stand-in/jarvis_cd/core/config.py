"""Where JARVIS keeps what; packages are modules of a repository."""

import importlib.util
import json
import os


def load_class(import_str, path, class_name):
    spec = importlib.util.spec_from_file_location(import_str, os.path.join(path, *import_str.split(".")) + ".py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, class_name)


class Jarvis:
    def __init__(self):
        self.jarvis_root = os.environ.get("JARVIS_ROOT", os.path.expanduser("~/.ppi-jarvis"))
        self.file = os.path.join(self.jarvis_root, "jarvis_config.json")

    @staticmethod
    def get_instance():
        return Jarvis()

    def is_initialized(self):
        return os.path.exists(self.file)

    @property
    def config(self):
        with open(self.file) as stream:
            return json.load(stream)

    @property
    def repos(self):
        return {"repos": self.config["repos"]}

    def get_builtin_repo_path(self):
        return self.config["repos"][0]

    def get_pipeline_dir(self, name):
        return os.path.join(self.config["config_dir"], "pipelines", name)

    def find_package(self, name):
        for place in self.config["repos"]:
            repository = os.path.basename(place)
            if os.path.exists(os.path.join(place, repository, name, "pkg.py")):
                return repository + "." + name
        return None
