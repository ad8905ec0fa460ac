"""libdmxrt from Python: opens a bundle and runs it on numpy arrays. See dmx.h for what each call promises.

    import dmxrt, numpy
    with dmxrt.Session("model.bundle") as session:
        print(session)                                                     # its inputs and outputs
        outputs = session(numpy.zeros((1, 1, 28, 28), "f4"))               # a dict of new arrays; or session(image=...)
        session.run({"image": x}, out={"probabilities": y})                # into arrays of the caller's

Inputs are numpy arrays or what numpy.from_dlpack takes; outputs are numpy arrays, which others take by DLPack. Types that numpy lacks
become the least of its types that has all their values: bf16 and floats of 8 and 4 bits float32, integers of 4 and 2 bits int8 or uint8.
Arrays of the package ml_dtypes are taken as they are.

A Session is for one thread at a time. Errors are dmxrt.Error with the runtime's text. The library is the argument `library`, or
the file that the environment variable DMXRT_LIBRARY names, or that of the wheel or of the prefix that this file is installed in, or is
found by its name where libraries are installed."""
from __future__ import annotations

import ctypes
import ctypes.util
import os
import re
from typing import TYPE_CHECKING, Any, Iterable, Mapping, Optional, Sequence, Union

if TYPE_CHECKING:
    import numpy

    Arrays = dict[str, numpy.ndarray]
    Out = Union[numpy.ndarray, Sequence[numpy.ndarray], Mapping[str, numpy.ndarray]]

Path = Union[str, "os.PathLike[str]"]

INPUT, OUTPUT = 0, 1
# dmx_dtype -> numpy's name.
DTYPES = {1: "bool", 3: "int8", 4: "int16", 5: "int32", 6: "int64", 8: "uint8", 9: "uint16", 10: "uint32", 11: "uint64", 12: "float16",
          14: "float32", 15: "float64"}
# Those that numpy lacks: name, bits, ml_dtypes' name, and for floats the bits of exponent and mantissa, the bias, and which patterns
# are no numbers: "ieee" (the highest exponent), "ones" (all bits but the sign), "zero" (minus zero), "" (none).
OTHER_DTYPES = {2: ("i4", 4, "int4"), 7: ("u4", 4, "uint4"), 22: ("i2", 2, "int2"), 23: ("u2", 2, "uint2"), 13: ("bf16", 16, "bfloat16"),
                16: ("f8e4m3fn", 8, "float8_e4m3fn", 4, 3, 7, "ones"), 17: ("f8e4m3fnuz", 8, "float8_e4m3fnuz", 4, 3, 8, "zero"),
                18: ("f8e5m2", 8, "float8_e5m2", 5, 2, 15, "ieee"), 19: ("f8e5m2fnuz", 8, "float8_e5m2fnuz", 5, 2, 16, "zero"),
                20: ("f4e2m1", 4, "float4_e2m1fn", 2, 1, 1, ""), 21: ("f8e8m0", 8, "float8_e8m0fnu")}
I64, F32 = 6, 14
COPY, CONTRACTS, NO_USER_CODE = 1, 2, 4  # bits of dmx_bundle_options.flags
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


def _candidates() -> list[str]:
    """Where the library may be: the wheel or the prefix that this file is installed in, then wherever libraries are."""
    folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # PREFIX/lib/python3/dist-packages, or site-packages
    places = ("dmxc/lib/libdmxrt.so.0", "../../libdmxrt.so.0", "../../../lib64/libdmxrt.so.0")
    beside = [os.path.normpath(os.path.join(folder, place)) for place in places]
    found = ctypes.util.find_library("dmxrt")
    return [path for path in beside if os.path.exists(path)] + [name for name in (found, "libdmxrt.so.0", "libdmxrt.so") if name]


def load_library(library: Optional[Path] = None) -> ctypes.CDLL:
    """libdmxrt: the file given, that of DMXRT_LIBRARY, or the one that is installed. Error says where it was looked for."""
    given = library or os.environ.get("DMXRT_LIBRARY")
    who = f"the file that {'library' if library else 'DMXRT_LIBRARY'} names"
    tried: list[str] = []
    for name in [os.fspath(given)] if given else _candidates():
        if name in tried:
            continue
        try:
            loaded = ctypes.CDLL(name)
        except OSError as error:
            tried.append(name)
            reason = str(error)
            if newer := re.search(r"version `((?:GLIBC|GLIBCXX|CXXABI)_[\d.]+)' not found", reason):
                raise Error(f"'{name}', {who if given else 'found by its name'}, needs {newer[1]}, which this system's libraries are too old for; "
                            "use a container with Debian 12 or newer, or build dmxc from its sources here") from None
            continue
        return _checked(loaded, name, who if given else "found by its name")
    where = who if given else "where libraries are installed (LD_LIBRARY_PATH, ldconfig)"
    raise Error(f"libdmxrt cannot be loaded: looked for {', '.join(repr(name) for name in tried)}, {where}: {reason}; {_NEXT}")


