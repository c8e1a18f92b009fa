"""All records are there before tests are made of them, and no test fails by the clock."""

from hypothesis import settings

import letir.ops  # noqa: F401

settings.register_profile("letir", deadline=None)  # a machine that is busy is no counterexample
settings.load_profile("letir")
