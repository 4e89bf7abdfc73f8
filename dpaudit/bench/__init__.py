"""Performance as ratios to the optimum: a problem set, the best fixed test of each problem, and the measurements.

This room knows the engine through `dpaudit.audit` and its result alone; the engine knows nothing of it. Problems are
found through the entry-point group `dpaudit.problems`, which other packages can fill as well.
"""
