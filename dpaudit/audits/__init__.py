"""The main jobs: what a caller asks for, put together from the parts of the engine."""
