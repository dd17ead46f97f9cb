class Counter:
    def __init__(self, pipeline=None):
        self.pipeline = pipeline

    def configure_menu(self):
        return [
            {"name": "steps", "default": 5},
            {
                "name": "deck",
                "default": "",
                "input_binding": {
                    "schema_version": "jarvis.configuration-input-binding.v1",
                    "kind": "local_file",
                    "structure": "regular_file",
                },
            },
        ]
