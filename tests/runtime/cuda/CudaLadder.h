//===- CudaLadder.h - products of matrices, from plain to persistent -*- C++ -*-===//
//
// Kernels of the forms that public worklogs of Hopper's products climb (github.com/pranjalssh/fast.cu, examples/matmul:
// 1, 2, 4, 5 and 6), written here as PTX. C is N x M of bf16, A is M x K, B is N x K for tensor cores and K x N for the
// plain one.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "CudaLaunch.h"

namespace dmxtest {

/// A block of `consumers` warpgroups that multiply, and one that copies; of none: one warpgroup does both in turns.
struct LadderForm {
  uint32_t rows = 64, columns = 64, slots = 1, consumers = 0;
  bool persistent = false;

  uint32_t threads() const { return 128 * (1 + consumers); }
  uint32_t slotBytes() const { return (rows + columns) * 128; }
};

class LadderText {
public:
  LadderText(const LadderForm &form, uint32_t size) : form(form), size(size) {}
  std::string operator()() {
    begin();
    form.consumers ? specialised() : alone();
    return text + "$end:\n\tret;\n}\n";
  }

private:
  static std::string num(uint64_t value) { return std::to_string(value); }
  void line(const std::string &what) { text += "\t" + what + ";\n"; }
  std::string accumulators() const {
    std::string out;
    for (uint32_t i = 0; i < form.columns / 2; ++i)
      out += (i ? ", %a" : "%a") + num(i);
    return "{" + out + "}";
  }

  void begin() {
    text = ".version 8.0\n.target sm_90a\n.address_size 64\n.extern .shared .align 1024 .b8 room[];\n"
           ".visible .entry k(.param .u64 to, .param .u64 from0, .param .u64 from1, .param .align 64 .b8 map0[128], "
           ".param .align 64 .b8 map1[128])\n.reqntid " +
           num(form.threads()) + ", 1, 1\n" + (form.consumers ? ".minnctapersm 1\n" : "") +
           "{\n\t.shared .align 8 .b8 full[64];\n\t.shared .align 8 .b8 empty[64];\n\t.reg .pred %p<8>;\n"
           "\t.reg .b16 %h<4>;\n\t.reg .b32 %r<64>;\n\t.reg .b32 %a<128>;\n\t.reg .b64 %d<32>;\n";
    line("ld.param.b64 %d0, [to]");
    line("mov.u32 %r0, %tid.x");
    line("mov.u32 %r1, %ctaid.x"); // the tile
    line("mov.b64 %d1, map0");
    line("cvta.param.u64 %d2, %d1");
    line("mov.b64 %d3, map1");
    line("cvta.param.u64 %d4, %d3");
    line("mov.b32 %r2, room");
    line("mov.b32 %r3, full");
    line("mov.b32 %r4, empty");
    line("setp.ne.s32 %p0, %r0, 0");
    text += "\t@%p0 bra $made;\n";
    for (uint32_t i = 0; i < form.slots; ++i) {
      line("mbarrier.init.shared.b64 [%r3+" + num(8 * i) + "], 1");
      line("mbarrier.init.shared.b64 [%r4+" + num(8 * i) + "], " + num(128 * std::max(form.consumers, 1u)));
    }
    line("fence.mbarrier_init.release.cluster");
    text += "$made:\n";
    line("bar.sync 0");
    line("mov.b32 %r10, 0"); // slot
    line("mov.b32 %r11, 0"); // phase
  }

