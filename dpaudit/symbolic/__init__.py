"""One tracer for all that is proved: a mechanism is run on symbols in the place of its draws, through all its paths."""
