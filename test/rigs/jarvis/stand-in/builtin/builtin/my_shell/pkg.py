class MyShell:
    def __init__(self, pipeline=None):
        self.pipeline = pipeline

    def configure_menu(self):
        return []
