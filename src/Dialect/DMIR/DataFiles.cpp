//===- DataFiles.cpp - files that constants may lie in --------------------===//
#include "dmxc/Dialect/DMIR/DataFiles.h"

#include "dmxc/Dialect/DMIR/DMIR.h"
#include "dmxc/Support/DataFile.h"

#include "mlir/IR/AttrTypeSubElements.h"

using namespace mlir;

namespace dmxc::dmir {

DataFiles &DataFiles::of(MLIRContext *context) {
  return *context->getOrLoadDialect<DMIRDialect>()->getRegisteredInterface<DataFiles>();
}

std::string DataFiles::admit(const std::string &path) {
  std::lock_guard lock(mutex);
  auto [row, isNew] = admitted.try_emplace(path);
  if (isNew) {
    Result<DataFile> file = findDataFile(path, {""});
    row->second = file ? file->real : path;
    found[row->second] = row->second;
  }
  return row->second;
}

void DataFiles::admitBelow(const std::vector<std::string> &more) {
  std::lock_guard lock(mutex);
  folders.insert(folders.end(), more.begin(), more.end());
}

void DataFiles::admitBeside(const std::string &text, const std::vector<std::string> &named) {
  admitBelow({folderOf(text)});
  admitBelow(named);
}

Result<std::string> DataFiles::find(const std::string &path) const {
  std::lock_guard lock(mutex);
  if (auto row = found.find(path); row != found.end())
    return row->second;
  Result<DataFile> file = findDataFile(path, folders);
  if (!file) {
    bool isRelative = !path.starts_with('/');
    return ioError(
        "the file " + file.error().message +
        (isRelative ? "; its name is one from the text's own folder, or from one of --allow-external-data" : ""));
  }
  if (!file->isBelow)
    return modelError("the file '" + path + "' lies in '" + folderOf(file->real) +
                      "'; a text may name files below its own folder, or with --allow-external-data '" +
                      folderOf(file->real) + "' there");
  return found[path] = file->real;
}

std::set<std::string> resolveDataFiles(ModuleOp module, llvm::function_ref<void(Operation *, const Error &)> report) {
  const DataFiles &files = DataFiles::of(module.getContext());
  std::set<std::string> read, refused;
  Operation *user = nullptr;
  AttrTypeReplacer replacer;
  replacer.addReplacement([&](FileDataAttr attr) -> std::optional<Attribute> {
    std::string path = attr.getPath().str();
    Result<std::string> real = files.find(path);
    if (!real) {
      if (refused.insert(path).second)
        report(user, real.error());
      return attr;
    }
    read.insert(*real);
    return FileDataAttr::get(attr.getContext(), *real, attr.getOffset(), attr.getSize(), attr.getType());
  });
  module.walk([&](Operation *op) {
    user = op;
    replacer.replaceElementsIn(op);
  });
  return read;
}

} // namespace dmxc::dmir
