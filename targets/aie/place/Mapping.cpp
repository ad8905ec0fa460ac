//===- Mapping.cpp - a product on an array of cores -----------------------===//
#include "Runs.h"
#include "Stay.h"

#include "dmxc/Dialect/DMIR/Dims.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::aie;

namespace dmxc::aie {
const Numbers kBf16{"bf16", "matmul_bf16_f32", "zero_f32", "bias_f32", "relu_f32", "steps_f32", "", 64, 32,
                    64,     hw::kStepBf16,     2};
const Numbers kOwnBf16{
    "bf16", "matmul_bf16_f32", "zero_f32", "bias_f32", "relu_f32", "steps_f32", "round_bf16_f32", 64, 32,
    64,     hw::kStepBf16,     2};
const Numbers kI32{"i32", "matmul_i32_i32", "zero_i32", "bias_i32", "relu_i32", "", "", 32, 32, 32, hw::kStepI32, 4};
const Numbers kI8{"i8", "matmul_i8_i32", "zero_i32", "bias_i8_i32", "relu_i32", "", "", 64, 64, 64, hw::kStepI8, 1};
const Numbers kUi8{"i8", "matmul_ui8_i32", "zero_i32", "bias_i8_i32", "relu_i32", "", "", 64, 64, 64, hw::kStepI8, 1};
} // namespace dmxc::aie

static constexpr int64_t kMostBlocks = 4096; ///< a few MB of control stream
static constexpr int64_t kMostBytes = int64_t(1) << 32;

const Numbers *aie::numbersOf(Type a, Type b, Type c) {
  auto isSigned = [](Type type, unsigned width) { return type.isInteger(width) && !type.isUnsignedInteger(); };
  bool areFloats = a.isF32() || a.isBF16() || a.isF16();
  if (areFloats && a == b && (c == a || c.isF32()))
    return c.isBF16() ? &kOwnBf16 : &kBf16;
  if (!isSigned(c, 32))
    return nullptr;
  if (isSigned(a, 32) && isSigned(b, 32))
    return &kI32;
  return !a.isInteger(8) || !isSigned(b, 8) ? nullptr : a.isUnsignedInteger() ? &kUi8 : &kI8;
}

const Narrow *aie::narrowTo(Type result) {
  static const Narrow kFloats{"narrow_f32_f32", "f32", 4}, kHalves{"narrow_f32_bf16", "bf16", 2},
      kBytes{"narrow_f32_i8", "i8", 1};
  return result.isF32() ? &kFloats : result.isBF16() ? &kHalves : result.isInteger(8) ? &kBytes : nullptr;
}

int64_t Herd::parts() const {
  if (owns())
    return rows / panels;
  int64_t parts = (rows + columns - 1) / columns;
  while (rows % parts)
    ++parts;
  return parts;
}

ArrayRef<kernels::TileField<Tiling>> Tiling::fields() {
  static const kernels::TileField<Tiling> all[] = {
      {"herd_rows", &Tiling::herdRows, "rows of cores"},
      {"herd_columns", &Tiling::herdColumns, "columns of cores"},
      {"tile_m", &Tiling::m, "rows of a core's tile of the result"},
      {"tile_n", &Tiling::n, "columns of a core's tile of the result"},
      {"tile_k", &Tiling::k, "terms of a sum that a core takes at once"},
      {"groups_a_matrix", &Tiling::groups, "groups of a convolution that are multiplied as one"},
      {"pixels_a_row", &Tiling::pixels, "output pixels beside each other that a row of the product has"},
      {"panels", &Tiling::panels, "panels of b that the cores of a column share"},
      {"result_channels", &Tiling::outs, "channels by which the results of a column leave"},
      {"bands", &Tiling::bands, "bands of rows: one of each column of cores, or one of all"},
      {"stays", &Tiling::stays, "whether rows of a stay in memory tiles for the blocks beside each other"}};
  return all;
}

