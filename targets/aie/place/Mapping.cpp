//===- Product.cpp - which products the array holds -----------------------===//
#include "Place.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::aie;

namespace dmxc::aie {
const Numbers kBf16{"bf16", "matmul_bf16_f32", "zero_f32", "bias_f32", "relu_f32", "steps_f32", 64, 32,
                    64,     hw::kStepKBf16,    2};
const Numbers kI32{"i32", "matmul_i32_i32", "zero_i32", "bias_i32", "relu_i32", "", 32, 32, 32, hw::kStepKI32, 4};
const Numbers kI8{"i8", "matmul_i8_i32", "zero_i32", "bias_i32", "relu_i32", "", 64, 64, 64, hw::kStepKI8, 1};
const Numbers kUi8{"i8", "matmul_ui8_i32", "zero_i32", "bias_i32", "relu_i32", "", 64, 64, 64, hw::kStepKI8, 1};
} // namespace dmxc::aie

static constexpr int64_t kMostBlocks = 4096; ///< a few MB of control stream
static constexpr int64_t kMostBytes = int64_t(1) << 32;
/// Clocks of a block of results beside its multiplications: its fill and drain.
static constexpr int64_t kBlockClocks = 4096;

const Numbers *aie::numbersOf(Type a, Type b, Type c) {
  auto isSigned = [](Type type, unsigned width) { return type.isInteger(width) && !type.isUnsignedInteger(); };
  if (a.isF32() && b.isF32() && c.isF32())
    return &kBf16;
  if (!isSigned(c, 32))
    return nullptr;
  if (isSigned(a, 32) && isSigned(b, 32))
    return &kI32;
  return !a.isInteger(8) || !isSigned(b, 8) ? nullptr : a.isUnsignedInteger() ? &kUi8 : &kI8;
}

bool Product::hasBias() const {
  return llvm::any_of(operands, [](const Operand &operand) { return operand.part == Part::Bias; });
}

int64_t Product::numbersOf(Part part) const {
  if (!window)
    return matrices * (part == Part::A ? m * k : part == Part::B ? k * n : m * n);
  const Window &w = *window;
  return part == Part::A   ? w.images * w.channels * w.height * w.width
         : part == Part::B ? w.outputs * w.channels * w.kernelHeight * w.kernelWidth
                           : w.images * w.outputs * w.outHeight * w.outWidth;
}

double Product::work() const {
  return static_cast<double>(matrices) * static_cast<double>(paddedM()) * static_cast<double>(paddedK()) *
         static_cast<double>(paddedN()) / static_cast<double>(macs());
}

void Product::setSizes() {
  if (window->outWidth == 1) // then any stride is right: one of a whole row leaves no windows between rows
    window->strideWidth = std::max(window->left + window->width, window->kernelWidth - window->left);
  m = window->m();
  k = window->k(numbers->k);
  n = window->n();
}

int64_t Product::imageRows() const {
  const Window &w = *window;
  // The last tile of the last block of rows, most of which is behind the image.
  int64_t reach = (w.planes() - 1) * w.plane() + (paddedM() - 1) * w.step() + (w.kernelRows(0) - 1) * w.imageRow() +
                  w.runTiles(numbers->k) * numbers->k;
  return (std::max(reach, w.strideHeight * w.plane()) + w.imageRow() - 1) / w.imageRow();
}

std::pair<int64_t, int64_t> Product::formOf(Part part) const {
  switch (part) {
  case Part::A: {
    if (!window)
      return {matrices * paddedM(), paddedK()};
    int64_t pitch = window->imageRow();
    return {imageRows() + (hasTileOfZeros() ? (zerosOfA() + pitch - 1) / pitch : 0), pitch};
  }
  case Part::B:
    return {matrices * paddedK(), paddedN()};
  case Part::Bias:
    return {1, paddedN()};
  case Part::C:
    break;
  }
  return {matrices * paddedM(), paddedN()};
}

std::vector<hw::Axis> Product::axesOf(const Operand &operand) const {
  ArrayRef<int64_t> shape = operand.tensor.getShape();
  size_t rank = shape.size();
  std::vector<hw::Axis> axes(rank);
  for (auto [axis, extent] : llvm::zip(axes, shape))
    axis.extent = static_cast<uint32_t>(extent);
  auto place = [&](size_t dim, int64_t stride, int64_t first = 0, int64_t split = 1, int64_t phase = 0) {
    axes[dim].stride = static_cast<uint32_t>(stride);
    axes[dim].first = static_cast<uint32_t>(first);
    axes[dim].split = static_cast<uint32_t>(split);
    axes[dim].phase = static_cast<uint32_t>(phase);
  };
  if (operand.part == Part::Bias) {
    for (size_t dim = 0; dim < rank; ++dim)
      place(dim, shape[dim] > 1);
    return axes;
  }
  if (!window) {
    auto [rows, pitch] = formOf(operand.part);
    int64_t stride = rows / matrices * pitch;
    place(rank - 1, 1);
    place(rank - 2, pitch);
    for (size_t dim = rank - 2; dim-- > 0; stride *= shape[dim])
      place(dim, stride);
    return axes;
  }
  const Window &w = *window;
  bool isImage = operand.part == Part::A;
  int64_t row = isImage ? w.imageRow() : w.rowsAcross() * paddedN();
  place(0, w.rowsDown() * row);
  place(1, 1);
  if (rank == 4)
    place(2, row, isImage ? w.top : 0, isImage ? w.strideHeight : 1, isImage ? w.plane() : 0);
  if (isImage)
    place(rank - 1, w.pixel(), w.left);
  else
    place(rank - 1, paddedN(), 0, w.together, w.outputs);
  return axes;
}

