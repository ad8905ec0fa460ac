// digits.cpp: the digit in each image of 8 x 8 floats on stdin, all of them in one run, with the header for C++20.
//   tail -c +129 tools/digits/images.npy | ./digits digits.bundle
#include <dmx/dmx.hpp>

#include <algorithm>
#include <cstdio>
#include <vector>

int main(int argc, char **argv) try {
  std::vector<float> images, image(8 * 8);
  while (std::fread(image.data(), sizeof(float), image.size(), stdin) == image.size())
    images.insert(images.end(), image.begin(), image.end());
  int64_t count = int64_t(images.size() / image.size());

  dmx::Bundle bundle(argc > 1 ? argv[1] : "digits.bundle");
  dmx::Session session(bundle);
  session.bindInput("image", images, {count, 1, 8, 8}); // the memory stays ours
  session.run();
  std::span<const float> scores = session.output<float>("probabilities"); // the session's, 10 an image
  for (int64_t i = 0; i < count; ++i) {
    auto row = scores.subspan(size_t(i) * 10, 10);
    std::printf("%d\n", int(std::max_element(row.begin(), row.end()) - row.begin()));
  }
} catch (const dmx::Error &error) {
  std::fprintf(stderr, "digits: %s: %s\n", dmx_status_name(error.status()), error.what());
  return 1;
}
