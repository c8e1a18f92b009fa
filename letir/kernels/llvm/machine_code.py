"""Machine code of kernels: compiled by LLVM through llvmlite, called as NumPy ufuncs.

NumPy makes a ufunc from a pointer to machine code (``PyUFunc_FromFuncAndDataAndSignature``) and so
handles broadcasting, overlapping memory, ``out=`` and floating-point errors of kernels itself.
"""

import ctypes
import os
import platform
import sys
import weakref
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
from attrs import define, field
from numpy._core.umath import _UFUNC_API  # NumPy's functions for C extensions

from letir.ast import LATE_BOUND, WATCHED, with_progress_bar
from letir.ast.bounded_cache import BoundedCache
from letir.kernels.llvm.compile_threads import begin_compilation, llvm_lock
from letir.kernels.llvm.interleaving import Vectors
from letir.kernels.llvm.llvm_text import HostText, llvm_text
from letir.kernels.llvm.object_cache import cached_code
from letir.kernels.loop_language import Kernel

_NAME = "kernel"
# Addresses of 64 bits: in a large process LLVM's loader puts code and its constants more than 2 GiB
# apart, and aborts if the code holds distances of 32 bits between them.
_CODE_MODEL = "large"
_ufuncs = BoundedCache(1 << 9)  # text of a kernel -> its ufunc, which takes 80 KiB in memory
_pending: weakref.WeakValueDictionary = weakref.WeakValueDictionary()  # being compiled, by the same
if hasattr(os, "register_at_fork"):  # a child has none of the threads that compile
    os.register_at_fork(after_in_child=_pending.clear)


def ufunc_of(kernel: Kernel, signature: str | None = None) -> np.ufunc:
    """The ufunc that runs a kernel, compiled once for equal kernels.

    ``signature``: the signature of a generalized ufunc, see
    https://numpy.org/doc/stable/reference/c-api/generalized-ufuncs.html, or None for an elementwise
    ufunc. With ``LETIR_CHECK_KERNELS=1`` the result is an ``InterpretedCall`` instead.
    """
    return begin_ufunc(kernel, signature)()


@with_progress_bar("compiling kernels")
def ufuncs_of(kernels: list[tuple[Kernel, str | None]]) -> list[np.ufunc]:
    """The ufuncs of kernels with these signatures, which are compiled side by side."""
    begun = [begin_ufunc(*kernel) for kernel in kernels]
    return [finished() for finished in (LATE_BOUND["count_items"](begun) if WATCHED else begun)]


def begin_ufunc(kernel: Kernel, signature: str | None = None) -> Callable[[], np.ufunc]:
    """Let another thread compile a kernel; the result is a function that waits for its ufunc.

    The compilation is given up if that function is dropped before it began.
    """
    if os.environ.get("LETIR_CHECK_KERNELS", "0") != "0":
        call = LATE_BOUND["interpreted_call"](kernel, signature)
        return lambda: call
    key = (str(kernel), signature, kernel.takes_contiguous, kernel.columns, kernel.is_flat)
    if (ufunc := _ufuncs.get(key)) is not None:
        return lambda: ufunc
    code, pending = MachineCode(kernel, signature), _pending.get(key)
    if pending is None:
        pending = _pending[key] = begin_compilation(code.object_code)

    def finished() -> np.ufunc:
        result = _ufuncs.get(key)
        if result is None:
            try:
                result = _ufuncs[key] = code.ufunc(pending.result())
            except Exception as error:
                error.add_note(f"letir: while {kernel.name} was compiled")
                raise
            finally:
                _pending.pop(key, None)
        return result

    return finished


