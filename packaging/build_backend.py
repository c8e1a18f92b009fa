"""setuptools as a build backend that writes its intermediate files outside of the checkout.

``pip install .`` builds in the folder that it is given, where setuptools would leave ``build/``
and ``letir.egg-info/``. Editable installs keep setuptools' own way.
"""

import tempfile

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


def get_requires_for_build_wheel(config_settings=None) -> list[str]:
    """No further requirements; setuptools would write ``letir.egg-info/`` to find that out."""
    return []


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None) -> str:
    """Write the ``.dist-info`` folder of the wheel and return its name."""
    with tempfile.TemporaryDirectory() as folder:
        settings = _writing_into(folder, config_settings)
        return build_meta.prepare_metadata_for_build_wheel(metadata_directory, settings)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None) -> str:
    """Build the wheel and return its file name."""
    with tempfile.TemporaryDirectory() as folder:
        settings = _writing_into(folder, config_settings)
        return build_meta.build_wheel(wheel_directory, settings, metadata_directory)


def _writing_into(folder: str, config_settings) -> dict:
    """The settings, with the folders of setuptools' commands ``egg_info`` and ``build``."""
    commands = ["egg_info", f"--egg-base={folder}", "build", f"--build-base={folder}"]
    return {**(config_settings or {}), "--global-option": commands}
