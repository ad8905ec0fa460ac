//===- CApiSession.cpp - the functions of dmx.h on sessions ---------------===//

#include "CApi.h"

using namespace dmxrt;
using namespace dmxrt::capi;

namespace {

/// The same as `guarded` for calls on a session: only one at a time gets in.
/// `after` is the state a successful call leaves behind.
template <typename Body>
dmx_status inSession(dmx_session *session, dmx_error *error, Body body, uint32_t after = Session::Idle) {
  if (!session)
    return report(error, DMX_STATUS_INVALID_ARGUMENT, "argument session is NULL");
  uint32_t expected = Session::Idle;
  if (!session->impl->state.compare_exchange_strong(expected, Session::InCall))
    return report(error, DMX_STATUS_BUSY,
                  expected == Session::InFlight ? "the session has an async run in flight; call dmx_session_wait first"
                                                : "the session is in use by another thread; make one session a thread");
  dmx_status status = guarded(error, [&] { return body(*session->impl); });
  session->impl->state.store(status == DMX_OK ? after : uint32_t(Session::Idle));
  return status;
}

Status readOptions(const dmx_session_options *given, dmx_session_options &options, DeviceOptions &out) {
  options = DMX_SESSION_OPTIONS_INIT;
  if (Status status = copyIn(given, options, "DMX_SESSION_OPTIONS_INIT"); !status)
    return status;
  out.threads = options.threads;
  out.isa = options.isa ? options.isa : "";
  out.allocator = options.allocator;
  out.executor = options.executor;
  if (options.flags & ~DMX_SESSION_SIMULATE)
    return fail(DMX_STATUS_INVALID_ARGUMENT, "options->flags has bits that are not known here; use DMX_SESSION_*");
  out.simulates = options.flags & DMX_SESSION_SIMULATE;
  if (out.allocator && (!out.allocator->allocate || !out.allocator->release))
    return isNull("allocator->allocate or allocator->release");
  if (out.executor && !out.executor->parallel)
    return isNull("executor->parallel");
  for (uint32_t i = 0; i < options.device_option_count; ++i) {
    if (!options.device_options || !options.device_options[i])
      return isNull(cat("options->device_options[", i, "]"));
    out.settings.push_back(options.device_options[i]);
  }
  return {};
}

} // namespace

dmx_status dmx_session_create(const dmx_bundle *bundle, const char *entry_point, const dmx_session_options *options,
                              dmx_session **session, dmx_error *error) {
  return guarded(error, [&]() -> Status {
    if (!bundle || !session)
      return isNull("bundle or session");
    const Signature *signature = bundle->impl->findSignature(entry_point);
    if (!signature)
      return noEntryPoint(*bundle->impl, entry_point);
    dmx_session_options copy;
    DeviceOptions deviceOptions;
    if (Status status = readOptions(options, copy, deviceOptions); !status)
      return status;
    auto made = Session::create(bundle->impl, *signature, deviceOptions);
    if (!made)
      return made.takeError();
    *session = new dmx_session{std::move(*made)};
    return {};
  });
}

void dmx_session_destroy(dmx_session *session) { delete session; }

dmx_status dmx_session_bind(dmx_session *session, dmx_io io, uint32_t index, const dmx_tensor_view *view,
                            dmx_error *error) {
  return inSession(session, error, [&](Session &impl) -> Status {
    if (!view)
      return isNull("view");
    if (Status status = impl.checkTensor(io, index); !status)
      return status;
    return impl.bind(io, index, *view);
  });
}

dmx_status dmx_session_bind_strided(dmx_session *session, dmx_io io, uint32_t index, const dmx_tensor_view *view,
                                    const int64_t *strides, dmx_error *error) {
  return inSession(session, error, [&](Session &impl) -> Status {
    if (!view || (!strides && view->rank))
      return isNull("view or strides");
    if (Status status = impl.checkTensor(io, index); !status)
      return status;
    return impl.bind(io, index, *view, strides);
  });
}

dmx_status dmx_session_unbind(dmx_session *session, dmx_io io, uint32_t index, dmx_error *error) {
  return inSession(session, error, [&](Session &impl) -> Status {
    if (Status status = impl.checkTensor(io, index); !status)
      return status;
    impl.unbind(io, index);
    return {};
  });
}

dmx_status dmx_session_output(dmx_session *session, uint32_t index, dmx_tensor_view *view, dmx_error *error) {
  return inSession(session, error, [&](Session &impl) -> Status {
    if (!view)
      return isNull("view");
    if (Status status = impl.checkTensor(DMX_OUTPUT, index); !status)
      return status;
    return impl.output(index, *view);
  });
}

