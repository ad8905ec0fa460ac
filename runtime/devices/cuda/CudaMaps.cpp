//===- CudaMaps.cpp - tensor maps of a launch table ---------------------------===//
//
// What a map says may depend on the task's dims. What does not is checked when the entry is loaded, the rest with each
// task.
//
//===----------------------------------------------------------------------===//

#include "CudaImage.h"

#include "schemas/Size.h"

#include <algorithm>

namespace dmxrt::cuda {
namespace {

/// One number an axis into `out`; `first`: the axis that the list begins with.
bool readNumbers(JsonCursor list, uint32_t rank, uint32_t (&out)[dmx::cuda::kMostMapAxes]) {
  if (list.size() != rank) {
    list.fail("does not have one number for each of the map's sizes");
    return false;
  }
  for (uint32_t i = 0; i < rank; ++i)
    out[i] = static_cast<uint32_t>(list.at(i).integer(1, INT32_MAX, 1));
  return true;
}

} // namespace

void CudaImage::readExpressions(JsonCursor list, const ExprPool::DimNames &names, std::vector<ExprId> &out) {
  for (size_t i = 0; i < list.size() && i < dmx::cuda::kMostMapAxes; ++i)
    out.push_back(exprs.parse(list.at(i), names));
}

void CudaImage::readMap(JsonCursor entry, const ExprPool::DimNames &names, KernelLaunch &kernel) {
  MapLaunch &map = kernel.maps.emplace_back();
  map.buffer = static_cast<uint32_t>(entry["buffer"].integer(0, INT32_MAX));
  if (!dmx::cuda::findMapType(entry["type"].text(), map.form.type))
    entry["type"].fail("is no type of a tensor map");
  JsonCursor sizes = entry["sizes"], strides = entry["strides"];
  if (sizes.size() == 0 || sizes.size() > dmx::cuda::kMostMapAxes || strides.size() + 1 != sizes.size())
    return entry.fail("has no 1 to 5 sizes, or strides that are not one fewer");
  map.form.rank = static_cast<uint32_t>(sizes.size());
  readExpressions(sizes, names, map.sizes);
  readExpressions(strides, names, map.strides);
  JsonCursor steps = entry.optional("steps"), offset = entry.optional("offset");
  std::fill(std::begin(map.form.steps), std::end(map.form.steps), 1u);
  if (!readNumbers(entry["box"], map.form.rank, map.form.box) ||
      (steps.present() && !readNumbers(steps, map.form.rank, map.form.steps)))
    return;
  map.form.swizzle = static_cast<uint32_t>(entry["swizzle"].integer(0, 128));
  map.offset = offset.present() ? exprs.parse(offset, names) : exprs.constant(0);
}

/// What is wrong with a map for any dims; "" where nothing is known to be.
std::string CudaImage::problemOfPlan(const KernelLaunch &kernel, const MapLaunch &map) const {
  using namespace dmx::cuda;
  if (map.buffer >= kernel.buffers)
    return cat("it is of buffer ", map.buffer, ", and there are ", kernel.buffers);
  std::string problem = problemOfForm(map.form);
  int64_t value = 0;
  TensorMap known = map.form; // whose other sizes are 1 and strides 0
  std::fill(std::begin(known.sizes), std::end(known.sizes), 1u);
  for (uint32_t i = 0; i < map.form.rank && problem.empty(); ++i)
    if (exprs.isConstant(map.sizes[i], value)) {
      problem = problemOfSize(i, value);
      known.sizes[i] = static_cast<uint64_t>(value);
    }
  for (uint32_t i = 1; i < map.form.rank && problem.empty(); ++i)
    if (exprs.isConstant(map.strides[i - 1], value)) {
      problem = problemOfStride(i, value);
      known.strides[i] = static_cast<uint64_t>(value);
    }
  return problem.empty() ? problemOf(known) : problem;
}

Result<dmx::cuda::TensorMap> CudaImage::mapOf(const DeviceTask &task, size_t index) const {
  using namespace dmx::cuda;
  const auto &kernel = *static_cast<const KernelLaunch *>(task.kernel);
  const MapLaunch &plan = kernel.maps[index];
  TensorMap map = plan.form;
  auto wrong = [&](const auto &...why) {
    return badBundle("kernel '", kernel.name, "', map ", index, " of its launch: ", why...);
  };
  std::span<const int64_t> dims(task.dims, task.dimCount);
  auto offset = exprs.evaluate(plan.offset, dims);
  if (!offset)
    return offset.takeError();
  for (uint32_t i = 0; i < map.rank; ++i) {
    auto size = exprs.evaluate(plan.sizes[i], dims);
    if (!size)
      return size.takeError();
    if (std::string problem = problemOfSize(i, *size); !problem.empty())
      return wrong(problem);
    map.sizes[i] = static_cast<uint64_t>(*size);
    if (i == 0)
      continue;
    auto stride = exprs.evaluate(plan.strides[i - 1], dims);
    if (!stride)
      return stride.takeError();
    if (std::string problem = problemOfStride(i, *stride); !problem.empty())
      return wrong(problem);
    map.strides[i] = static_cast<uint64_t>(*stride);
  }
  uint64_t bytes = task.bufferBytes[plan.buffer];
  if (!dmx::liesWithin(*offset, map.span(), bytes))
    return wrong("it reaches over bytes ", *offset, " to ", (dmx::Size(*offset) + map.span()).text(), " of buffer ",
                 plan.buffer, ", which has ", bytes);
  map.base = static_cast<uint64_t>(*offset);
  if (std::string problem = problemOf(map); !problem.empty())
    return wrong(problem);
  return map;
}

} // namespace dmxrt::cuda
