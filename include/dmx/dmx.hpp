/* dmx.hpp - dmx.h for C++20: objects that free what they own, spans instead of pointers, exceptions instead of
 * statuses.
 *
 *   dmx::Bundle bundle("m.bundle");
 *   dmx::Session session(bundle);
 *   session.bindInput("image", pixels, {1, 3, 224, 224}); // a vector, an array or a span of the input's type
 *   session.run();
 *   std::span<const float> scores = session.output<float>("scores");
 *
 * Header only: link libdmxrt. What each call promises dmx.h says; this header adds that
 *  - a call that fails throws dmx::Error, which has the status and the runtime's sentence;
 *  - an element type that is not the tensor's, and a span of another length than its dims have, are errors;
 *  - inputs and outputs are given by index or by name, and dims may be left out where all of them are fixed.
 * Bound memory stays the caller's and must live while it is bound. A Session is for one thread at a time. */
#ifndef DMX_DMX_HPP
#define DMX_DMX_HPP

#include <dmx/dmx.h>

#include <cstddef>
#include <optional>
#include <ranges>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace dmx {

/// A call that failed; what() is one sentence.
class Error : public std::runtime_error {
public:
  Error(dmx_status status, const std::string &message) : std::runtime_error(message), code(status) {}
  dmx_status status() const noexcept { return code; }

private:
  dmx_status code;
};

/// The dmx_dtype of a C++ type. Specialise it for a type of your own ("half") that has the same bits.
template <typename T> struct ElementType;
template <> struct ElementType<bool> : std::integral_constant<dmx_dtype, DMX_DTYPE_BOOL> {};
template <> struct ElementType<int8_t> : std::integral_constant<dmx_dtype, DMX_DTYPE_I8> {};
template <> struct ElementType<int16_t> : std::integral_constant<dmx_dtype, DMX_DTYPE_I16> {};
template <> struct ElementType<int32_t> : std::integral_constant<dmx_dtype, DMX_DTYPE_I32> {};
template <> struct ElementType<int64_t> : std::integral_constant<dmx_dtype, DMX_DTYPE_I64> {};
template <> struct ElementType<uint8_t> : std::integral_constant<dmx_dtype, DMX_DTYPE_U8> {};
template <> struct ElementType<uint16_t> : std::integral_constant<dmx_dtype, DMX_DTYPE_U16> {};
template <> struct ElementType<uint32_t> : std::integral_constant<dmx_dtype, DMX_DTYPE_U32> {};
template <> struct ElementType<uint64_t> : std::integral_constant<dmx_dtype, DMX_DTYPE_U64> {};
template <> struct ElementType<float> : std::integral_constant<dmx_dtype, DMX_DTYPE_F32> {};
template <> struct ElementType<double> : std::integral_constant<dmx_dtype, DMX_DTYPE_F64> {};
/// Bytes of any type, as they lie: for those that C++ has no type for.
template <> struct ElementType<std::byte> : std::integral_constant<dmx_dtype, 0> {};

struct Dim {
  std::string name; ///< empty where the dim is fixed; else its symbol or expression
  int64_t min, max; ///< the same where it is fixed
};

/// What an entry point says of an input or output.
struct Tensor {
  std::string name;
  dmx_dtype dtype;
  std::vector<Dim> dims;
  std::string description; ///< empty where the model says nothing
};

using Dims = std::vector<int64_t>;

namespace detail {

/// Calls a function of dmx.h that takes a dmx_error last.
template <typename Function, typename... Arguments> void call(Function function, Arguments... arguments) {
  dmx_error error = DMX_ERROR_INIT;
  if (dmx_status status = function(arguments..., &error); status != DMX_OK)
    throw Error(status, error.message);
}

inline Error wrong(const std::string &message) { return {DMX_STATUS_INVALID_ARGUMENT, message}; }
inline const char *orNull(const std::string &text) { return text.empty() ? nullptr : text.c_str(); }
inline std::string textOf(const char *text) { return text ? text : ""; }

inline std::string textOf(const Dims &dims) {
  std::string text;
  for (int64_t dim : dims)
    text += (text.empty() ? "" : " x ") + std::to_string(dim);
  return dims.empty() ? "scalar" : text;
}

} // namespace detail

