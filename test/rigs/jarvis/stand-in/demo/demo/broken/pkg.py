raise RuntimeError("this package cannot be loaded")
