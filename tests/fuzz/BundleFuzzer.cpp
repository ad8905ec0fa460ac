//===- BundleFuzzer.cpp - hostile bundles ---------------------------------===//
//
// The first byte of an input says what the rest is: checksums are made right around JSON and code, or else no mutation
// would get past them.
//
//===----------------------------------------------------------------------===//

#include "Engine.h"
#include "SampleModels.h"
#include "dmx/dmx.h"
#include "runtime/devices/cpu/ElfImage.h"

#if DMXC_SIGNATURES
#include "bundle/TestKey.h"
#endif

#include <algorithm>
#include <cstring>
#include <iterator>
#include <random>

using namespace dmxtest;
using dmxfuzz::promise;

namespace {

enum Kind : uint8_t { Archive, Graph, Manifest, Code, Control, Signed, KindCount };

/// Gives up early, so that hostile sizes do not fill the machine.
void *smallAllocate(void *, size_t size, size_t alignment) {
  void *memory = nullptr;
  if (size > (32u << 20) || posix_memalign(&memory, alignment, size) != 0)
    return nullptr;
  return memory;
}

void smallRelease(void *, void *memory, size_t) { std::free(memory); }

/// A refusal must come with a status of its own and a sentence.
bool accepted(dmx_status status, const dmx_error &error) {
  promise(status == error.status, "the status is also in the error");
  promise(status != DMX_STATUS_INTERNAL, "no internal error");
  promise((status == DMX_OK) == (error.message[0] == 0), "a sentence comes with a failure and only then");
  return status == DMX_OK;
}

/// Everything short of running kernels, which a hostile graph may lie to.
void useSession(dmx_session *session, dmx_bundle *bundle) {
  dmx_error error = DMX_ERROR_INIT;
  alignas(64) static float data[4096];
  for (dmx_io io : {DMX_INPUT, DMX_OUTPUT})
    for (uint32_t i = 0; i < dmx_bundle_tensor_count(bundle, nullptr, io); ++i) {
      dmx_tensor_info info{};
      info.struct_size = sizeof info;
      if (!accepted(dmx_bundle_tensor_info(bundle, nullptr, io, i, &info, &error), error))
        continue;
      int64_t dims[DMX_MAX_RANK];
      uint32_t rank = 0;
      for (uint32_t axis = 0; axis < info.rank; ++axis)
        dims[axis] = info.dims[axis].min + (info.dims[axis].min < info.dims[axis].max);
      int64_t bytes = dmx_tensor_bytes(info.dtype, info.rank, dims);
      dmx_tensor_view view{info.dtype, info.rank, dims, data};
      if (bytes >= 0 && bytes <= int64_t(sizeof data))
        accepted(dmx_session_bind(session, io, i, &view, &error), error);
      accepted(dmx_session_shape(session, io, i, dims, DMX_MAX_RANK, &rank, &error), error);
    }
  dmx_session_info info{};
  info.struct_size = sizeof info;
  accepted(dmx_session_get_info(session, &info, &error), error);
}

void useBundle(const std::string &text) {
  AlignedBytes bytes(text);
  dmx_error error = DMX_ERROR_INIT;
  dmx_bundle *bundle = nullptr;
  if (!accepted(dmx_bundle_open_memory(bytes.get(), bytes.size(), &bundle, &error), error))
    return;
  accepted(dmx_bundle_verify(bundle, &error), error);
  dmx_allocator allocator{nullptr, smallAllocate, smallRelease};
  dmx_session_options options = DMX_SESSION_OPTIONS_INIT;
  options.threads = 1;
  options.allocator = &allocator;
  dmx_session *session = nullptr;
  if (accepted(dmx_session_create(bundle, nullptr, &options, &session, &error), error))
    useSession(session, bundle);
  dmx_session_destroy(session);
  dmx_bundle_close(bundle);
}

#if DMXC_SIGNATURES
const TestKey &trustedKey() {
  static const TestKey key(1);
  return key;
}

/// Of all texts one is a signature of the bundle by the trusted key.
void useSignature(TestBundle model, const std::string &text) {
  model.signature = text.empty() ? " " : text;
  AlignedBytes bytes(model.zip());
  dmx_bundle_options options = DMX_BUNDLE_OPTIONS_INIT;
  options.trusted_keys = trustedKey().key.data();
  options.trusted_key_count = 1;
  for (bool detached : {false, true}) {
    dmx_error error = DMX_ERROR_INIT;
    dmx_bundle *bundle = nullptr;
    options.signature = detached ? text.data() : nullptr;
    options.signature_size = detached ? text.size() : 0;
    bool opened = accepted(dmx_bundle_open_memory_with(bytes.get(), bytes.size(), &options, &bundle, &error), error);
    promise(opened == (text == trustedKey().sign(model)), "the signature is accepted and nothing else");
    dmx_bundle_close(bundle);
  }
}
#endif

/// One to four changes of the kinds that break readers.
std::string mutate(std::string text, std::mt19937_64 &random) {
  static const std::string words[] = {"-1",
                                      "0",
                                      "9223372036854775807",
                                      "-9223372036854775808",
                                      "18446744073709551615",
                                      "1e999",
                                      "null",
                                      "[]",
                                      "{}",
                                      "\"n\"",
                                      "[\"broadcast\",\"n\",3]",
                                      "[\"floordiv\",1,0]",
                                      "[\"mul\",9223372036854775807,\"n\"]",
                                      "\"\\u0000\"",
                                      "\xff",
                                      "4294967296",
                                      "dmx-bundle-signature 2\n",
                                      "\nkey ",
                                      "true"};
  for (uint64_t changes = 1 + random() % 4; changes && text.size() > 1; --changes) {
    // Mostly near the ends, where headers are.
    size_t size = text.size() - 1, at = random() % size;
    if (random() % 2)
      at = random() % 2 ? at % 600 % size : size - 1 - at % 900 % size;
    ++at; // the kind stays
    switch (random() % 7) {
    case 0:
      text[at] = static_cast<char>(text[at] ^ (1 << random() % 8));
      break;
    case 1:
      text[at] = static_cast<char>(random());
      break;
    case 2: { // a number in place
      uint64_t number = uint64_t(0) - random() % 3;
      number = random() % 2 ? number : uint64_t(1) << random() % 64;
      size_t width = size_t(1) << random() % 4;
      std::memcpy(text.data() + at, &number, std::min(width, text.size() - at));
      break;
    }
    case 3:
      text.erase(at, 1 + random() % 40);
      break;
    case 4:
      text.insert(at, text.substr(1 + random() % size, random() % 40));
      break;
    case 5: { // a number in JSON
      size_t digit = text.find_first_of("0123456789\"", at);
      size_t end = digit == std::string::npos ? digit : text.find_first_of(",]}:", digit);
      if (end != std::string::npos)
        text.replace(digit, end - digit, words[random() % std::size(words)]);
      break;
    }
    default:
      text.resize(1 + random() % text.size());
    }
  }
  return text;
}

} // namespace

