"""Programs of real releases: one function `mechanism()` a file, which imports the library when it is called.

Each is served in an environment of its own (`dpaudit.exhibits.serving`), so none imports anything of this project.
"""

from pathlib import Path

from dpaudit.exhibits.exhibit import Release

PROGRAMS = {  # the package of each, and its version
    "datasynthesizer_range": ("datasynthesizer", "0.1.13"),
    "diff_priv_laplace_max": ("diff-priv-laplace-python", "1.0.5"),
    "diff_priv_laplace_sum": ("diff-priv-laplace-python", "1.0.5"),
    "diffpriv_laplace": ("diffpriv", "1.0.3"),
    "diffpriv_pure_count": ("diffpriv-pure", "0.1.0"),
    "diffpriv_response": ("diffpriv", "1.0.3"),
    "eeprivacy_clamped_mean": ("eeprivacy", "0.0.5"),
    "eeprivacy_vector_mean": ("eeprivacy", "0.0.5"),
    "opendp_noisy_max": ("opendp", "0.15.1"),
    "opendp_sized_sum": ("opendp", "0.2.2"),
    "ornl_presto_gaussian": ("ornl-presto", "0.1.29"),
    "privateab_disclapu": ("privateab", "0.0.2"),
    "pure_ldp_rappor": ("pure-ldp", "1.2.0"),
    "pure_ldp_unary": ("pure-ldp", "1.1.2"),
    "syndp_laplace": ("syndp", "0.5.2"),
    "trasgodp_places": ("trasgodp", "2.1.0"),
    "trasgodp_radius": ("trasgodp", "2.1.0"),
    "trasgodp_response": ("trasgodp", "2.1.0"),
}
NEEDS = {  # what a package calls, where that is more than itself
    "datasynthesizer": ("numpy", "pandas", "scikit-learn", "python-dateutil"),
    "diff-priv-laplace-python": ("numpy",),
    "diffpriv": ("numpy",),
    "eeprivacy": ("click", "numpy", "pandas", "scipy"),
    "ornl-presto": (
        "bayesian-optimization",
        "gpytorch",
        "matplotlib",
        "opacus",
        "pandas",
        "scikit-learn",
        "seaborn",
        "torch",
    ),
    "privateab": ("numpy", "pandas", "scipy", "torch"),
    "pure-ldp": ("numpy", "scipy", "xxhash", "bitarray", "bitstring"),
    "syndp": ("numpy", "scipy"),
    "trasgodp": ("folium", "numpy", "pandas", "scipy"),
}


def published(program: str, called: str, version: str | None = None, mended: bool = False) -> Release:
    """A release with the program of this name; of another version than its own where one is given."""
    package, own = PROGRAMS[program]
    path, needs = Path(__file__).with_name(f"{program}.py"), NEEDS.get(package, ())
    return Release(package, version or own, program=path, needs=needs, called=called, mended=mended)
