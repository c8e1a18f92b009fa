"""Loading on demand: modules load on first use, and any of them may be used first."""

import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import letir as lt

PROGRAM = lt.parse("lambda %0: float64[2] { %1 = sin(%0); %2 = mul(%1, 2); return %2 }")


def run(code: str, *args: str) -> str:
    """What code prints in a new Python process."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, *args],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_importing_letir_loads_neither_operations_nor_the_recorder():
    code = "import letir, sys; print([m for m in sys.modules if m.startswith('letir.')])"

    assert "letir.ops" not in run(code)
    assert "letir.tracing" not in run(code)


def test_an_operation_loads_the_file_of_its_record_when_its_name_is_looked_up():
    code = """
import sys, letir, numpy
letir.trace(lambda x: numpy.shape(x) and numpy.sin(x), numpy.ones(2))
print('letir.ops.nn.embedding_linear_dropout' in sys.modules)
from letir.ast.primitive import primitive_named
print(primitive_named('dropout'), 'letir.ops.nn.embedding_linear_dropout' in sys.modules)
print('letir.ops.nn.losses' in sys.modules)
"""

    assert run(code).split() == ["False", "dropout", "True", "False"]


def test_a_numpy_function_loads_the_file_of_its_record():
    code = """
import sys, letir, numpy
print(letir.trace(numpy.linalg.inv, numpy.eye(2)).binds[0].op)
print(letir.trace(numpy.average, numpy.ones(2)).binds[0].op)  # which no record takes as itself
print(letir.trace(numpy.unwrap, numpy.ones(2)).binds[0].op)
print('letir.ops.signal.interpolation' in sys.modules)
"""

    assert run(code).split() == ["inv", "mean", "unwrap", "False"]


def test_a_users_operation_takes_the_place_of_one_that_is_loaded_after_it():
    code = """
import letir, numpy
mine = letir.primitive("mine.inv", lambda xp, x: x, lambda x: x, numpy=(numpy.linalg.inv,))
print(letir.trace(numpy.linalg.inv, numpy.eye(2)).binds[0].op)
print(letir.trace(numpy.linalg.det, numpy.eye(2)).binds[0].op)  # of the same file as inv
print(letir.trace(numpy.linalg.inv, numpy.eye(2)).binds[0].op)
"""

    assert run(code).split() == ["mine.inv", "det", "mine.inv"]


def test_the_index_of_records_is_up_to_date():
    """If this fails: python docs/make_index.py."""
    make_index = Path(lt.__file__).parents[1] / "docs" / "make_index.py"

    assert (
        run(
            f"import runpy, sys; sys.argv.append('--check'); runpy.run_path({str(make_index)!r}, "
            "run_name='__main__')"
        )
        == ""
    )


FIRST_USES = [
    f"import pickle, sys; print(pickle.loads(bytes.fromhex('{pickle.dumps(PROGRAM).hex()}')))",
    f"from letir.ast.text.parser import parse; print(parse({lt.dumps(PROGRAM)!r}))",
    "from letir.ast.builder import LetBuilder; b = LetBuilder(); x = b.param(None);"
    "print(b.build([x * 2.0]))",
    f"import pickle; f = pickle.loads(bytes.fromhex('{pickle.dumps(PROGRAM).hex()}'));"
    "import numpy; print(f(numpy.ones(2)), f == f, hash(f) == hash(f))",
    "import letir; print(letir.LetirError, letir.Lambda)",
    "import letir; print(letir.ops.elementwise.ufuncs.sin(0.0), letir.errors, letir.ad)",
    "from letir.ast.primitive import primitive_named; print(primitive_named('matmul'))",
    "from letir.ops.autodiff.gradient_steps import guard; print(guard)",
    "from letir.eager import Variable; print(Variable(1.0) + 1)",
    "from letir.ast.checker import check; print(check)",
    "import letir; print(letir.load, 'trace' in dir(letir))",
]


@pytest.mark.parametrize("code", FIRST_USES, ids=range(len(FIRST_USES)))
def test_any_part_of_letir_may_be_used_first(code):
    assert run(code)


def test_several_threads_may_load_an_operation_at_once():
    code = """
import threading
from letir.ast.primitive import primitive_named
found, start = [], threading.Barrier(8)
def look():
    start.wait()
    found.append(primitive_named("tanh").name)
threads = [threading.Thread(target=look) for _ in range(8)]
[t.start() for t in threads]; [t.join() for t in threads]
print(found)
"""

    assert run(code).strip() == str(["tanh"] * 8)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = lt.nothing


COUNTED = """
import os, sys
os.environ.pop("LETIR_CHECK", None)  # users load no checker
os.environ.pop("LETIR_KERNELS", None)
import numpy as np, letir as lt
from letir.ast import process_state, pytrees
calls, counted = [], []
def count(frame, event, arg):
    if event == "call" and "/letir/" in frame.f_code.co_filename.replace(chr(92), "/"):
        calls.append(frame.f_code)
def counting(f, *args):
    calls.clear()
    sys.setprofile(count)
    f(*args)
    sys.setprofile(None)
    return [len(calls), calls.count(pytrees.flatten.__code__),
            calls.count(process_state.paused_gc.make.__code__),
            len({code.co_filename for code in calls})]
f = lambda x: np.tanh(x).sum()
"""


def test_the_first_gradient_under_jit_loads_and_calls_little():
    """Half of the 7,370 calls and 270 modules when all records were loaded: docs/performance.md."""
    code = (
        COUNTED
        + """
first = counting(lambda: lt.jit(lt.grad(f))(np.ones(3)))[0]
print(first, sum(name.startswith("letir") for name in sys.modules))
"""
    )
    calls, modules = map(int, run(code).split())

    assert calls <= 3685
    assert modules <= 135


def test_a_repeated_gradient_call_flattens_and_pauses_the_collector_once():
    code = (
        COUNTED
        + """
g, x = lt.grad(f), np.ones(3)
g(x), g(x)  # the second call makes the plan
print(*counting(g, x))
"""
    )
    calls, flattened, paused, files = map(int, run(code).split())

    assert calls <= 100
    assert files <= 25
    assert (flattened, paused) == (1, 1)  # the argument; a result that is an array is not flattened


def test_a_family_of_operations_is_an_attribute():
    import letir.ops

    assert letir.ops.__getattr__("signal") is letir.ops.signal
    assert letir.ops.signal.convolve_correlate.convolve.name == "convolve"
    with pytest.raises(AttributeError, match=r"module 'letir\.ops' has no attribute 'nothing'"):
        letir.ops.nothing  # noqa: B018
