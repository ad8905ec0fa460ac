//===- BuildDlir.cpp - a kernel over quads to a device's program ----------===//
#include "../Passes.h"
#include "ProductSchedule.h"

#include "targets/corsair/dialect/LLDMIR/LLDMIR.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace dmxc {
#define GEN_PASS_DEF_BUILDDLIR
#include "Passes.h.inc"
} // namespace dmxc

using namespace mlir;
using namespace dmxc;
using dlir::ArgumentRole;

namespace {

/// A run of indices of a split dim that lie on one chiplet; of a dim that is not split, all on each chiplet.
struct Run {
  int64_t chiplet, first, count;
};

/// The arguments of one program and their pieces.
class ArgumentWriter {
public:
  ArgumentWriter(const hw::Machine &machine, const ProductKernel &kernel, DlirWriter &writer)
      : machine(machine), kernel(kernel), launch(kernel.launch), writer(writer), b(writer.builder) {}

  FailureOr<ProductBuffers> run() {
    ProductBuffers buffers;
    auto function = launch->getParentOfType<func::FuncOp>();
    auto ret = cast<func::ReturnOp>(function.getBody().back().getTerminator());
    for (Value operand : launch.getKernelOperands()) {
      if (operand == kernel.weights)
        buffers.weights = addWeights(function, operand);
      else if (operand == kernel.bias)
        buffers.bias = addBias(operand);
      else if (operand == kernel.activations)
        buffers.activations = addTensor(function, operand, ArgumentRole::input, "dm.model_inputs.type");
      else if (operand == kernel.result && llvm::is_contained(ret.getOperands(), operand))
        buffers.result = addTensor(function, operand, ArgumentRole::output, "dm.model_outputs.type");
      else
        launch.emitError("takes what is neither operand nor returned result of its product");
    }
    if (!buffers.weights || !buffers.activations || !buffers.result || (kernel.bias && !buffers.bias))
      return failure();
    return buffers;
  }

private:
  /// What the user has for argument or result `position`; without the module's attribute whole tiles of f32.
  RankedTensorType hostType(Value memref, StringRef attribute, unsigned position) {
    auto type = cast<MemRefType>(memref.getType());
    auto module = launch->getParentOfType<ModuleOp>();
    auto list = module->getAttrOfType<ArrayAttr>(attribute);
    if (list && position < list.size())
      if (auto given = dyn_cast<TypeAttr>(list[position]))
        if (auto tensor = dyn_cast<RankedTensorType>(given.getValue()); tensor && tensor.getRank() == type.getRank())
          return tensor;
    auto tile = cast<affine_ext::VecExtType>(type.getElementType());
    SmallVector<int64_t> shape(type.getShape());
    for (size_t i = 0; i < 2; ++i)
      shape[shape.size() - 2 + i] *= tile.getShape()[i];
    return RankedTensorType::get(shape, b.getF32Type());
  }

  Value addTensor(func::FuncOp function, Value operand, ArgumentRole role, StringRef attribute) {
    bool input = role == ArgumentRole::input;
    unsigned position = 0;
    if (input) {
      auto argument = dyn_cast<BlockArgument>(operand);
      if (!argument)
        return refuse("reads activations that are no argument of the function");
      position = argument.getArgNumber();
    } else {
      auto ret = function.getBody().back().getTerminator();
      position = llvm::find(ret->getOperands(), operand) - ret->operand_begin();
    }
    RankedTensorType host = hostType(operand, attribute, position);
    std::string name = (input ? "arg" : "result") + std::to_string(position);
    StringRef form = hw::nameOf(input ? kernel.activationKind : kernel.resultKind);
    writer.argument(role, name, host, form);
    int64_t bytes = (input ? kernel.row.trips * kernel.band() : kernel.row.trips * kernel.row.o);
    auto memref = cast<MemRefType>(operand.getType());
    for (int64_t dim : memref.getShape().drop_back(2))
      bytes *= dim;
    Value memory = writer.memory(hw::Memory::DDR, name, bytes);
    pieces(memory, name, host, memref, input);
    return memory;
  }

  Value refuse(const Twine &why) {
    launch.emitError("no schedule for this kernel: it ") << why;
    return {};
  }

  int64_t chiplets() const { return (kernel.quads + machine.quadsPerChiplet() - 1) / machine.quadsPerChiplet(); }

