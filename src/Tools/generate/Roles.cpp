//===- Roles.cpp - which tensors of a bundle are what of a decoder --------===//
#include "dmxc/Tools/Roles.h"

#include "dmxc/Support/Stars.h"
#include "dmxc/Support/Visible.h"
#include "dmxc/Tools/CommandLine.h"

#include <algorithm>
#include <array>

namespace dmxc::tools {

namespace {

using NameList = std::vector<const char *>;

// Names that exporters give, the most telling first.
const NameList kIds = {"input_ids", "decoder_input_ids", "ids", "token_ids", "tokens", "input"};
const NameList kMasks = {"attention_mask", "attn_mask", "decoder_attention_mask", "mask", "attn"};
const NameList kPositions = {"position_ids", "cache_position", "positions", "position", "input_pos", "pos"};
const NameList kLogits = {"logits", "lm_logits", "output", "scores"};
// Of optimum's decoders of both kinds in one: whether caches are there.
const NameList kBranches = {"use_cache_branch"};

// What a cache is called among the inputs, and among the outputs.
constexpr std::array<std::pair<const char *, const char *>, 14> kCaches = {
    {{"past_key_values.*", "present.*"},
     {"past_key_values.*", "present_key_values.*"},
     {"past_key_values_*", "present_key_values_*"},
     {"past.*", "present.*"},
     {"past_*", "present_*"},
     {"past*", "present*"},
     {"cache_*", "new_cache_*"},
     {"cache.*", "new_cache.*"},
     {"*", "present_*"},
     {"*", "present.*"},
     {"*", "new_*"},
     {"*", "updated_*"},
     {"*", "out_*"},
     {"*", "*_out"}}};

/// The output that an input becomes by a pair of patterns; nothing where it is no input of the pair.
std::optional<std::string> outputOf(const std::string &input, const std::string &output, const std::string &name) {
  std::optional<std::vector<std::string>> stars = starsOf(input, name);
  return stars ? withStars(output, *stars) : std::nullopt;
}

bool isInteger(DType type) { return type == DType::I64 || type == DType::I32; }
bool isFixed(const IoDim &dim) { return dim.min == dim.max; }

std::string shown(const IoTensor &tensor) { return "'" + visible(tensor.name) + "' (" + visible(tensor.str()) + ")"; }

std::string listOf(const std::vector<IoTensor> &tensors) {
  constexpr size_t most = 8; // a decoder has dozens of caches
  std::string text;
  for (size_t i = 0; i < std::min(most, tensors.size()); ++i)
    text += (text.empty() ? "" : ", ") + shown(tensors[i]);
  if (tensors.size() > most)
    text += " and " + std::to_string(tensors.size() - most) + " more";
  return text.empty() ? "none" : text;
}

std::optional<size_t> indexOf(const std::vector<IoTensor> &tensors, const std::string &name) {
  for (size_t i = 0; i < tensors.size(); ++i)
    if (tensors[i].name == name)
      return i;
  return std::nullopt;
}

class Finder {
public:
  Finder(const std::vector<IoTensor> &inputs, const std::vector<IoTensor> &outputs, const DecoderNames &names)
      : inputs(inputs), outputs(outputs), names(names), usedIn(inputs.size()), usedOut(outputs.size()) {}

  Result<Roles> find() {
    for (auto step : {&Finder::findIds, &Finder::findOthers, &Finder::findLogits, &Finder::findToldCaches,
                      &Finder::findCaches, &Finder::checkRest})
      if (Status done = (this->*step)(); !done)
        return done.takeError();
    return roles;
  }

private:
  /// The tensor that a flag names.
  Result<std::optional<size_t>> told(const std::vector<IoTensor> &tensors, const std::string &name, const char *flag) {
    if (name.empty())
      return std::optional<size_t>();
    if (std::optional<size_t> index = indexOf(tensors, name))
      return index;
    std::vector<std::string> known;
    for (const IoTensor &tensor : tensors)
      known.push_back(tensor.name);
    return usageError(std::string(flag) + " " + name + ": the bundle has no such " +
                      (&tensors == &outputs ? "output" : "input") + didYouMean(name, known) + "; it has " +
                      listOf(tensors));
  }

  template <typename Fits>
  std::optional<size_t> named(const std::vector<IoTensor> &tensors, const NameList &list, Fits fits) const {
    for (const char *name : list)
      if (std::optional<size_t> index = indexOf(tensors, name); index && fits(tensors[*index]))
        return index;
    return std::nullopt;
  }

