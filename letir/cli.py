"""The ``letir`` command: ``demo``, ``trace``, ``show``, ``check``, ``run`` and ``grad`` on files that ``save`` wrote.

Exit codes: 0 for success, 1 for an error (a message on stderr, no traceback), 2 for a command that is not understood.
"""

import argparse
import importlib.util
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from letir import __version__
from letir.ad.higher_order import grad, value_and_grad
from letir.ast.checker import check
from letir.ast.files import load, save
from letir.ast.printer import dumps
from letir.ast.terms import Lambda
from letir.demo.story import FULL, QUICK, tell
from letir.errors import LetirError
from letir.eval.arguments import checked_arguments
from letir.eval.evaluator import run_flat
from letir.tracing.recording import trace

EXAMPLES = """\
examples:
  letir demo --quick
  letir trace model.py:loss --arg weights.npy --arg images.npy -o loss.letir
  letir show loss.letir
  letir run loss.letir --arg weights.npy --arg images.npy
  letir grad loss.letir -o slope.letir
"""
