//===- CompileQueue.h - kernels compiled by several threads -----*- C++ -*-===//
#pragma once

#include "KernelDialects.h"

#include "dmxc/Dialect/DLIR/DLIR.h"
#include "dmxc/Dialect/DMIR/DMIR.h"
#include "dmxc/Support/Result.h"
#include "dmxc/Support/WorkCount.h"

#include "mlir/Parser/Parser.h"

#include <atomic>
#include <thread>
#include <vector>

namespace dmxc::kernels {

/// An op as text that parses to the same op with the same locations.
std::string kernelText(mlir::Operation *kernel);

/// A kernel parsed in a context: the module owns it.
struct ParsedKernel {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  dlir::KernelOp kernel;
};
Result<ParsedKernel> parseKernel(const std::string &text, mlir::MLIRContext &context);

/// Results of compile(i, context) for each name, in order, by up to `jobs` threads. Building IR changes its context,
/// so each thread has one of its own, with the dialects of kernels loaded; kernels go there as text. The work is handed
/// out by a counter, and the results keep their order: the same for any number of threads. Fails with the first error
/// by that order. What is done is counted, and timed by its name, for progress and reports.
template <typename T, typename Compile>
Result<std::vector<T>> compileAll(const std::vector<std::string> &names, unsigned jobs, Compile compile) {
  const size_t count = names.size();
  beginWork("kernels", count);
  std::vector<Result<T>> results(count, Error{ErrorKind::Internal, "not compiled"});
  std::atomic<size_t> next = 0;
  auto work = [&] {
    mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
    context.loadDialect<dmir::DMIRDialect, dlir::DLIRDialect>();
    loadKernelDialects(context);
    for (size_t i = next++; i < count; i = next++, advanceWork()) {
      WorkTimer timer("kernel", names[i]);
      noteWork(names[i]);
      results[i] = compile(i, context);
    }
  };
  std::vector<std::thread> helpers;
  for (unsigned i = 1; i < std::min<size_t>(jobs, count); ++i)
    helpers.emplace_back(work);
  work();
  for (std::thread &helper : helpers)
    helper.join();
  std::vector<T> all;
  for (Result<T> &result : results) {
    if (!result)
      return result.takeError();
    all.push_back(std::move(*result));
  }
  return all;
}

} // namespace dmxc::kernels
