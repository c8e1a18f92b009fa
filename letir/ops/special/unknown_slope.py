"""Values whose derivative is not known: unknown_slope."""

from letir.ast.record_fields import todo
from letir.ops.define.batch_rules import pointwise_rule
from letir.ops.define.records import define

_REASON = "SciPy has no formula for the derivative with respect to this parameter"
unknown_slope = define(
    "unknown_slope",
    lambda xp, x: x,
    lambda x: x,
    vjp=todo(_REASON),
    jvp=todo(_REASON),
    batch=pointwise_rule("unknown_slope"),
    elementwise=True,
    memory="may_alias",
    write_through=lambda parent, new: new,
    onnx="Identity",
    source="{0}",
)