  /// %r12: the tile's first row, %r13: its first column. Tiles go down 16 rows of tiles before they go right.
  void place() {
    constexpr uint32_t down = 16;
    line("div.u32 %r14, %r1, " + num(down * (size / form.columns)));
    line("mul.lo.u32 %r15, %r14, " + num(down * (size / form.columns)));
    line("sub.s32 %r15, %r1, %r15");
    line("and.b32 %r12, %r15, " + num(down - 1));
    line("mad.lo.s32 %r12, %r14, " + num(down) + ", %r12");
    line("shr.u32 %r13, %r15, 4");
    line("mul.lo.s32 %r12, %r12, " + num(form.rows));
    line("mul.lo.s32 %r13, %r13, " + num(form.columns));
  }
  /// Copies of the terms from %r16 on into the slot at hand.
  void load() {
    line("mad.lo.s32 %r17, %r10, " + num(form.slotBytes()) + ", %r2");
    line("mad.lo.s32 %r18, %r10, 8, %r3");
    line("mov.b32 %r19, " + num(form.slotBytes()));
    line("mbarrier.arrive.expect_tx.shared.b64 _, [%r18], %r19");
    const std::string copy = "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r17";
    line(copy + "], [%d2, {%r16, %r12}], [%r18]");
    line(copy + "+" + num(128 * form.rows) + "], [%d4, {%r16, %r13}], [%r18]");
  }
  void wait(const std::string &barriers, const std::string &parity, const std::string &label) {
    line("mad.lo.s32 %r20, %r10, 8, " + barriers);
    text += label + ":\n";
    line("mbarrier.try_wait.parity.shared.b64 %p1, [%r20], " + parity);
    text += "\t@!%p1 bra " + label + ";\n";
  }
  void nextSlot() {
    line("add.s32 %r10, %r10, 1");
    line("setp.eq.s32 %p2, %r10, " + num(form.slots));
    line("selp.b32 %r10, 0, %r10, %p2");
    line("selp.b32 %r21, 1, 0, %p2");
    line("xor.b32 %r11, %r11, %r21");
  }
  /// A slot's products, of the rows of warpgroup %r22.
  void multiply() {
    line("mad.lo.s32 %r17, %r10, " + num(form.slotBytes()) + ", %r2");
    line("mad.lo.s32 %r23, %r22, 8192, %r17");
    line("shr.u32 %r23, %r23, 4");
    line("add.s32 %r24, %r17, " + num(128 * form.rows));
    line("shr.u32 %r24, %r24, 4");
    line("cvt.u64.u32 %d10, %r23");
    line("cvt.u64.u32 %d11, %r24");
    line("or.b64 %d10, %d10, 4611686293305360384");
    line("or.b64 %d11, %d11, 4611686293305360384");
    line("wgmma.fence.sync.aligned");
    for (uint32_t i = 0; i < 4; ++i) {
      line("setp.ne.s32 %p3, %r16, " + num(i ? ~0u : 0));
      line("wgmma.mma_async.sync.aligned.m64n" + num(form.columns) + "k16.f32.bf16.bf16 " + accumulators() +
           ", %d10, %d11, %p3, 1, 1, 0, 0");
      line("add.s64 %d10, %d10, 2");
      line("add.s64 %d11, %d11, 2");
    }
    line("wgmma.commit_group.sync.aligned");
    line("wgmma.wait_group.sync.aligned 0");
  }
  void store() {
    line("and.b32 %r25, %r0, 31");
    line("shr.u32 %r26, %r0, 5");
    line("and.b32 %r26, %r26, 3");
    line("shr.u32 %r27, %r25, 2"); // row
    line("mad.lo.s32 %r27, %r26, 16, %r27");
    line("mad.lo.s32 %r27, %r22, 64, %r27");
    line("add.s32 %r27, %r27, %r12");
    line("and.b32 %r28, %r25, 3"); // column
    line("mad.lo.s32 %r28, %r28, 2, %r13");
    line("mad.lo.s32 %r28, %r28, " + num(size) + ", %r27");
    line("mul.wide.u32 %d12, %r28, 2");
    line("add.s64 %d12, %d0, %d12");
    for (uint32_t i = 0; i < form.columns / 2; i += 2) {
      line("cvt.rn.bf16x2.f32 %r30, %a" + num(i + 1) + ", %a" + num(i));
      line("mov.b32 {%h0, %h1}, %r30");
      for (uint32_t j : {0u, 1u}) {
        uint64_t at = 2 * ((8 * (i / 4) + j) * uint64_t(size) + 8 * (i / 2 % 2));
        line("st.global.b16 [%d12+" + num(at) + "], %h" + num(j));
      }
    }
  }