  SmallVector<Run> runs(const ProductDim &dim, bool depends) const {
    SmallVector<Run> list;
    for (int64_t chiplet = 0; !(dim.split && depends) && chiplet < chiplets(); ++chiplet)
      list.push_back({chiplet, 0, dim.trips});
    for (int64_t i = 0; dim.split && depends && i < dim.trips; ++i) {
      int64_t chiplet = i % kernel.quads / machine.quadsPerChiplet();
      if (!list.empty() && list.back().chiplet == chiplet)
        ++list.back().count;
      else
        list.push_back({chiplet, i, 1});
    }
    return list;
  }

  /// Calls `visit` for each matrix of an operand with its indices, byte offset and the chiplets that have it.
  void eachMatrix(ArrayRef<int64_t> lead, int64_t ProductDim::*member,
                  function_ref<void(ArrayRef<int64_t>, int64_t, std::optional<int64_t>)> visit) {
    SmallVector<int64_t> index(lead.size());
    std::function<void(size_t, int64_t, std::optional<int64_t>)> nest = [&](size_t i, int64_t offset,
                                                                            std::optional<int64_t> chiplet) {
      if (i == lead.size())
        return visit(index, offset, chiplet);
      const ProductDim &dim = kernel.batch[kernel.batch.size() - lead.size() + i];
      for (index[i] = 0; index[i] < lead[i]; ++index[i])
        nest(i + 1, offset + index[i] * (dim.*member),
             dim.split && dim.*member ? std::optional(index[i] % kernel.quads / machine.quadsPerChiplet()) : chiplet);
    };
    nest(0, 0, std::nullopt);
  }

  /// Activations by rows; the result by whichever of its dims is split.
  void pieces(Value memory, StringRef name, RankedTensorType host, MemRefType memref, bool input) {
    bool byColumn = !input && kernel.column.split;
    const ProductDim &dim = byColumn ? kernel.column : kernel.row;
    int64_t ProductDim::*member = input ? &ProductDim::a : &ProductDim::o;
    size_t rank = host.getRank(), along = byColumn ? rank - 1 : rank - 2;
    SmallVector<int64_t> strides;
    if (input) {
      strides = {kernel.band(), kernel.activationTile()};
    } else {
      for (size_t i = 0; i + 2 < rank; ++i)
        strides.push_back(kernel.batch[i].o);
      strides.append({kernel.row.o / 64, kernel.element()});
    }
    eachMatrix(memref.getShape().drop_back(2), member,
               [&](ArrayRef<int64_t> index, int64_t offset, std::optional<int64_t> chiplet) {
                 for (const Run &run : runs(dim, dim.*member)) {
                   if (chiplet && *chiplet != run.chiplet)
                     continue;
                   SmallVector<int64_t> begin(index), extent(index.size(), 1);
                   begin.append({0, 0});
                   extent.append({host.getDimSize(rank - 2), host.getDimSize(rank - 1)});
                   begin[along] = run.first * 64;
                   extent[along] = std::min(run.count * 64, host.getDimSize(along) - begin[along]);
                   writer.piece(memory, name, run.chiplet, offset + run.first * (dim.*member), begin, extent, strides);
                 }
               });
  }

