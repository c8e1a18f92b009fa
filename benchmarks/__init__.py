"""The cost of letir and of its peers, measured in one run: ``python -m benchmarks``.

Times are ratios to the unit u (one ``np.add`` on two 4-element arrays), interleaved with it in one
process pinned to one core, in CPU time; memory and imports are measured in fresh processes. The
programs and types are new for every figure, so that no cache has entries for them. Read ``harness``
first, then ``rows``, the table of all figures.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy starts its threads
