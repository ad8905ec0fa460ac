//===- CpuCount.cpp - how many CPUs this process may use ------------------===//

#include "CpuCount.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <memory>
#include <sched.h>
#include <string>
#include <unistd.h>

namespace dmxrt {
namespace {

/// A small file's text; empty when it cannot be read.
std::string readSmallFile(const std::string &path) {
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return {};
  char buffer[4096];
  ssize_t size = read(fd, buffer, sizeof buffer);
  close(fd);
  return size > 0 ? std::string(buffer, static_cast<size_t>(size)) : std::string();
}

/// Path of this process in the hierarchy whose controller list is `controllers`
/// ("" for version 2), from /proc/self/cgroup.
std::string cgroupPath(const std::string &text, const std::string &controllers) {
  for (size_t begin = 0; begin < text.size();) {
    size_t end = std::min(text.find('\n', begin), text.size());
    std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos)
      continue;
    std::string list = "," + line.substr(first + 1, second - first - 1) + ",";
    if (controllers.empty() ? list == ",," : list.find("," + controllers + ",") != std::string::npos)
      return line.substr(second + 1);
  }
  return "/";
}

/// CPUs that "QUOTA PERIOD" pays for; 0 when there is none ("max 100000", "-1 100000", no text).
double quotaOf(const std::string &text) {
  char *rest = nullptr;
  double quota = std::strtod(text.c_str(), &rest), period = std::strtod(rest, nullptr);
  return quota > 0 && period > 0 ? quota / period : 0;
}

/// The smallest quota of a directory and its parents.
template <typename Reader> double tightestQuota(const std::string &root, std::string path, Reader reader) {
  double tightest = 0;
  for (;;) {
    double quota = reader(root + (path == "/" ? "" : path));
    if (quota > 0 && (tightest == 0 || quota < tightest))
      tightest = quota;
    if (path.empty() || path == "/")
      return tightest;
    size_t slash = path.rfind('/');
    path = slash == std::string::npos ? "" : path.substr(0, slash);
  }
}

} // namespace

double cgroupCpus(const std::string &text, const std::string &mount) {
  double v2 = tightestQuota(mount, cgroupPath(text, ""), [](const std::string &directory) {
    return quotaOf(readSmallFile(directory + "/cpu.max"));
  });
  double v1 = tightestQuota(mount + "/cpu", cgroupPath(text, "cpu"), [](const std::string &directory) {
    return quotaOf(readSmallFile(directory + "/cpu.cfs_quota_us") + " " +
                   readSmallFile(directory + "/cpu.cfs_period_us"));
  });
  return v2 > 0 && v1 > 0 ? std::min(v1, v2) : std::max(v1, v2);
}

std::vector<uint32_t> allowedCpus() {
  std::vector<uint32_t> cpus;
  // The mask's size must be at least the kernel's, which is not known before.
  for (uint32_t count = 1024; count <= 1u << 20; count *= 2) {
    auto release = [](cpu_set_t *set) { CPU_FREE(set); };
    std::unique_ptr<cpu_set_t, decltype(release)> set(CPU_ALLOC(count));
    if (!set)
      break;
    size_t size = CPU_ALLOC_SIZE(count);
    if (sched_getaffinity(0, size, set.get()) == 0)
      for (uint32_t cpu = 0; cpu < count; ++cpu)
        if (CPU_ISSET_S(cpu, size, set.get()))
          cpus.push_back(cpu);
    if (!cpus.empty() || errno != EINVAL)
      break;
  }
  if (cpus.empty())
    cpus.push_back(0);
  return cpus;
}

uint32_t defaultThreadCount() {
  uint32_t count = static_cast<uint32_t>(allowedCpus().size());
  double quota = cgroupCpus(readSmallFile("/proc/self/cgroup"), "/sys/fs/cgroup");
  if (quota > 0)
    count = std::min(count, std::max(1u, static_cast<uint32_t>(std::min(quota, 1024.0))));
  return std::clamp(count, 1u, 1024u);
}

} // namespace dmxrt
