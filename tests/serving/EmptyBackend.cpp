//===- EmptyBackend.cpp - a backend of Triton that computes nothing -------===//
//
// Answers a request with the bytes of its first input as each output that it asks for. What the server takes with it,
// in memory and time, is the server's own share of what it takes with any other.
//
//===----------------------------------------------------------------------===//
#include "triton/core/tritonbackend.h"

#include <cstddef>
#include <cstring>

namespace {

TRITONSERVER_Error *echo(TRITONBACKEND_Request *request, TRITONBACKEND_Response *response) {
  TRITONBACKEND_Input *input = nullptr;
  TRITONSERVER_DataType type = TRITONSERVER_TYPE_INVALID;
  const int64_t *shape = nullptr;
  uint32_t rank = 0, pieces = 0, outputs = 0;
  uint64_t bytes = 0;
  TRITONSERVER_Error *error = TRITONBACKEND_RequestInputByIndex(request, 0, &input);
  if (!error)
    error = TRITONBACKEND_InputProperties(input, nullptr, &type, &shape, &rank, &bytes, &pieces);
  if (!error)
    error = TRITONBACKEND_RequestOutputCount(request, &outputs);
  for (uint32_t i = 0; !error && i < outputs; ++i) {
    const char *name = nullptr;
    TRITONBACKEND_Output *output = nullptr;
    void *to = nullptr;
    TRITONSERVER_MemoryType kind = TRITONSERVER_MEMORY_CPU;
    int64_t id = 0;
    error = TRITONBACKEND_RequestOutputName(request, i, &name);
    if (!error)
      error = TRITONBACKEND_ResponseOutput(response, &output, name, type, shape, rank);
    if (!error)
      error = TRITONBACKEND_OutputBuffer(output, &to, bytes, &kind, &id);
    for (uint32_t piece = 0; !error && piece < pieces; ++piece) {
      const void *from = nullptr;
      uint64_t size = 0;
      error = TRITONBACKEND_InputBuffer(input, piece, &from, &size, &kind, &id);
      if (!error) {
        std::memcpy(to, from, size);
        to = static_cast<std::byte *>(to) + size;
      }
    }
  }
  return error;
}

void drop(TRITONSERVER_Error *error) {
  if (error)
    TRITONSERVER_ErrorDelete(error);
}

} // namespace

extern "C" __attribute__((visibility("default"))) TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance *, TRITONBACKEND_Request **requests, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    TRITONBACKEND_Response *response = nullptr;
    drop(TRITONBACKEND_ResponseNew(&response, requests[i]));
    if (response) {
      TRITONSERVER_Error *error = echo(requests[i], response);
      drop(TRITONBACKEND_ResponseSend(response, TRITONSERVER_RESPONSE_COMPLETE_FINAL, error));
      drop(error);
    }
    drop(TRITONBACKEND_RequestRelease(requests[i], TRITONSERVER_REQUEST_RELEASE_ALL));
  }
  return nullptr;
}
