//===- Payloads.h - parameters, buffers and constants -----------*- C++ -*-===//
#pragma once

#include "Archive.h"

#include "dmxc/Support/MappedFile.h"
#include "dmxc/Support/Tensor.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace dmxc::torchfe {

/// A tensor of the archive. With `mapped`, its bytes are those at `offset` of the model file; others were gathered from
/// a view that is not contiguous.
struct Payload {
  Tensor tensor; ///< of a complex one its parts, along a last axis of two
  bool mapped = false;
  uint64_t offset = 0;
  bool isComplex = false;
};

/// The tensors of one kind (weights, constants) by their names. Nothing is read before it is asked for; what is asked
/// for is checked against the record that holds it.
class Payloads {
public:
  explicit Payloads(std::shared_ptr<const MappedFile> file) : file(std::move(file)) {}

  /// Raw records with a table: data/<folder>/<model>_<folder>_config.json.
  Status addTable(const Archive &archive, const std::string &folder, const std::string &model);
  /// A torch.save file that is the record `name`.
  Status addPickle(const Archive &archive, const std::string &name);

  bool has(const std::string &name) const { return views.count(name) != 0; }
  /// `name` is a key; fails when its bytes are not there.
  Result<Payload> read(const std::string &name) const;
  std::vector<std::string> names() const;

private:
  /// How a tensor lies in its record, numbers unchecked.
  struct View {
    std::optional<DType> dtype;
    std::string typeName, recordName;
    std::optional<Record> record; ///< nothing: the archive has none of this name
    bool pickled = false, isComplex = false;
    int64_t offset = 0;
    std::vector<int64_t> sizes, strides;

    /// A complex tensor is one of its parts from here on.
    void splitComplex(std::optional<DType> parts);
  };

  Result<Payload> readParts(const std::string &name) const;

  std::shared_ptr<const MappedFile> file;
  std::map<std::string, View> views;
};

} // namespace dmxc::torchfe
