//===- CApi.cpp - the functions of dmx.h ----------------------------------===//
//
// Those of bundles; CApiSession.cpp has those of sessions. Arguments are checked and exceptions stopped here; the work
// is in Bundle and Session. dtype functions are in DType.cpp.
//
//===----------------------------------------------------------------------===//

#include "CApi.h"

#include <algorithm>
#include <set>

using namespace dmxrt;
using namespace dmxrt::capi;

dmx_status capi::report(dmx_error *error, dmx_status status, std::string_view message) {
  constexpr size_t kMessageOffset = offsetof(dmx_error, message);
  if (!error)
    return status;
  if (error->struct_size >= kMessageOffset)
    error->status = status;
  if (error->struct_size > kMessageOffset) {
    size_t room = std::min(error->struct_size - kMessageOffset, sizeof error->message);
    size_t length = std::min(message.size(), room - 1);
    // A sentence cut in the middle of a UTF-8 character would not be text.
    if (length < message.size())
      while (length && (static_cast<unsigned char>(message[length]) & 0xC0) == 0x80)
        --length;
    std::memcpy(error->message, message.data(), length);
    error->message[length] = '\0';
  }
  return status;
}

Error capi::noEntryPoint(const Bundle &bundle, const char *name) {
  std::string names;
  for (const Signature &signature : bundle.signatures())
    names += cat(names.empty() ? "'" : ", '", signature.name, "'");
  return fail(DMX_STATUS_INVALID_ARGUMENT, "the bundle has no entry point '", name, "'; it has ", names);
}

namespace {

/// Refuses a bundle that names code of users.
Status refuseUserCode(const Manifest &manifest) {
  if (manifest.userCode.empty())
    return {};
  std::set<std::string> kernels(manifest.userCode.begin(), manifest.userCode.end());
  std::string names;
  for (const std::string &kernel : kernels)
    names += cat(names.empty() ? "'" : ", '", kernel, "'");
  return fail(DMX_STATUS_UNTRUSTED, "the bundle has code that a user wrote (kernels ", names,
              "), and DMX_BUNDLE_NO_USER_CODE refuses it; open it without, or compile the model without --kernels");
}

Status openArchive(Result<Archive> archive, const Trust &trust, uint32_t flags, dmx_bundle **bundle) {
  if (!archive)
    return archive.takeError();
  auto opened = Bundle::open(std::move(*archive), trust);
  if (!opened)
    return opened.takeError();
  if (flags & DMX_BUNDLE_NO_USER_CODE)
    if (Status status = refuseUserCode((*opened)->manifest()); !status)
      return status;
  if (flags & DMX_BUNDLE_CONTRACTS)
    if (Status status = (*opened)->requireContracts(); !status)
      return status;
  *bundle = new dmx_bundle{std::move(*opened)};
  return {};
}

Status readOptions(const dmx_bundle_options *given, dmx_bundle_options &options, Trust &trust) {
  options = DMX_BUNDLE_OPTIONS_INIT;
  if (Status status = copyIn(given, options, "DMX_BUNDLE_OPTIONS_INIT"); !status)
    return status;
  if (options.flags & ~uint32_t(DMX_BUNDLE_COPY | DMX_BUNDLE_CONTRACTS | DMX_BUNDLE_NO_USER_CODE))
    return fail(DMX_STATUS_UNSUPPORTED, "options->flags has a bit that this runtime (", dmx_version_string(),
                ") does not know; use a newer one");
  if (Status status = readTrust(options, trust); !status)
    return status;
  if (trust.isAsked())
    options.flags |= DMX_BUNDLE_COPY;
  return {};
}

/// The common end of the open functions; `make` returns a Result<Archive> for a Load.
template <typename Make>
dmx_status openWith(std::string_view what, const dmx_bundle_options *given, dmx_bundle **bundle, dmx_error *error,
                    Make make) {
  return guarded(error, [&]() -> Status {
    if (!bundle)
      return isNull("bundle");
    dmx_bundle_options options;
    Trust trust;
    if (Status status = readOptions(given, options, trust); !status)
      return status;
    Load load = options.flags & DMX_BUNDLE_COPY ? Load::Copy : Load::Map;
    if (Status status = openArchive(make(load), trust, options.flags, bundle); !status)
      return within(what, status.takeError());
    return {};
  });
}

const std::vector<Signature::Tensor> *tensorsOf(const Signature &signature, dmx_io io) {
  return io == DMX_INPUT ? &signature.inputs : io == DMX_OUTPUT ? &signature.outputs : nullptr;
}

std::string_view ioName(dmx_io io) { return io == DMX_INPUT ? "input" : "output"; }

/// Entry point and list of an (entry point, io) pair.
Status lookUp(const dmx_bundle *bundle, const char *entryPoint, dmx_io io,
              const std::vector<Signature::Tensor> *&list) {
  if (!bundle)
    return isNull("bundle");
  const Signature *signature = bundle->impl->findSignature(entryPoint);
  if (!signature)
    return noEntryPoint(*bundle->impl, entryPoint);
  list = tensorsOf(*signature, io);
  if (!list)
    return fail(DMX_STATUS_INVALID_ARGUMENT, "argument io is ", io, ", neither DMX_INPUT nor DMX_OUTPUT");
  return {};
}

Status checkIndex(uint32_t index, size_t count, dmx_io io) {
  if (index >= count)
    return fail(DMX_STATUS_INVALID_ARGUMENT, ioName(io), " ", index, " does not exist; the entry point has ", count);
  return {};
}

} // namespace

