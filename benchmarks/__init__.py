"""The cost of letir beside its peers, in one run: ``python -m benchmarks``.

Times are ratios to the unit u (one ``np.add`` on two 4-element arrays), interleaved with it in one
process pinned to one core, in CPU time; memory and imports are measured in fresh processes. Every
figure is taken on fresh programs, of types that are in no cache. Read ``harness`` first, then
``rows``, the table of all figures.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy starts its threads
