//===- UserKernel.cpp - regions that a user's kernel computes --------------===//

#include "UserKernel.h"

#include "targets/cuda/product/Gemm.h"

#include "schemas/cuda/TensorMap.h"

#include "dmxc/Dialect/DMIR/Model.h"
#include "dmxc/Support/MappedFile.h"

#include "llvm/Support/Path.h"

using namespace dmxc;
using namespace dmxc::cuda;
using namespace mlir;

static constexpr StringLiteral kLevel = "sm_90a";

/// Of the bodies that the level runs the first; null where there is none.
static DictionaryAttr bodyOf(dmir::ExternOp op) {
  for (DictionaryAttr body : op.bodiesFor("cuda"))
    if (llvm::all_of(body.getAs<ArrayAttr>("features").getAsRange<StringAttr>(),
                     [](StringAttr feature) { return feature.getValue() == kLevel; }))
      return body;
  return {};
}

std::optional<std::string> dmxc::cuda::whyNoBody(dmir::ExternOp op) {
  if (bodyOf(op))
    return std::nullopt;
  return "no body of the kernel '" + op.getKernel().str() + "' runs at level " + kLevel.str() +
         "; give one without features";
}

namespace {

/// What is wrong with a launch on a machine; "" where nothing is known to be.
class LaunchCheck {
public:
  explicit LaunchCheck(const hw::Machine &machine) : machine(machine) {}

  std::string problemOf(const dmir::KernelLaunch &launch) const {
    auto outside = [](const char *what, int64_t value, int64_t least, int64_t most) {
      return value >= least && value <= most ? ""
                                             : std::string(what) + " " + std::to_string(value) + ", and may have " +
                                                   std::to_string(least) + " to " + std::to_string(most);
    };
    for (const std::string &problem :
         {outside("the threads of its blocks are", launch.block, 1, machine.mostThreads),
          outside("the bytes of shared memory of its blocks are", launch.shared, 0, machine.mostShared),
          outside("the blocks of its clusters are", launch.cluster, 1, machine.mostCluster),
          outside("the blocks of its grid are", launch.grid.valueOr(1), 0, INT32_MAX)})
      if (!problem.empty())
        return problem;
    if (int64_t blocks = launch.grid.valueOr(0); blocks % launch.cluster)
      return "its grid has " + std::to_string(blocks) + " blocks, which are no clusters of " +
             std::to_string(launch.cluster);
    for (auto [i, map] : llvm::enumerate(launch.maps))
      if (std::string problem = problemOf(map); !problem.empty())
        return "map " + std::to_string(i) + " of its launch: " + problem;
    return "";
  }

private:
  static std::string problemOf(const dmir::KernelMap &map) {
    hw::TensorMap form;
    if (!hw::findMapType(map.type, form.type))
      return "it has elements of " + map.type + ", which no tensor map has";
    if (map.sizes.size() > hw::kMostMapAxes)
      return "it has " + std::to_string(map.sizes.size()) + " axes, not 1 to 5";
    form.rank = static_cast<uint32_t>(map.sizes.size());
    auto narrow = [](int64_t value) { return static_cast<uint32_t>(std::clamp<int64_t>(value, 0, UINT32_MAX)); };
    form.swizzle = narrow(map.swizzle);
    for (uint32_t i = 0; i < form.rank; ++i) {
      form.box[i] = narrow(map.box[i]);
      form.steps[i] = narrow(map.steps[i]);
    }
    std::string problem = problemOfForm(form);
    for (uint32_t i = 0; i < form.rank && problem.empty(); ++i) {
      problem = hw::problemOfSize(i, map.sizes[i].valueOr(1));
      if (problem.empty() && i > 0)
        problem = hw::problemOfStride(i, map.strides[i - 1].valueOr(0));
    }
    if (problem.empty() && map.offset.valueOr(0) % 16)
      problem = "it begins " + map.offset.str() + " bytes into its tensor, which is no multiple of 16";
    return problem;
  }

  const hw::Machine &machine;
};

Launch launchFor(const dmir::KernelLaunch &given, std::vector<Dim> scalars) {
  Launch launch;
  launch.grid = given.grid;
  launch.block = given.block;
  launch.shared = given.shared;
  launch.cluster = given.cluster;
  launch.scalars = std::move(scalars);
  for (const dmir::KernelMap &map : given.maps)
    launch.maps.push_back({static_cast<unsigned>(map.buffer), map.type, map.sizes, map.strides, map.box, map.offset,
                           map.swizzle, map.steps});
  return launch;
}

Result<KernelPlan> planOf(const RegionBody &body, const PlanRequest &request) {
  auto op = mlir::cast<dmir::ExternOp>(body.root);
  Result<KernelPlan> plan = planUserKernel(body);
  if (!plan)
    return plan;
  auto refusal = [&](const std::string &why) {
    return modelError("node '" + dmir::nodeName(op) + "': the kernel '" + op.getKernel().str() + "': " + why);
  };
  DictionaryAttr code = bodyOf(op);
  if (!code)
    return refusal(*whyNoBody(op));
  auto written = code.getAs<DictionaryAttr>("launch");
  if (!written)
    return refusal(R"(its body for cuda has no launch; give it one, as "launch": {"grid": "n", "block": 128})");
  dmir::KernelLaunch launch = dmir::launchOf(written);
  if (std::string problem = LaunchCheck(CudaRequest::of(request).machine).problemOf(launch); !problem.empty())
    return refusal(problem);
  std::vector<Dim> scalars;
  if (auto given = op.getScalars())
    llvm::append_range(scalars, given->getDims());
  plan->launch = launchFor(launch, std::move(scalars));
  plan->work = Dim::floorDiv(launch.grid, launch.cluster); // an item is a block's, or a cluster's
  plan->grain = 1;
  if (code.getAs<StringAttr>("abi").getValue() != "args")
    plan->scratch = 0; // it is told of none
  return plan;
}

} // namespace

void dmxc::cuda::registerUserKernels(KernelTable &table) { table.add<dmir::ExternOp>({.plan = planOf}); }

Result<UserText> dmxc::cuda::readUserText(dmir::ExternOp op) {
  DictionaryAttr body = bodyOf(op);
  auto text = [&](StringRef key) { return body.getAs<StringAttr>(key).getValue(); };
  Result<std::shared_ptr<const MappedFile>> file = openBody(op.getKernel(), body);
  if (!file)
    return file.takeError();
  std::span<const std::byte> bytes = (*file)->bytes();
  return UserText{op.getKernel().str(), llvm::sys::path::filename(text("file")).str(), text("symbol").str(),
                  std::string(reinterpret_cast<const char *>(bytes.data()), bytes.size()), text("abi") == "args"};
}

void dmxc::cuda::noteUserCode(dmir::ExternOp op, Operation *kernel) {
  noteBody(op.getKernel(), kLevel, bodyOf(op), kernel);
}