uint32_t dmx_version(void) { return DMX_VERSION_MAJOR * 1000000 + DMX_VERSION_MINOR * 1000 + DMX_VERSION_PATCH; }

#define DMX_TEXT(x) #x
#define DMX_VERSION_TEXT(a, b, c) DMX_TEXT(a) "." DMX_TEXT(b) "." DMX_TEXT(c)
const char *dmx_version_string(void) {
  return DMX_VERSION_TEXT(DMX_VERSION_MAJOR, DMX_VERSION_MINOR, DMX_VERSION_PATCH);
}

const char *dmx_status_name(dmx_status status) {
  static constexpr const char *kNames[] = {"ok",
                                           "invalid argument",
                                           "input/output error",
                                           "invalid bundle",
                                           "checksum mismatch",
                                           "unsupported",
                                           "out of memory",
                                           "not ready",
                                           "busy",
                                           "kernel error",
                                           "internal error",
                                           "shape unknown",
                                           "untrusted"};
  return status >= 0 && static_cast<size_t>(status) < std::size(kNames) ? kNames[status] : "unknown status";
}

dmx_status dmx_bundle_check_header(const char *path, dmx_error *error) {
  return guarded(error, [&]() -> Status {
    if (!path)
      return isNull("path");
    auto archive = Archive::openPath(path, Load::Map);
    if (!archive)
      return within(path, archive.takeError());
    if (auto manifest = Bundle::checkHeader(*archive); !manifest)
      return within(path, manifest.takeError());
    return {};
  });
}

dmx_status dmx_bundle_open(const char *path, dmx_bundle **bundle, dmx_error *error) {
  return dmx_bundle_open_with(path, nullptr, bundle, error);
}

dmx_status dmx_bundle_open_with(const char *path, const dmx_bundle_options *options, dmx_bundle **bundle,
                                dmx_error *error) {
  return openWith(path ? path : "bundle", options, bundle, error, [&](Load load) -> Result<Archive> {
    if (!path)
      return isNull("path");
    return Archive::openPath(path, load);
  });
}

dmx_status dmx_bundle_open_memory(const void *data, size_t size, dmx_bundle **bundle, dmx_error *error) {
  return dmx_bundle_open_memory_with(data, size, nullptr, bundle, error);
}

dmx_status dmx_bundle_open_memory_with(const void *data, size_t size, const dmx_bundle_options *options,
                                       dmx_bundle **bundle, dmx_error *error) {
  return openWith("bundle in memory", options, bundle, error, [&](Load load) -> Result<Archive> {
    if (!data)
      return isNull("data");
    std::span<const std::byte> bytes(static_cast<const std::byte *>(data), size);
    if (load == Load::Map)
      return Archive::openMemory(bytes, nullptr);
    auto copy = Mapping::copyOf(bytes, "bundle in memory");
    if (!copy)
      return copy.takeError();
    return Archive::openMemory((*copy)->bytes(), *copy, Load::Copy);
  });
}

dmx_status dmx_bundle_open_fd(int fd, uint64_t offset, uint64_t size, dmx_bundle **bundle, dmx_error *error) {
  return dmx_bundle_open_fd_with(fd, offset, size, nullptr, bundle, error);
}

dmx_status dmx_bundle_open_fd_with(int fd, uint64_t offset, uint64_t size, const dmx_bundle_options *options,
                                   dmx_bundle **bundle, dmx_error *error) {
  return openWith("bundle in a file descriptor", options, bundle, error, [&](Load load) -> Result<Archive> {
    if (offset % 64)
      return fail(DMX_STATUS_INVALID_ARGUMENT, "offset ", offset, " is not a multiple of 64");
    auto mapping = Mapping::openDescriptor(fd, offset, size, load, cat("file descriptor ", fd));
    if (!mapping)
      return mapping.takeError();
    return Archive::openMemory((*mapping)->bytes(), *mapping, load);
  });
}

void dmx_bundle_close(dmx_bundle *bundle) { delete bundle; }

const char *dmx_bundle_describe(const dmx_bundle *bundle) { return bundle ? bundle->impl->manifestText() : nullptr; }

const char *dmx_bundle_metadata(const dmx_bundle *bundle, const char *key) {
  if (!bundle || !key)
    return nullptr;
  const auto &metadata = bundle->impl->manifest().metadata;
  auto found = std::find_if(metadata.rbegin(), metadata.rend(), [&](const auto &pair) { return pair.first == key; });
  return found == metadata.rend() ? nullptr : found->second.c_str();
}

