//===- MoveCopy.h - one source range to one destination range ---*- C++ -*-===//
#pragma once

#include "Quad.h"
#include "Region.h"

namespace dmxrt::corsair {

/// One end of a copy.
struct MoveEnd {
  Memory memory = Memory::GM;
  uint32_t unit = 0;
  int64_t address = 0, row = 0;
};

/// The data path of MOVE: copies, gathers and converts the items of a descriptor,
/// with all checks. What it costs is for the caller.
class MoveCopy {
public:
  /// `n0`: the trip count of dimension 0.
  MoveCopy(Quad &quad, Queue &queue, const MoveConfig &config, int64_t n0);
  /// Whether the descriptor is meaningful for these memories.
  bool check(Memory source, Memory destination);
  bool run(const MoveEnd &source, const MoveEnd &destination);

  /// Bytes moved out of the source and into the destination, and the same as
  /// their ports see them.
  struct Traffic {
    uint64_t bytes = 0, port = 0;
  };
  Traffic sourceTraffic() const { return traffic(false); }
  Traffic destinationTraffic() const { return traffic(true); }

private:
  Quad &quad;
  Queue &queue;
  const MoveConfig &config;
  int64_t n[4];

  bool spansFit() const;
  bool bounded() const;
  Traffic traffic(bool destination) const;
  bool isValid(const int64_t (&index)[4]) const;
  int64_t validElements(const int64_t (&index)[4]) const;
  Region linear(bool destination, const int64_t (&begin)[4], const int64_t (&end)[4], int64_t elements,
                int64_t address) const;
  bool readLinear(const MoveEnd &source, std::byte *&data);
  bool checkRows(const MoveEnd &end, bool destination, bool writing, std::byte *&data);
  template <typename Visit> bool eachItem(Visit visit) const;
  int64_t rowOf(const MoveEnd &end, const int64_t (&index)[4], bool destination) const;

  bool copyRaw(const MoveEnd &source, const MoveEnd &destination);
  bool copyLinear(const MoveEnd &source, const MoveEnd &destination);
  bool copyRows(const MoveEnd &source, const MoveEnd &destination);
  bool packRows(const MoveEnd &source, const MoveEnd &destination);
  bool unpackRows(const MoveEnd &source, const MoveEnd &destination);
  bool writeLinear(const MoveEnd &destination, std::byte *&data);
};

/// A plain element as f32 and back (f16, f32, bfp32).
float loadFloat(const std::byte *at, ElemKind kind);
/// Gives whether f16 cannot hold it.
bool storeFloat(std::byte *at, ElemKind kind, float value);
inline bool isFloat(ElemKind kind) { return kind == ElemKind::F16 || kind == ElemKind::F32 || kind == ElemKind::Bfp32; }

} // namespace dmxrt::corsair