struct BundleOptions {
  bool copy = false;       ///< DMX_BUNDLE_COPY: nothing that happens to the file matters
  bool contracts = false;  ///< DMX_BUNDLE_CONTRACTS
  bool noUserCode = false; ///< DMX_BUNDLE_NO_USER_CODE
  std::optional<std::vector<unsigned char>> trustedKeys = {}; ///< 32 bytes each; an empty list trusts nobody
  std::span<const std::byte> signature = {};                  ///< a detached one
};

/// An open bundle; any number of threads may use it. Texts and bytes that it gives live as long as it does.
class Bundle {
public:
  explicit Bundle(const std::string &path, const BundleOptions &options = {}) {
    dmx_bundle_options raw = convert(options);
    detail::call(dmx_bundle_open_with, path.c_str(), &raw, &handle);
  }
  /// Over bytes that live as long as the bundle and its sessions; they begin at a multiple of 64 unless they are
  /// copied.
  static Bundle fromMemory(std::span<const std::byte> bytes, const BundleOptions &options = {}) {
    dmx_bundle_options raw = convert(options);
    Bundle bundle;
    detail::call(dmx_bundle_open_memory_with, static_cast<const void *>(bytes.data()), bytes.size(), &raw,
                 &bundle.handle);
    return bundle;
  }
  /// Over a part of an open file (size 0: up to its end).
  static Bundle fromFile(int descriptor, uint64_t offset = 0, uint64_t size = 0, const BundleOptions &options = {}) {
    dmx_bundle_options raw = convert(options);
    Bundle bundle;
    detail::call(dmx_bundle_open_fd_with, descriptor, offset, size, &raw, &bundle.handle);
    return bundle;
  }
  Bundle(Bundle &&other) noexcept : handle(std::exchange(other.handle, nullptr)) {}
  Bundle &operator=(Bundle &&other) noexcept {
    std::swap(handle, other.handle);
    return *this;
  }
  Bundle(const Bundle &) = delete;
  Bundle &operator=(const Bundle &) = delete;
  ~Bundle() { dmx_bundle_close(handle); }

  const dmx_bundle *get() const noexcept { return handle; }
  /// The manifest, JSON.
  std::string_view manifest() const { return dmx_bundle_describe(handle); }
  /// What the model's file says under `key`.
  std::optional<std::string_view> metadata(const std::string &key) const {
    const char *text = dmx_bundle_metadata(handle, key.c_str());
    return text ? std::optional<std::string_view>(text) : std::nullopt;
  }
  /// Checks every byte.
  void verify() const { detail::call(dmx_bundle_verify, const_cast<const dmx_bundle *>(handle)); }
  std::span<const std::byte> entry(const std::string &name) const {
    const void *data = nullptr;
    size_t size = 0;
    detail::call(dmx_bundle_entry, const_cast<const dmx_bundle *>(handle), name.c_str(), &data, &size);
    return {static_cast<const std::byte *>(data), size};
  }
  std::vector<std::string> entryPoints() const {
    std::vector<std::string> names(dmx_bundle_entry_point_count(handle));
    for (uint32_t i = 0; i < names.size(); ++i)
      names[i] = dmx_bundle_entry_point_name(handle, i);
    return names;
  }
  /// Of an entry point ("": the first).
  std::vector<Tensor> inputs(const std::string &entryPoint = "") const { return tensors(entryPoint, DMX_INPUT); }
  std::vector<Tensor> outputs(const std::string &entryPoint = "") const { return tensors(entryPoint, DMX_OUTPUT); }

private:
  Bundle() = default;
  static dmx_bundle_options convert(const BundleOptions &options) {
    dmx_bundle_options raw = DMX_BUNDLE_OPTIONS_INIT;
    raw.flags = (options.copy ? uint32_t(DMX_BUNDLE_COPY) : 0) |
                (options.contracts ? uint32_t(DMX_BUNDLE_CONTRACTS) : 0) |
                (options.noUserCode ? uint32_t(DMX_BUNDLE_NO_USER_CODE) : 0);
    if (options.trustedKeys) {
      static const unsigned char none = 0; // keys that are not NULL, and none of them, trust nobody
      if (options.trustedKeys->size() % DMX_PUBLIC_KEY_BYTES)
        throw detail::wrong("trustedKeys has " + std::to_string(options.trustedKeys->size()) +
                            " bytes; a public key has " + std::to_string(DMX_PUBLIC_KEY_BYTES));
      raw.trusted_key_count = uint32_t(options.trustedKeys->size() / DMX_PUBLIC_KEY_BYTES);
      raw.trusted_keys = options.trustedKeys->empty() ? &none : options.trustedKeys->data();
    }
    raw.signature = options.signature.empty() ? nullptr : options.signature.data();
    raw.signature_size = options.signature.size();
    return raw;
  }
  std::vector<Tensor> tensors(const std::string &entryPoint, dmx_io io) const {
    const char *entry = detail::orNull(entryPoint);
    std::vector<Tensor> all(dmx_bundle_tensor_count(handle, entry, io));
    for (uint32_t i = 0; i < all.size(); ++i) {
      dmx_tensor_info info = {};
      info.struct_size = sizeof info;
      detail::call(dmx_bundle_tensor_info, const_cast<const dmx_bundle *>(handle), entry, io, i, &info);
      all[i] = {info.name, info.dtype, {}, detail::textOf(info.description)};
      for (const dmx_dim &dim : std::span(info.dims, info.rank))
        all[i].dims.push_back({detail::textOf(dim.name), dim.min, dim.max});
    }
    return all;
  }

