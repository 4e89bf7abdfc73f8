"""The sdist and the wheel, built once, and an environment outside the checkout that has the wheel."""

import pytest
from environments import built, new_environment


@pytest.fixture(scope="session")
def dist(tmp_path_factory):
    """The folder with the sdist and the wheel that was built from it."""
    return built(tmp_path_factory.mktemp("source"))


@pytest.fixture(scope="session")
def wheel(dist):
    (file,) = dist.glob("*.whl")
    return file


@pytest.fixture(scope="session")
def installed(wheel, tmp_path_factory):
    """An environment with the wheel."""
    environment = new_environment(tmp_path_factory.mktemp("installed"))
    done = environment.run("python", "-m", "pip", "install", "--quiet", "--no-index", str(wheel))
    assert done.returncode == 0, done.stdout + done.stderr
    return environment
