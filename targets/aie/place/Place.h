//===- Place.h - a product on the tiles of an array -------------*- C++ -*-===//
//
// c = a * b, by rows x columns cores: a memory tile has the rows of a that some rows of cores need and sends them along
// those, memory tile c has the columns of b and sends them down its column, results join in the memory tile of their
// column. All of that is one configuration a number type; only the shims' tasks and words of the cores' memories change
// from product to product.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Window.h"

#include "targets/aie/dialect/Aie.h"

namespace dmxc::aie {

/// What is multiplied: in the array's memory, in tiles of the cores.
struct Numbers {
  llvm::StringRef name;                    ///< "bf16"
  llvm::StringRef matmul;                  ///< kernels of the cores' library
  llvm::StringRef zero, bias, relu, steps; ///< the last one for f32
  int64_t m, k, n;                         ///< of a core's tiles
  int64_t stepK;                           ///< of a matrix step
  int64_t bytes;                           ///< of an operand's element; results have 4
};
extern const Numbers kBf16, kI32, kI8, kUi8; ///< kUi8: bytes of a without a sign
/// Those of a product of these elements; null where the array multiplies no such numbers.
const Numbers *numbersOf(mlir::Type a, mlir::Type b, mlir::Type c);

/// Cores that compute a product together.
struct Herd {
  int64_t rows = 4, columns = 4;
  /// How many rows' parts of a a memory tile has: as few as the columns allow, the same number in each that has some.
  int64_t parts() const;
};

/// What an operand of the kernel is.
enum class Part : uint8_t { A, B, Bias, C };
struct Operand {
  Part part;
  mlir::RankedTensorType tensor;
  bool packed = false;  ///< the bundle has it in its form
  bool negated = false; ///< a bias that is subtracted: so in its form
};

/// c = steps(relu(a * b + bias)): a is m x k, b is k x n; or so many of all three. Of a convolution a is read out of
/// its images.
struct Product {
  const Numbers *numbers = &kBf16;
  Herd herd;
  int64_t m = 0, k = 0, n = 0, matrices = 1;
  bool relu = false;
  std::vector<hw::Step> steps; ///< up to hw::kMostSteps
  std::optional<Window> window;
  std::vector<Operand> operands; ///< as a dispatch brings them

  int64_t blockM() const { return herd.rows * numbers->m; }
  int64_t blockN() const { return herd.columns * numbers->n; }
  int64_t paddedM() const { return (m + blockM() - 1) / blockM() * blockM(); }
  /// A core has two buffers for operands and takes tiles along k in pairs.
  int64_t paddedK() const { return (k + 2 * numbers->k - 1) / (2 * numbers->k) * (2 * numbers->k); }
  int64_t paddedN() const { return (n + blockN() - 1) / blockN() * blockN(); }
  int64_t blocks() const { return matrices * (paddedM() / blockM()) * (paddedN() / blockN()); }
  bool hasBias() const;
  /// Multiplications of the model, and those of the cores for one of it.
  int64_t macs() const { return window ? window->macs() : matrices * m * k * n; }
  double work() const;
  int64_t numbersOf(Part part) const; ///< of the host, of a matrix
  /// Rows and pitch of an operand's form in DDR.
  std::pair<int64_t, int64_t> formOf(Part part) const;
  /// Of a convolution: takes its sizes from the window. `a` ends with rows of zeros for tiles behind the last run.
  void setSizes();
  bool hasTileOfZeros() const { return window && k / numbers->k % 2; }
  int64_t zerosOfA() const { return herd.parts() * numbers->m * numbers->k; }
  int64_t imageRows() const; ///< of a, before the zeros
  /// Where the numbers of an operand of a convolution or of several matrices lie in their form.
  std::vector<hw::Axis> axesOf(const Operand &operand) const;
};
/// Output pixels that a row of a convolution has so that it costs least: more of them are more columns and fewer rows.
/// Above 1 for weights and biases that are packed.
void chooseTogether(const hw::Machine &machine, Product &convolution);
/// nullopt where the array holds the product, else a clause that says why not.
std::optional<std::string> refuses(const hw::Machine &machine, const Product &product);

/// The program, for grids of shims, memory tiles and cores, of a product that `refuses` accepts.
dlir::DeviceProgramOp writeProgram(mlir::OpBuilder &builder, mlir::Location where, const hw::Machine &machine,
                                   llvm::StringRef name, const Product &product);
/// The device that takes a program's place: tiles, buffers, locks, flows, DMA programs, cores, the runtime sequence.
/// Errors are diagnostics at the op; the program stays then.
mlir::FailureOr<DeviceOp> place(dlir::DeviceProgramOp program);

} // namespace dmxc::aie
