"""Reading: what can be seen in outputs and inputs, and what of an output nobody looks at."""
