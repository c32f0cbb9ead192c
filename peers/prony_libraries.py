"""The libraries that a peer computes with, asked while they are loaded: which BLAS the products go to,
its version, the core it was chosen for, and its threads. A file's name says little: libblas.so.3 is
netlib's reference on one machine and OpenBLAS on the next. So the function itself is looked up, from
the library that calls it, and the file that has it is asked by the functions that only it has.

A reference BLAS computes right and many times slower than what users of NumPy or PyTorch know: it is
a handicap (docs/peers.md), as a debug build is. Standard library only."""

import ctypes
import os
import re
import sys

PRODUCTS = ("cblas_sgemm", "sgemm_", "cblas_sgemm64_", "sgemm_64_", "scipy_cblas_sgemm64_",
            "scipy_cblas_sgemm")
ISAS = {0x1: "sse4.1", 0x3: "avx", 0x7: "avx2", 0xF: "avx2_vnni", 0x27: "avx512_core",
        0x67: "avx512_core_vnni", 0xE7: "avx512_core_bf16", 0x1E7: "avx512_core_fp16",
        0x3E7: "avx512_core_amx", 0xFE7: "avx512_core_amx", 0xFEF: "avx512_core_amx"}


class Place(ctypes.Structure):
    """What dladdr fills in."""

    _fields_ = [("file", ctypes.c_char_p), ("base", ctypes.c_void_p),
                ("name", ctypes.c_char_p), ("symbol", ctypes.c_void_p)]


def loaded():
    """The shared libraries of this process, in the order of their addresses, each once."""
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as file:
            paths = [line.split(None, 5)[5].rstrip("\n") for line in file if ".so" in line]
    except (OSError, IndexError):
        return []
    return list(dict.fromkeys(path for path in paths if path.startswith("/")))


