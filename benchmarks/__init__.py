"""What letir costs, beside its peers, in one run: ``python -m benchmarks``.

Ratios in one process, interleaved with the unit u (one ``np.add`` on two 4-element arrays), pinned
to one core, in CPU time; memory and imports in fresh processes. Programs are made anew for every
figure, of types that no cache knows. Read ``harness`` first, then ``rows``, the table of all.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy starts its threads
