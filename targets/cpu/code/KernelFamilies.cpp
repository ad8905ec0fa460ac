//===- KernelFamilies.cpp - kernels that are equal but for numbers ------------===//

#include "KernelFamilies.h"

#include "CpuBuilder.h"

#include "dmxc/Support/Sha256.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/FloatingPointMode.h"
#include "llvm/ADT/StringExtras.h"

#include <cmath>
#include <map>
#include <span>

using namespace dmxc;
using namespace dmxc::cpu;
using namespace mlir;

//===----------------------------------------------------------------------===//
// Where a family's numbers may differ
//===----------------------------------------------------------------------===//

/// The kernel and its body; a module of anything else has no numbers of its own.
struct KernelParts {
  func::FuncOp kernel, body;

  static std::optional<KernelParts> of(ModuleOp module) {
    auto all = llvm::to_vector(module.getOps<func::FuncOp>());
    if (all.size() != 2 || llvm::range_size(*module.getBody()) != 2 || all[0].isPrivate() || !all[1].isPrivate())
      return std::nullopt;
    auto calls = llvm::to_vector(all[0].getOps<func::CallOp>());
    bool isCall = calls.size() == 1 && calls.front().getCallee() == all[1].getName();
    return isCall ? std::optional(KernelParts{all[0], all[1]}) : std::nullopt;
  }
};

/// Whether code is the same whatever the number is: it is counted to, added, multiplied or compared with.
static bool takesAnyNumber(OpOperand &use) {
  Operation *user = use.getOwner();
  if (isa<scf::ForOp>(user))
    return use.getOperandNumber() < 2; // the bounds
  return isa<arith::AddIOp, arith::SubIOp, arith::MulIOp, arith::CmpIOp, arith::MinSIOp, arith::MaxSIOp, arith::MinUIOp,
             arith::MaxUIOp, LLVM::GEPOp>(user) ||
         (isa<arith::SelectOp>(user) && use.getOperandNumber() > 0);
}

static bool isFree(arith::ConstantOp constant) {
  if (constant.getType().isF32())
    return true;
  return constant.getType().isSignlessInteger(64) && isa<IntegerAttr>(constant.getValue()) &&
         llvm::all_of(constant->getUses(), takesAnyNumber);
}

/// Whether indices of the op are numbers of elements, all of them, and not of a structure's fields.
static bool isFree(LLVM::GEPOp op) { return op.getRawConstantIndices().size() == 1; }

static bool isFloat(Operation *op) { return op->getResult(0).getType().isF32(); }

/// Calls `number` with the op and the value of each, in the order in which they stand.
static void forNumbers(func::FuncOp body, llvm::function_ref<void(Operation *, int64_t)> number) {
  body.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (auto constant = dyn_cast<arith::ConstantOp>(op); constant && isFree(constant)) {
      auto real = dyn_cast<FloatAttr>(constant.getValue());
      number(op, real ? static_cast<int64_t>(real.getValue().bitcastToAPInt().getZExtValue())
                      : cast<IntegerAttr>(constant.getValue()).getInt());
    } else if (auto address = dyn_cast<LLVM::GEPOp>(op);
               address && isFree(address) && address.getRawConstantIndices()[0] != LLVM::GEPOp::kDynamicIndex)
      number(op, address.getRawConstantIndices()[0]);
  });
}

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

namespace {

/// A module as text: quicker than the printer, and without names, locations and the numbers that are free.
class ShapeText {
public:
  ShapeText(ModuleOp module, const llvm::DenseSet<Operation *> &free, StringRef kernel) : free(free), kernel(kernel) {
    write(module);
  }
  std::string text;

private:
  void write(Operation *op) {
    word(op->getName().getStringRef());
    for (Value operand : op->getOperands())
      number(values.lookup(operand));
    for (Type type : op->getResultTypes())
      word(printed(type));
    if (!free.contains(op))
      for (NamedAttribute attribute : op->getAttrDictionary()) {
        word(attribute.getName().strref());
        word(printed(attribute.getValue()));
      }
    else if (auto address = dyn_cast<LLVM::GEPOp>(op)) {
      word(printed(address.getElemType()));
      number(static_cast<int64_t>(address.getNoWrapFlags()));
    }
    for (Value result : op->getResults())
      name(result);
    for (Block *block : op->getSuccessors())
      number(blocks.lookup(block));
    for (Region &region : op->getRegions())
      write(region);
  }

