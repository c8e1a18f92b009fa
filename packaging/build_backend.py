"""setuptools as a build backend that builds wheels from a copy of the checkout.

``pip install .`` builds in the folder that it is given, where setuptools would leave ``build/``
and ``letir.egg-info/``. In the copy the links of README.md to other files are absolute, because
package indexes show it without these files. Editable installs keep setuptools' own way.
"""

import configparser
import contextlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from setuptools import build_meta
from setuptools.build_meta import (
    build_editable,
    build_sdist,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    prepare_metadata_for_build_editable,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]
LINK = re.compile(r"(\]\()(?!https?:|#)([^)\s]+\))")


def get_requires_for_build_wheel(config_settings=None) -> list[str]:
    """No further requirements; setuptools would write ``letir.egg-info/`` to find that out."""
    return []


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None) -> str:
    """Write the ``.dist-info`` folder of the wheel and return its name."""
    metadata_directory = os.path.abspath(metadata_directory)
    with copy_of_the_checkout():
        return build_meta.prepare_metadata_for_build_wheel(metadata_directory, config_settings)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None) -> str:
    """Build the wheel and return its file name."""
    wheel_directory = os.path.abspath(wheel_directory)
    if metadata_directory is not None:
        metadata_directory = os.path.abspath(metadata_directory)
    with copy_of_the_checkout():
        return build_meta.build_wheel(wheel_directory, config_settings, metadata_directory)


@contextlib.contextmanager
def copy_of_the_checkout() -> Iterator[None]:
    """A temporary current folder with what a wheel is made of."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        for name in ("setup.cfg", "pyproject.toml", "LICENSE"):
            shutil.copy(before / name, folder)
        leave_out = shutil.ignore_patterns("__pycache__")
        shutil.copytree(before / "letir", Path(folder, "letir"), ignore=leave_out)
        readme = (before / "README.md").read_text(encoding="utf-8")
        Path(folder, "README.md").write_text(with_absolute_links(readme), encoding="utf-8")
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)


def with_absolute_links(readme: str) -> str:
    """The text with links to files of the repository as links to its source, as in setup.cfg."""
    settings = configparser.ConfigParser()
    settings.read("setup.cfg", encoding="utf-8")
    lines = settings["metadata"]["project_urls"].strip().splitlines()
    urls = dict(re.split(r"\s*=\s*", line, maxsplit=1) for line in lines)
    return LINK.sub(rf"\g<1>{urls['Source']}/\g<2>", readme)
