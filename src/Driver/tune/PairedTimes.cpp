//===- PairedTimes.cpp - a candidate beside the default, in turns ---------===//
#include "PairedTimes.h"

#include "dmxc/Tools/Compare.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <limits>

namespace dmxc::driver {

Result<PairedTimes::Session> PairedTimes::openOne(const std::string &bundle) {
  tools::SessionSettings settings;
  settings.threads = 1;
  settings.copyBundle = true; // its file is written anew for the next candidate
  Result<Session> session = tools::ModelSession::open(bundle, settings);
  if (!session)
    return session;
  const std::vector<tools::IoTensor> &inputs = (*session)->inputs();
  for (size_t i = 0; i < inputs.size(); ++i) {
    Shape shape;
    for (const tools::IoDim &dim : inputs[i].dims)
      shape.push_back(dim.name.empty() ? dim.min : std::max<int64_t>(dim.min, 1));
    if (Status bound = (*session)->bindInput(i, tools::randomTensor(inputs[i].dtype, shape, 1000 + i)); !bound)
      return bound.takeError();
  }
  if (Status made = (*session)->allocateOutputs(); !made)
    return made.takeError();
  return session;
}

Result<std::unique_ptr<PairedTimes>> PairedTimes::open(const std::string &defaultBundle) {
  auto pairs = std::make_unique<PairedTimes>();
  for (Session *session : {&pairs->first, &pairs->again}) {
    Result<Session> opened = openOne(defaultBundle);
    if (!opened)
      return opened.takeError();
    *session = std::move(*opened);
  }
  constexpr double least = 2e6; // nanoseconds of a measure
  for (;; pairs->runs *= 2) {
    Result<double> taken = pairs->time(*pairs->first);
    if (!taken)
      return taken.takeError();
    pairs->ns = *taken;
    if (*taken * pairs->runs >= least || pairs->runs >= 1u << 16)
      break;
  }
  if (auto info = pairs->first->info(); info && info->isa)
    pairs->isa = info->isa;
  return pairs;
}

Result<double> PairedTimes::time(tools::ModelSession &session) const {
  auto now = [] {
    timespec at{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &at);
    return static_cast<double>(at.tv_sec) * 1e9 + static_cast<double>(at.tv_nsec);
  };
  if (Status warm = session.run(); !warm) // the other one's data is in the caches
    return warm.takeError();
  const double begin = now();
  for (uint32_t i = 0; i < runs; ++i)
    if (Status done = session.run(); !done)
      return done.takeError();
  return std::max((now() - begin) / runs, 1.0);
}

Result<Ratios> PairedTimes::compare(const std::string &candidate, size_t pairs) {
  Result<Session> other = openOne(candidate);
  if (!other)
    return other.takeError();
  tools::ModelSession *all[] = {first.get(), other->get(), again.get()};
  Ratios ratios;
  for (size_t pair = 0; pair < pairs; ++pair) {
    double taken[3] = {};
    for (size_t i = 0; i < 3; ++i) { // each stands in each place equally often
      const size_t which = pair % 2 ? (2 * 3 - i + pair / 2) % 3 : (i + pair / 2) % 3;
      Result<double> ns = time(*all[which]);
      if (!ns)
        return ns.takeError();
      taken[which] = *ns;
    }
    ratios.candidate.push_back(taken[0] / taken[1]);
    ratios.control.push_back(taken[0] / taken[2]);
    // What is clearly slower needs no more.
    if (pair == 4 && medianOf(ratios.candidate) < 0.95)
      break;
  }
  return ratios;
}

} // namespace dmxc::driver