  void write(Region &region) {
    text += '{';
    for (Block &block : region)
      blocks[&block] = static_cast<int64_t>(blocks.size());
    for (Block &block : region) {
      for (BlockArgument argument : block.getArguments()) {
        word(printed(argument.getType()));
        name(argument);
      }
      text += ':';
      for (Operation &op : block)
        write(&op);
    }
    text += '}';
  }

  /// Attributes and types are unique in their context: each is printed once. A symbol begins with the kernel's name.
  template <typename T> const std::string &printed(T value) {
    auto [at, isNew] = prints.try_emplace(value.getAsOpaquePointer());
    if (isNew) {
      llvm::raw_string_ostream out(at->second);
      value.print(out);
      for (size_t found; !kernel.empty() && (found = at->second.find(kernel)) != std::string::npos;)
        at->second.replace(found, kernel.size(), "\x01");
    }
    return at->second;
  }

  void name(Value value) { values[value] = static_cast<int64_t>(values.size()) + 1; }
  void number(int64_t value) { text.append(reinterpret_cast<const char *>(&value), sizeof(value)); }
  void word(StringRef value) {
    number(static_cast<int64_t>(value.size()));
    text += value;
  }

  const llvm::DenseSet<Operation *> &free;
  const std::string kernel;
  llvm::DenseMap<Value, int64_t> values;
  llvm::DenseMap<Block *, int64_t> blocks;
  std::map<const void *, std::string> prints;
};

} // namespace

KernelShape dmxc::cpu::shapeOf(ModuleOp module) {
  KernelShape shape;
  llvm::DenseSet<Operation *> free;
  std::optional<KernelParts> parts = KernelParts::of(module);
  if (parts)
    forNumbers(parts->body, [&](Operation *op, int64_t value) {
      free.insert(op);
      (isFloat(op) ? shape.floats : shape.numbers).push_back(value);
    });
  std::string text = ShapeText(module, free, parts ? parts->kernel.getName() : "").text;
  shape.code = Sha256::hexOf(std::as_bytes(std::span(text)));
  return shape;
}

//===----------------------------------------------------------------------===//
// Families
//===----------------------------------------------------------------------===//

Varying::Varying(std::vector<std::vector<int64_t>> numbers, bool linear) : kernels(std::move(numbers)) {
  std::vector<size_t> slots;
  for (size_t slot = 0; slot < kernels.front().size(); ++slot)
    if (llvm::any_of(kernels, [&](const auto &kernel) { return kernel[slot] != kernels.front()[slot]; }))
      slots.push_back(slot);
  // What a number is a multiple of varies less than it.
  auto spread = [&](size_t slot) {
    int64_t least = kernels.front()[slot], most = least;
    for (const auto &kernel : kernels)
      least = std::min(least, kernel[slot]), most = std::max(most, kernel[slot]);
    return most - least;
  };
  llvm::stable_sort(slots, [&](size_t x, size_t y) { return spread(x) < spread(y); });
  for (size_t slot : slots) {
    std::optional<Derived> known = derive(slot, linear);
    if (!known)
      bases.push_back(slot);
    all.push_back(known.value_or(Derived{slot, slot}));
  }
}

std::optional<Varying::Derived> Varying::derive(size_t slot, bool linear) const {
  for (size_t base : bases) {
    Derived result{slot, base};
    const std::vector<int64_t> &first = kernels.front();
    auto other = llvm::find_if(kernels, [&](const auto &kernel) { return kernel[base] != first[base]; });
    if (linear) {
      result.factor = ((*other)[slot] - first[slot]) / ((*other)[base] - first[base]);
      result.offset = first[slot] - result.factor * first[base];
    }
    if (llvm::all_of(kernels,
                     [&](const auto &kernel) { return kernel[slot] == result.factor * kernel[base] + result.offset; }))
      return result;
  }
  return std::nullopt;
}