  void alone() {
    place();
    line("mov.b32 %r22, 0");
    line("mov.b32 %r16, 0");
    text += "$loop:\n";
    line("mov.b32 %r20, %r3");
    text += "\t@%p0 bra $wait;\n";
    load();
    text += "$wait:\n";
    line("mbarrier.try_wait.parity.shared.b64 %p1, [%r20], %r11");
    text += "\t@!%p1 bra $wait;\n";
    multiply();
    nextSlot();
    line("bar.sync 0");
    line("add.s32 %r16, %r16, 64");
    line("setp.lt.u32 %p4, %r16, " + num(size));
    text += "\t@%p4 bra $loop;\n";
    store();
  }

  void specialised() {
    uint64_t tiles = uint64_t(size / form.rows) * (size / form.columns);
    line("shr.u32 %r31, %r0, 7"); // warpgroup
    line("setp.eq.s32 %p5, %r31, 0");
    text += "\t@!%p5 bra $consume;\n";
    line("setmaxnreg.dec.sync.aligned.u32 24");
    text += "\t@%p0 bra $end;\n$tile:\n";
    place();
    line("mov.b32 %r16, 0");
    text += "$fill:\n";
    line("xor.b32 %r32, %r11, 1");
    wait("%r4", "%r32", "$free");
    load();
    nextSlot();
    ends("$fill", "$tile", tiles);
    text += "\tbra $end;\n$consume:\n";
    line("setmaxnreg.inc.sync.aligned.u32 " + num(form.consumers == 1 ? 256 : 240));
    line("sub.s32 %r22, %r31, 1");
    text += "$part:\n";
    place();
    line("mov.b32 %r16, 0");
    text += "$drain:\n";
    wait("%r3", "%r11", "$come");
    multiply();
    line("mad.lo.s32 %r20, %r10, 8, %r4");
    line("mbarrier.arrive.shared.b64 _, [%r20]");
    nextSlot();
    line("add.s32 %r16, %r16, 64");
    line("setp.lt.u32 %p4, %r16, " + num(size));
    text += "\t@%p4 bra $drain;\n";
    store();
    more("$part", tiles);
  }
  void ends(const std::string &loop, const std::string &next, uint64_t tiles) {
    line("add.s32 %r16, %r16, 64");
    line("setp.lt.u32 %p4, %r16, " + num(size));
    text += "\t@%p4 bra " + loop + ";\n";
    more(next, tiles);
  }
  void more(const std::string &next, uint64_t tiles) {
    if (!form.persistent)
      return;
    line("mov.u32 %r33, %nctaid.x");
    line("add.s32 %r1, %r1, %r33");
    line("setp.lt.u32 %p6, %r1, " + num(tiles));
    text += "\t@%p6 bra " + next + ";\n";
  }

