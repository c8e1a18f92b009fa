"""``letir.onnx``: ONNX models as programs, and programs as ONNX models. Needs the extra ``onnx``.

``load`` returns the program of a model, which can be differentiated, compiled and saved like any
other. ``export`` writes a program (such as a gradient) or a function as a model; ``export_vjp``
writes models of the forward and the backward pass.
"""

from letir.onnx.exporting.exported_models import OPSET, export
from letir.onnx.exporting.vjp_models import export_vjp
from letir.onnx.importing.imported_models import load, weights
from letir.onnx.weighted_sums import weighted_sum

__all__ = ["OPSET", "export", "export_vjp", "load", "weighted_sum", "weights"]
