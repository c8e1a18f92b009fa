"""Models with random changes are loaded, or refused by an error of letir, in little time."""

import random
import sys
import time
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

import letir as lt
from tests.onnx.importing.backend_cases import node_cases, stored_cases
from tests.onnx.mutations import mutated_bytes

_SECONDS = 20  # of processor time for one model, also on a slow machine
_TOUCHING = (
    "os.remove",
    "os.rename",
    "os.mkdir",
    "subprocess.Popen",
    "os.system",
    "socket.connect",
)
_MODELS = []
_EVENTS: list[str] = []
_IS_LOADING = [False]


def models() -> list:
    """All models of the package's test cases."""
    if not _MODELS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _MODELS.extend(case.model for case in (*node_cases(), *stored_cases()))
        sys.addaudithook(note)
    return _MODELS


def note(event: str, args: tuple) -> None:
    """Note what touches files while a model is loaded; Python's own modules may be read."""
    if _IS_LOADING[0] and event in _TOUCHING:
        _EVENTS.append(event)
    elif _IS_LOADING[0] and event == "open" and not str(args[0]).endswith((".py", ".pyc", ".so")):
        _EVENTS.append(str(args[0]))


def check(seed: int) -> None:
    """Load the mutated model of a seed."""
    data = mutated_bytes(random.Random(seed).choice(models()), seed)
    _EVENTS.clear()
    start, writes_no_code = time.process_time(), sys.dont_write_bytecode
    # Python writes the byte code of modules that it imports now
    _IS_LOADING[0] = sys.dont_write_bytecode = True
    try:
        lt.onnx.load(data)
    except lt.LetirError as error:
        assert str(error)
    finally:
        _IS_LOADING[0], sys.dont_write_bytecode = False, writes_no_code
    assert time.process_time() - start < _SECONDS
    assert _EVENTS == []


@given(st.integers(0, 2**40))
def test_a_mutated_model_is_loaded_or_refused(seed):
    check(seed)


@pytest.mark.slow
def test_many_mutated_models_are_loaded_or_refused():
    for seed in range(5000):
        check(seed)