Mapping::Mapping(const kernels::Contraction &contraction, const Numbers &numbers)
    : numbers(numbers), macs(*(contraction.batch * contraction.m * contraction.n * contraction.k).known()) {
  if (contraction.windows) {
    image = ImageWalk::of(contraction, numbers.bytes);
  } else {
    matrices = *contraction.batch.known();
    m = *contraction.m.known();
    k = *contraction.k.known();
    n = *contraction.n.known();
  }
  setTiling(tiling());
}

void Mapping::setTiling(const Tiling &tiling) {
  herd = {tiling.herdRows, tiling.herdColumns, tiling.panels, tiling.outs, tiling.bands, tiling.stays};
  numbers.m = tiling.m;
  numbers.k = tiling.k;
  numbers.n = tiling.n;
  runs.clear();
  if (!image)
    return;
  image->setTogether(tiling.groups);
  image->pixels = tiling.pixels;
  matrices = image->matrices();
  m = image->m();
  k = image->k(numbers.k);
  n = image->n();
}

void Mapping::expectResidual() {
  if (numbers.bytes == 1)
    return;
  Tiling tiling = this->tiling();
  tiling.m = numbers.m / 2;
  tiling.k = 2 * numbers.k;
  setTiling(tiling);
}

const Operand *Mapping::operand(Part part) const {
  auto found = llvm::find_if(operands, [&](const Operand &operand) { return operand.part == part; });
  return found == operands.end() ? nullptr : &*found;
}

bool Mapping::has(Part part) const { return operand(part); }

std::optional<Kept> Mapping::kept(Part part) const {
  const Operand *found = operand(part);
  return found ? keptOf(found->tensor) : std::nullopt;
}

bool Mapping::packs(Part part) const {
  return llvm::any_of(operands, [&](const Operand &operand) { return operand.part == part && operand.packed; });
}

bool Mapping::hasPackedWeights() const {
  return llvm::all_of(
      operands, [](const Operand &operand) { return operand.packed || (operand.part != Part::B && !operand.isRow()); });
}

int64_t Mapping::tileBytes(int64_t m, int64_t k, int64_t n) const {
  int64_t ofResult = 4 * (narrows() ? 1 : 2) + resultSlots() * resultBytes();
  return 2 * numbers.bytes * k * (m + n) + ofResult * m * n;
}

double Mapping::work() const {
  return static_cast<double>(matrices) * static_cast<double>(paddedM()) * static_cast<double>(paddedK()) *
         static_cast<double>(paddedN()) / static_cast<double>(macs);
}

int64_t Mapping::imageRows() const {
  const ImageWalk &w = *image;
  int64_t end = w.down.stride * w.plane();
  for (const ImageTask &task :
       tasksOf(w, numbers.k)) // its last tile of the last block of rows, mostly behind the image
    end = std::max(end, task.offset + (task.steps - 1) * task.stride + (task.tiles - 1) * task.tile + numbers.k +
                            (paddedM() - 1) * w.step());
  if (herd.stays) // whole pixels of each plane
    end = std::max(end, (planesOfWindows() - 1) * w.plane() + reachOfWindows() + paddedM() * w.step());
  return (end + w.imageRow() - 1) / w.imageRow();
}

int64_t Mapping::reachOfWindows() const {
  int64_t reach = 0;
  for (const ImageTask &task : tasksOf(*image, numbers.k)) {
    int64_t down = task.stride < image->plane() ? (task.steps - 1) * task.stride : 0;
    reach = std::max(reach, task.offset % image->plane() + down + (task.tiles - 1) * task.tile + numbers.k);
  }
  return reach;
}

int64_t Mapping::planesOfWindows() const {
  int64_t planes = 0;
  for (const ImageTask &task : tasksOf(*image, numbers.k))
    planes = std::max(planes, (task.offset + (task.steps - 1) * task.stride) / image->plane() + 1);
  return planes;
}

int64_t Mapping::matrixOfA() const { return image ? imageRows() * image->imageRow() : paddedM() * paddedK(); }

