"""libdmxrt from Python: opens a bundle and runs it on numpy arrays. See dmx.h for what each call promises.

    import dmxrt, numpy
    with dmxrt.Session("model.bundle") as session:
        print(session)                                                     # its inputs and outputs
        outputs = session(numpy.zeros((1, 1, 28, 28), "f4"))               # a dict of new arrays; or session(image=...)

A Session is for one thread at a time. Errors are dmxrt.Error with the runtime's text. The library is the argument `library`, or
the file that the environment variable DMXRT_LIBRARY names, or is found by its name where libraries are installed."""
from __future__ import annotations

import ctypes
import ctypes.util
import os
from typing import TYPE_CHECKING, Any, Iterable, Optional, Sequence, Union

if TYPE_CHECKING:
    import numpy

    Arrays = dict[str, numpy.ndarray]

Path = Union[str, "os.PathLike[str]"]

INPUT, OUTPUT = 0, 1
# dmx_dtype -> numpy's name; 4-bit, bf16 and 8-bit float tensors go through bind() as bytes.
DTYPES = {1: "bool", 3: "int8", 4: "int16", 5: "int32", 6: "int64", 8: "uint8", 9: "uint16", 10: "uint32", 11: "uint64", 12: "float16",
          14: "float32", 15: "float64"}
# Those that numpy lacks, for messages.
OTHER_DTYPES = {2: "i4", 7: "u4", 13: "bf16", 16: "f8e4m3fn", 17: "f8e4m3fnuz", 18: "f8e5m2", 19: "f8e5m2fnuz", 20: "f4e2m1", 21: "f8e8m0",
                22: "i2", 23: "u2"}
I64, F32 = 6, 14
COPY, CONTRACTS = 1, 2  # bits of dmx_bundle_options.flags
KEY_BYTES = 32
UNTRUSTED = 12  # dmx_status: no valid signature by a trusted key
SHAPE_UNKNOWN = 11  # dmx_status: the shape depends on the data