_NEXT = ("set the environment variable DMXRT_LIBRARY to the file libdmxrt.so.0 of an installed dmxc (PREFIX/lib), or build/lib/libdmxrt.so "
         "of a build of it")


def _checked(loaded: ctypes.CDLL, name: str, who: str) -> ctypes.CDLL:
    """The library, if it is libdmxrt and has the functions that this file calls."""
    if not hasattr(loaded, "dmx_version_string"):
        raise Error(f"'{name}', {who}, is a library, but not libdmxrt: it lacks dmx_version_string; {_NEXT}")
    lacking = [function for function in _FUNCTIONS if not hasattr(loaded, function)]
    if lacking:
        loaded.dmx_version_string.restype = ctypes.c_char_p
        raise Error(f"'{name}', {who}, is libdmxrt {loaded.dmx_version_string().decode()}, which lacks {lacking[0]}, that this module calls; "
                    "use both of one version")
    return loaded


_FUNCTIONS = ("dmx_bundle_open_with", "dmx_bundle_tensor_count", "dmx_bundle_tensor_info", "dmx_bundle_metadata", "dmx_session_create",
              "dmx_session_bind", "dmx_session_bind_strided", "dmx_session_unbind", "dmx_session_shape", "dmx_session_run", "dmx_session_output")


def read_public_key(path: Path) -> bytes:
    """The 32 bytes of a public key that `dmx-sign keygen` wrote."""
    with open(path, encoding="ascii") as file:
        lines = file.read().rstrip("\n").split("\n")
    if lines[0] != "dmx-public-key 1" or len(lines) != 2 or not lines[1].startswith("key ") or len(lines[1]) != 4 + 2 * KEY_BYTES:
        raise Error(f"'{path}' is not a public key as 'dmx-sign keygen' writes it")
    return bytes.fromhex(lines[1][4:])


def _values_of_floats(bits: int, exponent: int, mantissa: int, bias: int, special: str) -> list[float]:
    """What each pattern of a small float means."""
    values = []
    for pattern in range(1 << bits):
        sign = -1.0 if pattern >> (bits - 1) else 1.0
        e, m = (pattern >> mantissa) & ((1 << exponent) - 1), pattern & ((1 << mantissa) - 1)
        value = sign * (m * 2.0 ** (1 - bias - mantissa) if e == 0 else (1 + m / (1 << mantissa)) * 2.0 ** (e - bias))
        if special == "ieee" and e == (1 << exponent) - 1:
            value = float("nan") if m else sign * float("inf")
        elif (special == "ones" and pattern & ((1 << (bits - 1)) - 1) == (1 << (bits - 1)) - 1) or (special == "zero" and pattern == 1 << (bits - 1)):
            value = float("nan")
        values.append(value)
    return values


def _values(dtype: int) -> numpy.ndarray:
    """All values of a type of at most 8 bits that numpy lacks, by their bits, in numpy's type for them."""
    import numpy
    name, bits, _, *form = OTHER_DTYPES[dtype]
    if form:
        return numpy.array(_values_of_floats(bits, *form), "f4")
    if name == "f8e8m0":
        return numpy.array([2.0 ** (pattern - 127) for pattern in range(255)] + [float("nan")], "f4")
    patterns = numpy.arange(1 << bits)
    return (patterns.astype("u1") if name[0] == "u" else numpy.where(patterns < 1 << (bits - 1), patterns, patterns - (1 << bits)).astype("i1"))


def _numpy_name(dtype: int) -> str:
    """numpy's type for values of a dmx_dtype."""
    return DTYPES.get(dtype) or {"i": "int8", "u": "uint8"}.get(OTHER_DTYPES[dtype][0][0], "float32")


def _raw_bytes(dtype: int, count: int) -> int:
    return (count * OTHER_DTYPES[dtype][1] + 7) // 8


