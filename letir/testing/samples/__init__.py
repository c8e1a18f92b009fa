"""``SAMPLES``: the inputs on which each operation is tested, in folders named as in ``letir.ops``.

A new operation needs a record in ``letir.ops`` and samples here. Together the samples of a record
cover 0-d, empty and broadcast operands, negative axes and tuples of axes, ``keepdims``, masks,
ties, Python numbers, single and half precision, integers, and complex numbers if the operation
takes them. Derivatives exist at a sample and agree with finite differences, unless it is
``nonsmooth``.
"""

import pkgutil

from letir.ast import load_module
from letir.ops import load_all
from letir.testing.samples.sample import Sample

load_all()  # samples cover rarely used records too, which load on demand


def _collected_samples() -> dict[str, list[Sample]]:
    """The samples of all operations, from every file in the folders beside this one."""
    result: dict[str, list[Sample]] = {}
    for module in pkgutil.walk_packages(__path__, f"{__name__}."):
        result |= getattr(load_module(module.name), "SAMPLES", {})
    return result


SAMPLES = _collected_samples()