bool Varying::isFinite(size_t slot) const {
  return llvm::all_of(kernels, [&](const auto &kernel) {
    return std::isfinite(llvm::bit_cast<float>(static_cast<uint32_t>(kernel[slot])));
  });
}

/// One list of each kernel's.
static std::vector<std::vector<int64_t>> listsOf(const std::vector<const KernelShape *> &shapes,
                                                 std::vector<int64_t> KernelShape::*list) {
  std::vector<std::vector<int64_t>> all;
  for (const KernelShape *shape : shapes)
    all.push_back(shape->*list);
  return all;
}

FamilyNumbers::FamilyNumbers(const std::vector<const KernelShape *> &shapes)
    : numbers(listsOf(shapes, &KernelShape::numbers), /*linear=*/true),
      floats(listsOf(shapes, &KernelShape::floats), /*linear=*/false) {}

/// The op's number becomes the value.
static void replaceNumber(Operation *op, Value value) {
  if (isa<arith::ConstantOp>(op)) {
    op->getResult(0).replaceAllUsesWith(value);
  } else {
    auto address = cast<LLVM::GEPOp>(op);
    ImplicitLocOpBuilder b(op->getLoc(), op);
    auto other = LLVM::GEPOp::create(b, address.getType(), address.getElemType(), address.getBase(),
                                     ArrayRef<LLVM::GEPArg>{value}, address.getNoWrapFlags());
    address.replaceAllUsesWith(other.getResult());
  }
  op->erase();
}

/// Makes what differs arguments of the body, whose `ops` have the numbers, and what follows from them.
static void takeNumbers(func::FuncOp body, const Varying &varying, ArrayRef<Operation *> ops) {
  llvm::DenseMap<size_t, Value> arguments;
  for (size_t base : varying.bases) {
    Type i64 = IntegerType::get(body.getContext(), 64);
    static_cast<void>(body.insertArgument(body.getNumArguments(), i64, {}, body.getLoc()));
    arguments[base] = body.getArguments().back();
  }
  for (const Varying::Derived &number : varying.all) {
    auto b = ImplicitLocOpBuilder::atBlockBegin(body.getLoc(), &body.front());
    auto flags = arith::IntegerOverflowFlags::nsw;
    Value value = arguments[number.base];
    if (number.factor != 1)
      value = arith::MulIOp::create(b, value, arith::ConstantIntOp::create(b, number.factor, 64), flags);
    if (number.offset != 0)
      value = arith::AddIOp::create(b, value, arith::ConstantIntOp::create(b, number.offset, 64), flags);
    replaceNumber(ops[number.slot], value);
  }
}

/// Where a float of the table is read: before the innermost loop that has it, or where it stands. Any earlier, it would
/// take a register from the loops in between, which are those of the sums.
static Operation *readingPlace(Operation *op) {
  auto loop = op->getParentOfType<scf::ForOp>();
  bool isInnermost = loop && !loop.getBody()->walk([](scf::ForOp) { return WalkResult::interrupt(); }).wasInterrupted();
  return isInnermost ? loop.getOperation() : op;
}