  /// A constant's bytes are the tiles already, those of a column of tiles side by side; an argument's are made of the
  /// user's numbers.
  Value addWeights(func::FuncOp function, Value operand) {
    auto memref = cast<MemRefType>(operand.getType());
    int64_t matrix = kernel.column.trips * kernel.columnBytes(), bytes = matrix;
    for (int64_t dim : memref.getShape().drop_back(2))
      bytes *= dim;
    StringRef form = hw::nameOf(kernel.weightKind);
    auto constant = operand.getDefiningOp<affine_ext::ConstantOp>();
    auto argument = dyn_cast<BlockArgument>(operand);
    if (!constant && !argument)
      return refuse("reads weights that are neither constant nor an argument of the function");
    std::string name = constant ? "weights" : "arg" + std::to_string(argument.getArgNumber());
    RankedTensorType host = constant ? RankedTensorType::get({bytes}, b.getIntegerType(8, false))
                                     : hostType(operand, "dm.model_inputs.type", argument.getArgNumber());
    writer.argument(constant ? ArgumentRole::constant : ArgumentRole::input, name, host, form, {},
                    constant ? constant.getValueAttr() : TypedAttr());
    Value memory = writer.memory(hw::Memory::DDR, name, bytes, /*permanent=*/constant != nullptr);
    const ProductDim &dim = kernel.column;
    eachMatrix(memref.getShape().drop_back(2), &ProductDim::w,
               [&](ArrayRef<int64_t> index, int64_t offset, std::optional<int64_t> chiplet) {
                 for (const Run &run : runs(dim, dim.w)) {
                   if (chiplet && *chiplet != run.chiplet)
                     continue;
                   int64_t at = offset + run.first * dim.w;
                   if (constant) {
                     writer.piece(memory, name, run.chiplet, at, {at}, {run.count * kernel.columnBytes()}, {});
                     continue;
                   }
                   size_t rank = host.getRank();
                   SmallVector<int64_t> begin(index), extent(index.size(), 1);
                   int64_t first = run.first * 64, all = host.getDimSize(rank - 1);
                   begin.append({0, first});
                   extent.append({host.getDimSize(rank - 2), std::min(run.count * 64, all - first)});
                   writer.piece(memory, name, run.chiplet, at, begin, extent,
                                {kernel.columnBytes(), kernel.weightTile()});
                 }
               });
    return memory;
  }

  /// BFP32_1 as it is: a number a column.
  Value addBias(Value operand) {
    auto constant = operand.getDefiningOp<affine_ext::ConstantOp>();
    int64_t bytes = kernel.column.trips * kernel.column.b;
    if (!constant || cast<ShapedType>(constant.getValueAttr().getType()).getNumElements() * 4 != bytes)
      return refuse("adds a bias that is no constant of whole tiles");
    writer.argument(ArgumentRole::constant, "bias", RankedTensorType::get({bytes}, b.getIntegerType(8, false)), "bfp32",
                    {}, constant.getValueAttr());
    Value memory = writer.memory(hw::Memory::DDR, "bias", bytes, /*permanent=*/true);
    for (const Run &run : runs(kernel.column, true))
      writer.piece(memory, "bias", run.chiplet, run.first * kernel.column.b, {run.first * kernel.column.b},
                   {run.count * kernel.column.b}, {});
    return memory;
  }

  const hw::Machine &machine;
  const ProductKernel &kernel;
  gpu::LaunchFuncOp launch;
  DlirWriter &writer;
  OpBuilder &b;
};

struct BuildDlir : dmxc::impl::BuildDlirBase<BuildDlir> {
  using BuildDlirBase::BuildDlirBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    for (auto function : llvm::to_vector(module.getOps<func::FuncOp>()))
      if (failed(build(function)))
        return signalPassFailure();
    for (auto kernels : llvm::to_vector(module.getOps<gpu::GPUModuleOp>()))
      kernels.erase();
    module->removeAttr(gpu::GPUDialect::getContainerModuleAttrName());
  }

  LogicalResult build(func::FuncOp function) {
    SmallVector<gpu::LaunchFuncOp> launches(function.getOps<gpu::LaunchFuncOp>());
    if (launches.empty())
      return success();
    for (Operation &op : function.getBody().front())
      if (!isa<affine_ext::ConstantOp, memref::AllocOp, arith::ConstantOp, gpu::LaunchFuncOp, func::ReturnOp>(op))
        return op.emitError("no schedule for '") << op.getName() << "' beside the product of a function";
    if (launches.size() > 1)
      return launches[1].emitError("no schedule for a second product of a function");
    FailureOr<ProductKernel> kernel = readProductKernel(launches.front());
    if (failed(kernel))
      return failure();
    OpBuilder builder(function);
    DlirWriter writer(builder, launches.front().getLoc(), kernel->name);
    const hw::Machine &machine = lldmir::machineOf(&getContext());
    FailureOr<ProductBuffers> buffers = ArgumentWriter(machine, *kernel, writer).run();
    if (failed(buffers)) {
      writer.program().erase();
      return failure();
    }
    bool constant = kernel->weights.getDefiningOp<affine_ext::ConstantOp>() != nullptr;
    ScheduleOptions options;
    options.resident = resident;
    ProductSchedule(machine, *kernel, writer, *buffers, options).run(constant);
    function.erase();
    return success();
  }
};

} // namespace
