"""libdmxrt through ctypes, for tests: the structures of dmx.h and a session."""
import ctypes

I64, F32, INPUT, OUTPUT = 6, 14, 0, 1


class Error(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("status", ctypes.c_int32), ("message", ctypes.c_char * 512)]


class View(ctypes.Structure):
    _fields_ = [("dtype", ctypes.c_int32), ("rank", ctypes.c_uint32), ("dims", ctypes.POINTER(ctypes.c_int64)),
                ("data", ctypes.c_void_p)]


class Dim(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("min", ctypes.c_int64), ("max", ctypes.c_int64)]


class Info(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("name", ctypes.c_char_p), ("dtype", ctypes.c_int32),
                ("rank", ctypes.c_uint32), ("dims", ctypes.POINTER(Dim))]


class Options(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("threads", ctypes.c_uint32), ("isa", ctypes.c_char_p),
                ("allocator", ctypes.c_void_p), ("executor", ctypes.c_void_p),
                ("device_options", ctypes.POINTER(ctypes.c_char_p)), ("device_option_count", ctypes.c_uint32)]


class Session:
    """One session of a bundle's first entry point."""

    def __init__(self, library, path, *device_options):
        self.lib, self.error = ctypes.CDLL(library), Error(ctypes.sizeof(Error))
        self.lib.dmx_bundle_tensor_count.restype = ctypes.c_uint32
        self.bundle, self.session = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("dmx_bundle_open", str(path).encode(), ctypes.byref(self.bundle))
        texts = (ctypes.c_char_p * max(1, len(device_options)))(*[o.encode() for o in device_options])
        options = Options(ctypes.sizeof(Options), 0, None, None, None, texts, len(device_options))
        self.call("dmx_session_create", self.bundle, None, ctypes.byref(options), ctypes.byref(self.session))

    def call(self, name, *arguments):
        if getattr(self.lib, name)(*arguments, ctypes.byref(self.error)):
            raise RuntimeError(f"{name}: {self.error.message.decode()}")

    def bind(self, io, index, dtype, shape, address):
        dims = (ctypes.c_int64 * max(1, len(shape)))(*shape)
        self.call("dmx_session_bind", self.session, io, index, ctypes.byref(View(dtype, len(shape), dims, address)))

    def close(self):
        self.lib.dmx_session_destroy(self.session)
        self.lib.dmx_bundle_close(self.bundle)