std::pair<int64_t, int64_t> Mapping::formOf(Part part) const {
  if (std::optional<Kept> form = kept(part))
    return {form->rows, form->pitch};
  switch (part) {
  case Part::A: {
    if (!image)
      return {matrices * paddedM(), paddedK()};
    int64_t pitch = image->imageRow();
    return {matrices * imageRows() + (hasTileOfZeros() ? (zerosOfA() + pitch - 1) / pitch : 0), pitch};
  }
  case Part::B:
    if (!runs.empty())
      return {herd.resultColumns() * depthBefore(paddedN() / blockN()), numbers.n};
    return {matrices * (paddedN() / numbers.n) * paddedK(), numbers.n};
  case Part::Bias:
  case Part::Scales:
    if (int64_t all = image ? matrices : 1; packs(part))
      return {all * (paddedN() / numbers.n), biasWords()};
    else
      return {all, paddedN()};
  case Part::Residual:
    return {matrices * paddedM() + (residualTiles() - residualRows()) * numbers.m, paddedN()};
  case Part::C:
    break;
  }
  return {matrices * paddedM(), paddedN()};
}

int64_t Operand::bytes() const {
  int64_t elements = 1;
  for (int64_t extent : shape())
    elements *= extent;
  return elements * tensor.getElementTypeBitWidth() / 8;
}

Dim Mapping::rowBlocks() const {
  Dim rows = open ? open->m : Dim(m);
  if (open && image)
    rows = ((open->images - 1) * image->rowsDown() + open->down - 1) * image->rowsAcross() +
           Dim::ceilDiv(open->across, image->pixels);
  return rows.isStatic() ? Dim::ceilDiv(rows, blockM()) : Dim::max(Dim::ceilDiv(rows, blockM()), 0);
}

Dim Mapping::columnBlocks() const { return Dim::ceilDiv(open && !image ? open->n : Dim(n), blockN()); }

/// A sum of no terms is one of zeros.
Dim Mapping::pairs() const {
  Dim terms = open && !image ? open->k : Dim(k);
  return terms.isStatic() ? Dim(paddedK() / (2 * numbers.k)) : Dim::max(Dim::ceilDiv(terms, 2 * numbers.k), 1);
}

/// Of a product's operand dims that go over its matrices are one, or over all rows.
template <typename Size> static SmallVector<Size> joined(ArrayRef<Size> sizes, bool keepsMatrices) {
  size_t joinedDims = sizes.size() - (keepsMatrices ? 2 : 1);
  SmallVector<Size> out(1, Size(1));
  for (auto [i, size] : llvm::enumerate(sizes))
    i < joinedDims ? out.back() = out.back() * size : (out.push_back(size), out.back());
  return out;
}

SmallVector<Dim> Mapping::sizesOf(const Operand &operand) const {
  SmallVector<Dim> dims = dmir::dimsOf(operand.tensor);
  return image || operand.part == Part::Bias ? dims : joined<Dim>(dims, matrices > 1);
}

std::vector<hw::Axis> Mapping::axesOf(const Operand &operand) const {
  SmallVector<int64_t> shape(operand.shape());
  if (!image && operand.part != Part::Bias)
    shape = joined<int64_t>(operand.shape(), matrices > 1);
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
  if (operand.isRow()) {
    for (size_t dim = 0; dim < rank; ++dim)
      if (bool isRow = shape[dim] > 1; image && isRow)
        place(dim, paddedN(), 0, image->outputs, 1);
      else
        place(dim, isRow);
    return axes;
  }
  if (!image) {
    int64_t pitch = formOf(operand.part).second, stride = paddedM() * pitch;
    if (operand.part == Part::B) {
      stride = paddedK() * paddedN();
      place(rank - 1, paddedK() * pitch, 0, pitch, 1);
    } else {
      place(rank - 1, 1);
    }
    place(rank - 2, pitch);
    if (rank > 2)
      place(0, stride);
    return axes;
  }
  const ImageWalk &w = *image;
  bool isImage = operand.part == Part::A;
  int64_t row = isImage ? w.imageRow() : w.rowsAcross() * paddedN();
  place(0, w.rowsDown() * row);
  if (matrices == 1)
    place(1, 1);
  else
    place(1, isImage ? matrixOfA() : paddedM() * paddedN(), 0, isImage ? w.channels : w.outputs, 1);
  if (rank == 4)
    place(2, row, isImage ? ImageWalk::number(w.down.low) : 0, isImage ? w.down.stride : 1, isImage ? w.plane() : 0);
  if (isImage)
    place(rank - 1, w.pixel(), ImageWalk::number(w.across.low));
  else
    place(rank - 1, paddedN(), 0, w.pixels, w.outputs);
  return axes;
}