  LadderForm form;
  uint32_t size;
  std::string text;
};

/// A block of 256 threads, a tile of 128 x 128, each thread 8 x 8 of it by fma of f32: operands pass shared memory, 16
/// terms at a time, as bf16.
inline std::string plainProduct(uint32_t size) {
  std::string text =
      ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 to, .param .u64 from0, .param "
      ".u64 "
      "from1)\n.reqntid 256, 1, 1\n{\n\t.shared .align 16 .b8 as[4096];\n\t.shared .align 16 .b8 bs[4096];\n"
      "\t.reg .pred %p<4>;\n\t.reg .b16 %h<8>;\n\t.reg .b32 %r<40>;\n\t.reg .b32 %a<64>;\n\t.reg .b32 %v<16>;\n"
      "\t.reg .b64 %d<16>;\n";
  auto line = [&](const std::string &what) { text += "\t" + what + ";\n"; };
  auto num = [](uint64_t value) { return std::to_string(value); };
  line("ld.param.b64 %d0, [to]");
  line("ld.param.b64 %d1, [from0]");
  line("ld.param.b64 %d2, [from1]");
  line("mov.u32 %r0, %tid.x");
  line("mov.u32 %r1, %ctaid.x");
  line("div.u32 %r2, %r1, " + num(size / 128));
  line("rem.u32 %r3, %r1, " + num(size / 128));
  line("mul.lo.s32 %r2, %r2, 128"); // row, column of the tile
  line("mul.lo.s32 %r3, %r3, 128");
  line("and.b32 %r4, %r0, 15"); // the thread's columns and rows, by 8
  line("shr.u32 %r5, %r0, 4");
  line("mov.b32 %r6, as");
  line("mov.b32 %r7, bs");
  line("mad.lo.s32 %r8, %r5, 16, %r6");
  line("mad.lo.s32 %r9, %r4, 16, %r7");
  // What it copies: half a row of A's 16 terms, 8 columns of a row of B.
  line("shr.u32 %r10, %r0, 1");
  line("and.b32 %r11, %r0, 1");
  line("add.s32 %r12, %r2, %r10");
  line("mul.wide.u32 %d3, %r12, " + num(2 * size));
  line("mul.wide.u32 %d4, %r11, 16");
  line("add.s64 %d3, %d3, %d4");
  line("add.s64 %d3, %d1, %d3");
  line("mul.wide.u32 %d5, %r5, " + num(2 * size));
  line("mad.lo.s32 %r13, %r4, 8, %r3");
  line("mul.wide.u32 %d6, %r13, 2");
  line("add.s64 %d5, %d5, %d6");
  line("add.s64 %d5, %d2, %d5");
  line("mad.lo.s32 %r14, %r11, 2048, %r6");
  line("mad.lo.s32 %r14, %r10, 2, %r14");
  line("mad.lo.s32 %r15, %r5, 256, %r7");
  line("mad.lo.s32 %r15, %r4, 16, %r15");
  for (int i = 0; i < 64; ++i)
    line("mov.b32 %a" + num(static_cast<uint64_t>(i)) + ", 0");
  line("mov.b32 %r16, 0");
  text += "$loop:\n";
  line("ld.global.v4.b32 {%r20, %r21, %r22, %r23}, [%d3]");
  line("ld.global.v4.b32 {%r24, %r25, %r26, %r27}, [%d5]");
  for (uint64_t i = 0; i < 8; ++i) {
    if (i % 2 == 0)
      line("mov.b32 {%h0, %h1}, %r" + num(20 + i / 2));
    line("st.shared.b16 [%r14+" + num(256 * i) + "], %h" + num(i % 2));
  }
  line("st.shared.v4.b32 [%r15], {%r24, %r25, %r26, %r27}");
  line("bar.sync 0");
  for (uint64_t k = 0; k < 16; ++k) {
    line("ld.shared.v4.b32 {%r20, %r21, %r22, %r23}, [%r8+" + num(256 * k) + "]");
    line("ld.shared.v4.b32 {%r24, %r25, %r26, %r27}, [%r9+" + num(256 * k) + "]");
    for (uint64_t i = 0; i < 8; ++i) {
      line("shl.b32 %v" + num(2 * i) + ", %r" + num(20 + i) + ", 16");
      line("and.b32 %v" + num(2 * i + 1) + ", %r" + num(20 + i) + ", 4294901760");
    }
    for (uint64_t i = 0; i < 64; ++i)
      line("fma.rn.f32 %a" + num(i) + ", %v" + num(i / 8) + ", %v" + num(8 + i % 8) + ", %a" + num(i));
  }
  line("bar.sync 0");
  line("add.s64 %d3, %d3, 32");
  line("add.s64 %d5, %d5, " + num(32 * uint64_t(size)));
  line("add.s32 %r16, %r16, 16");
  line("setp.lt.u32 %p1, %r16, " + num(size));
  text += "\t@%p1 bra $loop;\n";
  line("mad.lo.s32 %r17, %r5, 8, %r2");
  line("mad.lo.s32 %r18, %r4, 8, %r3");
  line("mad.lo.s32 %r17, %r17, " + num(size) + ", %r18");
  line("mul.wide.u32 %d7, %r17, 2");
  line("add.s64 %d7, %d0, %d7");
  for (uint64_t i = 0; i < 64; i += 2) {
    line("cvt.rn.bf16x2.f32 %r19, %a" + num(i + 1) + ", %a" + num(i));
    line("st.global.b32 [%d7+" + num(2 * (i / 8 * size + i % 8)) + "], %r19");
  }
  return text + "\tret;\n}\n";
}

} // namespace dmxtest