  dmx_bundle *handle = nullptr;
};

struct SessionOptions {
  std::string entryPoint = {};                 ///< "": the first
  uint32_t threads = 0;                        ///< 0: as many as allowed
  std::string isa = {};                        ///< "": the best that the bundle has
  std::vector<std::string> deviceOptions = {}; ///< "target.key=value", see dmx_session_options
  const dmx_allocator *allocator = nullptr;    ///< copied
  const dmx_executor *executor = nullptr;      ///< copied
};

/// An input or output, by index or by name.
struct Which {
  Which(int index) : index(uint32_t(index)) {}
  Which(uint32_t index) : index(index) {}
  Which(size_t index) : index(uint32_t(index)) {}
  Which(const char *name) : name(name) {}
  Which(std::string_view name) : name(name) {}
  Which(const std::string &name) : name(name) {}

  uint32_t index = 0;
  std::string_view name; ///< empty: by index
};

/// Runs an entry point. Keeps what it needs of the bundle.
class Session {
public:
  explicit Session(const Bundle &bundle, const SessionOptions &options = {})
      : ins(bundle.inputs(options.entryPoint)), outs(bundle.outputs(options.entryPoint)) {
    std::vector<const char *> texts;
    for (const std::string &text : options.deviceOptions)
      texts.push_back(text.c_str());
    dmx_session_options raw = DMX_SESSION_OPTIONS_INIT;
    raw.threads = options.threads;
    raw.isa = detail::orNull(options.isa);
    raw.allocator = options.allocator;
    raw.executor = options.executor;
    raw.device_options = texts.data();
    raw.device_option_count = uint32_t(texts.size());
    detail::call(dmx_session_create, bundle.get(), detail::orNull(options.entryPoint),
                 static_cast<const dmx_session_options *>(&raw), &handle);
  }
  Session(Session &&other) noexcept
      : handle(std::exchange(other.handle, nullptr)), ins(std::move(other.ins)), outs(std::move(other.outs)) {}
  Session &operator=(Session &&other) noexcept {
    std::swap(handle, other.handle);
    ins.swap(other.ins);
    outs.swap(other.outs);
    return *this;
  }
  Session(const Session &) = delete;
  Session &operator=(const Session &) = delete;
  ~Session() { dmx_session_destroy(handle); }

  dmx_session *get() const noexcept { return handle; }
  const std::vector<Tensor> &inputs() const noexcept { return ins; }
  const std::vector<Tensor> &outputs() const noexcept { return outs; }

