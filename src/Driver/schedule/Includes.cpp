//===- Includes.cpp - what scripts take from other files ------------------===//
#include "Schedule.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace mlir;
namespace path = llvm::sys::path;

namespace dmxc::driver {

std::string shippedSchedules() {
  static char here; // an address in the program
  llvm::SmallString<256> folder(path::parent_path(llvm::sys::fs::getMainExecutable("dmxc", &here)));
  path::append(folder, "..", "share", "dmxc", "schedules");
  path::remove_dots(folder, /*remove_dot_dot=*/true);
  return folder.str().str();
}

bool Schedule::checkPaths(const std::vector<std::string> &paths) {
  for (const std::string &folder : paths)
    if (!llvm::sys::fs::is_directory(folder)) {
      diagnostics.report(ioError("--schedule-path " + folder + ": there is no such folder"), "io", folder);
      return false;
    }
  return true;
}

/// One name for a file, however it is reached.
static std::string realPath(const std::string &file) {
  llvm::SmallString<256> real;
  return llvm::sys::fs::real_path(file, real) ? file : real.str().str();
}

bool Schedule::read(const std::string &file, const std::vector<std::string> &within, const Options &options) {
  Script script;
  script.path = file;
  script.module = parse(file, script.text);
  if (!script.module)
    return false;
  Owners owners;
  for (Operation &op : *script.module->getBody())
    if (auto name = op.getAttrOfType<StringAttr>(SymbolTable::getSymbolAttrName()))
      owners[name] = file;
  std::vector<std::string> files = within;
  files.push_back(file);
  for (auto op : llvm::make_early_inc_range(script.module->getOps<transform::IncludeOp>())) {
    if (!include(script, op, files, owners, options))
      return false;
    op.erase();
  }
  // Messages of a script that is not sound are put in the words of those that were read.
  scripts.push_back(std::move(script));
  return isSoundScript(scripts.back()) && findEntries(scripts.back(), !within.empty()) &&
         checkStops(scripts.back(), options) && guard(scripts.back());
}

/// Puts an op of a file beside what a script has.
bool Schedule::addSymbol(Script &script, Operation *op, const std::string &path, Owners &owners) {
  auto name = op->getAttrOfType<StringAttr>(SymbolTable::getSymbolAttrName());
  auto [owner, isNew] = owners.try_emplace(name ? name.getValue() : "", path);
  if (name && isNew) {
    OpBuilder::atBlockEnd(script.module->getBody()).clone(*op);
    return true;
  }
  // Two files may include the same one.
  if (name && script.module->lookupSymbol(name)->getLoc() == op->getLoc())
    return true;
  diagnostics.report(
      modelError(name ? "@" + name.str() + " is in '" + owner->second + "' too; give one of them another name"
                      : "'" + op->getName().getStringRef().str() + "' is nothing that a script could include"),
      "schedule-script", path);
  return false;
}

bool Schedule::include(Script &script, transform::IncludeOp op, const std::vector<std::string> &within, Owners &owners,
                       const Options &options) {
  auto refuse = [&](const std::string &text) {
    diagnostics.report(modelError(text), "schedule-include", placeText(op.getLoc()));
    return false;
  };
  std::vector<std::string> folders = options.schedulePaths;
  const StringRef beside = path::parent_path(script.path);
  folders.insert(folders.begin(), beside.empty() ? "." : beside.str());
  folders.push_back(shippedSchedules());
  std::string found, list;
  for (const std::string &folder : folders) {
    llvm::SmallString<256> file(op.getFile());
    if (path::is_relative(file) && folder != ".")
      file = folder, path::append(file, op.getFile());
    if (found.empty() && llvm::sys::fs::is_regular_file(file))
      found = file.str().str();
    list += (list.empty() ? "'" : ", '") + folder + "'";
  }
  if (found.empty())
    return refuse("there is no file '" + op.getFile().str() + "' in " + list + "; --schedule-path adds folders");
  for (const std::string &outer : within)
    if (realPath(outer) == realPath(found)) {
      std::string chain;
      for (const std::string &each : ArrayRef(within).drop_front(llvm::find(within, outer) - within.begin()))
        chain += "'" + each + "' includes ";
      return refuse("a cycle of includes: " + chain + "'" + found + "'");
    }
  auto isFound = [&](const Script &each) { return realPath(each.path) == realPath(found); };
  if (llvm::none_of(scripts, isFound)) {
    included.push_back(found);
    if (!read(found, within, options))
      return false;
  }
  Script &other = *llvm::find_if(scripts, isFound);
  auto runsItself = [&](Operation &each) {
    return llvm::any_of(other.entries, [&](const Entry &entry) {
      return mlir::transform::NamedSequenceOp(entry.sequence).getOperation() == &each;
    });
  };
  return llvm::all_of(*other.module->getBody(),
                      [&](Operation &each) { return runsItself(each) || addSymbol(script, &each, found, owners); });
}

} // namespace dmxc::driver
