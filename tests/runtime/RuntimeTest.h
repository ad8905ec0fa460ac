//===- RuntimeTest.h - what the runtime's tests share -----------*- C++ -*-===//
#pragma once

#include "BundleBuilder.h"
#include "dmx/dmx.h"

#include <gtest/gtest.h>

#include <memory>
#include <numeric>

namespace dmxtest {

struct CloseBundle {
  void operator()(dmx_bundle *bundle) const { dmx_bundle_close(bundle); }
};
struct DestroySession {
  void operator()(dmx_session *session) const { dmx_session_destroy(session); }
};
using BundlePtr = std::unique_ptr<dmx_bundle, CloseBundle>;
using SessionPtr = std::unique_ptr<dmx_session, DestroySession>;

/// A bundle over its own memory.
struct OpenBundle {
  AlignedBytes bytes;
  BundlePtr bundle;
  dmx_error error = DMX_ERROR_INIT;
  dmx_status status = DMX_OK;

  explicit OpenBundle(std::string_view text) : bytes(text) {
    dmx_bundle *opened = nullptr;
    status = dmx_bundle_open_memory(bytes.get(), bytes.size(), &opened, &error);
    bundle.reset(opened);
  }
  explicit OpenBundle(const TestBundle &model) : OpenBundle(model.zip()) {}
  dmx_bundle *get() { return bundle.get(); }
};

/// A session with `threads` threads; fails the test when there is none.
inline SessionPtr makeSession(const dmx_bundle *bundle, uint32_t threads = 1,
                              dmx_session_options options = DMX_SESSION_OPTIONS_INIT) {
  dmx_error error = DMX_ERROR_INIT;
  dmx_session *session = nullptr;
  options.threads = threads;
  EXPECT_EQ(dmx_session_create(bundle, nullptr, &options, &session, &error), DMX_OK) << error.message;
  return SessionPtr(session);
}

template <typename T> struct DTypeOf;
template <> struct DTypeOf<float> {
  static constexpr dmx_dtype value = DMX_DTYPE_F32;
};
template <> struct DTypeOf<int32_t> {
  static constexpr dmx_dtype value = DMX_DTYPE_I32;
};
template <> struct DTypeOf<int64_t> {
  static constexpr dmx_dtype value = DMX_DTYPE_I64;
};

/// Binds a vector; returns the status and leaves the sentence in `error`.
template <typename T>
dmx_status bindVector(dmx_session *session, dmx_io io, uint32_t index, std::vector<T> &data, std::vector<int64_t> dims,
                      dmx_error *error = nullptr) {
  dmx_tensor_view view{DTypeOf<T>::value, static_cast<uint32_t>(dims.size()), dims.data(), data.data()};
  return dmx_session_bind(session, io, index, &view, error);
}

/// What a run left in an output of the session's; also its shape when `dims` is given.
template <typename T>
std::vector<T> takeOutput(dmx_session *session, uint32_t index, std::vector<int64_t> *dims = nullptr) {
  dmx_error error = DMX_ERROR_INIT;
  dmx_tensor_view view{};
  EXPECT_EQ(dmx_session_output(session, index, &view, &error), DMX_OK) << error.message;
  if (view.dtype != DTypeOf<T>::value)
    return {};
  if (dims)
    dims->assign(view.dims, view.dims + view.rank);
  size_t count = static_cast<size_t>(dmx_tensor_bytes(view.dtype, view.rank, view.dims)) / sizeof(T);
  const T *data = static_cast<const T *>(view.data);
  return std::vector<T>(data, data + count);
}

template <typename T> std::vector<T> iota(size_t count, T first = 0) {
  std::vector<T> values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

/// That a bundle is refused with this status and a sentence that has `part`.
inline void expectRefused(const TestBundle &model, dmx_status status, const std::string &part) {
  OpenBundle open(model);
  EXPECT_EQ(open.status, status) << open.error.message;
  EXPECT_EQ(open.error.status, open.status);
  EXPECT_NE(std::string(open.error.message).find(part), std::string::npos)
      << "message: " << open.error.message << "\nexpected part: " << part;
}

} // namespace dmxtest
