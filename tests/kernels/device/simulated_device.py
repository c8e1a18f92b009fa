"""A device that computes with the host's processor: the stand-in for CuPy with ``cupy.cuda``.

It loads the LLVM text that PTX is made of, compiles it for this computer, and runs the threads of a
launch one after the other. Lanes that exchange values run side by side and wait for each other.
"""

import contextlib
import ctypes
import re
import sys
import threading
import types
from collections.abc import Iterator

import llvmlite.binding as binding
import numpy as np
import pytest

from letir.kernels.device import launches
from letir.kernels.device.ptx import device_llvm_text
from tests.eval.stand_in import DeviceArray
from tests.eval.test_array_modules import imported_device

LANES = 32
_REGISTERS = ("tid", "ntid", "ctaid", "nctaid")  # the first parameters of an entry on the host
# calls an entry for each block, and in it for each step-th thread from the first one on
_LAUNCH = """
define void @{name}_launch(i32 %first, i32 %step, i32 %ntid, i32 %nctaid{parameters}) {{
  br label %block
block:
  %ctaid = phi i32 [ 0, %0 ], [ %other, %end ]
  %left = icmp ult i32 %ctaid, %nctaid
  br i1 %left, label %thread, label %exit
thread:
  %tid = phi i32 [ %first, %block ], [ %later, %call ]
  %more = icmp ult i32 %tid, %ntid
  br i1 %more, label %call, label %end
call:
  call void @{name}(i32 %tid, i32 %ntid, i32 %ctaid, i32 %nctaid{arguments})
  %later = add i32 %tid, %step
  br label %thread
end:
  %other = add i32 %ctaid, 1
  br label %block
exit:
  ret void
}}
"""
_C_TYPES = {"f4": ctypes.c_float, "f8": ctypes.c_double}
_SHUFFLE, _WAIT = "llvm.nvvm.shfl.sync.bfly.i32", "llvm.nvvm.bar.warp.sync"
# each lane gives its value, waits for the others, and reads its partner's value
_ON_HOST = f"""
@values = global [{LANES} x i32] zeroinitializer
@barrier = global [64 x i8] zeroinitializer, align 64
declare i32 @pthread_barrier_wait(ptr)
define void @wait() noinline {{
  %all = call i32 @pthread_barrier_wait(ptr @barrier)
  ret void
}}
define i32 @exchanged(i32 %tid, i32 %value, i32 %distance) noinline {{
  %lane = urem i32 %tid, {LANES}
  %own = getelementptr i32, ptr @values, i32 %lane
  store volatile i32 %value, ptr %own
  %all = call i32 @pthread_barrier_wait(ptr @barrier)
  %partner = xor i32 %lane, %distance
  %place = getelementptr i32, ptr @values, i32 %partner
  %found = load volatile i32, ptr %place
  %read = call i32 @pthread_barrier_wait(ptr @barrier)
  ret i32 %found
}}
"""


class SimulatedModule:
    """``cupy.cuda.function.Module``; ``launches`` are the grids and blocks of all launches."""

    launches: list[tuple] = []  # noqa: RUF012

    def load(self, text: bytes) -> None:
        self.exchanges = any(name in text.decode() for name in (_SHUFFLE, _WAIT))
        if self.exchanges and sys.platform != "linux":
            pytest.skip("the simulated lanes wait for each other by a function of Linux")
        module = binding.parse_assembly(on_host(text.decode()))
        module.verify()
        machine = binding.Target.from_default_triple().create_target_machine(opt=0)
        self.engine = binding.create_mcjit_compiler(module, machine)
        self.engine.finalize_object()

    def get_function(self, name: str) -> "SimulatedFunction":
        return SimulatedFunction(self, name)


class SimulatedFunction:
    """``cupy.cuda.function.Function``: an entry of a module."""

    def __init__(self, module: SimulatedModule, name: str):
        self.module = module
        self.address = module.engine.get_function_address(f"{name}_launch")

    def __call__(self, grid: tuple, block: tuple, arguments: tuple) -> None:
        SimulatedModule.launches.append((grid, block))
        given = [c_argument(one) for one in arguments]
        kinds = [ctypes.c_uint32] * 4 + [type(one) for one in given]
        launch = ctypes.CFUNCTYPE(None, *kinds)(self.address)

        def run(first: int, step: int) -> None:
            launch(first, step, *block, *grid, *given)

        if not self.module.exchanges:
            run(0, 1)
            return
        barrier = self.module.engine.get_global_value_address("barrier")
        ctypes.CDLL(None).pthread_barrier_init(ctypes.c_void_p(barrier), None, LANES)
        lanes = [threading.Thread(target=run, args=(n, LANES)) for n in range(LANES)]
        for lane in lanes:
            lane.start()
        for lane in lanes:
            lane.join()


def c_argument(value):
    """An argument of a launch for a C function."""
    if isinstance(value, DeviceArray):
        return ctypes.c_void_p(value.host.ctypes.data)
    if value.dtype.kind == "f":
        return _C_TYPES[value.dtype.str[1:]](value)
    return np.ctypeslib.as_ctypes_type(value.dtype)(int(value))


def on_host(text: str) -> str:
    """LLVM's text for a device as text for the host."""
    text = text.replace("define ptx_kernel void", "define void")
    names = ", ".join([f"i32 %{one}" for one in _REGISTERS])
    text = re.sub(r"(define void @\w+\()", rf"\g<1>{names}, ", text)
    for one in _REGISTERS:
        text = text.replace(f"call i32 @llvm.nvvm.read.ptx.sreg.{one}.x()", f"add i32 %{one}, 0")
    text = re.sub(
        rf"call i32 @{re.escape(_SHUFFLE)}\(i32 -1, (i32 \S+, i32 \d+), i32 31\)",
        r"call i32 @exchanged(i32 %tid, \1)",
        text,
    )
    text = text.replace(f"call void @{_WAIT}(i32 -1)", "call void @wait()")
    text = re.sub(r"^declare \w+ @llvm\.nvvm.*\n", "", text, flags=re.M)
    for name, parameters in re.findall(rf"define void @(\w+)\({names}(.*?)\) #", text):
        # types and names, without attributes such as noalias
        pairs = [f"{one.split()[0]} {one.split()[-1]}" for one in parameters.split(",") if one]
        given = "".join([f", {one}" for one in pairs])
        text += _LAUNCH.format(name=name, parameters=given, arguments=given)
    return text + (_ON_HOST if "@exchanged(" in text or "@wait(" in text else "")


@contextlib.contextmanager
def simulated_device() -> Iterator[types.ModuleType]:
    """CuPy's stand-in with a device for kernels, imported as cupy within the block."""
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    with imported_device() as module, pytest.MonkeyPatch.context() as patch:
        functions = types.SimpleNamespace(Module=SimulatedModule)
        vars(module.cuda).update(function=functions, get_device_id=lambda: 0)
        patch.setattr(launches, "ptx_text", device_llvm_text)
        SimulatedModule.launches.clear()
        yield module
