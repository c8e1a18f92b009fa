"""Programs on Dask arrays: data on many machines, or larger than memory.

Every program, jitted function and gradient takes Dask arrays in place of NumPy arrays, and returns
Dask arrays, which are computed on demand, block by block. ``letir.dask.value_and_grad`` and
``grad`` are for a loss of many rows of data; their results are computed immediately.
"""

from typing import TYPE_CHECKING

from letir.ast import load_name

if TYPE_CHECKING:  # for editors
    from letir.dask.data_parallel import grad, value_and_grad

_ON_USE = {"grad": "data_parallel", "value_and_grad": "data_parallel"}  # name -> its module

__all__ = ["grad", "value_and_grad"]


def __getattr__(name: str):
    return load_name(__name__, _ON_USE, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
