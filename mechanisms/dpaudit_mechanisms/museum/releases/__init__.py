"""Programs of real releases: one function `mechanism()` a file, which imports the library when it is called.

Each is served in an environment of its own (`dpaudit.exhibits.serving`), so none imports anything of this project.
"""

from pathlib import Path

from dpaudit.exhibits.exhibit import Release

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


def published(program: str, package: str, version: str, called: str, mended: bool = False) -> Release:
    """A release with the program of this name."""
    path = Path(__file__).with_name(f"{program}.py")
    return Release(package, version, program=path, needs=NEEDS.get(package, ()), called=called, mended=mended)