class Error(RuntimeError):
    """A call of the runtime failed with `status` (a dmx_status; 0 where it was not the runtime that refused)."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class _Error(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("status", ctypes.c_int32), ("message", ctypes.c_char * 512)]


class _View(ctypes.Structure):
    _fields_ = [("dtype", ctypes.c_int32), ("rank", ctypes.c_uint32), ("dims", ctypes.POINTER(ctypes.c_int64)),
                ("data", ctypes.c_void_p)]


class _Dim(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("min", ctypes.c_int64), ("max", ctypes.c_int64)]


class _Info(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("name", ctypes.c_char_p), ("dtype", ctypes.c_int32),
                ("rank", ctypes.c_uint32), ("dims", ctypes.POINTER(_Dim)), ("description", ctypes.c_char_p)]


class _BundleOptions(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("flags", ctypes.c_uint32), ("trusted_key_count", ctypes.c_uint32),
                ("trusted_keys", ctypes.c_char_p), ("signature", ctypes.c_char_p), ("signature_size", ctypes.c_size_t)]


class _Options(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("threads", ctypes.c_uint32), ("isa", ctypes.c_char_p),
                ("allocator", ctypes.c_void_p), ("executor", ctypes.c_void_p),
                ("device_options", ctypes.POINTER(ctypes.c_char_p)), ("device_option_count", ctypes.c_uint32)]


def load_library(library: Optional[Path] = None) -> ctypes.CDLL:
    """libdmxrt: the file given, that of DMXRT_LIBRARY, or the one that is installed. Error says where it was looked for."""
    given = library or os.environ.get("DMXRT_LIBRARY")
    tried = []
    for name in [os.fspath(given)] if given else [ctypes.util.find_library("dmxrt"), "libdmxrt.so", "libdmxrt.so.0"]:
        if not name or name in tried:
            continue
        try:
            return ctypes.CDLL(name)
        except OSError as error:
            tried.append(name)
            reason = str(error)
    where = f"the file that {'library' if library else 'DMXRT_LIBRARY'} names" if given else "where libraries are installed (LD_LIBRARY_PATH, ldconfig)"
    raise Error(f"libdmxrt cannot be loaded: looked for {', '.join(repr(name) for name in tried)}, {where}: {reason}; "
                "set the environment variable DMXRT_LIBRARY to the file, build/lib/libdmxrt.so of a build of dmxc")


def read_public_key(path: Path) -> bytes:
    """The 32 bytes of a public key that `dmx-sign keygen` wrote."""
    with open(path, encoding="ascii") as file:
        lines = file.read().rstrip("\n").split("\n")
    if lines[0] != "dmx-public-key 1" or len(lines) != 2 or not lines[1].startswith("key ") or len(lines[1]) != 4 + 2 * KEY_BYTES:
        raise Error(f"'{path}' is not a public key as 'dmx-sign keygen' writes it")
    return bytes.fromhex(lines[1][4:])


class Tensor:
    """An input or output: `name`, `dtype` (dmx_dtype), `shape` of (lowest, highest) extents, `dims` (names of open ones, numbers of
    others), `description` (or None)."""

    def __init__(self, info: _Info) -> None:
        self.name: str = info.name.decode()
        self.dtype: int = info.dtype
        self.shape: list[tuple[int, int]] = [(info.dims[i].min, info.dims[i].max) for i in range(info.rank)]
        self.dims: list[Union[int, str]] = [info.dims[i].name.decode() if info.dims[i].name else info.dims[i].min for i in range(info.rank)]
        self.description: Optional[str] = info.description.decode() if info.description else None

    def __repr__(self) -> str:
        return f"{self.name}: {DTYPES.get(self.dtype) or OTHER_DTYPES.get(self.dtype)}[{', '.join(map(str, self.dims))}]"


class Session:
    """One session of an entry point. `threads` 0: as many as allowed; `device_options`: "corsair.report=r.json" and the like;
    `load`: "map", weights are pages of the file, which must not be modified while the session lives, or "copy", private memory.
    `trusted_keys`: 32-byte public keys (read_public_key); the bundle is refused (UNTRUSTED) unless one of them signed it.
    `signature`: the bytes of a detached signature, instead of the one in the bundle.
    `require_contracts`: code that does not say what its kernels rely on is refused."""

    def __init__(self, bundle: Path, *, entry: Optional[str] = None, threads: int = 0, isa: Optional[str] = None,
                 device_options: Sequence[str] = (), load: str = "map", trusted_keys: Optional[Iterable[bytes]] = None,
                 signature: Optional[bytes] = None, require_contracts: bool = False, library: Optional[Path] = None) -> None:
        self.bundle, self.session, self.path = ctypes.c_void_p(), ctypes.c_void_p(), os.fspath(bundle)
        self.lib = load_library(library)
        trusted_keys = None if trusted_keys is None else list(trusted_keys)
        if load not in ("map", "copy"):
            raise Error(f"load is '{load}'; it may be 'map' or 'copy'")
        if any(len(key) != KEY_BYTES for key in trusted_keys or ()):
            raise Error(f"a public key has {KEY_BYTES} bytes; read_public_key reads one from a file")
        self._error = _Error(ctypes.sizeof(_Error))
        self.lib.dmx_bundle_tensor_count.restype = ctypes.c_uint32
        self.lib.dmx_bundle_metadata.restype = ctypes.c_char_p
        self._entry = entry.encode() if entry else None
        keys = None if trusted_keys is None else b"".join(trusted_keys)  # an empty list trusts nobody, and is refused
        how = _BundleOptions(ctypes.sizeof(_BundleOptions), (COPY if load == "copy" else 0) | (CONTRACTS if require_contracts else 0),
                             len(trusted_keys or ()), keys, signature, len(signature or b""))
        self.call("dmx_bundle_open_with", os.fsencode(bundle), ctypes.byref(how), ctypes.byref(self.bundle))
        texts = (ctypes.c_char_p * max(1, len(device_options)))(*[option.encode() for option in device_options])
        options = _Options(ctypes.sizeof(_Options), threads, isa.encode() if isa else None, None, None, texts, len(device_options))
        self.call("dmx_session_create", self.bundle, self._entry, ctypes.byref(options), ctypes.byref(self.session))
        self.inputs: list[Tensor] = self._tensors(INPUT)
        self.outputs: list[Tensor] = self._tensors(OUTPUT)

    def __repr__(self) -> str:
        return f"<dmxrt.Session {self.path!r}: ({', '.join(map(repr, self.inputs))}) -> ({', '.join(map(repr, self.outputs))})>"

    def __call__(self, /, *arrays: numpy.ndarray, **inputs: numpy.ndarray) -> Arrays:
        """run() with the first inputs by position."""
        if len(arrays) > len(self.inputs):
            raise Error(f"{len(arrays)} arrays for {len(self.inputs)} inputs: {', '.join(map(repr, self.inputs))}")
        for tensor, array in zip(self.inputs, arrays):
            if tensor.name in inputs:
                raise Error(f"the input '{tensor.name}' is given both by position and by name")
            inputs[tensor.name] = array
        return self.run(**inputs)

    def run(self, /, **inputs: numpy.ndarray) -> Arrays:
        """Runs on arrays, one for each input by name; gives a new array for each output. Arrays must have the inputs' types."""
        import numpy
        names = {tensor.name for tensor in self.inputs}
        wrong = [f"{what}: {', '.join(sorted(which))}" for what, which in (("not given", names - set(inputs)), ("not among them", set(inputs) - names)) if which]
        if wrong:
            raise Error(f"the inputs are {', '.join(map(repr, self.inputs)) or 'none'}; {'; '.join(wrong)}")
        bound = []
        for i, tensor in enumerate(self.inputs):
            array = numpy.asarray(inputs[tensor.name], order="C")
            if array.dtype != DTYPES.get(tensor.dtype):
                raise Error(f"input '{tensor.name}' is {DTYPES.get(tensor.dtype, 'of a type numpy has not')}, not {array.dtype}")
            bound.append(self._bind_array(INPUT, i, tensor, array))
        outputs, late = {}, []
        for i, tensor in enumerate(self.outputs):
            outputs[tensor.name] = None
            try:
                shape = self._shape(OUTPUT, i, len(tensor.shape))
            except Error as error:
                if error.status != SHAPE_UNKNOWN:
                    raise
                late.append((i, tensor))
                self.call("dmx_session_unbind", self.session, OUTPUT, i)
                continue
            outputs[tensor.name] = self._bind_array(OUTPUT, i, tensor, numpy.empty(shape, DTYPES[tensor.dtype]))
        self.call("dmx_session_run", self.session)
        for i, tensor in late:
            outputs[tensor.name] = self._copy_output(i, tensor)
        return outputs

    def metadata(self, key: str) -> Optional[str]:
        """What the model's file says of the model under `key`, or None."""
        text = self.lib.dmx_bundle_metadata(self.bundle, key.encode())
        return None if text is None else text.decode()

    def reset_state(self) -> None:
        """Sets the states back to zero."""
        self.call("dmx_session_reset_state", self.session)

    def bind(self, io: int, index: int, dtype: int, shape: Sequence[int], address: int) -> None:
        """Binds memory of the caller's, which must outlive its use, to an input or output."""
        dims = (ctypes.c_int64 * max(1, len(shape)))(*shape)
        self.call("dmx_session_bind", self.session, io, index, ctypes.byref(_View(dtype, len(shape), dims, address)))

    def call(self, name: str, *arguments: Any) -> None:
        """A function of dmx.h that takes a dmx_error last."""
        if getattr(self.lib, name)(*arguments, ctypes.byref(self._error)):
            raise Error(f"{name}: {self._error.message.decode()}", self._error.status)

    def close(self) -> None:
        if self.session or self.bundle:
            self.lib.dmx_session_destroy(self.session)
            self.lib.dmx_bundle_close(self.bundle)
        self.session, self.bundle = ctypes.c_void_p(), ctypes.c_void_p()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _tensors(self, io):
        tensors = []
        for i in range(self.lib.dmx_bundle_tensor_count(self.bundle, self._entry, io)):
            info = _Info(ctypes.sizeof(_Info))
            self.call("dmx_bundle_tensor_info", self.bundle, self._entry, io, i, ctypes.byref(info))
            tensors.append(Tensor(info))
        return tensors

    def _bind_array(self, io, index, tensor, array):
        self.bind(io, index, tensor.dtype, array.shape, array.ctypes.data)
        return array

    def _copy_output(self, index, tensor):
        """What the session keeps of an output that is not bound."""
        import numpy
        view = _View()
        self.call("dmx_session_output", self.session, index, ctypes.byref(view))
        array = numpy.empty([view.dims[i] for i in range(view.rank)], DTYPES[tensor.dtype])
        if array.nbytes:
            ctypes.memmove(array.ctypes.data, view.data, array.nbytes)
        return array

    def _shape(self, io, index, capacity):
        dims, rank = (ctypes.c_int64 * max(1, capacity))(), ctypes.c_uint32()
        self.call("dmx_session_shape", self.session, io, index, dims, capacity, ctypes.byref(rank))
        return list(dims[:rank.value])
