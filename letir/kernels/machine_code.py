"""Machine code of kernels: compiled by LLVM through llvmlite, called as NumPy ufuncs.

NumPy makes a ufunc of a pointer to machine code (``PyUFunc_FromFuncAndDataAndSignature``), so that
a kernel gets broadcasting, memory overlap, ``out=`` and floating-point errors from NumPy itself.
"""

import ctypes
import sys
import threading
from collections.abc import Callable
from functools import cache
from importlib.metadata import version
from typing import Any

import numpy as np
from attrs import define, field
from numpy._core.umath import _UFUNC_API  # NumPy's functions for C extensions

from letir.ast.bounded_cache import BoundedCache
from letir.kernels.llvm_text import llvm_text
from letir.kernels.loop_language import Kernel
from letir.kernels.object_cache import cached_code

_NAME = "kernel"
_STACK = 64 << 20  # bytes; the caller's thread may have a small one
_lock = threading.Lock()
_made = BoundedCache(1 << 11)  # text of a kernel -> its ufunc


def ufunc_of(kernel: Kernel, signature: str | None = None) -> np.ufunc:
    """The ufunc that runs a kernel, compiled once for equal kernels.

    ``signature``: that of a generalized ufunc, see
    https://numpy.org/doc/stable/reference/c-api/generalized-ufuncs.html; None: elementwise.
    """
    key = (str(kernel), signature, kernel.takes_contiguous)
    found = _made.get(key)
    if found is None:
        code = MachineCode(kernel, signature)
        found = _made[key] = code.ufunc()
    return found


@define(eq=False)
class MachineCode:
    """The machine code of a kernel, and the tables that NumPy reads as long as its ufunc lives."""

    kernel: Kernel
    signature: str | None = None
    llvm: str = field(init=False)
    engine: Any = field(init=False, default=None)
    tables: tuple = field(init=False, default=())

    def __attrs_post_init__(self):
        self.llvm = llvm_text(self.kernel, _NAME)

    @property
    def unrolls(self) -> bool:
        """Whether LLVM computes several steps of a loop side by side."""
        return not self.kernel.takes_contiguous  # the loops of others are as fast without it

    def compiled(self) -> bytes:
        """The object code, from the cache on disk if it was compiled before."""
        return cached_code((self.llvm, str(self.unrolls), *_platform()), self.emit_object)

    def emit_object(self) -> bytes:
        """The object code, compiled now, in a thread with room for LLVM's recursion."""
        found: list[bytes | BaseException] = []

        def run() -> None:
            try:
                with _lock:
                    found.append(_machine().emit_object(_optimized(self.llvm, self.unrolls)))
            except BaseException as error:
                found.append(error)

        before = threading.stack_size(_STACK)
        try:
            thread = threading.Thread(target=run)
            thread.start()
        finally:
            threading.stack_size(before)
        thread.join()
        (result,) = found
        if isinstance(result, BaseException):
            raise result
        return result

    def assembly(self) -> str:
        """The assembly text."""
        with _lock:
            return _machine().emit_assembly(_optimized(self.llvm, self.unrolls))

    def ufunc(self) -> np.ufunc:
        """A ufunc of this code, which keeps this object alive."""
        code, binding = self.compiled(), _binding()
        with _lock:
            # an engine of its own, so that the code goes with it
            engine = binding.create_mcjit_compiler(binding.parse_assembly(""), _new_machine())
            engine.add_object_file(binding.ObjectFileRef.from_data(code))
            engine.finalize_object()
            address = engine.get_function_address(_NAME)
        self.engine = engine
        return self._made_by_numpy(address)

    def _made_by_numpy(self, address: int) -> np.ufunc:
        arrays = self.kernel.arrays
        n_out = sum([array.is_written for array in arrays])
        functions = (ctypes.c_void_p * 1)(address)
        data = (ctypes.c_void_p * 1)(None)
        types = bytes([array.dtype.num for array in arrays])
        name, signature = self.kernel.name.encode(), (self.signature or "").encode()
        self.tables = (functions, data, types, name, signature)
        common = (functions, data, types, 1, len(arrays) - n_out, n_out, -1, name, b"", 0)
        plain, general = _makers()
        made = plain(*common) if self.signature is None else general(*common, signature)
        owner = ctypes.c_void_p.from_address(id(made) + _owner_offset())
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self))
        owner.value = id(self)  # NumPy releases it with the ufunc
        return made


@cache
def _makers() -> tuple[Callable, Callable]:
    """NumPy's makers of ufuncs and of generalized ufuncs from C functions."""
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    table = ctypes.cast(pointer(_UFUNC_API, None), ctypes.POINTER(ctypes.c_void_p))
    kinds = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p, *[ctypes.c_int] * 4]
    kinds += [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_int]
    plain = ctypes.PYFUNCTYPE(ctypes.py_object, *kinds)
    general = ctypes.PYFUNCTYPE(ctypes.py_object, *kinds, ctypes.c_char_p)
    # the places in NumPy's table of functions for extensions, fixed by its binary interface
    return plain(table[1]), general(table[31])


class _Ufunc(ctypes.Structure):
    """The start of NumPy's ``PyUFuncObject``, as extensions see it."""

    _fields_ = [
        *(("head", ctypes.c_byte * object.__basicsize__), ("nin", ctypes.c_int)),
        *(("nout", ctypes.c_int), ("nargs", ctypes.c_int), ("identity", ctypes.c_int)),
        *(("functions", ctypes.c_void_p), ("data", ctypes.c_void_p), ("ntypes", ctypes.c_int)),
        *(("reserved1", ctypes.c_int), ("name", ctypes.c_void_p), ("types", ctypes.c_void_p)),
        *(("doc", ctypes.c_void_p), ("ptr", ctypes.c_void_p), ("obj", ctypes.c_void_p)),
    ]


def _owner_offset() -> int:
    return _Ufunc.obj.offset


# ---- LLVM ----


@cache
def _binding() -> Any:
    """llvmlite's binding, ready for this computer."""
    import llvmlite.binding as binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    return binding


@cache
def _platform() -> tuple[str, ...]:
    """What object code depends on beside its LLVM text."""
    binding = _binding()
    processor = binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten()
    return (*processor, *map(str, binding.llvm_version_info), version("llvmlite"), sys.platform)


def _new_machine() -> Any:
    """A target machine for this computer."""
    binding = _binding()
    return binding.Target.from_default_triple().create_target_machine(
        cpu=binding.get_host_cpu_name(),
        features=binding.get_host_cpu_features().flatten(),
        opt=3,
        reloc="pic",
        codemodel="default",
    )


@cache
def _machine() -> Any:
    """The target machine that emits code; an engine would take it away."""
    return _new_machine()


def _optimized(text: str, unrolls: bool) -> Any:
    """The module of this text, after LLVM's passes.

    ``unrolls``: with several steps of a loop side by side, which takes twice the time to compile.
    """
    binding, machine = _binding(), _machine()
    module = binding.parse_assembly(text)
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    options = binding.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = True
    options.slp_vectorization = options.loop_unrolling = options.loop_interleaving = unrolls
    passes = binding.create_pass_builder(machine, options)
    passes.getModulePassManager().run(module, passes)
    return module