/// Makes what differs a table that an argument of the body points to. That a float is finite LLVM sees of a constant,
/// and leaves out what becomes of NaN where a product of it is rounded to bytes: it is told.
static void takeFloats(func::FuncOp body, const Varying &varying, ArrayRef<Operation *> ops) {
  if (varying.bases.empty())
    return;
  MLIRContext *context = body.getContext();
  auto noalias =
      DictionaryAttr::get(context, NamedAttribute(StringAttr::get(context, LLVM::LLVMDialect::getNoAliasAttrName()),
                                                  UnitAttr::get(context)));
  static_cast<void>(
      body.insertArgument(body.getNumArguments(), LLVM::LLVMPointerType::get(context), noalias, body.getLoc()));
  Value table = body.getArguments().back();
  llvm::DenseMap<void *, Value> pointers; // by the loop or the block that reads
  for (Varying::Derived number : varying.all) {
    Operation *op = ops[number.slot], *place = readingPlace(op);
    ImplicitLocOpBuilder b(op->getLoc(), place);
    Value &pointer = pointers[place == op ? static_cast<void *>(op->getBlock()) : place];
    if (!pointer) {
      OpBuilder::InsertionGuard guard(b);
      if (place == op)
        b.setInsertionPointToStart(op->getBlock());
      pointer = CpuBuilder::opaque(b, table);
    }
    auto index = static_cast<int32_t>(llvm::find(varying.bases, number.base) - varying.bases.begin());
    Value address = LLVM::GEPOp::create(b, table.getType(), b.getF32Type(), pointer, ArrayRef<LLVM::GEPArg>{index});
    Value read = LLVM::LoadOp::create(b, b.getF32Type(), address, /*alignment=*/4, /*isVolatile=*/false,
                                      /*isNonTemporal=*/false, /*isInvariant=*/true);
    if (varying.isFinite(number.slot))
      LLVM::AssumeOp::create(b, LLVM::IsFPClass::create(b, b.getI1Type(), read, llvm::fcFinite));
    replaceNumber(op, read);
  }
}

static func::CallOp callOf(func::FuncOp kernel) { return *kernel.getOps<func::CallOp>().begin(); }

/// Makes the kernel's call bring its own numbers behind what it brings.
static void bringNumbers(func::FuncOp kernel, const Varying &varying, size_t number) {
  func::CallOp call = callOf(kernel);
  ImplicitLocOpBuilder b(call.getLoc(), call);
  for (size_t base : varying.bases) {
    Value own = arith::ConstantIntOp::create(b, varying.kernels[number][base], 64);
    call->insertOperands(call->getNumOperands(), own);
  }
}

/// The same of its floats, as a constant of the module.
static void bringFloats(func::FuncOp kernel, const Varying &varying, size_t number) {
  if (varying.bases.empty())
    return;
  std::vector<float> own;
  for (size_t base : varying.bases)
    own.push_back(llvm::bit_cast<float>(static_cast<uint32_t>(varying.kernels[number][base])));
  auto count = static_cast<int64_t>(own.size());
  ImplicitLocOpBuilder b(kernel.getLoc(), kernel);
  auto table = LLVM::GlobalOp::create(
      b, LLVM::LLVMArrayType::get(b.getF32Type(), own.size()), /*isConstant=*/true, LLVM::Linkage::Private,
      (kernel.getName() + ".floats").str(),
      DenseElementsAttr::get(RankedTensorType::get({count}, b.getF32Type()), ArrayRef<float>(own)), /*alignment=*/4);
  func::CallOp call = callOf(kernel);
  b.setInsertionPoint(call);
  call->insertOperands(call->getNumOperands(), LLVM::AddressOfOp::create(b, table).getResult());
}

void FamilyNumbers::widen(ModuleOp module, const std::vector<std::string> &names) const {
  auto kernel = *llvm::find_if(module.getOps<func::FuncOp>(), [](func::FuncOp fn) { return !fn.isPrivate(); });
  std::vector<Operation *> ofNumbers, ofFloats;
  if (std::optional<KernelParts> parts = KernelParts::of(module)) {
    forNumbers(parts->body, [&](Operation *op, int64_t) { (isFloat(op) ? ofFloats : ofNumbers).push_back(op); });
    takeNumbers(parts->body, numbers, ofNumbers);
    takeFloats(parts->body, floats, ofFloats);
  }
  for (size_t i = names.size(); i-- > 0;) { // the first as the last, as it is copied
    func::FuncOp member = i ? kernel.clone() : kernel;
    member.setName(names[i]);
    if (i)
      module.getBody()->getOperations().insertAfter(kernel->getIterator(), member);
    bringNumbers(member, numbers, i);
    bringFloats(member, floats, i);
  }
}