dmx_status dmx_session_shape(dmx_session *session, dmx_io io, uint32_t index, int64_t *dims, uint32_t capacity,
                             uint32_t *rank, dmx_error *error) {
  return inSession(session, error, [&](Session &impl) -> Status {
    if (!rank)
      return isNull("rank");
    if (Status status = impl.checkTensor(io, index); !status)
      return status;
    return impl.shape(io, index, dims, capacity, *rank);
  });
}

dmx_status dmx_session_run(dmx_session *session, dmx_error *error) {
  return inSession(session, error, [](Session &impl) { return impl.run(); });
}

dmx_status dmx_session_run_async(dmx_session *session, dmx_error *error) {
  return inSession(session, error, [](Session &impl) { return impl.startAsync(); }, Session::InFlight);
}

dmx_status dmx_session_wait(dmx_session *session, dmx_error *error) {
  if (!session)
    return report(error, DMX_STATUS_INVALID_ARGUMENT, "argument session is NULL");
  uint32_t expected = Session::InFlight;
  if (!session->impl->state.compare_exchange_strong(expected, Session::InCall))
    return expected == Session::Idle
               ? report(error, DMX_STATUS_NOT_READY, "no async run is in flight; call dmx_session_run_async first")
               : report(error, DMX_STATUS_BUSY, "the session is in use by another thread");
  dmx_status status = guarded(error, [&] { return session->impl->finishAsync(); });
  session->impl->state.store(Session::Idle);
  return status;
}

dmx_status dmx_session_reset_state(dmx_session *session, dmx_error *error) {
  return inSession(session, error, [](Session &impl) {
    impl.resetState();
    return Status();
  });
}

dmx_status dmx_session_state_length(dmx_session *session, const char *name, int64_t *length, int64_t *capacity,
                                    dmx_error *error) {
  return inSession(session, error, [&](Session &impl) -> Status {
    int64_t rows = 0, room = 0;
    if (Status status = impl.stateLength(name, rows, room); !status)
      return status;
    if (length)
      *length = rows;
    if (capacity)
      *capacity = room;
    return {};
  });
}

dmx_status dmx_session_state_truncate(dmx_session *session, const char *name, int64_t length, dmx_error *error) {
  return inSession(session, error, [&](Session &impl) { return impl.truncateStates(name, length); });
}

dmx_status dmx_session_state_copy(dmx_session *to, dmx_session *from, dmx_error *error) {
  if (to == from && to)
    return report(error, DMX_STATUS_INVALID_ARGUMENT, "arguments to and from are one session");
  return inSession(to, error, [&](Session &impl) -> Status {
    Status status;
    dmx_error inner = DMX_ERROR_INIT;
    dmx_status code = inSession(from, &inner, [&](Session &source) { return impl.copyStates(source); });
    return code == DMX_OK ? status : Status(Error{code, inner.message});
  });
}

dmx_status dmx_session_state_save(dmx_session *session, void *data, size_t *size, dmx_error *error) {
  return inSession(session, error, [&](Session &impl) -> Status {
    if (!size)
      return isNull("size");
    return impl.saveStates(static_cast<std::byte *>(data), *size);
  });
}

dmx_status dmx_session_state_load(dmx_session *session, const void *data, size_t size, dmx_error *error) {
  return inSession(session, error, [&](Session &impl) -> Status {
    if (!data)
      return isNull("data");
    return impl.loadStates({static_cast<const std::byte *>(data), size});
  });
}

dmx_status dmx_session_get_info(dmx_session *session, dmx_session_info *info, dmx_error *error) {
  return inSession(session, error, [&](Session &impl) {
    dmx_session_info full{};
    impl.info(full);
    return copyOut(full, info);
  });
}

dmx_status dmx_session_task_info(dmx_session *session, uint32_t task, dmx_task_info *info, dmx_error *error) {
  return inSession(session, error, [&](Session &impl) -> Status {
    dmx_task_info full{};
    if (Status status = impl.taskInfo(task, full); !status)
      return status;
    return copyOut(full, info);
  });
}

dmx_status dmx_session_profile(dmx_session *session, uint32_t capacity, dmx_error *error) {
  return inSession(session, error, [&](Session &impl) { return impl.profile(capacity); });
}

dmx_status dmx_session_take_events(dmx_session *session, dmx_profile_event *events, uint32_t capacity, uint32_t *count,
                                   uint64_t *dropped, dmx_error *error) {
  return inSession(session, error, [&](Session &impl) -> Status {
    if (!count)
      return isNull("count");
    uint64_t lost = 0;
    impl.takeEvents(events, capacity, *count, lost);
    if (dropped)
      *dropped = lost;
    return {};
  });
}
