//===- Schedule.cpp - a product as a program of the abacus ----------------===//
#include "Abacus.h"

#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace dmxc;

/// c = a * b. Two halves of SRAM take turns, each with two tiles of a and of b along k: while the engine has one, the
/// other is filled; results take turns as well. Tiles of a are copied; those of b are put by one queue and got by
/// another. A token counts tiles: the engine waits for two of each. $X is the number X.
static constexpr const char *kProgram = R"mlir(
dlir.device_program @"$name" on "abacus" {
  dlir.argument input "$first" : $first_type as "f32"
  dlir.argument input "$second" : $second_type as "f32"
  dlir.argument output "c" : $type as "f32"
  %a = dlir.memory "DRAM" "a" size $a_bytes
  %b = dlir.memory "DRAM" "b" size $b_bytes
  %c = dlir.memory "DRAM" "c" size $c_bytes
  %ta = dlir.memory "SRAM" "tiles of a" size 4096
  %tb = dlir.memory "SRAM" "tiles of b" size 4096
  %tc = dlir.memory "SRAM" "tiles of c" size 2048
  dlir.piece "a" unit 0 in %a offset 0 begin [0, 0] extent [$m, $k] strides [$a_row, 4]
  dlir.piece "b" unit 0 in %b offset 0 begin [0, 0] extent [$k, $n] strides [$b_row, 4]
  dlir.piece "c" unit 0 in %c offset 0 begin [0, 0] extent [$m, $n] strides [$b_row, 4]
  %from_a = dlir.descriptor "f32" unit 16 dims [16] source [$a_row] target [64]
  %from_b = dlir.descriptor "f32" unit 16 dims [16] source [$b_row] target [64]
  %to_c = dlir.descriptor "f32" unit 16 dims [16] source [64] target [$b_row]
  dlir.channel @b depth 2
  dlir.scheduled_graph "main" units 1 (%unit) {
    %a_full = dlir.token
    %a_free = dlir.token credits 4
    %b_full = dlir.token
    %b_free = dlir.token credits 4
    %c_full = dlir.token
    %c_free = dlir.token credits 2
    dlir.dispatch_queue "abacus" "dma" 0 {
      dlir.loop %i times[$rows] { dlir.loop %j times[$columns] { dlir.loop %p times[$depth] {
      dlir.loop %half times[2] { dlir.loop %t times[2] {
        dlir.task_group "load a" wait(%a_free) signal(%a_full) {
          dlir.copy DRAM -> SRAM %a[%i * $a_tiles + %p * 256 + %half * 128 + %t * 64]
            to %ta[%half * 2048 + %t * 1024] with %from_a
        }
      } } } } }
    }
    dlir.dispatch_queue "abacus" "dma" 1 {
      dlir.loop %i times[$rows] { dlir.loop %j times[$columns] { dlir.loop %p times[$depth] {
      dlir.loop %half times[2] { dlir.loop %t times[2] {
        dlir.task_group "put b" {
          dlir.put @b %b[%j * 64 + %p * $b_steps + %half * $b_halves + %t * $b_tiles] with %from_b
        }
      } } } } }
    }
    dlir.dispatch_queue "abacus" "dma" 2 {
      dlir.loop %n times[$products] { dlir.loop %half times[2] { dlir.loop %t times[2] {
        dlir.task_group "get b" wait(%b_free) signal(%b_full) {
          dlir.get @b to %tb[%half * 2048 + %t * 1024] with %from_b
        }
      } } }
    }
    dlir.dispatch_queue "abacus" "multiplier" 0 {
      dlir.loop %i times[$results] { dlir.loop %turn times[2] {
        dlir.task_group "multiply" wait(%c_free) signal(%c_full) {
          dlir.loop %p times[$depth] { dlir.loop %half times[2] {
            dlir.task_barrier wait(%a_full >= 2, %b_full >= 2)
            dlir.loop %t times[2] {
              abacus.multiply %ta[%half * 2048 + %t * 1024] x %tb[%half * 2048 + %t * 1024]
                to %tc[%turn * 1024] accumulate[%p + %half + %t]
            }
            dlir.task_barrier signal(%a_free += 2, %b_free += 2)
          } }
        }
      } }
    }
    dlir.dispatch_queue "abacus" "dma" 3 {
      dlir.loop %i times[$rows] { dlir.loop %j times[$pairs] { dlir.loop %turn times[2] {
        dlir.task_group "store c" wait(%c_full) signal(%c_free) {
          dlir.copy SRAM -> DRAM %tc[%turn * 1024] to %c[%i * $c_tiles + %j * 128 + %turn * 64] with %to_c
        }
      } } }
    }
  }
}
)mlir";