/// What walks over windows cannot do.
static std::optional<std::string> refusesWindow(const hw::Machine &machine, const Product &product) {
  const Window &window = *product.window;
  const hw::TileInfo &shim = machine.tile(hw::TileKind::Shim);
  auto most = [](const std::string &what, int64_t value, const char *unit, int64_t limit) {
    return what + std::to_string(value) + unit + std::to_string(limit);
  };
  int64_t words = product.numbers->bytes, step = shim.largestStep;
  for (auto [what, elements] :
       {std::pair("output pixels are ", window.step()), {"rows of the image are ", window.imageRow()}})
    if (elements * words / 4 > step)
      return most(what, elements * words / 4, " words apart, a shim's BD steps over ", step);
  std::vector<WindowTask> tasks = tasksOf(window);
  if (tasks[0].steps > 1 && tasks[0].stride * words / 4 > step)
    return most("rows of a kernel read planes that are ", tasks[0].stride * words / 4,
                " words apart, a shim's BD steps over ", step);
  if (tasks[0].steps > machine.largestIteration)
    return most("the kernel has ", tasks[0].steps, " rows for a task, a BD counts to ", machine.largestIteration);
  if (window.runTiles(product.numbers->k) > shim.largestWrap)
    return most("a row of the kernel has ", window.runTiles(product.numbers->k), " tiles, a dim of a shim's BD has ",
                shim.largestWrap);
  int64_t all = static_cast<int64_t>(tasks.size()) + product.hasTileOfZeros();
  if (all > machine.queueDepth)
    return most("rows by a stride of " + std::to_string(window.strideHeight) + " take ", all,
                " tasks for a block of results, the queue of a shim's channel holds ", machine.queueDepth);
  return std::nullopt;
}

std::optional<std::string> aie::refuses(const hw::Machine &machine, const Product &product) {
  constexpr int64_t most = int64_t(1) << 30; // far above, and no product of sizes overflows
  if (std::max({product.m, product.k, product.n}) > most)
    return "a dim of the product is above " + std::to_string(most);
  int64_t step = machine.tile(hw::TileKind::Shim).largestStep, k = product.paddedK(), n = product.paddedN(),
          bytes = product.numbers->bytes;
  std::string over = " words, a shim's BD steps over " + std::to_string(step);
  if (product.window) {
    if (std::optional<std::string> why = refusesWindow(machine, product))
      return why;
  } else if (k * bytes / 4 > step) {
    return "a row of the first matrix has " + std::to_string(k * bytes / 4) + over;
  }
  if (product.numbers->k * n * bytes / 4 > step)
    return std::to_string(product.numbers->k) + " rows of the second matrix have " +
           std::to_string(product.numbers->k * n * bytes / 4) + over;
  if (product.blocks() > kMostBlocks)
    return "the product has " + std::to_string(product.blocks()) + " blocks of " + std::to_string(product.blockM()) +
           " x " + std::to_string(product.blockN()) + ", the array's control stream holds " +
           std::to_string(kMostBlocks);
  for (Part part : {Part::A, Part::B, Part::C}) {
    auto [rows, pitch] = product.formOf(part);
    if ((part == Part::C ? 4 : bytes) * rows > kMostBytes / pitch)
      return "a matrix takes more than 4 GiB of the array's DDR";
    int64_t numbers = product.numbersOf(part), limit = hw::kMostPadding * (numbers + hw::kSpareElements);
    if (rows * pitch > limit)
      return std::to_string(numbers) + " numbers would be " + std::to_string(rows * pitch) +
             " in the array's DDR, where they may be " + std::to_string(limit);
  }
  return std::nullopt;
}

void aie::chooseTogether(const hw::Machine &machine, Product &product) {
  bool packed = llvm::all_of(product.operands, [](const Operand &operand) {
    return operand.packed || operand.part == Part::A || operand.part == Part::C;
  });
  int64_t best = INT64_MAX, chosen = 1, tiles = product.blockM() * product.blockN();
  Product tried = product;
  for (int64_t together = 1; together <= product.window->outWidth; ++together) {
    tried.window->together = together;
    tried.setSizes();
    if (together > 1 && (!packed || tried.n > product.blockN()))
      break;
    int64_t macsPerClock = product.herd.rows * product.herd.columns * machine.macs(product.numbers->bytes);
    int64_t cost = tried.blocks() * (kBlockClocks + tiles * tried.paddedK() / macsPerClock);
    if (cost < best && !refuses(machine, tried)) {
      best = cost;
      chosen = together;
    }
  }
  product.window->together = chosen;
  product.setSizes();
}