std::vector<std::string> dmxfuzz::builtInSeeds() {
  TestBundle model = everyBuffer(), control = everyControl();
  auto tagged = [](Kind kind, const std::string &text) { return std::string(1, static_cast<char>(kind)) + text; };
  std::string manifest;
  {
    AlignedBytes bytes(model.zip());
    dmx_bundle *bundle = nullptr;
    promise(dmx_bundle_open_memory(bytes.get(), bytes.size(), &bundle, nullptr) == DMX_OK, "the seed is valid");
    manifest = dmx_bundle_describe(bundle);
    dmx_bundle_close(bundle);
  }
  std::vector<std::string> seeds = {tagged(Archive, model.zip()),         tagged(Graph, model.graph.dump()),
                                    tagged(Manifest, manifest),           tagged(Code, kernelObject()),
                                    tagged(Code, kernelObject("-sysv")),  tagged(Archive, control.zip()),
                                    tagged(Control, control.graph.dump())};
#if DMXC_SIGNATURES
  model.signature = trustedKey().sign(model);
  seeds.push_back(tagged(Archive, model.zip()));
  seeds.push_back(tagged(Signed, model.signature));
#endif
  return seeds;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0)
    return 0;
  std::string text(reinterpret_cast<const char *>(data) + 1, size - 1);
  TestBundle model = everyBuffer();
  switch (data[0] % KindCount) {
  case Archive:
    useBundle(text);
    break;
  case Graph:
    model.graphText = text.empty() ? " " : text;
    useBundle(model.zip());
    break;
  case Control:
    model = everyControl();
    model.graphText = text.empty() ? " " : text;
    useBundle(model.zip());
    break;
  case Manifest:
    model.manifestText = text.empty() ? " " : text;
    useBundle(model.zip());
    break;
  case Signed:
#if DMXC_SIGNATURES
    useSignature(model, text);
#endif
    break;
  default: // never run: a hostile object is hostile code
    AlignedBytes bytes(text);
    int32_t contracts = 0;
    (void)dmxrt::ElfImage::check({bytes.get(), bytes.size()}, contracts);
  }
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t capacity, unsigned seed) {
  std::mt19937_64 random(seed);
  std::string text = mutate(std::string(reinterpret_cast<char *>(data), size), random);
  text.resize(std::min(text.size(), capacity));
  std::memcpy(data, text.data(), text.size());
  return text.size();
}