namespace {

/// Sizes of a product, and the same padded to whole tiles in pairs.
struct Sizes {
  int64_t m, k, n, rows, depth, pairs;
  Sizes(int64_t m, int64_t k, int64_t n)
      : m(m), k(k), n(n), rows(llvm::divideCeil(m, 16)), depth(llvm::divideCeil(k, 64)),
        pairs(llvm::divideCeil(n, 32)) {}
  int64_t aRow() const { return depth * 64 * 4; }
  int64_t bRow() const { return pairs * 32 * 4; }
  int64_t aBytes() const { return rows * 16 * aRow(); }
  int64_t bBytes() const { return depth * 64 * bRow(); }
  int64_t cBytes() const { return rows * 16 * bRow(); }
};

} // namespace

int64_t abacus::bytesInDram(int64_t m, int64_t k, int64_t n) {
  Sizes sizes(m, k, n);
  return sizes.aBytes() + sizes.bBytes() + sizes.cBytes();
}

/// The text with each $X replaced.
static std::string filled(const llvm::StringMap<std::string> &values) {
  std::string text;
  for (StringRef rest = kProgram; !rest.empty();) {
    auto [before, after] = rest.split('$');
    StringRef word = after.take_while([](char c) { return llvm::isAlpha(c) || c == '_'; });
    text += before.str() + values.lookup(word);
    rest = after.drop_front(word.size());
  }
  return text;
}

Status abacus::writeProgram(dlir::KernelOp kernel) {
  auto product = cast<dmir::MatMulOp>(kernel.getBlock()->front());
  auto lhs = cast<RankedTensorType>(product.getLhs().getType()),
       rhs = cast<RankedTensorType>(product.getRhs().getType());
  Sizes s(lhs.getDimSize(0), lhs.getDimSize(1), rhs.getDimSize(1));
  llvm::StringMap<std::string> values;
  values["name"] = kernel.getSymName();
  bool swapped = product.getLhs() != kernel.getBlock()->getArgument(0);
  for (auto [key, type] : {std::pair("first_type", Type(swapped ? rhs : lhs)),
                           {"second_type", Type(swapped ? lhs : rhs)},
                           {"type", product.getResult().getType()}})
    llvm::raw_string_ostream(values[key]) << type;
  values["first"] = swapped ? "b" : "a";
  values["second"] = swapped ? "a" : "b";
  const std::pair<const char *, int64_t> numbers[] = {{"m", s.m},
                                                      {"k", s.k},
                                                      {"n", s.n},
                                                      {"a_bytes", s.aBytes()},
                                                      {"b_bytes", s.bBytes()},
                                                      {"c_bytes", s.cBytes()},
                                                      {"a_row", s.aRow()},
                                                      {"b_row", s.bRow()},
                                                      {"a_tiles", 16 * s.aRow()},
                                                      {"b_tiles", 16 * s.bRow()},
                                                      {"b_halves", 32 * s.bRow()},
                                                      {"b_steps", 64 * s.bRow()},
                                                      {"c_tiles", 16 * s.bRow()},
                                                      {"rows", s.rows},
                                                      {"columns", 2 * s.pairs},
                                                      {"depth", s.depth},
                                                      {"pairs", s.pairs},
                                                      {"results", s.rows * s.pairs},
                                                      {"products", s.rows * 2 * s.pairs * s.depth}};
  for (auto [key, number] : numbers)
    values[key] = std::to_string(number);
  auto module = parseSourceString<ModuleOp>(filled(values), kernel.getContext());
  if (!module)
    return Error{ErrorKind::Internal, "the program of '" + kernel.getSymName().str() + "' is no text of DLIR"};
  Operation *program = &module->getBody()->front();
  program->walk([&](Operation *op) { op->setLoc(kernel.getLoc()); });
  program->moveBefore(kernel);
  return Status::ok();
}
