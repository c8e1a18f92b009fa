"""All records are there before tests are made of them, and no test fails by the clock."""

import gc
import sys
from pathlib import Path

from hypothesis import settings

import letir.ops  # noqa: F401

sys.path.insert(0, str(Path(__file__).parents[1]))  # tests share files, and read benchmarks

# a machine that is busy is no counterexample; tests marked slow run thousands of examples
settings.register_profile("letir", deadline=None, max_examples=50)
settings.load_profile("letir")


def pytest_collection_finish(session):
    """Take the tests themselves, millions of objects, out of what the collector walks through."""
    gc.collect()
    gc.freeze()