def open_library(path):
    """The library of that path if it is loaded, else None; nothing is loaded for this."""
    try:
        return ctypes.CDLL(path, mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
    except OSError:
        return None


def function(library, name, result=ctypes.c_int):
    """A function of a library or of those that it needs, or None."""
    try:
        found = getattr(library, name)
    except AttributeError:
        return None
    found.restype = result
    return found


def file_of(found):
    """The file that a function is in."""
    place = Place()
    address = ctypes.cast(found, ctypes.c_void_p)
    try:
        known = ctypes.CDLL(None).dladdr(address, ctypes.byref(place))
    except AttributeError:
        return ""
    return os.path.realpath(os.fsdecode(place.file)) if known and place.file else ""


def ask(library, name, result=ctypes.c_int, *arguments):
    found = function(library, name, result)
    value = found(*arguments) if found else None
    return value.decode("ascii", "replace") if isinstance(value, bytes) else value


def threads(count):
    return [f"{count} thread{'s' if count != 1 else ''}"] if count and count > 0 else []


def openblas(library):
    for prefix in ("", "scipy_"):
        for suffix in ("", "64_", "_64"):
            def own(name, result=ctypes.c_int):
                return ask(library, f"{prefix}openblas_{name}{suffix}", result)

            config = own("get_config", ctypes.c_char_p)
            if config:
                version = re.search(r"OpenBLAS (\S+)", config)
                core = own("get_corename", ctypes.c_char_p)
                return [f"OpenBLAS {version[1]}" if version else "OpenBLAS", *([core] if core else []),
                        *threads(own("get_num_threads"))]
    return None


def blis(library):
    version = ask(library, "bli_info_get_version_str", ctypes.c_char_p)
    if not version:
        return None
    core = None
    if function(library, "bli_arch_query_id") and function(library, "bli_arch_string"):
        core = ask(library, "bli_arch_string", ctypes.c_char_p, ask(library, "bli_arch_query_id"))
    return [f"BLIS {version}", *([core] if core else []),
            *threads(ask(library, "bli_thread_get_num_threads", ctypes.c_long))]


def mkl(library):
    if not function(library, "MKL_Get_Version_String"):
        return None
    text = ctypes.create_string_buffer(200)
    ask(library, "MKL_Get_Version_String", None, text, ctypes.c_int(len(text)))
    version = re.search(rb"Version (\S+)", text.value)
    return [f"MKL {version[1].decode()}" if version else "MKL",
            *threads(ask(library, "MKL_Get_Max_Threads"))]


def marked(marker, name):
    return lambda library: [name] if function(library, marker) else None


BLASES = (openblas, blis, mkl, marked("ATL_buildinfo", "ATLAS"), marked("armplversion", "Arm PL"),
          marked("flexiblas_get_version", "FlexiBLAS"), marked("nvpl_blas_get_version", "NVPL BLAS"))


def blas_in(path):
    """What the library of that file says of itself: ["OpenBLAS 0.3.21", "SkylakeX", "1 thread"], or
    None: it says nothing, as netlib's reference does."""
    library = open_library(path)
    return next(filter(None, (blas(library) for blas in BLASES)), None) if library else None


def find_blas(callers):
    """Whose products the first loaded library calls whose name has one of the words `callers`:
    (the words of blas_in or None, the file); None: it calls none."""
    for path in loaded():
        if not any(word in os.path.basename(path) for word in callers):
            continue
        library = open_library(path)
        for name in PRODUCTS if library else ():
            found = function(library, name)
            if found:
                found = function(ctypes.CDLL(None), name) or found  # a preloaded one comes first
                file = file_of(found)
                return blas_in(file), file
    return None


def report_blas(callers):
    """({"blas": …}, [handicaps]) for a peer."""
    found = find_blas(callers)
    if not found:
        return {}, []
    words, file = found
    if words:
        return {"blas": ", ".join(words)}, []
    return {"blas": f"reference ({os.path.basename(file)})"}, ["reference BLAS (netlib)"]


def report_onednn(callers):
    """{"onednn": "2.6.3, avx512_core"} where one of these libraries needs it."""

    class Version(ctypes.Structure):
        _fields_ = [("major", ctypes.c_int), ("minor", ctypes.c_int), ("patch", ctypes.c_int)]

    for path in loaded():
        library = open_library(path) if any(w in os.path.basename(path) for w in callers) else None
        version = ask(library, "dnnl_version", ctypes.POINTER(Version)) if library else None
        if version:
            isa = ask(library, "dnnl_get_effective_cpu_isa")
            numbers = ".".join(str(getattr(version[0], name)) for name, _ in Version._fields_)
            return {"onednn": numbers + (f", {ISAS.get(isa, hex(isa))}" if isa else "")}
    return {}


def report_python():
    return ["debug build of Python"] if hasattr(sys, "gettotalrefcount") else []


def report_torch(torch):
    """({library: version …}, [handicaps]) of PyTorch."""
    config = torch.__config__.show()
    said = dict(re.findall(r"\b([A-Z_]+)=([^,\s]+)", config))
    callers = ("libtorch_cpu", "libtorch.so")
    software, handicaps = report_blas(callers)
    found = find_blas(callers)
    if found and not found[0] and os.path.basename(found[1]).startswith("libtorch"):
        # It is a part of PyTorch itself: what it was built with, unless that was any BLAS.
        software = {"blas": f"{said.get('BLAS_INFO', 'unknown')}, within PyTorch"}
        handicaps = [] if said.get("BLAS_INFO", "generic") != "generic" else handicaps
    onednn = re.search(r"MKL-DNN v(\S+)", config)
    if torch.backends.mkldnn.is_available():
        software.update(report_onednn(callers) or ({"onednn": onednn[1]} if onednn else {}))
    vector = re.search(r"CPU capability usage: (\S+)", config)
    if vector:
        software["vector"] = vector[1]
    if torch.version.cuda and torch.backends.cudnn.is_available():
        software["cudnn"] = str(torch.backends.cudnn.version())
    if torch.version.debug or said.get("BUILD_TYPE", "").lower() == "debug":
        handicaps.append("debug build of PyTorch")
    return software, handicaps
