//===- Instance.h - one execution of a model at a time ----------*- C++ -*-===//
#pragma once

#include "Model.h"
#include "Rows.h"

#include <list>
#include <span>
#include <string>
#include <vector>

namespace dmxrt::triton {

/// Sessions of sequences by their ids, at most so many: a new one beyond that takes the place of the one that has
/// waited longest, whose client is told at its next request.
class Sequences {
public:
  explicit Sequences(const Model &model) : model(model) {}
  /// The session of a request's sequence; of one that starts, with a state of zeros.
  dmx_session *of(TRITONBACKEND_Request *request);
  /// After a request, run or not: a sequence that ends gives its session back.
  void done(TRITONBACKEND_Request *request);

private:
  struct Sequence {
    std::string id;
    Session session;
  };
  static std::string idOf(TRITONBACKEND_Request *request);
  const Model &model;
  std::list<Sequence> running; ///< the last used one in front
  std::vector<Session> idle;
};

/// What an instance of the server runs. The server calls it from one thread at a time.
class Instance {
public:
  Instance(const Model &model, TRITONBACKEND_ModelInstance *instance);
  /// Answers each request, and gives it back to the server.
  void execute(std::span<TRITONBACKEND_Request *> requests);

private:
  /// A request on its way to its answer.
  struct Job {
    TRITONBACKEND_Request *request = nullptr;
    TRITONBACKEND_Response *response = nullptr;
    std::vector<Given> inputs;
    int64_t rows = 0;
    TRITONSERVER_Error *error = nullptr; ///< until it is sent
  };
  static void renew(Job &job);
  void read(Job &job) const;
  /// Jobs that go into one run, from the first one that has not had one: their inputs have one shape but for the rows.
  std::vector<Job *> together(std::span<Job> jobs, std::vector<bool> &taken) const;
  void run(std::span<Job *> jobs);
  /// One run of all jobs; throws.
  void compute(dmx_session *session, std::span<Job *> jobs);
  void bindInputs(dmx_session *session, std::span<Job *> jobs);
  void bindOutputs(dmx_session *session, Job &job, std::vector<bool> &bound);
  void giveOutputs(dmx_session *session, std::span<Job *> jobs, const std::vector<bool> &bound);
  void finish(Job &job);

  const Model &model;
  TRITONBACKEND_ModelInstance *self;
  Session session; ///< null where each sequence has one
  Sequences sequences;
  std::vector<Buffer> copies; ///< of inputs that do not lie as the runtime needs it
  uint64_t started = 0, computes = 0, computed = 0;
};

} // namespace dmxrt::triton
