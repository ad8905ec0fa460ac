//===- Instance.cpp - one execution of a model at a time ------------------===//
#include "Instance.h"

#include <algorithm>
#include <cstring>

namespace dmxrt::triton {
namespace {

/// Whether the client has asked for an output.
bool isWanted(TRITONBACKEND_Request *request, const std::string &name) {
  uint32_t count = 0;
  check(TRITONBACKEND_RequestOutputCount(request, &count));
  for (uint32_t i = 0; i < count; ++i) {
    const char *wanted = nullptr;
    check(TRITONBACKEND_RequestOutputName(request, i, &wanted));
    if (name == wanted)
      return true;
  }
  return false;
}

/// Right before a run, since others may have taken long.
void refuseCancelled(TRITONBACKEND_Request *request) {
  bool cancelled = false;
  check(TRITONBACKEND_RequestIsCancelled(request, &cancelled));
  if (cancelled)
    throw Failure(TRITONSERVER_ERROR_CANCELLED, "the client has cancelled the request");
}

/// Memory of the response for an output of these dims.
void *placeFor(TRITONBACKEND_Response *response, const Tensor &tensor, const std::vector<int64_t> &dims) {
  TRITONBACKEND_Output *output = nullptr;
  const std::vector<int64_t> told = dims.empty() ? std::vector<int64_t>{1} : dims; // the server knows no scalars
  const auto rank = static_cast<uint32_t>(told.size());
  check(TRITONBACKEND_ResponseOutput(response, &output, tensor.name.c_str(), serverType(tensor), told.data(), rank));
  void *to = nullptr;
  TRITONSERVER_MemoryType kind = TRITONSERVER_MEMORY_CPU;
  int64_t id = 0;
  check(TRITONBACKEND_OutputBuffer(output, &to, static_cast<uint64_t>(dmx_tensor_bytes(tensor.type, rank, told.data())),
                                   &kind, &id));
  if (kind == TRITONSERVER_MEMORY_GPU)
    throw Failure(TRITONSERVER_ERROR_UNSUPPORTED, "the output '" + tensor.name + "' is wanted in a GPU's memory");
  return to;
}

dmx_tensor_view viewOf(const Tensor &tensor, const std::vector<int64_t> &dims, const void *data) {
  return {tensor.type, static_cast<uint32_t>(dims.size()), dims.data(), const_cast<void *>(data)};
}

} // namespace

Instance::Instance(const Model &model, TRITONBACKEND_ModelInstance *instance)
    : model(model), self(instance), sequences(model), copies(model.inputs().size()) {
  if (!model.hasState())
    session = model.makeSession();
}

void Instance::read(Job &job) const {
  for (const Tensor &tensor : model.inputs())
    job.inputs.push_back(readInput(job.request, tensor));
  if (model.maxBatch() == 0)
    return;
  job.rows = job.inputs[0].dims[0];
  for (size_t i = 1; i < job.inputs.size(); ++i)
    if (job.inputs[i].dims[0] != job.rows)
      refuse("the input '" + model.inputs()[i].name + "' has " + std::to_string(job.inputs[i].dims[0]) + " rows, '" +
             model.inputs()[0].name + "' has " + std::to_string(job.rows));
}

std::vector<Instance::Job *> Instance::together(std::span<Job> jobs, std::vector<bool> &taken) const {
  std::vector<Job *> run;
  int64_t rows = 0;
  auto fits = [&](const Job &job) {
    for (size_t i = 0; i < job.inputs.size(); ++i)
      if (!std::equal(job.inputs[i].dims.begin() + 1, job.inputs[i].dims.end(), run[0]->inputs[i].dims.begin() + 1))
        return false;
    return job.rows <= model.maxBatch() - rows;
  };
  for (size_t i = 0; i < jobs.size(); ++i) {
    if (taken[i] || jobs[i].error || (!run.empty() && (model.maxBatch() == 0 || !fits(jobs[i]))))
      continue;
    jobs[i].error = guarded([&] { refuseCancelled(jobs[i].request); });
    if (jobs[i].error)
      continue;
    taken[i] = true;
    rows += jobs[i].rows;
    run.push_back(&jobs[i]);
  }
  return run;
}

void Instance::bindInputs(dmx_session *session, std::span<Job *> jobs) {
  dmx_error error = DMX_ERROR_INIT;
  for (size_t i = 0; i < model.inputs().size(); ++i) {
    const Tensor &tensor = model.inputs()[i];
    std::vector<int64_t> dims = jobs[0]->inputs[i].dims;
    size_t bytes = 0;
    for (const Job *job : jobs)
      bytes += job->inputs[i].bytes;
    const void *data = nullptr;
    if (jobs.size() == 1 && jobs[0]->inputs[i].isWhole(tensor.type)) {
      data = jobs[0]->inputs[i].pieces[0].data();
    } else {
      std::byte *to = copies[i].reserve(bytes);
      data = to;
      for (const Job *job : jobs) {
        job->inputs[i].copyTo(to);
        to += job->inputs[i].bytes;
      }
    }
    if (jobs.size() > 1) {
      dims[0] = 0;
      for (const Job *job : jobs)
        dims[0] += job->rows;
    }
    dmx_tensor_view view = viewOf(tensor, dims, data);
    check(dmx_session_bind(session, DMX_INPUT, static_cast<uint32_t>(i), &view, &error), error);
  }
}

/// Outputs of one request whose shape is known before the run are written where the response has them.
void Instance::bindOutputs(dmx_session *session, Job &job, std::vector<bool> &bound) {
  dmx_error error = DMX_ERROR_INIT;
  for (size_t i = 0; i < model.outputs().size(); ++i) {
    const Tensor &tensor = model.outputs()[i];
    std::vector<int64_t> dims(DMX_MAX_RANK);
    uint32_t rank = 0;
    const auto at = static_cast<uint32_t>(i);
    if (!isWanted(job.request, tensor.name) ||
        dmx_session_shape(session, DMX_OUTPUT, at, dims.data(), DMX_MAX_RANK, &rank, nullptr))
      continue;
    dims.resize(rank);
    void *to = placeFor(job.response, tensor, dims);
    if (!isAligned(to, tensor.type))
      throw Failure(TRITONSERVER_ERROR_INTERNAL, "the server's memory for '" + tensor.name + "' is not aligned");
    dmx_tensor_view view = viewOf(tensor, dims, to);
    check(dmx_session_bind(session, DMX_OUTPUT, at, &view, &error), error);
    bound[i] = true;
  }
}

void Instance::giveOutputs(dmx_session *session, std::span<Job *> jobs, const std::vector<bool> &bound) {
  dmx_error error = DMX_ERROR_INIT;
  int64_t rows = 0;
  for (const Job *job : jobs)
    rows += job->rows;
  for (size_t i = 0; i < model.outputs().size(); ++i) {
    if (bound[i])
      continue;
    const Tensor &tensor = model.outputs()[i];
    dmx_tensor_view view = {};
    check(dmx_session_output(session, static_cast<uint32_t>(i), &view, &error), error);
    std::vector<int64_t> dims(view.dims, view.dims + view.rank);
    const auto *from = static_cast<const std::byte *>(view.data);
    if (jobs.size() > 1 && (dims.empty() || dims[0] != rows))
      throw Failure(TRITONSERVER_ERROR_INTERNAL, "the output '" + tensor.name + "' of " + std::to_string(rows) +
                                                     " rows is " +
                                                     (dims.empty() ? "a scalar" : std::to_string(dims[0]) + " rows"));
    for (Job *job : jobs) {
      if (jobs.size() > 1)
        dims[0] = job->rows;
      const int64_t bytes = dmx_tensor_bytes(tensor.type, view.rank, dims.data());
      if (isWanted(job->request, tensor.name)) {
        void *to = placeFor(job->response, tensor, dims);
        if (bytes)
          std::memcpy(to, from, static_cast<size_t>(bytes));
      }
      from += bytes;
    }
  }
}

void Instance::compute(dmx_session *session, std::span<Job *> jobs) {
  dmx_error error = DMX_ERROR_INIT;
  std::vector<bool> bound(model.outputs().size(), false);
  bindInputs(session, jobs);
  if (jobs.size() == 1)
    bindOutputs(session, *jobs[0], bound);
  computes = now();
  const dmx_status status = dmx_session_run(session, &error);
  computed = now();
  if (!status)
    giveOutputs(session, jobs, bound);
  for (size_t i = 0; i < bound.size(); ++i) // that memory is the response's
    if (bound[i])
      dmx_session_unbind(session, DMX_OUTPUT, static_cast<uint32_t>(i), nullptr);
  check(status, error);
}

/// An empty answer, also for one that a failed run has put something into. One that is neither sent nor deleted holds
/// the model, which is then never unloaded.
void Instance::renew(Job &job) {
  if (job.response)
    drop(TRITONBACKEND_ResponseDelete(job.response));
  job.response = nullptr;
  job.error = TRITONBACKEND_ResponseNew(&job.response, job.request);
}

/// One run, and where several requests fail in it, each alone: what is wrong with one is not the others' affair.
void Instance::run(std::span<Job *> jobs) {
  int64_t rows = 0;
  for (const Job *job : jobs)
    rows += std::max<int64_t>(job->rows, 1);
  computes = computed = now();
  TRITONSERVER_Error *failed = guarded([&] {
    dmx_session *own = model.hasState() ? sequences.of(jobs[0]->request) : session.get();
    compute(own, jobs);
  });
  if (failed && jobs.size() > 1) {
    drop(failed);
    for (Job *job : jobs) {
      renew(*job);
      if (job->error)
        finish(*job);
      else
        run({&job, 1});
    }
    return;
  }
  if (failed)
    jobs[0]->error = failed;
  else
    drop(TRITONBACKEND_ModelInstanceReportBatchStatistics(self, static_cast<uint64_t>(rows), started, computes,
                                                          computed, now()));
  for (Job *job : jobs)
    finish(*job);
}

/// Sends the answer or the error, says how long it took, and gives the request back. The last one of a sequence ends it
/// even where it has not been run, for to the server it has ended.
void Instance::finish(Job &job) {
  const bool good = !job.error;
  if (model.hasState())
    drop(guarded([&] { sequences.done(job.request); }));
  if (job.response)
    drop(TRITONBACKEND_ResponseSend(job.response, TRITONSERVER_RESPONSE_COMPLETE_FINAL, job.error));
  drop(job.error);
  job.error = nullptr;
  drop(TRITONBACKEND_ModelInstanceReportStatistics(self, job.request, good, started, computes, computed, now()));
  drop(TRITONBACKEND_RequestRelease(job.request, TRITONSERVER_REQUEST_RELEASE_ALL));
}

void Instance::execute(std::span<TRITONBACKEND_Request *> requests) {
  started = computes = computed = now();
  std::vector<Job> jobs(requests.size());
  for (size_t i = 0; i < jobs.size(); ++i) {
    jobs[i].request = requests[i];
    renew(jobs[i]);
    if (!jobs[i].error)
      jobs[i].error = guarded([&] { read(jobs[i]); });
  }
  std::vector<bool> taken(jobs.size(), false);
  for (std::vector<Job *> run; !(run = together(jobs, taken)).empty();)
    this->run(run);
  for (size_t i = 0; i < jobs.size(); ++i)
    if (!taken[i])
      finish(jobs[i]);
}

} // namespace dmxrt::triton
