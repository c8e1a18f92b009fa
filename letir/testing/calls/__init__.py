"""One call of every public function of NumPy: ``CALLS``, by the function's full name.

``letir.testing.calls.listed`` has the functions that take no arrays of numbers.
"""

from letir.testing.calls import algebra_calls, elementwise_calls, reduction_calls, shape_calls

CALLS = {
    **elementwise_calls.CALLS,
    **reduction_calls.CALLS,
    **shape_calls.CALLS,
    **algebra_calls.PRODUCTS,
    **{f"linalg.{name}": call for name, call in algebra_calls.LINALG.items()},
    **{f"fft.{name}": call for name, call in algebra_calls.FFT.items()},
}
