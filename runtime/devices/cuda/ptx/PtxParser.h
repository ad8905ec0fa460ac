//===- PtxParser.h - from words to a module ---------------------*- C++ -*-===//
#pragma once

#include "Ptx.h"
#include "PtxLexer.h"
#include "schemas/Size.h"

namespace dmxrt::cuda {

/// Limits that keep damaged texts from growing: no kernel comes near them.
inline constexpr uint64_t kMostRegisters = 1 << 20, kMostBytes = 1 << 26; ///< bytes: of all variables

/// PtxParser.cpp has what stands around kernels, PtxBody.cpp what stands in them.
class PtxParser {
public:
  PtxParser(std::string_view text, bool bodies) : lexer(text), bodies(bodies) { take(); }

  Result<PtxModule> module();

private:
  void take() { token = lexer.next(); }
  bool takeSign(char sign) {
    bool found = token.is(sign);
    if (found)
      take();
    return found;
  }
  bool takeName(std::string_view name) {
    bool found = token.kind == PtxToken::Name && token.name == name;
    if (found)
      take();
    return found;
  }
  template <typename... Parts> bool refuse(const Parts &...parts) {
    if (problem.empty()) {
      problem = kernel ? cat("kernel '", kernel->name, "', line ", token.line, ": ") : cat("line ", token.line, ": ");
      problem += cat(parts...);
      if (token.kind == PtxToken::End)
        problem += ", and the text ends there";
    }
    return false;
  }
  bool wants(std::string_view what) { return refuse("'", token.name, "' stands where ", what, " is wanted"); }
  bool expect(char sign) { return takeSign(sign) || wants(std::string_view(&sign, 1)); }
  bool name(std::string_view &out) {
    if (token.kind != PtxToken::Name || token.name[0] == '.')
      return wants("a name");
    out = token.name;
    take();
    return true;
  }
  bool integer(uint64_t &out, uint64_t most) {
    if (token.kind != PtxToken::Number || token.bits > most)
      return wants(cat("a number up to ", most));
    out = token.bits;
    take();
    return true;
  }
  bool type(PtxType &out) {
    out = token.kind == PtxToken::Name && token.name[0] == '.' ? typeOfName(token.name.substr(1)) : PtxType();
    if (!out.kind)
      return wants("a type");
    take();
    return true;
  }

  // --- of modules ---------------------------------------------------------------------
  bool variable(std::vector<PtxVariable> &out, bool isExtern = false);
  bool values(PtxVariable &out, PtxType element);
  bool alignment(uint32_t &out);
  bool directive(PtxModule &out);
  bool entry(PtxModule &out);
  bool parameter();
  bool parameters();
  bool threads(uint32_t &out);
  bool blocks(uint32_t &out);
  bool traits(PtxKernel &out);
  bool version(uint32_t &out);
  bool file(PtxModule &out);

  // --- of bodies ----------------------------------------------------------------------
  bool body();
  bool resolve(size_t firstJump);
  bool passOver();
  bool statement();
  bool registers();
  bool instruction();
  bool place();
  bool guard(PtxInstruction &out);
  bool label(std::string_view name);
  bool branchTargets(std::string_view name);
  bool operand(PtxOperand &out);
  bool address(PtxOperand &out);
  bool vector(PtxOperand &out);
  bool named(PtxOperand &out);
  const uint32_t *findRegister(std::string_view name) const;

  PtxLexer lexer;
  const bool bodies;
  PtxToken token;
  std::string problem;
  PtxKernel *kernel = nullptr;
  dmx::Size declared; // bytes of variables
  struct Scope {
    std::map<std::string_view, uint32_t> registers, labels;          // numbers; indices of the instructions behind
    std::map<std::string_view, std::vector<std::string_view>> lists; // of labels, for brx.idx
  };
  std::vector<Scope> scopes;
  /// A label, or a list of them, that was not met yet, and which target of which instruction it is.
  struct Jump {
    uint32_t instruction;
    std::string_view wanted;
    bool isList;
    size_t place;
  };
  std::vector<Jump> jumps;
  struct Family {
    std::string_view prefix; // %r
    uint32_t first, count;
    size_t scope;
  };
  std::vector<Family> families; // of registers named %r0, %r1 ...
};

} // namespace dmxrt::cuda
