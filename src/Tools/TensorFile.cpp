//===- TensorFile.cpp - tensor files by ending, directories ---------------===//
#include "dmxc/Tools/TensorFile.h"

#include "dmxc/Tools/TensorDirectory.h"

#include <algorithm>
#include <filesystem>

namespace dmxc::tools {

namespace fs = std::filesystem;

namespace {
Error unknownEnding(const std::string &path) { return usageError("'" + path + "': a tensor file ends in .npy or .pb"); }

std::string mangled(std::string name) {
  for (char &c : name)
    if (!isalnum(static_cast<unsigned char>(c)) && c != '.' && c != '_' && c != '-')
      c = '_';
  return name;
}

/// The files that may hold a tensor by its name, best first. In a folder of
/// ONNX's layout (`indexed`) a .pb file is found by its number alone: a tensor
/// may well be called output_1 and be the first.
std::vector<std::string> namedCandidates(TensorRole role, const std::string &name, bool indexed) {
  std::string prefix = role == TensorRole::Input ? "in_" : "out_";
  std::vector<std::string> all;
  for (const std::string &stem : {name, mangled(name)}) {
    all.push_back(prefix + stem + ".npy");
    all.push_back(stem + ".npy");
    if (!indexed)
      all.push_back(stem + ".pb");
  }
  return all;
}

std::string indexedStem(TensorRole role, size_t index) {
  return (role == TensorRole::Input ? "input_" : "output_") + std::to_string(index);
}

std::optional<std::string> existing(const std::string &directory, const std::string &name) {
  std::error_code error;
  std::string path = directory + "/" + name;
  // A name with '/' must not leave the directory.
  if (name.find("..") != std::string::npos || !fs::is_regular_file(path, error))
    return std::nullopt;
  return path;
}

/// Gives the ONNX files' tensors to the wanted ones: by the names in the files
/// when all of them are names of wanted tensors, else by position.
void assignIndexed(const std::vector<NamedTensor> &files, const std::vector<size_t> &positions,
                   const std::vector<WantedTensor> &wanted, std::vector<Tensor> &result) {
  auto wantedNamed = [&](const std::string &name) {
    return std::find_if(wanted.begin(), wanted.end(), [&](const WantedTensor &w) { return w.name == name; }) -
           wanted.begin();
  };
  std::vector<size_t> targets;
  for (const NamedTensor &file : files)
    targets.push_back(static_cast<size_t>(wantedNamed(file.name)));
  std::vector<size_t> sorted = targets;
  std::sort(sorted.begin(), sorted.end());
  bool named = (sorted.empty() || sorted.back() < wanted.size()) &&
               std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end();
  for (size_t i = 0; i < files.size(); ++i) {
    size_t target = named ? targets[i] : positions[i];
    if (target < result.size() && result[target].empty())
      result[target] = files[i].tensor;
  }
}

/// The tensors of files in ONNX's layout. A file of a sequence or an optional holds those of several positions, or of
/// none.
struct IndexedFiles {
  std::vector<NamedTensor> tensors;
  std::vector<size_t> positions;

  Status read(const std::string &directory, TensorRole role, const std::vector<WantedTensor> &wanted) {
    size_t position = 0;
    for (size_t file = 0;; ++file) {
      auto proto = existing(directory, indexedStem(role, file) + ".pb");
      auto npy = existing(directory, indexedStem(role, file) + ".npy");
      if (!proto && !npy) {
        if (position++ < wanted.size()) // a gap, or a tensor that is found by its name
          continue;
        return Status::ok();
      }
      if (position >= wanted.size() && !proto)
        return Status::ok();
      Status status = proto ? readProto(*proto, wanted.size(), position) : readOne(*npy, wanted[position], position);
      if (!status)
        return status;
    }
  }

private:
  Status readOne(const std::string &path, const WantedTensor &wanted, size_t &position) {
    auto tensor = readTensorFile(path, wanted.dtype);
    if (!tensor)
      return tensor.takeError();
    tensors.push_back(std::move(*tensor));
    positions.push_back(position++);
    return Status::ok();
  }
  Status readProto(const std::string &path, size_t wanted, size_t &position) {
    auto items = readTensorsProto(path);
    if (!items)
      return position < wanted ? Status(items.takeError()) : Status::ok();
    if (items->size() > 1 && position + items->size() > wanted)
      return ioError("'" + path + "' holds " + std::to_string(items->size()) + " tensors, of which only " +
                     std::to_string(wanted - std::min(position, wanted)) + " have a place");
    for (NamedTensor &item : *items) {
      tensors.push_back(std::move(item));
      positions.push_back(position++);
    }
    return Status::ok();
  }
};
} // namespace

Result<NamedTensor> readTensorFile(const std::string &path, std::optional<DType> expected) {
  if (path.ends_with(".pb"))
    return readTensorProto(path);
  if (!path.ends_with(".npy"))
    return unknownEnding(path);
  auto tensor = readNpy(path, expected);
  if (!tensor)
    return tensor.takeError();
  return NamedTensor{"", *tensor};
}

Status writeTensorFile(const std::string &path, const NamedTensor &tensor) {
  if (path.ends_with(".pb"))
    return writeTensorProto(path, tensor);
  if (!path.ends_with(".npy"))
    return unknownEnding(path);
  return writeNpy(path, tensor.tensor);
}

std::string tensorFileName(TensorRole role, const std::string &name) {
  return (role == TensorRole::Input ? "in_" : "out_") + mangled(name) + ".npy";
}

Result<std::vector<Tensor>> readTensorDirectory(const std::string &directory, TensorRole role,
                                                const std::vector<WantedTensor> &wanted) {
  std::error_code error;
  if (!fs::is_directory(directory, error))
    return ioError("'" + directory + "' is not a directory");
  std::vector<Tensor> result(wanted.size());
  bool any = false;
  bool indexed = existing(directory, indexedStem(role, 0) + ".pb").has_value();
  for (size_t i = 0; i < wanted.size(); ++i)
    for (const std::string &name : namedCandidates(role, wanted[i].name, indexed))
      if (auto path = existing(directory, name); path && result[i].empty()) {
        auto read = readTensorFile(*path, wanted[i].dtype);
        if (!read)
          return read.takeError();
        result[i] = read->tensor;
        any = true;
      }
  IndexedFiles indexedFiles;
  if (Status status = indexedFiles.read(directory, role, wanted); !status)
    return status.takeError();
  const std::vector<NamedTensor> &files = indexedFiles.tensors;
  assignIndexed(files, indexedFiles.positions, wanted, result);
  if (!any && files.empty() && !wanted.empty()) {
    std::string stem = indexedStem(role, 0);
    return ioError("'" + directory + "' has no file for '" + wanted[0].name + "': expected '" +
                   tensorFileName(role, wanted[0].name) + "', '" + mangled(wanted[0].name) + ".npy' or '" + stem +
                   ".pb'");
  }
  return result;
}

} // namespace dmxc::tools