  /// Binds memory (a vector, an array, a span; no temporary) to an input, which only reads it.
  template <std::ranges::contiguous_range Range>
    requires std::ranges::borrowed_range<Range>
  void bindInput(Which which, Range &&data, const Dims &dims = {}) {
    bind(DMX_INPUT, which, std::span<std::remove_reference_t<std::ranges::range_reference_t<Range>>>(data), dims);
  }
  /// Binds memory to an output. One whose shape depends on the data may have more than it needs: dims {the size}.
  template <std::ranges::contiguous_range Range>
    requires std::ranges::borrowed_range<Range>
  void bindOutput(Which which, Range &&data, const Dims &dims = {}) {
    using Element = std::remove_reference_t<std::ranges::range_reference_t<Range>>;
    static_assert(!std::is_const_v<Element>, "an output is written");
    bind(DMX_OUTPUT, which, std::span<Element>(data), dims);
  }
  /// The same for views whose elements are no neighbours: `first` is where the first one lies, strides are in elements
  /// (dmx_session_bind_strided, which says how a cache is bound to an input and an output).
  template <typename T> void bindStrided(dmx_io io, Which which, T *first, const Dims &dims, const Dims &strides) {
    uint32_t index = find(io, which);
    check<T>(all(io)[index], io == DMX_INPUT ? "input" : "output");
    if (strides.size() != dims.size())
      throw detail::wrong("'" + all(io)[index].name + "' has " + std::to_string(dims.size()) + " dims and " +
                          std::to_string(strides.size()) + " strides");
    dmx_tensor_view view = {all(io)[index].dtype, uint32_t(dims.size()), dims.data(),
                            const_cast<void *>(static_cast<const void *>(first))};
    detail::call(dmx_session_bind_strided, handle, io, index, static_cast<const dmx_tensor_view *>(&view),
                 strides.data());
  }
  void unbind(dmx_io io, Which which) { detail::call(dmx_session_unbind, handle, io, find(io, which)); }

  /// The shape for the inputs bound now; nothing where only a run tells.
  std::optional<Dims> shape(dmx_io io, Which which) const {
    Dims dims(DMX_MAX_RANK);
    uint32_t rank = 0;
    dmx_error error = DMX_ERROR_INIT;
    dmx_status status = dmx_session_shape(handle, io, find(io, which), dims.data(), DMX_MAX_RANK, &rank, &error);
    if (status == DMX_STATUS_SHAPE_UNKNOWN)
      return std::nullopt;
    if (status != DMX_OK)
      throw Error(status, error.message);
    dims.resize(rank);
    return dims;
  }

  void run() { detail::call(dmx_session_run, handle); }
  void runAsync() { detail::call(dmx_session_run_async, handle); }
  void wait() { detail::call(dmx_session_wait, handle); }
  void resetState() { detail::call(dmx_session_reset_state, handle); }
  /// Rows of the states with a length of this name (null: the first) that are there, and for how many there is room.
  std::pair<int64_t, int64_t> stateLength(const char *name = nullptr) {
    int64_t length = 0, room = 0;
    detail::call(dmx_session_state_length, handle, name, &length, &room);
    return {length, room};
  }
  /// Forgets the rows from `length` on.
  void truncateState(int64_t length, const char *name = nullptr) {
    detail::call(dmx_session_state_truncate, handle, name, length);
  }
  /// Takes the states of another session of the same bundle.
  void copyState(Session &from) { detail::call(dmx_session_state_copy, handle, from.handle); }
  /// The states, for loadState of a session of the same bundle.
  std::vector<std::byte> saveState() {
    size_t size = 0;
    detail::call(dmx_session_state_save, handle, static_cast<void *>(nullptr), &size);
    std::vector<std::byte> saved(size);
    detail::call(dmx_session_state_save, handle, static_cast<void *>(saved.data()), &size);
    return saved;
  }
  void loadState(std::span<const std::byte> saved) {
    detail::call(dmx_session_state_load, handle, static_cast<const void *>(saved.data()), saved.size());
  }

