//===- RehearsalDevice.cpp - stands in for a device in a rehearsal --------===//

#include "RehearsalDevice.h"
#include "runtime/bundle/Manifest.h"

namespace dmxrt {

Result<const TargetCode *> RehearsalDevice::selectCode(std::span<const TargetCode> codes, std::string_view) const {
  const TargetCode *found = nullptr;
  size_t left = variant;
  for (const TargetCode &code : codes)
    if (code.target == kind.target) {
      found = &code;
      if (left-- == 0)
        break;
    }
  if (!found)
    return badBundle("there is no code for target '", kind.target, "', which tasks of the graph run on");
  return found;
}

Result<std::shared_ptr<const CodeImage>> RehearsalDevice::loadCode(std::span<const std::byte> bytes) {
  auto image = kind.inspect(bytes);
  if (image)
    images.push_back(*image);
  return image;
}

Result<void *> RehearsalDevice::allocate(uint64_t size) {
  // Larger than what any machine maps; sums with offsets inside of it do not overflow.
  constexpr uint64_t kAddresses = uint64_t(1) << 47, kFirst = 4096;
  if (size > kAddresses)
    return fail(DMX_STATUS_OUT_OF_MEMORY, "cannot allocate ", size, " bytes");
  return reinterpret_cast<void *>(kFirst);
}

Status RehearsalDevice::prepare(std::span<const DeviceTask> tasks, std::span<const Segment> segments) {
  for (Segment segment : segments)
    for (const DeviceTask &task : tasks.subspan(segment.begin, segment.end - segment.begin))
      for (const std::shared_ptr<const CodeImage> &image : images)
        if (Status status = task.kernel ? image->checkTask(task) : Status(); !status)
          return status;
  return {};
}

} // namespace dmxrt
