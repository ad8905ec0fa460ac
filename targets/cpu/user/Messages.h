//===- Messages.h - what LLVM says of modules that are not ours -*- C++ -*-===//
#pragma once

#include "llvm/IR/DiagnosticHandler.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/Support/raw_ostream.h"

#include <memory>
#include <string>

namespace dmxc::cpu {

/// Keeps what LLVM says of a context's modules while there is one; else it prints that and ends the program.
class Messages {
public:
  explicit Messages(llvm::LLVMContext &context) : context(context), before(context.getDiagnosticHandler()) {
    context.setDiagnosticHandler(std::make_unique<Keeper>(text));
  }
  ~Messages() { context.setDiagnosticHandler(std::move(before)); }
  Messages(const Messages &) = delete;
  Messages &operator=(const Messages &) = delete;
  std::string text;

private:
  struct Keeper : llvm::DiagnosticHandler {
    explicit Keeper(std::string &text) : text(text) {}
    bool handleDiagnostics(const llvm::DiagnosticInfo &info) override {
      if (info.getSeverity() == llvm::DS_Error) {
        llvm::raw_string_ostream stream(text);
        llvm::DiagnosticPrinterRawOStream printer(stream);
        info.print(printer);
      }
      return true;
    }
    std::string &text;
  };
  llvm::LLVMContext &context;
  std::unique_ptr<llvm::DiagnosticHandler> before;
};

} // namespace dmxc::cpu
