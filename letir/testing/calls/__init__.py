"""One call of every public function of NumPy: ``CALLS``, by the function's full name.

``letir.testing.calls.listed`` has those that take no arrays of numbers.
"""

from letir.testing.calls import algebra, elementwise, reductions, shapes

CALLS = {
    **elementwise.CALLS,
    **reductions.CALLS,
    **shapes.CALLS,
    **algebra.PRODUCTS,
    **{f"linalg.{name}": call for name, call in algebra.LINALG.items()},
    **{f"fft.{name}": call for name, call in algebra.FFT.items()},
}
