//===- AieTarget.cpp - the target's answers to the phases -----------------===//
#include "Design.h"

#include "dmxc/Dialect/DMIR/ConstantData.h"
#include "dmxc/Target/TargetBackend.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace dmxc;

namespace {

namespace hw = dmx::aie;

ArrayRef<int64_t> shapeOf(Value value) { return cast<RankedTensorType>(value.getType()).getShape(); }

/// Leading dims of the left operand are rows like others, for the right one has none.
aie::Sizes sizesOf(dmir::MatMulOp product) {
  ArrayRef<int64_t> lhs = shapeOf(product.getLhs()), rhs = shapeOf(product.getRhs());
  return {ShapedType::getNumElements(lhs.drop_back()), lhs.back(), rhs[1]};
}

class AieTarget final : public TargetBackend {
public:
  AieTarget(const hw::Machine &machine, std::string saveTempsDir)
      : machine(machine), saveTempsDir(std::move(saveTempsDir)) {}

  StringRef name() const override { return "aie"; }
  std::optional<std::string> refuses(Operation *op) const override;
  bool fusesProducer(Operation *, OpOperand &, Operation *) const override { return false; }
  bool fusesConsumer(Operation *, Value, Operation *) const override { return false; }
  Result<DictionaryAttr> chooseStrategy(dmir::RegionOp region) const override;
  std::optional<OpFormats> formatsOf(Operation *op) const override {
    return isa<dmir::MatMulOp>(op) ? std::optional(OpFormats{{"bf16", "bf16"}, "f32"}) : std::nullopt;
  }
  Status pack(DictionaryAttr, const Tensor &, std::span<std::byte>) const override {
    return Error{ErrorKind::Internal, "the aie target packs no constants"};
  }
  Result<std::vector<CodeEntry>> emit(ArrayRef<Operation *> kernels) const override;
  std::string describe() const override;

private:
  Status add(Operation *kernel, hw::Image &image) const;
  Status save(const hw::Image &image) const;

