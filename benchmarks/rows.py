"""The table of all figures: for each the measurement, its target, and the peers."""

from collections.abc import Callable, Iterable

from attrs import field, frozen

from benchmarks import (
    eager_mode,
    error_states,
    executors,
    in_place,
    jacobians,
    kernel_programs,
    models,
    networks,
    numpy_programs,
    peers,
    processes,
    programs,
    residuals,
    small_functions,
)
from benchmarks.harness import DemoSettings, Skipped
from benchmarks.kernel_workloads import WORKLOADS


@frozen
class Row:
    """One figure: ``measure(effort)`` gives its text; ``peer_figures``: the same for peers."""

    name: str
    title: str
    target: str
    measure: Callable[[DemoSettings], str]
    peer_figures: dict[str, Callable[[DemoSettings], str]] = field(factory=dict)

    def cells(self, effort: DemoSettings) -> tuple[str, str, str, str]:
        """Title, target, letir's figure and the peers' figures, measured now."""
        others = [f"{name} {taken(measure, effort)}" for name, measure in self.peer_figures.items()]
        return (self.title, self.target, taken(self.measure, effort), ", ".join(others))


def markdown(cells: Iterable[str]) -> str:
    """One row of a Markdown table."""
    return f"| {' | '.join(cells)} |"


def taken(measure: Callable[[DemoSettings], str], effort: DemoSettings) -> str:
    """A figure, or the reason why it cannot be measured."""
    try:
        return measure(effort)
    except Skipped as why:
        return f"({why})"


