//===- CudaImage.cpp - kernels as PTX, with their launches --------------------===//

#include "CudaImage.h"
#include "ptx/Ptx.h"

#include "schemas/cuda/Limits.h"

#include <algorithm>

namespace dmxrt::cuda {
namespace {

/// The text of the comment that the entry begins with, without its slashes.
std::string leadingComment(std::string_view text) {
  std::string out;
  while (text.starts_with("//")) {
    size_t end = std::min(text.find('\n'), text.size());
    out += text.substr(2, end - 2);
    out += '\n';
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

} // namespace

/// What the table says of a kernel by itself. `version`: the table's.
void CudaImage::readLaunch(JsonCursor entry, KernelLaunch &kernel, int64_t version) {
  kernel.name = entry["name"].string();
  JsonCursor nodes = entry["nodes"];
  for (size_t i = 0; i < nodes.size(); ++i)
    kernel.nodes.emplace_back(nodes.at(i).text());
  kernel.block = static_cast<uint32_t>(entry["block"].integer(1, dmx::cuda::kMostThreads, 1));
  ExprPool::DimNames names;
  JsonCursor dims = entry["dims"];
  for (size_t i = 0; i < dims.size(); ++i)
    names.emplace(dims.at(i).string(), static_cast<uint32_t>(i));
  kernel.dims = static_cast<uint32_t>(dims.size());
  kernel.grid = exprs.parse(entry["grid"], names);
  if (JsonCursor products = entry.optional("multiply_adds"); products.present())
    kernel.multiplyAdds = exprs.parse(products, names);
  JsonCursor shared = entry.optional("shared"), item = entry.optional("item"), maps = entry.optional("maps");
  for (JsonCursor each : {shared, item, maps})
    if (version < 2)
      each.fail("is known from launch table 2 on");
  if (JsonCursor cluster = entry.optional("cluster"); cluster.present()) {
    kernel.cluster = static_cast<uint32_t>(cluster.integer(1, dmx::cuda::kMostCluster, 1));
    if (version < 3)
      cluster.fail("is known from launch table 3 on");
  }
  if (JsonCursor scalars = entry.optional("scalars"); scalars.present()) {
    if (version < 4)
      scalars.fail("is known from launch table 4 on");
    kernel.scalars.emplace();
    for (size_t i = 0; i < scalars.size(); ++i)
      kernel.scalars->push_back(exprs.parse(scalars.at(i), names));
  }
  kernel.shared = static_cast<uint32_t>(shared.integer(0, dmx::cuda::kMostShared));
  kernel.byBlock = item.present() && item.text() == "block";
  if (item.present() && !kernel.byBlock && item.text() != "thread")
    item.fail("is neither thread nor block");
  for (size_t i = 0; i < maps.size() && !entry.failed(); ++i)
    readMap(maps.at(i), names, kernel);
}

/// What of an entry's parameters does not follow from its contract and maps; "" where nothing.
static std::string problemOfParameters(const KernelLaunch &kernel, const PtxModule &module,
                                       const std::vector<PtxParameter> &given) {
  size_t words = kernel.buffers + kernel.sizes() + TailParameters;
  for (size_t i = 0; i < given.size(); ++i) {
    bool isWord = !given[i].isArray && given[i].type.bits == 64,
         isMap = given[i].bytes == dmx::cuda::kMapBytes && given[i].align >= 64;
    if (i < words ? !isWord : !isMap)
      words = SIZE_MAX;
  }
  if (given.size() == words + kernel.maps.size() && words != SIZE_MAX) {
    constexpr uint64_t unit = 64; // a map's alignment
    uint64_t bytes = kernel.maps.empty()
                         ? 8 * words
                         : (8 * words + unit - 1) / unit * unit + dmx::cuda::kMapBytes * kernel.maps.size(),
             most = module.version >= 81 ? kMostParameterBytes81 : kMostParameterBytes;
    if (bytes <= most)
      return {};
    return cat("has parameters of ", bytes, " bytes, and PTX ", module.version / 10, ".", module.version % 10,
               " has at most ", most);
  }
  words = kernel.buffers + kernel.sizes() + TailParameters;
  std::string maps = kernel.maps.empty() ? "" : cat(", and ", kernel.maps.size(), " of 128 bytes from its maps");
  return cat("has ", given.size(), " parameters; ", words, " of 64 bits follow from its contract", maps);
}

Status CudaImage::addKernel(JsonCursor entry, const PtxModule &module, int64_t version) {
  auto kernel = std::make_unique<KernelLaunch>();
  kernel->image = this;
  kernel->index = static_cast<uint32_t>(kernels.size());
  readLaunch(entry, *kernel, version);
  std::vector<int64_t> words;
  JsonCursor contract = entry["contract"];
  for (size_t i = 0; i < contract.size(); ++i)
    words.push_back(contract.at(i).integer(INT64_MIN, INT64_MAX));
  if (entry.failed())
    return {};
  auto wrong = [&](const auto &...why) {
    return badBundle("the launch table does not fit its PTX: kernel '", kernel->name, "' ", why...);
  };
  const PtxKernel *there = nullptr;
  for (const PtxKernel &each : module.kernels)
    if (each.name == kernel->name)
      there = &each;
  if (!there)
    return wrong("is not there");
  if (findKernel(kernel->name))
    return wrong("is listed twice");
  kernel->line = there->line;
  if (!promises.add(kernel->name, words))
    return wrong("has no contract");
  const KernelContract &contracted = *promises.find(kernel->name);
  kernel->buffers = static_cast<uint32_t>(contracted.bytes.size());
  kernel->results = contracted.results;
  if (contracted.dims != kernel->dims)
    return wrong("has ", kernel->dims, " dims, its contract ", contracted.dims);
  if (std::string problem = problemOfParameters(*kernel, module, there->parameters); !problem.empty())
    return wrong(problem);
  if (there->blockThreads != kernel->block)
    return wrong("has blocks of ", there->blockThreads, " threads, the table says ", kernel->block);
  if (there->cluster != kernel->cluster)
    return wrong("has clusters of ", there->cluster, " blocks, the table says ", kernel->cluster);
  for (size_t i = 0; i < kernel->maps.size(); ++i)
    if (std::string problem = problemOfPlan(*kernel, kernel->maps[i]); !problem.empty())
      return badBundle("kernel '", kernel->name, "', map ", i, " of its launch: ", problem);
  kernels.push_back(std::move(kernel));
  return {};
}

Status CudaImage::read() {
  std::string comment = leadingComment(words);
  if (comment.empty())
    return badBundle("the entry does not begin with a launch table");
  JsonDocument document({reinterpret_cast<const std::byte *>(comment.data()), comment.size()}, "launch table");
  JsonCursor root = document.root(), list = root["kernels"];
  int64_t version = root["launch_table"].integer(1, 4, 1);
  if (root["level"].text() != "sm_90a")
    root["level"].fail("is no level that is known here");
  if (document.failed())
    return document.takeError();
  auto module = parsePtx(words, /*bodies=*/false);
  if (!module)
    return module.takeError();
  for (size_t i = 0; i < list.size() && !document.failed(); ++i)
    if (Status status = addKernel(list.at(i), *module, version); !status)
      return status;
  if (document.failed())
    return document.takeError();
  if (kernels.size() != module->kernels.size())
    return badBundle("the launch table has ", kernels.size(), " kernels, its PTX ", module->kernels.size());
  return {};
}

Result<std::shared_ptr<const CodeImage>> CudaImage::load(std::span<const std::byte> bytes) {
  auto image = std::make_shared<CudaImage>();
  image->words.assign(reinterpret_cast<const char *>(bytes.data()), bytes.size());
  if (Status status = image->read(); !status)
    return within("the kernels cannot be used", status.takeError());
  return std::shared_ptr<const CodeImage>(std::move(image));
}

const void *CudaImage::findKernel(std::string_view name) const {
  for (const auto &kernel : kernels)
    if (kernel->name == name)
      return kernel.get();
  return nullptr;
}

const KernelLaunch *CudaImage::kernelAt(uint32_t line) const {
  const KernelLaunch *found = nullptr;
  for (const auto &kernel : kernels)
    if (kernel->line <= line && (!found || found->line < kernel->line))
      found = kernel.get();
  return found;
}

Result<uint32_t> CudaImage::blocksOf(const DeviceTask &task) const {
  const auto &kernel = *static_cast<const KernelLaunch *>(task.kernel);
  auto blocks = exprs.evaluate(kernel.grid, {task.dims, task.dimCount});
  if (!blocks)
    return blocks.takeError();
  int64_t each = kernel.byBlock ? 1 : kernel.block, wanted = task.work / each + (task.work % each != 0);
  if (*blocks % kernel.cluster)
    return badBundle("kernel '", kernel.name, "': the launch table has ", *blocks, " blocks in clusters of ",
                     kernel.cluster);
  // Threads that have scratch may be fewer than there are items, and so may blocks that stay.
  bool mayBeFewer = kernel.byBlock || task.scratch;
  int64_t shares = *blocks / kernel.cluster; // of the work: a cluster is one
  bool fits = shares == wanted || (mayBeFewer && shares >= 1 && shares < wanted);
  if (!fits || *blocks > INT32_MAX)
    return badBundle("kernel '", kernel.name, "': the launch table has ", *blocks, " blocks of ", kernel.block,
                     " threads for ", task.work, " work items", kernel.byBlock ? " of a block each" : "");
  return static_cast<uint32_t>(*blocks);
}

Result<std::vector<uint64_t>> CudaImage::sizesOf(const DeviceTask &task) const {
  const auto &kernel = *static_cast<const KernelLaunch *>(task.kernel);
  if (!kernel.scalars)
    return std::vector<uint64_t>(task.dims, task.dims + task.dimCount);
  std::vector<uint64_t> sizes;
  for (ExprId scalar : *kernel.scalars) {
    auto size = exprs.evaluate(scalar, {task.dims, task.dimCount});
    if (!size)
      return size.takeError();
    sizes.push_back(static_cast<uint64_t>(*size));
  }
  return sizes;
}

Result<std::optional<uint64_t>> CudaImage::multiplyAddsOf(const DeviceTask &task) const {
  const auto &kernel = *static_cast<const KernelLaunch *>(task.kernel);
  if (!kernel.multiplyAdds)
    return std::optional<uint64_t>();
  auto count = exprs.evaluate(*kernel.multiplyAdds, {task.dims, task.dimCount});
  if (!count)
    return count.takeError();
  if (*count < 0)
    return badBundle("kernel '", kernel.name, "': the launch table has ", *count, " multiply-adds");
  return std::optional<uint64_t>(static_cast<uint64_t>(*count));
}

Status CudaImage::checkTask(const DeviceTask &task) const {
  const auto &kernel = *static_cast<const KernelLaunch *>(task.kernel);
  if (task.bufferBytes.size() != kernel.buffers || task.dimCount != kernel.dims)
    return badBundle("kernel '", kernel.name, "' has ", kernel.buffers, " buffers and ", kernel.dims,
                     " dims, its task ", task.bufferBytes.size(), " and ", task.dimCount);
  auto blocks = blocksOf(task);
  if (!blocks)
    return blocks.takeError();
  for (size_t i = 0; i < kernel.maps.size() && *blocks; ++i)
    if (auto map = mapOf(task, i); !map)
      return map.takeError();
  return {};
}

} // namespace dmxrt::cuda