  hw::Machine machine;
  std::string saveTempsDir;
};

std::optional<std::string> AieTarget::refuses(Operation *op) const {
  auto product = dyn_cast<dmir::MatMulOp>(op);
  if (!product)
    return "the array only multiplies matrices so far";
  for (Value value : {product.getLhs(), product.getRhs(), product.getResult()}) {
    auto type = cast<RankedTensorType>(value.getType());
    if (!type.getElementType().isF32() || !type.hasStaticShape() || type.getNumElements() == 0)
      return "the array multiplies f32 of fixed sizes so far";
    if (dmir::isConstant(value) && type.getNumElements() == 1) // it would be part of the kernel
      return "the array has no numbers in its kernels";
  }
  if (shapeOf(product.getRhs()).size() != 2)
    return "the array multiplies by one matrix so far, not by a batch of them";
  if (product.getLhs() == product.getRhs())
    return "the array multiplies two matrices, not one with itself";
  return aie::refuses(machine, sizesOf(product));
}

Result<DictionaryAttr> AieTarget::chooseStrategy(dmir::RegionOp region) const {
  auto product = dyn_cast<dmir::MatMulOp>(region.getBlock()->front());
  if (!product || region.getBlock()->getOperations().size() != 2)
    return Error{ErrorKind::Model, "a region of the aie target is one product"};
  aie::Sizes sizes = sizesOf(product);
  Builder b(region.getContext());
  NamedAttrList list;
  list.set(strategy::kAlgorithm, b.getStringAttr("one core, bf16 tiles of 64 x 32 x 64"));
  const std::pair<StringRef, int64_t> figures[] = {
      {strategy::kWork, 1},
      {strategy::kGrain, 1},
      {strategy::kScratch, 0},
      {strategy::kFlops, 2 * sizes.m * sizes.k * sizes.n},
      {strategy::kBytes, 4 * (sizes.m * sizes.k + sizes.k * sizes.n + sizes.m * sizes.n)}};
  for (auto [key, value] : figures)
    list.set(key, b.getI64IntegerAttr(value));
  return list.getDictionary(region.getContext());
}

/// Adds a kernel, which a text may have changed.
Status AieTarget::add(Operation *op, hw::Image &image) const {
  std::string name = SymbolTable::getSymbolName(op).str();
  auto kernel = dyn_cast<dlir::KernelOp>(op);
  Block *block = kernel ? kernel.getBlock() : nullptr;
  auto product = block && !block->empty() ? dyn_cast<dmir::MatMulOp>(block->front()) : nullptr;
  auto wrong = [&](const std::string &why) { return Error{ErrorKind::Model, "kernel '" + name + "' " + why}; };
  if (!product || block->getOperations().size() != 2 || block->getNumArguments() != 2)
    return wrong("is not one product, which is all that the aie target computes");
  if (std::optional<std::string> why = refuses(product))
    return wrong("cannot be computed: " + *why);
  bool swapped = product.getLhs() != block->getArgument(0);
  if (product.getRhs() != block->getArgument(swapped ? 0 : 1) ||
      (swapped && product.getLhs() != block->getArgument(1)) || block->back().getOperand(0) != product.getResult())
    return wrong("does not multiply its arguments");
  std::string error;
  image.kernels.push_back(aie::product(machine, name, sizesOf(product), swapped, error));
  return error.empty() ? Status::ok() : Status(Error{ErrorKind::Internal, "kernel '" + name + "': " + error});
}

Result<std::vector<CodeEntry>> AieTarget::emit(ArrayRef<Operation *> kernels) const {
  hw::Image image{std::string(machine.name), {}, {}};
  std::string error;
  image.overlays.push_back(aie::overlay(machine, error));
  for (Operation *kernel : kernels)
    if (Status added = add(kernel, image); !added)
      return added.takeError();
  if (error.empty())
    error = hw::verify(image);
  if (!error.empty())
    return Error{ErrorKind::Internal, "the image for the array is not sound: " + error};
  if (Status saved = saveTempsDir.empty() ? Status::ok() : save(image); !saved)
    return saved.takeError();
  std::vector<std::byte> bytes = hw::write(image);
  const char *data = reinterpret_cast<const char *>(bytes.data());
  std::string arch(machine.name);
  return std::vector<CodeEntry>{{"code/aie/" + arch + "/kernels.aiebin", arch, {}, {data, data + bytes.size()}}};
}

/// The words that tools of the platform take: OVERLAY.cdo, and a kernel's control stream as KERNEL.insts.txt.
Status AieTarget::save(const hw::Image &image) const {
  auto write = [&](const std::string &name, StringRef text) -> Status {
    std::error_code failed;
    llvm::raw_fd_ostream file(saveTempsDir + "/" + name, failed);
    file << text;
    file.close();
    if (failed || file.has_error()) {
      file.clear_error();
      return Error{ErrorKind::IO, "cannot write '" + saveTempsDir + "/" + name + "'"};
    }
    return Status::ok();
  };
  for (const hw::Overlay &overlay : image.overlays) {
    std::vector<uint32_t> words = hw::encodeCdo(overlay.initial);
    if (Status done = write(overlay.name + ".cdo", {reinterpret_cast<const char *>(words.data()), 4 * words.size()});
        !done)
      return done;
  }
  for (const hw::KernelCode &kernel : image.kernels) {
    std::string text;
    for (uint32_t word : hw::encode(hw::headerOf(machine), kernel.control))
      text += llvm::utohexstr(word, /*LowerCase=*/false, /*Width=*/8) + "\n";
    if (Status done = write(kernel.name + ".insts.txt", text); !done)
      return done;
  }
  return Status::ok();
}

std::string AieTarget::describe() const {
  std::string text =
      "machine " + std::string(machine.name) +
      "\nreal: every word that configures the array (BDs, locks, queues, switches, multiplexers, control "
      "stream, CDO)\nmodelled: what runs inside a core, and clocks; no code for a core and no PDI or "
      "xclbin is written, and nothing was run on a device\n";
  for (const hw::Figure &figure : hw::figures(machine)) {
    llvm::raw_string_ostream line(text);
    line << figure.name << " = " << static_cast<int64_t>(figure.value) << "  (" << hw::nameOf(figure.mark) << ": "
         << figure.source << ")\n";
  }
  return text;
}

} // namespace

namespace dmxc {
Result<std::unique_ptr<TargetBackend>> createAieTarget(const TargetOptions &options) {
  if (!options.numerics.empty() && options.numerics != "bf16")
    return usageError("the aie target has no numerics mode '" + options.numerics + "'; it has bf16");
  std::string columns = "4";
  for (const std::string &level : options.levels) {
    if (!StringRef(level).starts_with("cols="))
      return usageError("'" + level + "' is no option of the aie target; it takes cols=N, N from 1 to 4");
    columns = level.substr(5);
  }
  std::optional<hw::Machine> machine = hw::machineOf("npu1_" + columns + "col");
  if (!machine)
    return usageError("cols=" + columns + " of the aie target: the machine npu1 has 1 to 4 columns");
  return std::unique_ptr<TargetBackend>(
      new AieTarget(columns == "4" ? *hw::machineOf("npu1") : *machine, options.saveTempsDir));
}
} // namespace dmxc
