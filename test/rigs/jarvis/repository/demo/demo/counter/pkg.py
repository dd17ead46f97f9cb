from jarvis_cd.core.pkg import Application
from jarvis_cd.shell import Exec, LocalExecInfo


class Counter(Application):
    """Counts, and ends with the code that it is told."""

    def _init(self):
        pass

    def _configure_menu(self):
        return [
            {"name": "steps", "msg": "how far it counts", "type": int, "default": 3},
            {"name": "delay", "msg": "seconds between two steps", "type": float, "default": 0.1},
            {"name": "rc", "msg": "exit code", "type": int, "default": 0},
            {"name": "wait_for", "msg": "a file that it waits for after the first step", "type": str, "default": ""},
            {
                "name": "deck",
                "msg": "a file that it shows",
                "type": str,
                "default": "",
                "input_binding": {
                    "schema_version": "jarvis.configuration-input-binding.v1",
                    "kind": "local_file",
                    "structure": "regular_file",
                },
            },
        ]

    def _configure(self, **kwargs):
        pass

    def start(self):
        show = "cat %s; " % self.config["deck"] if self.config["deck"] else ""
        wait = "[ $i -ne 1 ] || until [ -e %s ]; do sleep 0.1; done; " % self.config["wait_for"] if self.config["wait_for"] else ""
        script = "%sfor i in $(seq 1 %d); do echo STEP $i of %d; %ssleep %s; done; exit %d" % (
            show,
            self.config["steps"],
            self.config["steps"],
            wait,
            self.config["delay"],
            self.config["rc"],
        )
        node = Exec("bash -c '%s'" % script, LocalExecInfo(env=self.mod_env, line_callback=self.runtime_line_callback())).run()
        code = node.exit_code.get("localhost", 1)
        if code != 0:
            raise RuntimeError(f"counter exited {code}")

    def stop(self):
        pass

    def kill(self):
        pass

    def clean(self):
        pass