static std::string most(const std::string &what, int64_t value, const std::string &unit, int64_t limit) {
  return what + std::to_string(value) + unit + std::to_string(limit);
}

/// What walks over windows cannot do.
static std::optional<std::string> refusesWalk(const hw::Machine &machine, const Mapping &mapping) {
  const ImageWalk &walk = *mapping.image;
  const hw::TileInfo &shim = machine.tile(hw::TileKind::Shim);
  int64_t bytes = mapping.numbers.bytes, step = shim.largestStep;
  for (auto [what, elements] :
       {std::pair("output pixels are ", walk.step()), {"rows of the image are ", walk.imageRow()}})
    if (elements * bytes / 4 > step)
      return most(what, elements * bytes / 4, " words apart, a shim's BD steps over ", step);
  std::vector<ImageTask> tasks = tasksOf(walk, mapping.numbers.k);
  if (tasks[0].steps > 1 && tasks[0].stride * bytes / 4 > step)
    return most("rows of a kernel read planes that are ", tasks[0].stride * bytes / 4,
                " words apart, a shim's BD steps over ", step);
  if (tasks[0].steps > machine.largestIteration)
    return most("the kernel has ", tasks[0].steps, " rows for a task, a BD counts to ", machine.largestIteration);
  if (tasks[0].tiles > shim.largestWrap)
    return most("a row of the kernel has ", tasks[0].tiles, " tiles, a dim of a shim's BD has ", shim.largestWrap);
  int64_t all = static_cast<int64_t>(tasks.size()) + mapping.hasTileOfZeros();
  if (all > machine.queueDepth)
    return most("rows by a stride of " + std::to_string(walk.down.stride) + " take ", all,
                " tasks for a block of results, the queue of a shim's channel holds ", machine.queueDepth);
  return std::nullopt;
}

std::optional<std::string> aie::refusesChannels(const hw::Machine &machine, const Herd &herd) {
  if (herd.bands != 1 && (herd.bands != herd.columns || herd.panels > 1))
    return most("bands of rows are 1, or of columns with one panel of b as many as these: ", herd.bands,
                " bands, and columns: ", herd.columns);
  if (herd.owns() && !herd.stays)
    return "columns of cores that have their own rows of a keep them in memory tiles";
  int64_t largest = std::min<int64_t>(machine.tile(hw::TileKind::Shim).channels, herd.rows / herd.panels);
  if (herd.outs < 1 || herd.outs > largest)
    return most("results of a column leave by ", herd.outs, " channels, there may be ", largest);
  int64_t all = herd.parts() + herd.panels + herd.outs, channels = machine.tile(hw::TileKind::Memory).channels;
  if (all > channels)
    return most("a column has parts of a, panels of b and channels of results: ", all,
                " in all, a memory tile sends by ", channels);
  return std::nullopt;
}

/// What its tiles ask for that a core does not have.
static std::optional<std::string> refusesTiles(const hw::Machine &machine, const Mapping &mapping) {
  const Numbers &n = mapping.numbers;
  int64_t matrices = mapping.tileBytes(n.m, n.k, n.n), words = hw::kParameterWords;
  if (mapping.has(Part::Residual)) {
    words += hw::kResidualWords;
    int64_t column = (n.bytes == 1 ? 1 : 4) * n.m;
    if (n.bytes * n.k != column)
      return most("a residual's tiles are those of b, whose columns have ", n.bytes * n.k, " bytes and not ", column);
  }
  int64_t has = machine.tile(hw::TileKind::Core).dataBytes -
                (4 * words + machine.accessBytes - 1) / machine.accessBytes * machine.accessBytes;
  if (matrices > has)
    return most("the buffers of its tiles are ", matrices, " bytes, beside its parameters a core has ", has);
  return std::nullopt;
}

