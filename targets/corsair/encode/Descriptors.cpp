//===- Descriptors.cpp - what the CONFIG of a task says -------------------===//

#include "StreamEncoder.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::corsair;
using hw::ConfigKey;

namespace {

ConfigKey shifted(ConfigKey first, size_t by) { return static_cast<ConfigKey>(static_cast<int>(first) + by); }

/// Gathers keys; leaves out defaults.
class Keys {
public:
  explicit Keys(Operation *op, hw::Unit unit) : op(op), config{unit, {}} {}

  void set(ConfigKey key, int64_t value) {
    if (value != hw::findConfigKey(key)->byDefault)
      config.keys.push_back({key, value});
  }
  void set(ConfigKey key, std::optional<uint64_t> value) {
    if (value)
      set(key, static_cast<int64_t>(*value));
  }
  void list(ConfigKey first, ArrayRef<int64_t> values, size_t offset = 0) {
    for (auto [i, value] : llvm::enumerate(values))
      set(shifted(first, offset + i), value);
  }
  LogicalResult kind(ConfigKey key, StringRef name) {
    std::optional<hw::ElemKind> known = hw::elemKindFromName(name.str());
    if (!known)
      return op->emitOpError("names no element kind of the device: '") << name << "'";
    set(key, static_cast<int64_t>(*known));
    return success();
  }
  LogicalResult window(DictionaryAttr dictionary) {
    for (NamedAttribute named : dictionary) {
      const hw::ConfigKeyInfo *info = hw::findConfigKey("win_" + named.getName().str(), config.unit);
      auto value = dyn_cast<IntegerAttr>(named.getValue());
      if (!info || !value)
        return op->emitOpError("has no window parameter '") << named.getName().getValue() << "'";
      set(info->key, value.getInt());
    }
    return success();
  }
  std::optional<Config> finish() {
    llvm::sort(config.keys);
    return config;
  }

private:
  Operation *op;
  Config config;
};

/// Steps of a linear side in bytes: whole elements, or whole lines of 64 of what is made of tiles.
LogicalResult checkSteps(dlir::DescriptorOp op, StringRef kindName, bool rows, ArrayRef<int64_t> steps,
                         std::optional<uint64_t> slice, StringRef side) {
  std::optional<hw::ElemKind> kind = hw::elemKindFromName(kindName.str());
  if (!kind || *kind == hw::ElemKind::Raw)
    return success();
  int64_t grain = hw::isTiled(*kind) ? 64 : hw::elementBytes(*kind);
  SmallVector<int64_t> all(steps);
  if (rows) // rows are counted; only the step along K is of bytes
    all.assign(steps.size() == 4 ? 1 : 0, steps.empty() ? 0 : steps.back());
  if (slice)
    all.push_back(static_cast<int64_t>(*slice));
  for (int64_t step : all)
    if (step % grain)
      return op.emitOpError("invalid stride: ")
             << side << " step " << step << " of " << kindName << " is not a multiple of " << grain;
  return success();
}

FailureOr<std::optional<Config>> describe(Operation *op, dlir::DescriptorOp d, bool stash) {
  Keys keys(op, stash ? hw::Unit::ST : hw::Unit::GM);
  StringRef to = d.getTo().value_or(d.getKind());
  if (failed(checkSteps(d, d.getKind(), d.getSourceRows(), d.getSource(), d.getSourceUnitStep(), "source")) ||
      failed(checkSteps(d, to, d.getTargetRows(), d.getTarget(), d.getTargetUnitStep(), "target")) ||
      failed(keys.kind(ConfigKey::Kind, d.getKind())) || (d.getTo() && failed(keys.kind(ConfigKey::To, to))) ||
      (d.getIndexKind() && failed(keys.kind(ConfigKey::IndexKind, *d.getIndexKind()))) ||
      (d.getWindow() && failed(keys.window(*d.getWindow()))))
    return failure();
  keys.set(ConfigKey::Unit, static_cast<int64_t>(d.getUnit()));
  keys.list(ConfigKey::N0, d.getDims());
  keys.list(ConfigKey::S0, d.getSource());
  keys.list(ConfigKey::T0, d.getTarget());
  keys.list(ConfigKey::Lo0, d.getLow().value_or(ArrayRef<int64_t>()));
  keys.list(ConfigKey::Hi0, d.getHigh().value_or(ArrayRef<int64_t>()));
  keys.set(ConfigKey::Retype, static_cast<int64_t>(d.getRetype()));
  keys.set(ConfigKey::SrcMode, static_cast<int64_t>(d.getSourceRows()));
  keys.set(ConfigKey::DstMode, static_cast<int64_t>(d.getTargetRows()));
  keys.set(ConfigKey::SrcBand, d.getSourceBand());
  keys.set(ConfigKey::DstBand, d.getTargetBand());
  keys.set(ConfigKey::SrcSlice, d.getSourceUnitStep());
  keys.set(ConfigKey::DstSlice, d.getTargetUnitStep());
  keys.set(ConfigKey::SrcCore, d.getSourceSubunitStep());
  keys.set(ConfigKey::Tail, d.getTail());
  keys.set(ConfigKey::ElemStride, d.getElementStride());
  keys.set(ConfigKey::IndexPitch, d.getIndexPitch());
  keys.set(ConfigKey::IndexRange, d.getIndexRange());
  return keys.finish();
}

template <typename OpTy> LogicalResult describeProduct(OpTy op, Keys &keys) {
  keys.set(ConfigKey::StepAcc, static_cast<int64_t>(op.getAccumulateSteps()));
  keys.set(ConfigKey::KChunks, op.getChunks());
  keys.set(ConfigKey::ObRow, op.getResultRow());
  keys.set(ConfigKey::ObGroup, op.getResultGroup());
  keys.set(ConfigKey::ObStep, op.getResultStep());
  keys.set(ConfigKey::StChunk, op.getStashChunk());
  keys.set(ConfigKey::StGroup, op.getStashGroup());
  keys.set(ConfigKey::StStep, op.getStashStep());
  return success(succeeded(keys.kind(ConfigKey::ActKind, op.getActivationKind())) &&
                 succeeded(keys.kind(ConfigKey::WeightKind, op.getWeightKind())));
}

FailureOr<std::optional<Config>> describe(engine::MatmulOp op) {
  Keys keys(op, hw::Unit::AC);
  if (failed(describeProduct(op, keys)))
    return failure();
  keys.set(ConfigKey::IbChunk, op.getActivationChunk());
  keys.set(ConfigKey::IbStep, op.getActivationStep());
  return keys.finish();
}

FailureOr<std::optional<Config>> describe(engine::ConvOp op) {
  Keys keys(op, hw::Unit::AC);
  if (failed(describeProduct(op, keys)) || failed(keys.window(op.getWindow())))
    return failure();
  keys.set(ConfigKey::ImgBand, op.getImageBand());
  keys.set(ConfigKey::ImgChunk, op.getImageChunk());
  keys.set(ConfigKey::ImgBlocks, op.getImageBlocks());
  keys.set(ConfigKey::ImgMem, static_cast<int64_t>(memoryOf(op.getBuffers().front())));
  keys.set(ConfigKey::PixSlice, op.getPixelSlice());
  keys.set(ConfigKey::Pixels, op.getPixels());
  return keys.finish();
}

FailureOr<std::optional<Config>> describe(engine::SimdOp op) {
  Keys keys(op, hw::Unit::SIMD);
  size_t missing = 4 - op.getDims().size(); // the innermost dims are the last
  keys.list(ConfigKey::N0, op.getDims(), missing);
  const std::optional<StringRef> kinds[] = {op.getToKind(), op.getAKind(), op.getBKind(), op.getCKind()};
  const std::optional<ArrayRef<int64_t>> strides[] = {op.getToStrides(), op.getAStrides(), op.getBStrides(),
                                                      op.getCStrides()};
  static constexpr ConfigKey kFirst[] = {ConfigKey::D0, ConfigKey::A0, ConfigKey::B0, ConfigKey::C0};
  for (size_t i = 0; i < 4; ++i) {
    if (!kinds[i]) {
      keys.set(shifted(ConfigKey::DKind, i), static_cast<int64_t>(hw::ElemKind::Raw));
      continue;
    }
    if (failed(keys.kind(shifted(ConfigKey::DKind, i), *kinds[i])))
      return failure();
    keys.set(shifted(ConfigKey::DMem, i), static_cast<int64_t>(memoryOf(op.getBuffers()[i])));
    keys.list(kFirst[i], *strides[i], missing);
  }
  if (op.getWindow() && failed(keys.window(*op.getWindow())))
    return failure();
  keys.set(ConfigKey::Inner, op.getInner());
  if (op.getSplit()) // counted in the op's dims; 0: every slice does everything
    keys.set(ConfigKey::Split, static_cast<int64_t>(*op.getSplit() ? *op.getSplit() + missing : 0));
  if (op.getCausal())
    keys.set(ConfigKey::Causal, static_cast<int64_t>(*op.getCausal() ? *op.getCausal() + missing : 0));
  keys.set(ConfigKey::CountPad, static_cast<int64_t>(op.getCountPad()));
  return keys.finish();
}

} // namespace

FailureOr<std::optional<Config>> corsair::configOf(Operation *task) {
  using Result = FailureOr<std::optional<Config>>;
  return TypeSwitch<Operation *, Result>(task)
      .Case([](dlir::DmaCopyOp op) -> Result {
        bool stash = llvm::any_of(op.getBuffers(), [](Value b) { return memoryOf(b) == hw::Memory::ST; });
        return describe(op, op.getDescriptor().getDefiningOp<dlir::DescriptorOp>(), stash);
      })
      .Case([](engine::ReshapeOp op) -> Result {
        if (!op.getDescriptor())
          return std::optional<Config>();
        return describe(op, op.getDescriptor().getDefiningOp<dlir::DescriptorOp>(), false);
      })
      .Case<engine::MatmulOp, engine::ConvOp, engine::SimdOp>([](auto op) -> Result { return describe(op); })
      .Default([](Operation *) -> Result { return std::optional<Config>(); });
}
