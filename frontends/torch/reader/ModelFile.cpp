//===- ModelFile.cpp - an exported program and its tensors ----------------===//
#include "ModelFile.h"

#include "dmxc/Support/Diagnostic.h"

namespace dmxc::torchfe {
namespace {

constexpr std::string_view kModels = "models/", kJson = ".json";
constexpr const char *kLegacyProgram = "serialized_exported_program.json";

/// What a zip file without an exported program is.
Error otherKind(const Archive &archive) {
  if (archive.has("archive_format") || archive.has("archive_version"))
    return modelError("a compiled package without an exported program (no models/*.json); save the program with "
                      "torch.export.save");
  if (archive.has("data.pkl") && archive.has("constants.pkl"))
    return modelError("a TorchScript file; export the model with torch.export.export and torch.export.save");
  if (archive.has("data.pkl"))
    return modelError("a torch.save checkpoint, which has no graph; export the model with torch.export.export and "
                      "torch.export.save");
  return modelError("a zip file that torch.export.save did not write: it has neither an archive_format nor " +
                    std::string(kLegacyProgram));
}

Status expectText(const Archive &archive, const char *name, std::string_view wanted, const char *what) {
  const Record *record = archive.find(name);
  if (!record || record->text() == wanted)
    return Status::ok();
  return modelError("record '" + std::string(name) + "': " + what + " '" + std::string(record->text().substr(0, 40)) +
                    "' cannot be read, only '" + std::string(wanted) + "'");
}

Result<std::string> chooseModel(const Archive &archive, const std::string &wanted) {
  std::vector<std::string> names;
  for (const auto &[name, record] : archive.records())
    if (name.starts_with(kModels) && name.ends_with(kJson))
      names.push_back(name.substr(kModels.size(), name.size() - kModels.size() - kJson.size()));
  if (names.empty())
    return otherKind(archive);
  std::string list;
  for (const std::string &name : names)
    list += (list.empty() ? "" : ", ") + name;
  if (wanted.empty())
    return names.size() == 1 ? Result<std::string>(names[0])
                             : Result<std::string>(usageError("the archive has several programs: name one of " + list +
                                                              " with --entry"));
  for (const std::string &name : names)
    if (name == wanted)
      return name;
  return usageError("the archive has no program '" + wanted + "'; it has " + list);
}

/// PT2 archive, torch 2.8 and later.
Result<ModelFile> readArchive(const Archive &archive, ModelFile model, const std::string &wanted) {
  for (Status status : {expectText(archive, "archive_format", "pt2", "the archive format"),
                        expectText(archive, "archive_version", "0", "the archive version"),
                        expectText(archive, "byteorder", "little", "the byte order")})
    if (!status)
      return status.takeError();
  Result<std::string> name = chooseModel(archive, wanted);
  if (!name)
    return name.takeError();
  std::string where = std::string(kModels) + *name + std::string(kJson);
  Result<Program> program = readProgram(archive.find(where)->text(), where);
  if (!program)
    return program.takeError();
  model.program = std::move(*program);
  // Tables of raw records since 2.9, nested torch.save files in 2.8.
  for (Status status : {model.weights.addPickle(archive, "data/weights/" + *name + ".pt"),
                        model.weights.addTable(archive, "weights", *name),
                        model.constants.addPickle(archive, "data/constants/" + *name + ".pt"),
                        model.constants.addTable(archive, "constants", *name)})
    if (!status)
      return status.takeError();
  return model;
}

/// The flat archive of torch 2.7 and before.
Result<ModelFile> readLegacy(const Archive &archive, ModelFile model) {
  Result<Program> program = readProgram(archive.find(kLegacyProgram)->text(), kLegacyProgram);
  if (!program)
    return program.takeError();
  model.program = std::move(*program);
  for (Status status : {model.weights.addPickle(archive, "serialized_state_dict.pt"),
                        model.constants.addPickle(archive, "serialized_constants.pt")})
    if (!status)
      return status.takeError();
  return model;
}

} // namespace

Result<ModelFile> readModelFile(const std::shared_ptr<const MappedFile> &file, const std::string &wanted) {
  Result<Archive> archive = Archive::read(file->bytes());
  if (!archive)
    return archive.takeError();
  ModelFile model{{}, Payloads(file), Payloads(file)};
  if (archive->has(kLegacyProgram))
    return readLegacy(*archive, std::move(model));
  return readArchive(*archive, std::move(model), wanted);
}

} // namespace dmxc::torchfe