HEAD = ("figure", "target", "letir", "other packages")
# the rows shown in the README, without targets; docs/performance.md has all
TELLING = ("first", "abstract", "grad", "eager", "long", "gmm", "conv", "scan")
_FIGURES = (
    Row(
        "import",
        "`import letir` beyond NumPy's",
        "40 ms",
        processes.importing("letir"),
        {"autograd": processes.importing("autograd"), "JAX": processes.importing("jax")},
    ),
    Row(
        "first",
        "import, first trace and gradient of the README example",
        "150 ms",
        processes.first_gradient,
        {"JAX": processes.jax_first_gradient},
    ),
    Row(
        "abstract",
        "abstract tracing, per operation",
        "9 u",
        programs.abstract_tracing,
        {"JAX": peers.jax_tracing, "torch.fx": peers.fx_tracing},
    ),
    Row(
        "concrete",
        "concrete tracing, per operation beyond the NumPy call",
        "10 u",
        programs.concrete_tracing,
    ),
    Row(
        "run_forward",
        "`run_forward`, per bind beyond the NumPy call",
        "6 u",
        programs.replaying,
        {"torch.fx": peers.fx_replaying},
    ),
    Row(
        "grad",
        "`grad` of a Lambda, per bind",
        "20 u",
        programs.differentiating,
        {"JAX": peers.jax_differentiating},
    ),
    Row(
        "dumps",
        "`dumps`, per bind",
        "8 u",
        programs.printing,
        {"JAX": peers.jax_printing, "torch.fx": peers.fx_printing},
    ),
    Row(
        "eager",
        "eager: value and gradient of 1,000 operations on 4 elements, recorded anew, per operation",
        "0.5 x autograd",
        eager_mode.tiny,
        {name: eager_mode.tiny_compared_with(name) for name in eager_mode.PEERS},
    ),
    Row(
        "small",
        "`grad(f)(x)` of twelve small functions, without `jit`",
        "1.5 x autograd",
        small_functions.small_gradients,
        {"autograd": small_functions.compared_with_autograd},
    ),
    Row(
        "products",
        "the same functions: a product by `vjp`, by `jvp`, by `hvp`",
        "1.5 x autograd",
        small_functions.small_products,
        {"autograd": small_functions.products_compared_with_autograd},
    ),
    Row(
        "history",
        "eager: recording an operation, beyond the NumPy call",
        "linear",
        eager_mode.long_record,
    ),
    Row("backward", "eager: backward of a recorded operation", "linear", eager_mode.long_history),
    Row("parse", "`parse`, per bind", "40 u", programs.parsing),
    Row(
        "check",
        "`check`, per bind",
        "5 u",
        programs.checking,
        {"torch.fx": peers.fx_checking},
    ),
    Row("hash", "`hash`, per bind", "3 u", programs.hashing),
    Row("equal", "`==`, per bind", "4 u", programs.comparing),
    Row("canonicalize", "`canonicalize`, per bind", "8 u", programs.canonicalizing),
    Row("memory", "memory of a program of 10^6, per bind", "400 bytes", processes.program_memory),
    Row(
        "peak",
        "peak of 200 operations on a 64 MiB array, beyond the argument",
        "2 arrays",
        processes.letir_peak,
        {"NumPy": processes.numpy_peak, "torch": processes.torch_peak},
    ),
    Row(
        "long",
        "10^5 operations: trace, gradient and one replay",
        "3 s",
        processes.letir_long,
        {"autograd": processes.autograd_long, "JAX": processes.jax_long},
    ),
    Row(
        "gmm",
        "gradient / forward, both replayed: Gaussian mixture of ADBench, d=10, k=25, n=1000",
        "3.5",
        models.figure(models.letir_ratio, models.MIXTURE),
        {
            "JAX (jit)": models.figure(models.jax_ratio, models.MIXTURE),
            "autograd": models.figure(models.autograd_ratio, models.MIXTURE),
        },
    ),
    Row(
        "lstm",
        "the same: LSTMs of 2 layers, width 128",
        "3.5",
        models.figure(models.letir_ratio, models.LSTMS),
        {
            "JAX (jit)": models.figure(models.jax_ratio, models.FEW),
            "torch": models.figure(models.torch_ratio, models.LSTMS),
            "autograd": models.figure(models.autograd_ratio, models.FEW),
        },
    ),
    Row(
        "updates",
        "1,000 updates `x[i] = v` on a 10^6 array, replayed, to NumPy with a copy each",
        "0.02 x",
        in_place.letir_updates,
        {"NumPy in place": in_place.numpy_updates},
    ),
    Row(
        "rnn",
        "value and gradient of an RNN that indexes its inputs, 1,000 steps of width 32, replayed "
        "as `to_source` writes it",
        "a 10th of autograd",
        in_place.generated_rnn,
        {"`run_forward`": in_place.letir_rnn, "autograd": in_place.autograd_rnn},
    ),
    Row(
        "jacobian",
        "Jacobian R^1000 -> R^1000 by `jacrev`, recorded in every call; JAX without jit",
        "1.5 x JAX",
        jacobians.letir_jacobian,
        {"JAX": jacobians.jax_jacobian},
    ),
    Row(
        "residuals",
        "KiB kept for the backward part without arguments (and with them), `min_bytes`",
        "the least of all",
        residuals.figure(residuals.letir_bytes),
        {
            "`keep_all`": residuals.figure(residuals.letir_bytes, "keep_all"),
            "`exact`": residuals.figure(residuals.letir_bytes, "min_bytes", True),
            "JAX": residuals.figure(residuals.jax_bytes),
            "torch": residuals.figure(residuals.torch_bytes),
        },
    ),
    Row(
        "conv",
        "`nn.conv2d` under `jit`, 3x3 on 16 images of 64 channels: forward, and with its gradient",
        "1.3 times PyTorch's",
        networks.convolution,
        {"PyTorch": networks.torch_convolution},
    ),
    Row(
        "jit",
        "a call of a `jit` function of one operation, beyond the operation",
        "12 u",
        executors.warm_call,
        {"JAX, in total": executors.jax_warm_call},
    ),
    Row(
        "numpy",
        "the programs of tests/programs, small ones: a warm call of `jit`",
        "1 x NumPy",
        numpy_programs.compared_with_numpy,
    ),
    Row(
        "errstate",
        "`np.errstate` blocks and caught exceptions: a warm call of `jit`",
        "1 x NumPy",
        error_states.compared_with_numpy,
    ),
    Row(
        "pass",
        "the slowest pass on value and gradient, per bind of its input",
        "15 u",
        executors.slowest_pass,
    ),
    Row("pipeline", "all passes, per bind", "150 u", executors.pipeline),
    Row(
        "slots",
        "a plan, per bind beyond the NumPy call",
        "1.5 u",
        executors.slots,
    ),
    Row(
        "rk4",
        "first call of `jit(value_and_grad(...))`: a Python loop of 1,000 Runge-Kutta steps, "
        "33,000 operations",
        "8 s",
        executors.first_call,
        {"JAX": executors.jax_first_call},
    ),
    Row(
        "scan",
        "`scan` of 1,000 steps of an RNN of width 32: value and gradient under `jit`, per step",
        "60 u more than the NumPy calls",
        executors.scan_per_step,
        {"JAX (jit)": executors.jax_scan_per_step},
    ),
    Row(
        "loops",
        "binds of value and gradient of a `scan` and of a `fori_loop`, 10 or 1,000 trips",
        "the same for both",
        executors.loop_sizes,
    ),
)
# the times for value / value and gradient, divided by plain NumPy's time for the value
_KERNELS = tuple(
    [
        Row(
            f"kernels_{n}",
            f"{one.name}: value / value and gradient, to NumPy's value",
            kernel_programs.targets(one),
            kernel_programs.figure(one, "letir"),
            {
                name: kernel_programs.figure(one, name)
                for name in kernel_programs.SIDES
                if name != "letir"
            },
        )
        for n, one in enumerate(WORKLOADS)
    ]
)
ROWS = (*_FIGURES, *_KERNELS)
