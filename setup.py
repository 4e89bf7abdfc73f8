"""What pyproject.toml cannot say: the folder `mechanisms/` is installed as the package `dpaudit_mechanisms`.

A package named `mechanisms` in everybody's environment would shadow their own.
"""

from setuptools import find_packages, setup

FOLDERS = {"dpaudit": "dpaudit", "mechanisms": "dpaudit_mechanisms"}  # folder: name of the installed package

setup(
    packages=[
        name + package.removeprefix(folder)
        for folder, name in FOLDERS.items()
        for package in find_packages(include=[folder, f"{folder}.*"])
    ],
    package_dir={name: folder for folder, name in FOLDERS.items()},
)
