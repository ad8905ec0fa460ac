//===- Decoder.cpp - a bundle that gives logits of the next token ---------===//
#include "Decoder.h"

#include "dmxc/Support/Visible.h"

#include <algorithm>

namespace dmxc::tools {

namespace {

std::string shown(const IoTensor &tensor) { return "'" + visible(tensor.name) + "' (" + visible(tensor.str()) + ")"; }

int64_t extentOr(const IoDim &dim, int64_t open) { return dim.min == dim.max ? dim.min : open; }

/// Where a mask has ones of its type: integers and bools 1, an added mask 0 among least values.
void fillMask(Tensor &mask, int64_t from, int64_t count, bool isAdded) {
  for (int64_t i = from; i < from + count; ++i)
    mask.setDouble(i, isAdded ? 0 : 1);
}

} // namespace

Result<std::unique_ptr<Decoder>> Decoder::open(const GenerateOptions &options) {
  std::unique_ptr<Decoder> self(new Decoder);
  auto session = ModelSession::open(options.bundle, options.session);
  if (!session)
    return session.takeError();
  self->model = std::move(*session);
  auto facts = decoderFacts(*self->model);
  if (!facts)
    return facts.takeError();
  self->said = std::move(*facts);
  std::erase_if(self->said.names.caches, [&](const auto &cache) { // which dmxc made states of
    return std::none_of(self->model->inputs().begin(), self->model->inputs().end(),
                        [&](const IoTensor &input) { return input.name == cache.first; });
  });
  auto found = findRoles(self->model->inputs(), self->model->outputs(), mergedNames(options.names, self->said.names));
  if (!found)
    return Error{found.error().kind, options.bundle + ": " + found.error().message};
  self->roles = *found;
  auto info = self->model->info();
  if (!info)
    return info.takeError();
  const int64_t context = options.context ? options.context : self->said.context;
  if (!self->roles.caches.empty() && info->state_bytes)
    return modelError(options.bundle + ": some caches are states of the session and others, as '" +
                      visible(self->model->inputs()[self->roles.caches.front().input].name) +
                      "', inputs; compile the model with all of them as states, or with none (dmxc --state)");
  if (!self->roles.caches.empty()) {
    auto carried = carriedMemory(*self->model, self->roles, context);
    if (!carried)
      return carried.takeError();
    self->memory = std::move(*carried);
  } else {
    self->memory = info->state_bytes ? stateMemory(*self->model, self->roles, info->state_bytes) : noMemory();
  }
  if (Status done = self->findLimits(context); !done)
    return done.takeError();
  return self;
}

Status Decoder::findLimits(int64_t context) {
  const IoTensor &ids = model->inputs()[roles.ids];
  if (const IoDim &batch = ids.dims.front(); ids.dims.size() == 2 && batch.min > 1)
    return modelError("the input " + shown(ids) + " takes " + std::to_string(batch.min) +
                      " sequences at once; compile the model for one (dmxc --dim), or export it for one");
  for (const CacheRole &cache : roles.caches)
    if (const IoTensor &in = model->inputs()[cache.input]; cache.axis && in.dims[*cache.axis].min > 0)
      return modelError("the cache " + shown(in) +
                        " cannot be empty, as it is before the first token: " + visible(in.dims[*cache.axis].name) +
                        " is at least " + std::to_string(in.dims[*cache.axis].min) +
                        "; compile the model with dmxc --dim " + visible(in.dims[*cache.axis].name) + "=0..N");
  const IoDim &count = ids.dims.back();
  if (!memory->recomputes() && count.min > 1)
    return modelError("the input '" + visible(ids.name) + "' takes at least " + std::to_string(count.min) +
                      " tokens in a run, and a decoder with caches gets them one by one; compile the model with "
                      "dmxc --dim, or export it for any number");
  mostInRun = count.max;
  mostTokens = std::min(memory->room(), context ? context : kNoLimit);
  if (memory->recomputes())
    mostTokens = std::min(mostTokens, count.max);
  if (roles.mask && !maskIsOfRun())
    mostTokens = std::min(mostTokens, model->inputs()[*roles.mask].dims.back().max);
  return Status::ok();
}

bool Decoder::maskIsOfRun() const {
  const std::string &name = model->inputs()[*roles.mask].dims.back().name;
  return !name.empty() && name == model->inputs()[roles.ids].dims.back().name;
}

bool Decoder::checksGuesses() const { return memory->forgetsSingleTokens() && (memory->recomputes() || mostInRun > 1); }

Status Decoder::append(std::span<const int64_t> ids, const std::function<bool()> &stop) {
  while (!ids.empty()) {
    size_t count = memory->recomputes() ? ids.size() : std::min<uint64_t>(ids.size(), mostInRun);
    if (Status done = run(ids.first(count)); !done)
      return done;
    ids = ids.subspan(count);
    if (stop && stop())
      break;
  }
  return Status::ok();
}

Status Decoder::run(std::span<const int64_t> ids) {
  double start = nowMs();
  const int64_t before = memory->recomputes() ? 0 : length();
  history.insert(history.end(), ids.begin(), ids.end());
  std::span<const int64_t> all(history);
  std::span<const int64_t> given = all.subspan(before);
  lastCount = static_cast<int64_t>(given.size());
  if (Status done = bindIds(given, before); !done)
    return done;
  if (Status done = memory->bind(*model, before); !done)
    return done;
  if (Status done = model->runOn(); !done)
    return Error{done.error().kind,
                 "the run behind " + std::to_string(before) + " tokens failed: " + done.error().message +
                     (before ? "; --context " + std::to_string(before) + " ends answers before it" : "")};
  if (Status done = memory->keep(*model); !done)
    return done;
  runMs += nowMs() - start;
  movedBytes += memory->bytesMoved();
  ++runCount;
  return Status::ok();
}

Status Decoder::bindIntegers(size_t input, const Shape &shape, std::span<const int64_t> values) {
  const IoTensor &io = model->inputs()[input];
  auto tensor = newTensor(io.dtype, shape, "input '" + io.name + "'");
  if (!tensor)
    return tensor.takeError();
  for (size_t i = 0; i < values.size(); ++i)
    tensor->setInt(static_cast<int64_t>(i), values[i]);
  return model->bindInput(input, *tensor);
}

/// Tokens, and all that follows from their number.
Status Decoder::bindIds(std::span<const int64_t> ids, int64_t before) {
  const IoTensor &io = model->inputs()[roles.ids];
  const int64_t count = extentOr(io.dims.back(), lastCount);
  lastPadding = count - lastCount;
  Shape shape = io.dims.size() == 1 ? Shape{count} : Shape{1, count};
  if (Status done = bindIntegers(roles.ids, shape, ids); !done)
    return done;
  if (Status done = bindMask(before, count); !done)
    return done;
  if (Status done = bindPositions(before, count); !done)
    return done;
  if (!roles.branch)
    return Status::ok();
  const IoTensor &branch = model->inputs()[*roles.branch];
  const int64_t hasCaches = before > 0;
  return bindIntegers(*roles.branch, Shape(branch.dims.size(), 1), {&hasCaches, 1});
}

/// Of batch x tokens: those that are there. Of batch x 1 x tokens x tokens: each sees those up to itself.
Status Decoder::bindMask(int64_t before, int64_t count) {
  if (!roles.mask)
    return Status::ok();
  const IoTensor &io = model->inputs()[*roles.mask];
  const bool ofRun = maskIsOfRun();
  const int64_t width = extentOr(io.dims.back(), ofRun ? count : before + count);
  const bool isMatrix = io.dims.size() == 4;
  const bool isAdded = isMatrix && isFloat(io.dtype);
  auto tensor = newTensor(io.dtype, isMatrix ? Shape{1, 1, count, width} : Shape{1, width}, "input '" + io.name + "'");
  if (!tensor)
    return tensor.takeError();
  if (isAdded)
    for (int64_t i = 0; i < tensor->numElements(); ++i)
      tensor->setDouble(i, io.dtype == DType::F16 ? -65504 : -3.0e38);
  for (int64_t row = 0; row < (isMatrix ? count : 1); ++row) {
    int64_t seen = isMatrix ? before + row + 1 : ofRun ? lastCount : before + lastCount;
    fillMask(*tensor, row * width, std::min(seen, width), isAdded);
  }
  return model->bindInput(*roles.mask, *tensor);
}

Status Decoder::bindPositions(int64_t before, int64_t count) {
  if (!roles.positions)
    return Status::ok();
  const IoTensor &io = model->inputs()[*roles.positions];
  const int64_t width = io.dims.empty() ? 1 : extentOr(io.dims.back(), count);
  std::vector<int64_t> values;
  for (int64_t i = 0; i < width; ++i)
    values.push_back(before + i);
  return bindIntegers(*roles.positions, io.dims.size() < 2 ? Shape(io.dims.size(), width) : Shape{1, width}, values);
}

Result<std::span<const float>> Decoder::logits(int64_t back) {
  auto view = model->outputView(roles.logits);
  if (!view)
    return view.takeError();
  const Shape shape(view->dims, view->dims + view->rank);
  const int64_t size = roles.vocabulary, rows = size ? elementCount(shape) / size : 0;
  // A row a token, or one for the last.
  const int64_t row = rows == lastCount + lastPadding ? lastCount - 1 - back : rows == 1 && back == 0 ? 0 : -1;
  if (row < 0)
    return modelError("the output '" + visible(model->outputs()[roles.logits].name) + "' is " + shapeString(shape) +
                      " for " + std::to_string(lastCount) + " tokens, which are logits of " +
                      (back ? "the last one alone; leave --lookup away" : "neither each nor the last one"));
  const Tensor all(static_cast<DType>(view->dtype - 1), shape, static_cast<const std::byte *>(view->data), nullptr);
  if (all.dtype() == DType::F32)
    return std::span(all.as<float>() + row * size, static_cast<size_t>(size));
  converted.resize(static_cast<size_t>(size));
  for (int64_t i = 0; i < size; ++i)
    converted[static_cast<size_t>(i)] = static_cast<float>(all.asDouble(row * size + i));
  return std::span<const float>(converted);
}

Status Decoder::truncate(int64_t kept) {
  if (Status done = memory->truncate(*model, length(), kept); !done)
    return done;
  history.resize(static_cast<size_t>(kept));
  return Status::ok();
}

} // namespace dmxc::tools