  /// An output of the last run, bound or not; valid until the session runs again or is bound. T: its type, or
  /// std::byte.
  template <typename T> std::span<const T> output(Which which) const {
    uint32_t index = find(DMX_OUTPUT, which);
    dmx_tensor_view view = {};
    detail::call(dmx_session_output, handle, index, &view);
    check<T>(outs[index], "output");
    int64_t bytes = dmx_tensor_bytes(view.dtype, view.rank, view.dims);
    return {static_cast<const T *>(view.data), size_t(bytes) / sizeof(T)};
  }

  dmx_session_info info() const {
    dmx_session_info info = {};
    info.struct_size = sizeof info;
    detail::call(dmx_session_get_info, handle, &info);
    return info;
  }
  dmx_task_info task(uint32_t index) const {
    dmx_task_info info = {};
    info.struct_size = sizeof info;
    detail::call(dmx_session_task_info, handle, index, &info);
    return info;
  }
  /// Turns profiling on with room for `capacity` events (0: off).
  void profile(uint32_t capacity) { detail::call(dmx_session_profile, handle, capacity); }
  /// The events recorded since the last call; `dropped` becomes the number that found no room.
  std::vector<dmx_profile_event> takeEvents(uint64_t *dropped = nullptr) {
    uint32_t count = 0;
    detail::call(dmx_session_take_events, handle, static_cast<dmx_profile_event *>(nullptr), uint32_t(0), &count,
                 static_cast<uint64_t *>(nullptr));
    std::vector<dmx_profile_event> events(count);
    detail::call(dmx_session_take_events, handle, events.data(), count, &count, dropped);
    events.resize(count);
    return events;
  }

private:
  const std::vector<Tensor> &all(dmx_io io) const { return io == DMX_INPUT ? ins : outs; }

  uint32_t find(dmx_io io, const Which &which) const {
    const std::vector<Tensor> &tensors = all(io);
    std::string have;
    for (uint32_t i = 0; i < tensors.size(); ++i) {
      if (which.name.empty() ? i == which.index : tensors[i].name == which.name)
        return i;
      have += (have.empty() ? "'" : ", '") + tensors[i].name + "'";
    }
    throw detail::wrong("there is no " + std::string(io == DMX_INPUT ? "input " : "output ") +
                        (which.name.empty() ? std::to_string(which.index) : "'" + std::string(which.name) + "'") +
                        "; there are: " + have);
  }

  template <typename T> static void check(const Tensor &tensor, const char *what) {
    constexpr dmx_dtype given = ElementType<std::remove_cv_t<T>>::value;
    if (given && given != tensor.dtype)
      throw detail::wrong(std::string(what) + " '" + tensor.name + "' is " + dmx_dtype_name(tensor.dtype) +
                          ", not the memory's " + dmx_dtype_name(given));
  }

  template <typename T> void bind(dmx_io io, Which which, std::span<T> data, Dims dims) {
    uint32_t index = find(io, which);
    const Tensor &tensor = all(io)[index];
    check<T>(tensor, io == DMX_INPUT ? "input" : "output");
    if (dims.empty())
      for (const Dim &dim : tensor.dims) {
        if (dim.min != dim.max)
          throw detail::wrong("'" + tensor.name + "' has the open dim '" + dim.name + "': give its dims");
        dims.push_back(dim.min);
      }
    int64_t bytes = dmx_tensor_bytes(tensor.dtype, uint32_t(dims.size()), dims.data());
    if (bytes < 0 || size_t(bytes) != data.size_bytes())
      throw detail::wrong("'" + tensor.name + "' of dims " + detail::textOf(dims) + " has " + std::to_string(bytes) +
                          " bytes, the memory " + std::to_string(data.size_bytes()));
    dmx_tensor_view view = {tensor.dtype, uint32_t(dims.size()), dims.data(),
                            const_cast<void *>(static_cast<const void *>(data.data()))};
    detail::call(dmx_session_bind, handle, io, index, static_cast<const dmx_tensor_view *>(&view));
  }

  dmx_session *handle = nullptr;
  std::vector<Tensor> ins, outs;
};

} // namespace dmx
#endif /* DMX_DMX_HPP */
