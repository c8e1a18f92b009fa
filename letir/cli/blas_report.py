"""NumPy's BLAS: the library, the processor for which it computes, and advice if that is wrong."""

import ctypes
import os
from collections.abc import Iterable
from pathlib import Path

import numpy as np

# The instruction sets that matter to products, by level, with the core to ask OpenBLAS for, and
# NumPy's names of the instruction sets.
_LEVELS = (
    ("SSE", "Nehalem", ()),
    ("AVX", "Sandybridge", ("AVX",)),
    ("AVX2", "Haswell", ("AVX2", "X86_V3")),
    ("AVX-512", "SkylakeX", ("AVX512_SKX", "AVX512_CLX", "AVX512_ICL", "AVX512_SPR", "X86_V4")),
)
# OpenBLAS's names of processors, in lower case: by the level of its code for them
_CORES = {
    0: "prescott core2 penryn dunnington nehalem atom nano athlon opteron opteron_sse3 barcelona "
    "bobcat katmai coppermine northwood banias",
    1: "sandybridge bulldozer piledriver steamroller",
    2: "haswell zen excavator",
    3: "skylakex cooperlake sapphirerapids",
}
_LEVEL_OF = {core: level for level, names in _CORES.items() for core in names.split()}


def blas_report() -> dict:
    """The name, version, core, threads and file of NumPy's BLAS, and ``advice`` or None."""
    config = np.show_config(mode="dicts")
    blas = config.get("Build Dependencies", {}).get("blas", {})
    result: dict = {"name": blas.get("name"), "version": blas.get("version")}
    result |= _openblas_facts(_loaded_files())
    simd = config.get("SIMD Extensions", {})
    features = {*simd.get("baseline", ()), *simd.get("found", ())}
    result["advice"] = core_advice(result.get("core"), features)
    return result


def core_advice(core: str | None, features: Iterable[str]) -> str | None:
    """Advice if OpenBLAS uses code for an older processor than this one; otherwise None.

    ``features``: the instruction sets that NumPy found.
    """
    chosen = _LEVEL_OF.get((core or "").lower())
    here = {*features}
    level = max((i for i, (*_, names) in enumerate(_LEVELS) if here & {*names}), default=0)
    if chosen is None or chosen >= level:
        return None
    name, better, _ = _LEVELS[level]
    setting = os.environ.get("OPENBLAS_CORETYPE")
    why = f", as OPENBLAS_CORETYPE={setting} asks" if setting else ""
    return (
        f"OpenBLAS computes with code for {core} ({_LEVELS[chosen][0]}){why}, and this processor "
        f"has {name}: set OPENBLAS_CORETYPE={better} in the environment for faster products"
    )


def _loaded_files() -> list[Path]:
    """The libraries that may contain OpenBLAS: those that the process has loaded, or NumPy's."""
    maps = Path("/proc/self/maps")
    if maps.exists():
        paths = {line.split(maxsplit=5)[-1] for line in maps.read_text().splitlines()}
        return sorted(Path(path) for path in paths if "blas" in Path(path).name.lower())
    home = Path(np.__file__).parent
    folders = (home.parent / "numpy.libs", home / ".dylibs", home / ".libs")
    return sorted(file for folder in folders for file in folder.glob("*openblas*"))


def _openblas_facts(files: Iterable[Path]) -> dict:
    """The core, the threads and the file of OpenBLAS; empty if no file has its functions."""
    for file in files:
        try:
            library = ctypes.CDLL(str(file))
        except OSError:
            continue
        for form in ("scipy_openblas_{}64_", "scipy_openblas_{}", "openblas_{}64_", "openblas_{}"):
            core = getattr(library, form.format("get_corename"), None)
            threads = getattr(library, form.format("get_num_threads"), None)
            if core is not None and threads is not None:
                core.restype, threads.restype = ctypes.c_char_p, ctypes.c_int
                return {"core": core().decode(), "threads": threads(), "file": str(file)}
    return {}