/// Elements of an operand that the host has, at most.
static int64_t hostElements(const Mapping &mapping, Part part) {
  auto operand = llvm::find_if(mapping.operands, [&](const Operand &one) { return one.part == part; });
  return operand->bytes() * 8 / operand->tensor.getElementTypeBitWidth();
}

/// What stays in the array's form has room for the blocks of both products, and numbers in all columns that are read.
static std::optional<std::string> refusesKept(const Mapping &mapping) {
  for (Part part : {Part::A, Part::C}) {
    const Operand *operand = mapping.operand(part);
    if (!operand || !isa_and_nonnull<DictionaryAttr>(operand->tensor.getEncoding()))
      continue;
    std::optional<Kept> kept = keptOf(operand->tensor);
    bool isResult = part == Part::C;
    if (!kept || kept->element != (isResult ? mapping.results() : mapping.numbers.name) || mapping.image ||
        mapping.matrices > 1)
      return "its " + std::string(isResult ? "result" : "first operand") + " has an encoding that is no form of it";
    int64_t columns = isResult ? mapping.paddedN() : mapping.paddedK();
    if (mapping.paddedM() > kept->rows || columns > kept->pitch || (isResult && columns != kept->pitch))
      return std::to_string(mapping.paddedM()) + " rows of " + std::to_string(columns) + " are " +
             (isResult ? "its result" : "its first operand") + ", which has a form of " + std::to_string(kept->rows) +
             " of " + std::to_string(kept->pitch);
  }
  return std::nullopt;
}

static std::optional<std::string> refusesForms(const Mapping &mapping) {
  for (Part part : {Part::A, Part::B, Part::C}) {
    auto [rows, pitch] = mapping.formOf(part);
    if ((part == Part::C ? mapping.resultBytes() : mapping.numbers.bytes) * rows > kMostBytes / pitch)
      return "a matrix takes more than 4 GiB of the array's DDR";
    int64_t numbers = hostElements(mapping, part), limit = hw::kMostPadding * (numbers + hw::kSpareElements);
    if (rows * pitch > limit)
      return most(std::to_string(numbers) + " numbers would be ", rows * pitch,
                  " in the array's DDR, where they may be ", limit);
  }
  return std::nullopt;
}

std::optional<std::string> aie::refuses(const hw::Machine &machine, const Mapping &mapping) {
  constexpr int64_t largest = int64_t(1) << 30; // far above, and no product of sizes overflows
  if (std::max({mapping.m, mapping.k, mapping.n}) > largest)
    return "a dim of the product is above " + std::to_string(largest);
  if (std::optional<std::string> why = refusesTiles(machine, mapping))
    return why;
  if (std::optional<std::string> why = refusesChannels(machine, mapping.herd))
    return why;
  if (std::optional<std::string> why = refusesKept(mapping))
    return why;
  if (std::optional<std::string> why = refusesRuns(machine, mapping))
    return why;
  if (mapping.herd.stays)
    if (Stay stay(machine, mapping); stay.why)
      return stay.why;
  int64_t step = machine.tile(hw::TileKind::Shim).largestStep, k = mapping.paddedK(), bytes = mapping.numbers.bytes;
  const std::string over = " words, a shim's BD steps over ";
  if (mapping.image) {
    if (std::optional<std::string> why = refusesWalk(machine, mapping))
      return why;
  } else if (k * bytes / 4 > step) {
    return most("a row of the first matrix has ", k * bytes / 4, over, step);
  }
  if (mapping.blocks() > kMostBlocks)
    return most("the product has ", mapping.blocks(),
                " blocks of " + std::to_string(mapping.blockM()) + " x " + std::to_string(mapping.blockN()) +
                    ", the array's control stream holds ",
                kMostBlocks);
  return refusesForms(mapping);
}