@define(eq=False)
class MachineCode:
    """The machine code of a kernel, and the C tables that NumPy reads while its ufunc is alive."""

    kernel: Kernel
    signature: str | None = None
    engine: Any = field(init=False, default=None)
    tables: tuple = field(init=False, default=())

    def host_text(self) -> HostText:
        """The text for LLVM, written now: it takes more memory than the code."""
        return llvm_text(self.kernel, _NAME, host_vectors())

    @property
    def llvm(self) -> str:
        """The text for LLVM."""
        return self.host_text().text

    @property
    def unrolls(self) -> bool:
        """Whether LLVM unrolls loops, so that several steps are computed side by side."""
        return not self.kernel.takes_contiguous  # other loops are as fast without unrolling

    def object_code(self) -> bytes:
        """The object code, from the cache on disk if it was compiled before.

        LLVM needs a large stack: this runs in a thread of ``compile_threads``.
        """
        module = self.host_text()
        key = (module.text, str(self.unrolls), *_platform_key())
        return cached_code(key, lambda: self.emit_code(module))

    def assembly(self) -> str:
        """The assembly text, compiled now."""
        task = partial(self.emit_code, self.host_text(), is_object=False)
        return begin_compilation(task).result().decode()

    def emit_code(self, module: HostText, *, is_object: bool = True) -> bytes:
        """The object code, or the assembly, of an LLVM text for this computer."""
        return emitted_code(
            module.text,
            _new_machine(),
            is_object=is_object,
            is_short=not module.needs_all_passes,
            loop_vectorization=True,
            loop_interleaving=self.unrolls,
            loop_unrolling=self.unrolls,
            # finds nothing in vectorised loops, in which it takes most of the compile time
            slp_vectorization=self.unrolls and not self.kernel.is_elementwise,
        )

    def ufunc(self, code: bytes | None = None) -> np.ufunc:
        """A ufunc of this code, which keeps this object alive; ``code``: the object code."""
        code = begin_compilation(self.object_code).result() if code is None else code
        binding = _llvm_binding()
        with llvm_lock:
            # each ufunc has its own engine and context, so that its code and tables are freed with
            # it
            context = binding.create_context()
            module = binding.parse_assembly("", context)
            engine = binding.create_mcjit_compiler(module, _new_machine())
            engine.context = context  # the engine frees the module, for which its context must live
            engine.add_object_file(binding.ObjectFileRef.from_data(code))
            engine.finalize_object()
            address = engine.get_function_address(_NAME)
        self.engine = engine
        return self._ufunc_at(address)

    def _ufunc_at(self, address: int) -> np.ufunc:
        arrays = self.kernel.arrays
        n_out = sum([array.is_written for array in arrays])
        functions = (ctypes.c_void_p * 1)(address)
        data = (ctypes.c_void_p * 1)(None)
        types = bytes([array.dtype.num for array in arrays])
        name, signature = self.kernel.name.encode(), (self.signature or "").encode()
        self.tables = (functions, data, types, name, signature)
        common = (functions, data, types, 1, len(arrays) - n_out, n_out, -1, name, b"", 0)
        plain, general = _ufunc_constructors()
        result = plain(*common) if self.signature is None else general(*common, signature)
        owner = ctypes.c_void_p.from_address(id(result) + _owner_offset())
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self))
        owner.value = id(self)  # NumPy releases it with the ufunc
        return result


def code_of(ufunc: np.ufunc) -> MachineCode:
    """The machine code of a ufunc that ``ufunc_of`` has made."""
    if not isinstance(ufunc, np.ufunc):
        return ufunc.code  # an ``InterpretedCall``
    owner: Any = ctypes.py_object.from_address(id(ufunc) + _owner_offset())
    result: MachineCode = owner.value
    return result


@cache
def _ufunc_constructors() -> tuple[Callable, Callable]:
    """NumPy's C functions that make a ufunc, and a generalized ufunc, from a loop in C."""
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
    """Where a ufunc of NumPy holds the reference that keeps its loop alive, in bytes."""
    return _Ufunc.obj.offset


# ---- LLVM ----


@cache
def _llvm_binding() -> Any:
    """llvmlite's binding, ready for this computer."""
    import llvmlite.binding as binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    return binding


def compiler_report() -> dict:
    """The compiler of kernels: llvmlite's version and LLVM's, and the processor it compiles for."""
    try:
        binding = _llvm_binding()
    except ImportError:
        return {
            "llvmlite": "missing",
            "advice": "no kernels are compiled without llvmlite: pip install 'letir[fast]'",
        }
    llvm = ".".join(map(str, binding.llvm_version_info))
    return {"llvmlite": llvmlite_version(), "LLVM": llvm, "processor": _processor()[0]}


def llvmlite_version() -> str:
    """The version of llvmlite."""
    import llvmlite  # importlib.metadata, which knows it too, takes longer to load

    result: str = llvmlite.__version__
    return result


