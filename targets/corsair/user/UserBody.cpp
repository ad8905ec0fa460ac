//===- UserBody.cpp - nodes that a user's assembly computes ---------------===//
#include "UserBody.h"

#include "../decide/Ops.h"

#include "targets/common/user/UserKernels.h"

#include "dmxc/Dialect/DMIR/Model.h"

#include "llvm/Support/Path.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::corsair;

/// Of the bodies that the machine runs the first; null where there is none.
static DictionaryAttr bodyOf(dmir::ExternOp op, const hw::Machine &machine) {
  for (DictionaryAttr body : op.bodiesFor("corsair"))
    if (llvm::all_of(body.getAs<ArrayAttr>("features").getAsRange<StringAttr>(),
                     [&](StringAttr feature) { return feature.getValue() == StringRef(machine.name); }))
      return body;
  return {};
}

std::optional<std::string> dmxc::corsair::whyNoBody(dmir::ExternOp op, const hw::Machine &machine) {
  const std::string kernel = "the kernel '" + op.getKernel().str() + "'";
  if (!bodyOf(op, machine))
    return "no body of " + kernel + " runs on the machine '" + machine.name + "'; give one without features";
  if (op.getNumResults() != 1)
    return kernel + " has " + std::to_string(op.getNumResults()) + " results, and one on the device has one";
  if (auto scalars = op.getScalars())
    for (Dim scalar : scalars->getDims())
      if (!scalar.isStatic())
        return "a scalar of " + kernel + " is known in a run alone, and the device's programs have fixed sizes";
  return std::nullopt;
}

DictionaryAttr dmxc::corsair::userParameters(dmir::ExternOp op, const hw::Machine &machine) {
  Builder b(op.getContext());
  SmallVector<int64_t> scalars;
  if (auto given = op.getScalars())
    for (Dim scalar : given->getDims())
      scalars.push_back(scalar.valueOr(0));
  NamedAttrList list;
  list.set("kernel", op.getKernelAttr());
  list.set("body", bodyOf(op, machine));
  list.set("scalars", b.getDenseI64ArrayAttr(scalars));
  return list.getDictionary(op.getContext());
}

static std::string shapeText(ArrayRef<int64_t> shape) {
  std::string text;
  for (int64_t dim : shape)
    text += (text.empty() ? "" : ",") + std::to_string(dim);
  return "[" + text + "]";
}

/// Fails where the node's values are not those that the author declared.
static Status checkFit(const UserSource &source, ArrayRef<UserTensor> declared, TypeRange types, const char *what) {
  if (declared.size() != types.size())
    return source.refusal(0, "it declares " + std::to_string(declared.size()) + " " + what + "s, and the node has " +
                                 std::to_string(types.size()));
  for (auto [tensor, type] : llvm::zip(declared, types)) {
    auto shaped = cast<ShapedType>(type);
    std::optional<hw::ElemKind> kind = deviceKind(shaped.getElementType());
    if (kind != tensor.kind)
      return source.refusal(tensor.line, "'" + tensor.name + "' has form=" + std::string(hw::nameOf(tensor.kind)) +
                                             ", and the node's " + what + " is " +
                                             (kind ? std::string(hw::nameOf(*kind)) : "of no form") + " on the device");
    if (tensor.shape && ArrayRef(*tensor.shape) != shaped.getShape())
      return source.refusal(tensor.line, "'" + tensor.name + "' has shape=" + shapeText(*tensor.shape) +
                                             ", and the node's " + what + " " + shapeText(shaped.getShape()));
  }
  return Status::ok();
}

Result<UserText> dmxc::corsair::readUserText(DictionaryAttr parameters, TypeRange operands, TypeRange results,
                                             const hw::Machine &machine) {
  auto body = parameters ? parameters.getAs<DictionaryAttr>("body") : DictionaryAttr();
  auto kernel = parameters ? parameters.getAs<StringAttr>("kernel") : StringAttr();
  auto scalars = parameters ? parameters.getAs<DenseI64ArrayAttr>("scalars") : DenseI64ArrayAttr();
  if (!kernel || !scalars || !dmir::isKernelBody(body))
    return modelError("its parameters are no {kernel, body, scalars}");
  Result<std::shared_ptr<const MappedFile>> file = kernels::openBody(kernel.getValue(), body);
  if (!file)
    return file.takeError();
  std::span<const std::byte> bytes = (*file)->bytes();
  const UserSource source{{kernel.str(), llvm::sys::path::filename(body.getAs<StringAttr>("file").getValue()).str(),
                           body.getAs<StringAttr>("symbol").str()},
                          {reinterpret_cast<const char *>(bytes.data()), bytes.size()},
                          scalars};
  if (body.contains("launch") || body.getAs<StringAttr>("abi").getValue() != "plain")
    return source.refusal(0, "a body for corsair has no 'launch' and no 'abi': its text says which queues run it");
  Result<UserText> text = readUserText(source, machine);
  if (!text)
    return text;
  if (Status fits = checkFit(source, text->operands, operands, "operand"); !fits)
    return fits.takeError();
  if (Status fits = checkFit(source, text->results, results, "result"); !fits)
    return fits.takeError();
  return text;
}

Result<UserText> dmxc::corsair::readUserText(dmir::ExternOp op, const hw::Machine &machine) {
  if (std::optional<std::string> why = whyNoBody(op, machine)) // of a text
    return modelError("node '" + dmir::nodeName(op) + "': " + *why);
  Result<UserText> text =
      readUserText(userParameters(op, machine), op.getInputs().getTypes(), op.getResultTypes(), machine);
  if (!text)
    return Error{text.error().kind, "node '" + dmir::nodeName(op) + "': " + text.error().message};
  return text;
}

//===----------------------------------------------------------------------===//
// What is said of a program
//===----------------------------------------------------------------------===//

void dmxc::corsair::noteBody(DictionaryAttr parameters, Operation *program) {
  auto body = parameters.getAs<DictionaryAttr>("body");
  Builder b(program->getContext());
  NamedAttrList entry;
  entry.set("kernel", parameters.get("kernel"));
  entry.set("file", b.getStringAttr(llvm::sys::path::filename(body.getAs<StringAttr>("file").getValue())));
  for (StringRef key : {"symbol", "sha256"})
    entry.set(key, body.get(key));
  SmallVector<Attribute> all;
  if (auto known = program->getAttrOfType<ArrayAttr>(kUserBodies))
    llvm::append_range(all, known);
  if (Attribute own = entry.getDictionary(program->getContext()); !llvm::is_contained(all, own))
    all.push_back(own);
  program->setAttr(kUserBodies, b.getArrayAttr(all));
}

void dmxc::corsair::noteUserCode(Operation *program, const hw::Machine &machine) {
  auto all = program->getAttrOfType<ArrayAttr>(kUserBodies);
  if (!all)
    return;
  std::vector<dmir::UserCodeNote> notes;
  for (Attribute given : all) {
    auto entry = dyn_cast<DictionaryAttr>(given);
    auto text = [&](StringRef key) -> std::string {
      auto given = entry ? entry.getAs<StringAttr>(key) : StringAttr();
      return given ? given.str() : "";
    };
    notes.push_back({text("kernel"), machine.name, text("file"), text("symbol"), text("sha256")});
  }
  dmir::noteUserCode(notes, program);
}