def _widened(dtype: int, raw: numpy.ndarray, shape: Sequence[int]) -> numpy.ndarray:
    """The values of a dense tensor of a type that numpy lacks; `raw` are its bytes."""
    import numpy
    count, bits = int(numpy.prod(shape, dtype="i8")), OTHER_DTYPES[dtype][1]
    if bits == 16:
        return (raw.view("<u2").astype("u4") << 16).view("f4").reshape(shape)
    if bits < 8:  # the first element in the lowest bits
        raw = ((raw[:, None] >> numpy.arange(0, 8, bits, dtype="u1")) & ((1 << bits) - 1)).reshape(-1)[:count]
    return _values(dtype)[raw].reshape(shape)


def _narrowed(name: str, dtype: int, array: numpy.ndarray) -> numpy.ndarray:
    """The bytes of values in a type that numpy lacks: bf16 rounded to nearest, ties to even; others must be values of the type."""
    import numpy
    own, bits, _, *form = OTHER_DTYPES[dtype]
    if bits == 16:
        word = numpy.ascontiguousarray(array).reshape(-1).view("u4")
        rounded = ((word + 0x7FFF + ((word >> 16) & 1)) >> 16).astype("<u2")
        return numpy.where(numpy.isnan(array).reshape(-1), (word >> 16 | 0x40).astype("<u2"), rounded).view("u1")
    values, flat = _values(dtype), array.reshape(-1)
    order = numpy.argsort(values, kind="stable")  # NaN last
    patterns = order[numpy.minimum(numpy.searchsorted(values[order], flat), len(order) - 1)]
    if form:  # both zeros
        zero = numpy.where(numpy.signbit(values) & (values == 0))[0]
        patterns = numpy.where(flat == 0, numpy.where(numpy.signbit(flat), zero[0] if len(zero) else 0, 0), patterns)
    same = (values[patterns] == flat) | (numpy.isnan(flat.astype("f4")) & numpy.isnan(values[patterns].astype("f4")))
    if not same.all():
        raise Error(f"input '{name}' is {own}, which has no {flat[~same][0]}; round to its values first")
    if bits == 8:
        return patterns.astype("u1")
    each = 8 // bits
    padded = numpy.zeros(-(-len(flat) // each) * each, "u1")
    padded[:len(flat)] = patterns
    return numpy.bitwise_or.reduce(padded.reshape(-1, each) << numpy.arange(0, 8, bits, dtype="u1"), axis=1).astype("u1")


def _array_of(what: str, array: Any) -> numpy.ndarray:
    """A numpy array of what is one, or can be looked at as one without a copy (DLPack)."""
    import numpy
    if isinstance(array, numpy.ndarray) or not hasattr(array, "__dlpack__") or not hasattr(numpy, "from_dlpack"):
        return numpy.asarray(array)
    try:
        return numpy.from_dlpack(array)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:  # on another device, of a type that numpy lacks
        raise Error(f"{what} cannot be looked at by numpy.from_dlpack: {error}; give it as a numpy array") from error


def _strides(array: numpy.ndarray) -> Optional[list[int]]:
    """In elements, of an array that is not C-contiguous; None for those that are, or that cannot be bound as they lie."""
    if array.flags.c_contiguous or not array.itemsize or any(stride < 0 or stride % array.itemsize for stride in array.strides):
        return None
    return [stride // array.itemsize for stride in array.strides]


def _overlaps(array: numpy.ndarray) -> bool:
    """Whether elements of an array share bytes, as numpy.broadcast_to makes them."""
    reach = array.itemsize
    for stride, extent in sorted(zip(array.strides, array.shape)):
        if extent > 1:
            if stride < reach:
                return True
            reach += stride * (extent - 1)
    return False


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
        return f"{self.name}: {DTYPES.get(self.dtype) or OTHER_DTYPES[self.dtype][0]}[{', '.join(map(str, self.dims))}]"


class Session:
    """One session of an entry point. `threads` 0: as many as allowed; `device_options`: "corsair.report=r.json" and the like;
    `load`: "map", weights are pages of the file, which must not be modified while the session lives, or "copy", private memory.
    `trusted_keys`: 32-byte public keys (read_public_key); the bundle is refused (UNTRUSTED) unless one of them signed it.
    `signature`: the bytes of a detached signature, instead of the one in the bundle.
    `require_contracts`: code that does not say what its kernels rely on is refused; `no_user_code`: a bundle with code that a user wrote is."""

    def __init__(self, bundle: Path, *, entry: Optional[str] = None, threads: int = 0, isa: Optional[str] = None,
                 device_options: Sequence[str] = (), load: str = "map", trusted_keys: Optional[Iterable[bytes]] = None,
                 signature: Optional[bytes] = None, require_contracts: bool = False, no_user_code: bool = False,
                 library: Optional[Path] = None) -> None:
        self.bundle, self.session, self.path = ctypes.c_void_p(), ctypes.c_void_p(), os.fspath(bundle)
        self._closed = False
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
        how = _BundleOptions(ctypes.sizeof(_BundleOptions), (COPY if load == "copy" else 0) | (CONTRACTS if require_contracts else 0) | (NO_USER_CODE if no_user_code else 0),
                             len(trusted_keys or ()), keys, signature, len(signature or b""))
        self.call("dmx_bundle_open_with", os.fsencode(bundle), ctypes.byref(how), ctypes.byref(self.bundle))
        texts = (ctypes.c_char_p * max(1, len(device_options)))(*[option.encode() for option in device_options])
        options = _Options(ctypes.sizeof(_Options), threads, isa.encode() if isa else None, None, None, texts, len(device_options))
        self.call("dmx_session_create", self.bundle, self._entry, ctypes.byref(options), ctypes.byref(self.session))
        self.inputs: list[Tensor] = self._tensors(INPUT)
        self.outputs: list[Tensor] = self._tensors(OUTPUT)

    def __repr__(self) -> str:
        return f"<dmxrt.Session {self.path!r}: ({', '.join(map(repr, self.inputs))}) -> ({', '.join(map(repr, self.outputs))})>"

    def __call__(self, /, *arrays: Any, **inputs: Any) -> Arrays:
        """run() without `out`."""
        return self._run(arrays, inputs, None)

    def run(self, /, *arrays: Any, out: Optional[Out] = None, **inputs: Any) -> Arrays:
        """Runs on arrays: the first inputs by position, others by name, or all of them as one dict by name, which takes any name. Gives
        an array for each output: a new one or, of those that `out` has (a dict by name, a list by position, or the array of the only
        output), the one given, which is written into. Arrays must have the types of the inputs and outputs.

        A cache that is an input and an output of the model may be one array with room for `capacity` rows: run({"past": cache[:, :, :n],
        ...}, out={"present": cache[:, :, :n + m]}) writes the m rows and copies nothing (dmx_session_bind_strided in dmx.h). Other
        arrays that are not C-contiguous are copied on the way; inputs may have negative strides, too."""
        return self._run(arrays, inputs, out)

    def _run(self, arrays, inputs, out):
        self._open()
        given = self._given_outputs(out)
        bound = [self._bind_input(i, tensor, array) for i, (tensor, array) in enumerate(zip(self.inputs, self._given_inputs(arrays, inputs)))]
        outputs, late = {}, []
        for i, tensor in enumerate(self.outputs):
            outputs[tensor.name] = target = given.get(tensor.name)
            try:
                shape = self._shape(OUTPUT, i, len(tensor.shape))
            except Error as error:
                if error.status != SHAPE_UNKNOWN:
                    raise
                shape = None
            direct = tensor.dtype in DTYPES or (target is not None and target.dtype.name == OTHER_DTYPES[tensor.dtype][2])
            if target is not None and shape is not None and list(target.shape) != shape:
                raise Error(f"out: '{tensor.name}' is {shape}, the array is {list(target.shape)}")
            if shape is None or not direct:  # the session keeps it until it is copied
                late.append((i, tensor, target))
                self.call("dmx_session_unbind", self.session, OUTPUT, i)
                continue
            if target is None:
                import numpy
                outputs[tensor.name] = target = numpy.empty(shape, DTYPES[tensor.dtype])
            self.bind(OUTPUT, i, tensor.dtype, target.shape, target.ctypes.data, _strides(target))
        self.call("dmx_session_run", self.session)
        del bound  # which had to live until here
        for i, tensor, target in late:
            outputs[tensor.name] = self._copy_output(i, tensor, target)
        return outputs

    def _given_inputs(self, arrays, inputs):
        """What is given for each input, in their order."""
        if arrays and arrays[0] is None or len(arrays) == 2 and isinstance(arrays[1], Mapping):
            raise Error("run takes no list of outputs and gives all of them: session.run({'NAME': array}) or session.run(NAME=array)")
        if len(arrays) == 1 and isinstance(arrays[0], Mapping):
            twice = set(arrays[0]) & set(inputs)
            if twice:
                raise Error(f"the input '{min(twice)}' is given both in the dict and by name")
            arrays, inputs = (), {**arrays[0], **inputs}
        if len(arrays) > len(self.inputs):
            raise Error(f"{len(arrays)} arrays for {len(self.inputs)} inputs: {', '.join(map(repr, self.inputs))}")
        for tensor, array in zip(self.inputs, arrays):
            if tensor.name in inputs:
                raise Error(f"the input '{tensor.name}' is given both by position and by name")
            inputs[tensor.name] = array
        names = {tensor.name for tensor in self.inputs}
        wrong = [f"{what}: {', '.join(sorted(which))}" for what, which in (("not given", names - set(inputs)), ("not among them", set(inputs) - names)) if which]
        if wrong:
            raise Error(f"the inputs are {', '.join(map(repr, self.inputs)) or 'none'}; {'; '.join(wrong)}")
        return [inputs[tensor.name] for tensor in self.inputs]

    def _given_outputs(self, out):
        """Arrays to write into, by name; each can be written as it lies."""
        import numpy
        if out is None:
            return {}
        if isinstance(out, numpy.ndarray):
            if len(self.outputs) != 1:
                raise Error(f"out is one array and the outputs are {', '.join(map(repr, self.outputs))}; give a dict by name or a list")
            out = [out]
        if not isinstance(out, Mapping):
            if len(out) > len(self.outputs):
                raise Error(f"out has {len(out)} arrays for {len(self.outputs)} outputs: {', '.join(map(repr, self.outputs))}")
            out = {tensor.name: array for tensor, array in zip(self.outputs, out)}
        types = {tensor.name: tensor.dtype for tensor in self.outputs}
        for name, array in out.items():
            if name not in types:
                raise Error(f"out: there is no output '{name}'; the outputs are {', '.join(map(repr, self.outputs))}")
            wanted = _numpy_name(types[name])
            own = OTHER_DTYPES[types[name]][2] if types[name] in OTHER_DTYPES and OTHER_DTYPES[types[name]][1] >= 8 else wanted
            if not isinstance(array, numpy.ndarray) or array.dtype.name not in (wanted, own):
                raise Error(f"out: '{name}' is {wanted}, not {array.dtype if isinstance(array, numpy.ndarray) else type(array).__name__}")
            if not array.flags.writeable or not array.dtype.isnative:
                raise Error(f"out: the array of '{name}' cannot be written as it lies: it must be writeable and of native bytes")
            if _strides(array) is None and not array.flags.c_contiguous:
                raise Error(f"out: the array of '{name}' has the strides {array.strides}; they must not be negative and be whole elements")
        return dict(out)

    def _bind_input(self, index, tensor, array):
        """Binds an array, or a copy that is laid out as the runtime wants it; what is given back must live until the run has ended."""
        import numpy
        array = _array_of(f"input '{tensor.name}'", array)
        strides = _strides(array) if tensor.dtype in DTYPES else None
        if strides is None or _overlaps(array):
            array, strides = numpy.asarray(array, order="C"), None
        if tensor.dtype in OTHER_DTYPES:
            own, bits, theirs = OTHER_DTYPES[tensor.dtype][:3]
            shape = array.shape
            if array.dtype.name == theirs and bits < 8:  # a byte each
                array = array.astype(_numpy_name(tensor.dtype))
            if array.dtype.name == theirs:
                raw = array
            elif array.dtype.name == _numpy_name(tensor.dtype):
                raw = _narrowed(tensor.name, tensor.dtype, array)
            else:
                raise Error(f"input '{tensor.name}' is {own}, of which arrays are {_numpy_name(tensor.dtype)} or ml_dtypes.{theirs}, not {array.dtype}")
            self.bind(INPUT, index, tensor.dtype, shape, raw.ctypes.data)
            return raw
        if array.dtype != DTYPES[tensor.dtype]:
            raise Error(f"input '{tensor.name}' is {DTYPES[tensor.dtype]}, not {array.dtype}")
        self.bind(INPUT, index, tensor.dtype, array.shape, array.ctypes.data, strides)
        return array

    def metadata(self, key: str) -> Optional[str]:
        """What the model's file says of the model under `key`, or None."""
        self._open()
        text = self.lib.dmx_bundle_metadata(self.bundle, key.encode())
        return None if text is None else text.decode()

    def reset_state(self) -> None:
        """Sets the states back to zero; of those with a length no row is there then."""
        self.call("dmx_session_reset_state", self.session)

    def state_length(self, name: Optional[str] = None) -> tuple[int, int]:
        """How many rows of the states with this length (the model's dim; the first where it is None) are there, and for how many there is
        room."""
        length, room = ctypes.c_int64(), ctypes.c_int64()
        self.call("dmx_session_state_length", self.session, name.encode() if name else None, ctypes.byref(length), ctypes.byref(room))
        return length.value, room.value

    def truncate_state(self, length: int, name: Optional[str] = None) -> None:
        """Forgets the rows from `length` on."""
        self.call("dmx_session_state_truncate", self.session, name.encode() if name else None, ctypes.c_int64(length))

    def copy_state(self, source: Session) -> None:
        """Takes the states of another session of the same bundle: both go on from there, each in its own way."""
        self.call("dmx_session_state_copy", self.session, source.session)

    def save_state(self) -> bytes:
        """The states, for load_state of a session of the same bundle."""
        size = ctypes.c_size_t()
        self.call("dmx_session_state_save", self.session, None, ctypes.byref(size))
        data = ctypes.create_string_buffer(size.value)
        self.call("dmx_session_state_save", self.session, data, ctypes.byref(size))
        return data.raw[:size.value]

    def load_state(self, saved: bytes) -> None:
        """Takes back what save_state gave."""
        self.call("dmx_session_state_load", self.session, saved, ctypes.c_size_t(len(saved)))

    def bind(self, io: int, index: int, dtype: int, shape: Sequence[int], address: int, strides: Optional[Sequence[int]] = None) -> None:
        """Binds memory of the caller's, which must outlive its use, to an input or output. `strides` are in elements; None: it is dense."""
        dims = (ctypes.c_int64 * max(1, len(shape)))(*shape)
        view = ctypes.byref(_View(dtype, len(shape), dims, address))
        if strides is None:
            return self.call("dmx_session_bind", self.session, io, index, view)
        self.call("dmx_session_bind_strided", self.session, io, index, view, (ctypes.c_int64 * max(1, len(strides)))(*strides))

    def call(self, name: str, *arguments: Any) -> None:
        """A function of dmx.h that takes a dmx_error last."""
        self._open()
        if getattr(self.lib, name)(*arguments, ctypes.byref(self._error)):
            raise Error(f"{name}: {self._error.message.decode()}", self._error.status)

    def close(self) -> None:
        if self.session or self.bundle:
            self.lib.dmx_session_destroy(self.session)
            self.lib.dmx_bundle_close(self.bundle)
        self.session, self.bundle, self._closed = ctypes.c_void_p(), ctypes.c_void_p(), True

    def _open(self):
        if self._closed:
            raise Error(f"the session of '{self.path}' is closed; make another: dmxrt.Session({self.path!r})")

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

    def _copy_output(self, index, tensor, target):
        """What the session keeps of an output that is not bound, in a new array or in the one given."""
        import numpy
        view = _View()
        self.call("dmx_session_output", self.session, index, ctypes.byref(view))
        shape = [view.dims[i] for i in range(view.rank)]
        if target is not None and list(target.shape) != shape:
            raise Error(f"out: '{tensor.name}' is {shape} in this run, the array is {list(target.shape)}")
        if tensor.dtype in DTYPES:
            raw = numpy.empty(shape, DTYPES[tensor.dtype])
        elif target is not None and target.dtype.name == OTHER_DTYPES[tensor.dtype][2]:
            raw = numpy.empty(shape, target.dtype)
        else:
            raw = numpy.empty(_raw_bytes(tensor.dtype, int(numpy.prod(shape, dtype="i8"))), "u1")
        if raw.nbytes:
            ctypes.memmove(raw.ctypes.data, view.data, raw.nbytes)
        if tensor.dtype in OTHER_DTYPES and raw.dtype.name == "uint8":
            raw = _widened(tensor.dtype, raw, shape)
        if target is None:
            return raw
        target[...] = raw
        return target

    def _shape(self, io, index, capacity):
        dims, rank = (ctypes.c_int64 * max(1, capacity))(), ctypes.c_uint32()
        self.call("dmx_session_shape", self.session, io, index, dims, capacity, ctypes.byref(rank))
        return list(dims[:rank.value])