  Status findIds() {
    auto fits = [](const IoTensor &t) { return isInteger(t.dtype) && (t.dims.size() == 1 || t.dims.size() == 2); };
    auto given = told(inputs, names.ids, "--ids");
    if (!given)
      return given.takeError();
    std::optional<size_t> ids = *given ? *given : named(inputs, kIds, fits);
    if (!ids) { // the only one of that form which is nothing else
      auto known = [&](const NameList &list, size_t i) {
        return std::any_of(list.begin(), list.end(), [&](const char *name) { return inputs[i].name == name; });
      };
      for (size_t i = 0; i < inputs.size(); ++i)
        if (fits(inputs[i]) && !known(kMasks, i) && !known(kPositions, i)) {
          if (ids)
            return modelError("this bundle is no decoder that is known: its inputs " + shown(inputs[*ids]) + " and " +
                              shown(inputs[i]) + " may both be the token ids; --ids NAME says which");
          ids = i;
        }
    }
    if (!ids || !fits(inputs[*ids]))
      return modelError(
          "this bundle is no decoder of tokens: no input is token ids (i64 or i32, batch x tokens, called "
          "input_ids, ids or tokens); its inputs are " +
          listOf(inputs) + (ids ? "" : "; --ids NAME says which it is"));
    roles.ids = *ids;
    usedIn[*ids] = true;
    return Status::ok();
  }

  Status findOthers() {
    struct Row {
      std::optional<size_t> &role;
      const std::string &name;
      const char *flag;
      const NameList &list;
    };
    const std::string none;
    for (const Row &row :
         {Row{roles.mask, names.mask, "--mask", kMasks},
          Row{roles.positions, names.positions, "--positions", kPositions}, Row{roles.branch, none, "", kBranches}}) {
      auto given = told(inputs, row.name, row.flag);
      if (!given)
        return given.takeError();
      row.role = *given ? *given : named(inputs, row.list, [](const IoTensor &) { return true; });
      if (!row.role)
        continue;
      const IoTensor &tensor = inputs[*row.role];
      size_t rank = tensor.dims.size();
      bool fits = row.flag == std::string("--mask") ? rank == 2 || rank == 4 : rank <= 2;
      if (usedIn[*row.role] || !fits)
        return modelError("the input " + shown(tensor) + " cannot be the " +
                          (&row.role == &roles.mask        ? "mask of attention: that is batch x tokens"
                           : &row.role == &roles.positions ? "positions of tokens: those are batch x tokens"
                                                           : "choice of a branch: that is one bool"));
      usedIn[*row.role] = true;
    }
    return Status::ok();
  }

  Status findLogits() {
    auto fits = [](const IoTensor &t) {
      return isFloat(t.dtype) && (t.dims.size() == 2 || t.dims.size() == 3) && isFixed(t.dims.back());
    };
    auto given = told(outputs, names.logits, "--logits");
    if (!given)
      return given.takeError();
    std::optional<size_t> logits = *given ? *given : named(outputs, kLogits, fits);
    if (!logits && !outputs.empty() && fits(outputs.front()) &&
        std::count_if(outputs.begin(), outputs.end(), fits) == 1)
      logits = 0;
    if (!logits || !fits(outputs[*logits]))
      return modelError("this bundle is no decoder of tokens: no output is logits (floats, batch x tokens x "
                        "vocabulary, called logits); its outputs are " +
                        listOf(outputs) + (logits ? "" : "; --logits NAME says which it is"));
    roles.logits = *logits;
    roles.vocabulary = outputs[*logits].dims.back().min;
    usedOut[*logits] = true;
    return Status::ok();
  }

  Status findToldCaches() {
    for (const auto &[input, output] : names.caches) {
      const std::string flag = "--cache " + input + "=" + output;
      if (std::count(input.begin(), input.end(), '*') != std::count(output.begin(), output.end(), '*'))
        return usageError(flag + ": both names need as many '*', as what one stands for in the input stands in the "
                                 "output");
      size_t found = 0;
      for (size_t i = 0; i < inputs.size(); ++i) {
        std::optional<std::string> become = outputOf(input, output, inputs[i].name);
        if (!become || usedIn[i])
          continue;
        std::optional<size_t> out = indexOf(outputs, *become);
        if (!out)
          return usageError(flag + ": the input " + shown(inputs[i]) + " would become the output '" + visible(*become) +
                            "', which is not there; the outputs are " + listOf(outputs));
        if (Status added = addCache(i, *out); !added)
          return added;
        ++found;
      }
      if (!found)
        return usageError(flag + ": the bundle has no such input; it has " + listOf(inputs));
    }
    return Status::ok();
  }

