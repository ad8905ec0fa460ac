//===- CudaBody.h - a kernel with an instruction of every family -*- C++ -*-===//
#pragma once

namespace dmxtest {

/// What stands between the beginning of blockKernel (CudaLaunch.h), of an operand and two maps, and the kernel's end: a
/// block of 128 threads loads 16 rows of 128 bytes, multiplies, and stores 16 rows. Registers %r30 to %r33 are set.
inline constexpr const char *kEveryFamily = R"(
	.shared .align 8 .b8 bar[16];
	setp.eq.s32 %p0, %r0, 0;
	@!%p0 bra $made;
	mbarrier.init.shared.b64 [bar], 1;
	mbarrier.init.shared.b64 [bar+8], 128;
	fence.mbarrier_init.release.cluster;
	mov.b64 %d10, map0;
	prefetch.tensormap [%d10];
$made:
	bar.sync 0;
	elect.sync %r1|%p2, -1;
	mov.b64 %d10, map0;
	cvta.param.u64 %d11, %d10;
	mov.b64 %d12, map1;
	mov.b32 %r3, 4096;
	@!%p0 bra $wait;
	mbarrier.arrive.expect_tx.shared.b64 %d13, [bar], %r3;
	cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [room], [%d11, {0, 0}], [bar];
	cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [room+2048], [%d11, {0, 8}], [bar];
$wait:
	mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0;
	@!%p1 bra $wait;
	mov.b64 %d14, room;
	shr.u64 %d15, %d14, 4;
	or.b64 %d15, %d15, 4611686293305360384;
	mov.b32 %r20, 0;
	mov.b32 %r21, 0;
	mov.b32 %r22, 0;
	mov.b32 %r23, 0;
	wgmma.fence.sync.aligned;
	setp.ne.b32 %p3, 1, 0;
	wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%r20, %r21, %r22, %r23}, {%r30, %r31, %r32, %r33}, %d15, %p3, 1, 1, 0;
	wgmma.commit_group.sync.aligned;
	wgmma.wait_group.sync.aligned 0;
	mbarrier.arrive.shared.b64 _, [bar+8];
	mul.wide.u32 %d16, %r0, 16;
	add.s64 %d16, %d16, %d14;
	stmatrix.sync.aligned.m8n8.x2.shared.b16 [%d16+4096], {%r20, %r21};
	fence.proxy.async.shared::cta;
	bar.sync 1, 128;
	ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r40, %r41, %r42, %r43}, [%d16];
	shfl.sync.bfly.b32 %r44, %r22, 1, 31, -1;
	vote.sync.ballot.b32 %r45, %p0, -1;
	redux.sync.add.s32 %r46, %r45, -1;
	cvt.rn.bf16x2.f32 %r47, %r22, %r23;
	@!%p0 bra $end;
	cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%d12, {0, 0}], [room];
	cp.async.bulk.commit_group;
	cp.async.bulk.wait_group.read 0;
$end:
	st.global.b32 [%d30+2048], %r44;)";

} // namespace dmxtest
