//===- UserFunctions.cpp - functions of users in an image -----------------===//
#include "Lower.h"

#include "targets/common/user/UserKernels.h"

#include "schemas/aie/host/HostCode.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::aie;

/// The object that a function is in, after the checks of a body.
static Result<std::vector<std::byte>> readObject(const CoreFunction &function, DictionaryAttr body) {
  Result<std::shared_ptr<const MappedFile>> file = kernels::openBody(function.kernel, body);
  if (!file)
    return file.takeError();
  std::string name = body.getAs<StringAttr>("file").str();
  std::vector<std::byte> bytes((*file)->bytes().begin(), (*file)->bytes().end());
  std::string why;
  std::shared_ptr<const hw::HostCode> code = hw::HostCode::load(bytes, why);
  if (code && !code->has(function.symbol))
    why = "it defines no global function '" + function.symbol + "'; it has " +
          (code->names().empty() ? "none" : code->names());
  if (!why.empty())
    return kernels::refusalOf(function.kernel, name, why);
  return bytes;
}

/// Sizes of its buffers are those of its declaration.
static FailureOr<hw::UserFunction> describe(DeviceOp device, const CoreFunction &function) {
  hw::UserFunction out;
  out.kernel = function.kernel;
  out.symbol = function.symbol;
  out.clocks = static_cast<uint32_t>(function.cycles);
  out.dims = static_cast<uint32_t>(function.dims.size());
  auto declared = dyn_cast_or_null<func::FuncOp>(SymbolTable::lookupSymbolIn(device, function.symbol));
  if (!declared || declared.getNumArguments() < function.buffers.size())
    return device.emitError("declares no function '") << function.symbol << "' with its buffers";
  for (auto [i, name] : llvm::enumerate(function.buffers)) {
    auto type = dyn_cast<MemRefType>(declared.getArgumentTypes()[i]);
    int64_t bytes = type && type.hasStaticShape() ? type.getNumElements() * elementBytes(type) : 0;
    if (bytes < 1 || bytes > INT32_MAX)
      return device.emitError("declares '") << function.symbol << "' with an operand " << i << " that is no buffer";
    out.buffers.push_back({name, static_cast<uint32_t>(bytes), i + function.results >= function.buffers.size()});
  }
  return out;
}

template <typename T> static uint32_t placeOf(std::vector<T> &list, T item) {
  auto found = llvm::find(list, item);
  auto place = static_cast<uint32_t>(found - list.begin());
  if (found == list.end())
    list.push_back(std::move(item));
  return place;
}

FailureOr<uint32_t> aie::addFunction(DeviceOp device, hw::Image &image) {
  std::optional<CoreFunction> function = functionOf(device);
  auto bodies = device->getAttrOfType<ArrayAttr>(dmir::kUserBodiesAttr);
  if (!function || !bodies || bodies.size() != 1 || !dmir::isKernelBody(bodies[0]))
    return device.emitError("has a user's function that is not as '")
           << kFunction << "' and '" << dmir::kUserBodiesAttr << "' have it";
  FailureOr<hw::UserFunction> described = describe(device, *function);
  if (failed(described))
    return failure();
  Result<std::vector<std::byte>> object = readObject(*function, cast<DictionaryAttr>(bodies[0]));
  if (!object)
    return device.emitError() << object.error().message;
  described->object = placeOf(image.objects, std::move(*object));
  return placeOf(image.functions, std::move(*described));
}