  /// Those that are left, by the names that exporters give; else all of them by their order.
  Status findCaches() {
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (usedIn[i])
        continue;
      for (const auto &[input, output] : kCaches) {
        std::optional<std::string> become = outputOf(input, output, inputs[i].name);
        std::optional<size_t> out = become ? indexOf(outputs, *become) : std::nullopt;
        if (!out || usedOut[*out])
          continue;
        if (Status added = addCache(i, *out); !added)
          return added;
        break;
      }
    }
    std::vector<size_t> in, out;
    for (size_t i = 0; i < inputs.size(); ++i)
      if (!usedIn[i])
        in.push_back(i);
    for (size_t i = 0; i < outputs.size(); ++i)
      if (!usedOut[i])
        out.push_back(i);
    bool alike = in.size() == out.size();
    for (size_t i = 0; alike && i < in.size(); ++i)
      alike = inputs[in[i]].dtype == outputs[out[i]].dtype && inputs[in[i]].dims.size() >= 3 &&
              inputs[in[i]].dims.size() == outputs[out[i]].dims.size();
    for (size_t i = 0; alike && i < in.size(); ++i)
      if (Status added = addCache(in[i], out[i]); !added)
        return added;
    return Status::ok();
  }

  Status addCache(size_t input, size_t output) {
    const IoTensor &in = inputs[input], &out = outputs[output];
    if (usedOut[output])
      return modelError("the output " + shown(out) +
                        " would be two inputs of the next run; --cache INPUT=OUTPUT says "
                        "which is which");
    if (in.dtype != out.dtype || in.dims.size() != out.dims.size())
      return modelError("the input " + shown(in) + " cannot take the output " + shown(out) +
                        " in the next run: types or ranks differ");
    CacheRole cache{input, output, std::nullopt, std::nullopt};
    const std::string &batch = inputs[roles.ids].dims.front().name;
    for (size_t axis = 0; axis < in.dims.size(); ++axis) {
      if (axis && !isFixed(in.dims[axis]) && in.dims[axis].name == out.dims[axis].name && in.dims[axis].name != batch)
        cache.room = axis;
      if (isFixed(in.dims[axis]) || isFixed(out.dims[axis]) || in.dims[axis].name == out.dims[axis].name)
        continue;
      if (cache.axis)
        return modelError("along which axis the cache " + shown(in) + " grows cannot be told from its output " +
                          shown(out) + "; compile the model for one sequence (dmxc --dim)");
      cache.axis = axis;
    }
    roles.caches.push_back(cache);
    usedIn[input] = usedOut[output] = true;
    return Status::ok();
  }

  /// The output that a cache of some exporter would become.
  static std::string wantedOutput(const std::string &name) {
    for (const auto &[input, output] : kCaches)
      if (std::optional<std::string> become = outputOf(input, output, name); become && *input != '*')
        return *become;
    return "";
  }

  Status checkRest() {
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (usedIn[i])
        continue;
      std::string wanted = wantedOutput(inputs[i].name);
      if (!wanted.empty())
        return modelError("the input " + shown(inputs[i]) +
                          " is a cache, and the output that it is in the next run, '" + visible(wanted) +
                          "', is missing; the outputs are " + listOf(outputs) + "; --cache 'INPUT=OUTPUT' names it");
      return modelError("the input " + shown(inputs[i]) +
                        " is neither token ids, a mask of attention, positions nor a cache; --ids, --mask, --positions "
                        "and --cache 'INPUT=OUTPUT' say what inputs are, others cannot be given");
    }
    return Status::ok();
  }

  const std::vector<IoTensor> &inputs, &outputs;
  const DecoderNames &names;
  std::vector<bool> usedIn, usedOut;
  Roles roles;
};

} // namespace

Result<Roles> findRoles(const std::vector<IoTensor> &inputs, const std::vector<IoTensor> &outputs,
                        const DecoderNames &names) {
  return Finder(inputs, outputs, names).find();
}

} // namespace dmxc::tools