@cache
def _platform_key() -> tuple[str, ...]:
    """The versions and the processor on which object code depends besides its LLVM text."""
    binding = _llvm_binding()
    versions = (*map(str, binding.llvm_version_info), llvmlite_version())
    return (*_processor(), *versions, sys.platform, _CODE_MODEL)


@cache
def _processor() -> tuple[str, str]:
    """The name and the features of this computer's processor, as LLVM spells them."""
    binding = _llvm_binding()
    features = binding.get_host_cpu_features()
    text = features.flatten()
    if features.get("avx512vbmi"):  # since Ice Lake, 512-bit vectors do not lower the clock rate
        text += ",-prefer-256-bit"
    return binding.get_host_cpu_name(), text


def host_vectors() -> Vectors:
    """The vectors of this computer's processor, of which kernels are made."""
    features = _processor()[1]
    if "+avx512f" in features:
        return Vectors(32, 8 if "-prefer-256-bit" in features else 4, has_masks=True)
    if platform.machine() in ("aarch64", "arm64"):
        return Vectors(32, 2)
    return Vectors(16, 4 if "+avx" in features else 2, "+fma" in features)


def _new_machine() -> Any:
    """A target machine for this computer."""
    binding = _llvm_binding()
    name, features = _processor()
    return binding.Target.from_default_triple().create_target_machine(
        cpu=name,
        features=features,
        opt=3,
        reloc="static",
        codemodel=_CODE_MODEL,
    )


def emitted_code(
    text: str, machine: Any, *, is_object: bool, is_short: bool = False, **options: bool
) -> bytes:
    """Object code, or assembly, of an LLVM text for a target machine, after LLVM's passes.

    ``machine``: no other thread may use it during the call. ``is_short``: run only the passes that
    simplify instructions, which is enough for a text whose loops are as they should be.
    ``options``: of llvmlite's ``PipelineTuningOptions``, such as whether to unroll loops, which
    doubles the compile time.
    """
    binding = _llvm_binding()
    with binding.create_context() as context, binding.parse_assembly(text, context) as module:
        module.triple, module.data_layout = machine.triple, str(machine.target_data)
        tuning = binding.create_pipeline_tuning_options(speed_level=3)
        for name, value in options.items():
            setattr(tuning, name, value)
        _run_passes(module, machine, tuning, is_short)
        return _emit_object(module, machine, is_object)


def _run_passes(module: Any, machine: Any, tuning: Any, is_short: bool) -> None:
    """Change a module by LLVM's passes for a target machine."""
    from llvmlite.binding import newpassmanagers

    binding = _llvm_binding()
    builder = binding.create_pass_builder(machine, tuning)
    if is_short:
        passes = newpassmanagers.create_new_module_pass_manager()
        passes.add_instruction_combine_pass()
        passes.add_simplify_cfg_pass()
    else:
        passes = builder.getModulePassManager()
    try:
        _without_lock(binding.ffi.lib.LLVMPY_RunNewModulePassManager)(passes, module, builder)
    finally:
        # llvmlite keeps pass managers forever: ``ObjectRef._dispose``, which does nothing, precedes
        # the method of ``NewPassManager`` among its bases. 200 to 400 KiB stayed for each kernel.
        newpassmanagers.NewPassManager._dispose(passes)
        passes.detach()  # so that a later llvmlite does not free it twice


def _emit_object(module: Any, machine: Any, is_object: bool) -> bytes:
    """Object code or assembly of a module: llvmlite's ``emit_object``, without its lock."""
    ffi = _llvm_binding().ffi
    with ffi.OutputString() as error:
        emit = _without_lock(ffi.lib.LLVMPY_TargetMachineEmitToMemory)
        memory = emit(machine, module, int(is_object), error)
        if not memory:
            raise RuntimeError(str(error))
    try:
        start, size = ffi.lib.LLVMPY_GetBufferStart(memory), ffi.lib.LLVMPY_GetBufferSize(memory)
        return ctypes.string_at(start, size)
    finally:
        ffi.lib.LLVMPY_DisposeMemoryBuffer(memory)


def _without_lock(function: Any) -> Any:
    """A function of llvmlite without the lock that lets one thread at a time use LLVM.

    LLVM needs none for modules in contexts of their own. Without the lock other threads
    can compile, and free their kernels, at the same time.
    """
    return getattr(function, "_cfn", function)


LATE_BOUND["ufuncs_of"] = ufuncs_of