dmx_status dmx_bundle_verify(const dmx_bundle *bundle, dmx_error *error) {
  return guarded(error, [&]() -> Status { return bundle ? bundle->impl->verify() : Status(isNull("bundle")); });
}

dmx_status dmx_bundle_entry(const dmx_bundle *bundle, const char *name, const void **data, size_t *size,
                            dmx_error *error) {
  return guarded(error, [&]() -> Status {
    if (!bundle || !name || !data || !size)
      return isNull("bundle, name, data or size");
    const Archive::Entry *entry = bundle->impl->archive().find(name);
    if (!entry)
      return fail(DMX_STATUS_INVALID_ARGUMENT, "the bundle has no entry '", name, "'");
    *data = entry->data.data();
    *size = entry->data.size();
    return {};
  });
}

uint32_t dmx_bundle_code_count(const dmx_bundle *bundle) {
  return bundle ? static_cast<uint32_t>(bundle->impl->manifest().targets.size()) : 0;
}

dmx_status dmx_bundle_code_info(const dmx_bundle *bundle, uint32_t index, dmx_code_info *info, dmx_error *error) {
  return guarded(error, [&]() -> Status {
    if (!bundle || !info)
      return isNull(bundle ? "info" : "bundle");
    if (index >= dmx_bundle_code_count(bundle))
      return fail(DMX_STATUS_INVALID_ARGUMENT, "code object ", index, " does not exist; there are ",
                  dmx_bundle_code_count(bundle));
    const TargetCode &code = bundle->impl->manifest().targets[index];
    dmx_code_info out{0, code.target.c_str(), code.arch.c_str(), code.entry.c_str(), 0};
    if (Status status = bundle->impl->hasContracts(code, out.contracts); !status)
      return status;
    return copyOut(out, info);
  });
}

uint32_t dmx_bundle_entry_point_count(const dmx_bundle *bundle) {
  return bundle ? static_cast<uint32_t>(bundle->impl->signatures().size()) : 0;
}

const char *dmx_bundle_entry_point_name(const dmx_bundle *bundle, uint32_t index) {
  return bundle && index < bundle->impl->signatures().size() ? bundle->impl->signatures()[index].name.c_str() : nullptr;
}

uint32_t dmx_bundle_tensor_count(const dmx_bundle *bundle, const char *entry_point, dmx_io io) {
  const Signature *signature = bundle ? bundle->impl->findSignature(entry_point) : nullptr;
  const auto *list = signature ? tensorsOf(*signature, io) : nullptr;
  return list ? static_cast<uint32_t>(list->size()) : 0;
}

dmx_status dmx_bundle_tensor_info(const dmx_bundle *bundle, const char *entry_point, dmx_io io, uint32_t index,
                                  dmx_tensor_info *info, dmx_error *error) {
  return guarded(error, [&]() -> Status {
    const std::vector<Signature::Tensor> *list = nullptr;
    if (Status status = lookUp(bundle, entry_point, io, list); !status)
      return status;
    if (Status status = checkIndex(index, list->size(), io); !status)
      return status;
    const Signature::Tensor &tensor = (*list)[index];
    return copyOut(dmx_tensor_info{0, tensor.name.c_str(), tensor.dtype, static_cast<uint32_t>(tensor.dims.size()),
                                   tensor.dims.data(),
                                   tensor.description.empty() ? nullptr : tensor.description.c_str()},
                   info);
  });
}

dmx_status dmx_bundle_find_tensor(const dmx_bundle *bundle, const char *entry_point, dmx_io io, const char *name,
                                  uint32_t *index, dmx_error *error) {
  return guarded(error, [&]() -> Status {
    const std::vector<Signature::Tensor> *list = nullptr;
    if (Status status = lookUp(bundle, entry_point, io, list); !status)
      return status;
    if (!name || !index)
      return isNull("name or index");
    std::string names;
    for (size_t i = 0; i < list->size(); ++i) {
      if ((*list)[i].name == name) {
        *index = static_cast<uint32_t>(i);
        return {};
      }
      names += cat(names.empty() ? "'" : ", '", (*list)[i].name, "'");
    }
    return fail(DMX_STATUS_INVALID_ARGUMENT, "there is no ", ioName(io), " '", name, "'; there are ",
                names.empty() ? "none" : names);
  });
}

dmx_status dmx_bundle_rehearse(const dmx_bundle *bundle, const char *entry_point, const dmx_tensor_view *inputs,
                               uint32_t count, dmx_error *error) {
  return guarded(error, [&]() -> Status {
    if (!bundle || (!inputs && count))
      return isNull(bundle ? "inputs" : "bundle");
    const Signature *signature = bundle->impl->findSignature(entry_point);
    return signature ? Session::rehearse(bundle->impl, *signature, {inputs, count})
                     : Status(noEntryPoint(*bundle->impl, entry_point));
  });
}
