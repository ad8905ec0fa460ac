//===- DescribeDecoder.cpp - a module says what of a decoder its tensors are ===//
#include "ModelFolder.h"

#include "dmxc/Dialect/DMIR/ConstantData.h"
#include "dmxc/Dialect/DMIR/DMIR.h"
#include "dmxc/Dialect/DMIR/Dims.h"
#include "dmxc/Support/Stars.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace dmxc::driver {

namespace {

class Describer {
public:
  Describer(ModuleOp module, const DecoderConfig &config) : module(module), config(config) {
    for (func::FuncOp each : module.getOps<func::FuncOp>())
      if (each.isPublic() && !function)
        function = each;
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      inputs.push_back(tensorOf(function.getArgAttr(i, dmir::kNameAttr), function.getArgumentTypes()[i]));
    for (unsigned i = 0; i < function.getNumResults(); ++i)
      outputs.push_back(tensorOf(function.getResultAttr(i, dmir::kNameAttr), function.getResultTypes()[i]));
  }

  Result<tools::Roles> find() const { return tools::findRoles(inputs, outputs, presentNames()); }

  void setMetadata(const tools::Roles &roles) {
    NamedAttrList texts(module->getAttrOfType<DictionaryAttr>(dmir::kMetadataAttr));
    auto say = [&](StringRef key, const std::string &text) {
      if (!text.empty())
        texts.set(("generate." + key).str(), StringAttr::get(module.getContext(), text));
    };
    say("version", "1");
    say("ids", inputs[roles.ids].name);
    say("mask", roles.mask ? inputs[*roles.mask].name : "");
    say("positions", roles.positions ? inputs[*roles.positions].name : "");
    say("logits", outputs[roles.logits].name);
    std::string caches;
    for (const tools::CacheRole &cache : roles.caches)
      caches += (caches.empty() ? "" : "\n") + inputs[cache.input].name + "=" + outputs[cache.output].name;
    say("caches", caches);
    say("eos", textOf(config.eos));
    say("bos", textOf(config.bos));
    say("context", config.context ? std::to_string(config.context) : "");
    say("vocabulary", config.vocabulary ? std::to_string(config.vocabulary) : "");
    module->setAttr(dmir::kMetadataAttr, texts.getDictionary(module.getContext()));
  }

  /// Dims that count tokens have no more than the context's.
  void setBounds(const tools::Roles &roles, const std::map<std::string, DimBounds> &given) {
    if (!config.context)
      return;
    std::map<std::string, DimBounds> bounds;
    if (auto table = module->getAttrOfType<DictionaryAttr>(dmir::kDimsAttr))
      for (NamedAttribute entry : table)
        bounds[entry.getName().str()] = dmir::symbolBounds(module, entry.getName());
    auto limit = [&](const tools::IoDim &dim) {
      auto found = bounds.find(dim.name);
      if (found != bounds.end() && !given.count(dim.name) && found->second.min <= config.context)
        found->second.max = std::min(found->second.max, config.context);
    };
    limit(inputs[roles.ids].dims.back());
    for (std::optional<size_t> input : {roles.mask, roles.positions})
      if (input && !inputs[*input].dims.empty())
        limit(inputs[*input].dims.back());
    for (const tools::CacheRole &cache : roles.caches)
      if (cache.axis)
        limit(inputs[cache.input].dims[*cache.axis]);
    dmir::setSymbolBounds(module, bounds);
  }

  DecoderStates statesOf(const tools::Roles &roles, const std::map<std::string, DimBounds> &given) const {
    DecoderStates states;
    auto want = [&](const tools::IoDim &dim, DimBounds bounds) {
      if (!dim.name.empty() && !given.count(dim.name))
        states.dims[dim.name] = bounds;
    };
    for (const tools::CacheRole &cache : roles.caches) {
      if (!cache.axis)
        return {};
      const tools::IoTensor &input = inputs[cache.input];
      states.pairs.emplace_back(input.name, outputs[cache.output].name);
      want(input.dims[*cache.axis], {0, input.dims[*cache.axis].max});
    }
    if (states.pairs.empty())
      return {};
    const tools::IoTensor &ids = inputs[roles.ids];
    want(ids.dims.back(), {1, ids.dims.back().max});
    if (const tools::IoDim &batch = ids.dims.front(); ids.dims.size() == 2 && batch.min != batch.max) {
      want(batch, {1, 1});
      states.batch = states.dims.count(batch.name) ? batch.name : "";
    }
    return states;
  }

private:
  tools::IoTensor tensorOf(Attribute name, Type type) const {
    auto text = dyn_cast_or_null<StringAttr>(name);
    tools::IoTensor tensor{
        text ? text.str() : "", dmir::dtypeOf(cast<RankedTensorType>(type).getElementType()).value_or(DType::F32), {}};
    for (Dim dim : dmir::dimsOf(type)) {
      std::optional<std::string> symbol = dim.symbolName();
      DimBounds bounds = symbol ? dmir::symbolBounds(module, *symbol) : DimBounds{0, INT64_MAX};
      if (std::optional<int64_t> number = dim.known())
        tensor.dims.push_back({"", *number, *number});
      else
        tensor.dims.push_back({symbol.value_or(dim.str()), bounds.min, bounds.max});
    }
    return tensor;
  }

  static std::string textOf(const std::vector<int64_t> &ids) {
    std::string text;
    for (int64_t id : ids)
      text += (text.empty() ? "" : " ") + std::to_string(id);
    return text;
  }

  /// Configurations name tensors that a file may lack: positions, where it computes them.
  tools::DecoderNames presentNames() const {
    auto has = [](const std::vector<tools::IoTensor> &tensors, const std::string &name) {
      return llvm::any_of(tensors, [&](const tools::IoTensor &tensor) { return tensor.name == name; });
    };
    tools::DecoderNames names = config.names;
    for (std::string *name : {&names.ids, &names.mask, &names.positions})
      if (!has(inputs, *name))
        name->clear();
    if (!has(outputs, names.logits))
      names.logits.clear();
    std::erase_if(names.caches, [&](const auto &pattern) {
      return llvm::none_of(
          inputs, [&](const tools::IoTensor &input) { return starsOf(pattern.first, input.name).has_value(); });
    });
    return names;
  }

  ModuleOp module;
  const DecoderConfig &config;
  func::FuncOp function;
  std::vector<tools::IoTensor> inputs, outputs;
};

} // namespace

DecoderStates describeDecoder(ModuleOp module, const DecoderConfig &config,
                              const std::map<std::string, DimBounds> &given, const std::string &file,
                              Diagnostics &diagnostics) {
  Describer describer(module, config);
  Result<tools::Roles> roles = describer.find();
  if (!roles) {
    Diagnostic warning;
    warning.severity = Severity::Warning;
    warning.id = "decoder";
    warning.file = file;
    warning.text = "the configuration beside the model says that it is a decoder, and the bundle goes without what it "
                   "says: " +
                   roles.error().message;
    diagnostics.report(std::move(warning));
    return {};
  }
  describer.setMetadata(*roles);
  describer.setBounds(*roles, given);
  return describer.statesOf(*roles, given);
}

} // namespace dmxc::driver
