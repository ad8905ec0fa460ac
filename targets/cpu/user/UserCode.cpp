//===- UserCode.cpp - code that users wrote -------------------------------===//

#include "UserCode.h"

#include "targets/common/user/UserKernels.h"

#include "llvm/BinaryFormat/Magic.h"

using namespace dmxc;
using namespace dmxc::cpu;
using namespace mlir;

static std::string textOf(DictionaryAttr body, StringRef key) { return body.getAs<StringAttr>(key).str(); }

/// Whether a level has all that a body asks for: features by their names, or those of a level.
static bool hasFeatures(DictionaryAttr body, const IsaLevel &isa, size_t &count) {
  for (auto feature : body.getAs<ArrayAttr>("features").getAsRange<StringAttr>()) {
    std::optional<IsaLevel> level = IsaLevel::byName(feature.getValue());
    SmallVector<std::string> needed{feature.str()};
    if (level)
      needed = level->required;
    for (const std::string &name : needed)
      if (!llvm::is_contained(isa.required, name))
        return false;
    count += needed.size();
  }
  return true;
}

DictionaryAttr dmxc::cpu::bodyFor(ArrayAttr bodies, const IsaLevel &isa) {
  DictionaryAttr best;
  size_t most = 0;
  for (DictionaryAttr body : dmir::bodiesFor(bodies, "cpu")) {
    size_t count = 0;
    if (hasFeatures(body, isa, count) && (!best || count > most)) {
      best = body;
      most = count;
    }
  }
  return best;
}

static std::string prefixOf(DictionaryAttr body) {
  constexpr size_t enough = 16; // of the digest's digits
  return "user." + textOf(body, "sha256").substr(0, enough) + ".";
}

std::string dmxc::cpu::linkedName(DictionaryAttr body) { return prefixOf(body) + textOf(body, "symbol"); }

Error UserCode::refusal(const std::string &clause) const { return kernels::refusalOf(kernel, file, clause); }

Result<UserCode> dmxc::cpu::readUserCode(StringRef kernel, DictionaryAttr body) {
  UserCode code;
  code.kernel = kernel.str();
  code.file = textOf(body, "file");
  code.sha256 = textOf(body, "sha256");
  code.symbol = textOf(body, "symbol");
  code.prefix = prefixOf(body);
  code.linked = linkedName(body);
  code.abi = textOf(body, "abi");
  Result<std::shared_ptr<const MappedFile>> file = kernels::openBody(kernel, body);
  if (!file)
    return file.takeError();
  std::span<const std::byte> bytes = (*file)->bytes();
  StringRef text(reinterpret_cast<const char *>(bytes.data()), bytes.size());
  code.bitcode = llvm::identify_magic(text) == llvm::file_magic::bitcode;
  if (code.bitcode)
    code.bytes.assign(text.begin(), text.end());
  if (!code.bitcode)
    if (Status good = adoptObject(code, bytes); !good)
      return good.takeError();
  return code;
}
