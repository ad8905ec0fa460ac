//===- Spectrum.cpp - Fourier transforms ----------------------------------===//
#include "../Math.h"

#include "frontends/common/ops/Fourier.h"

#include <algorithm>

using namespace dmxc::dmir;

namespace dmxc::torchfe {
namespace {

using Scale = FourierKind::Scale;

/// "backward", "ortho" or "forward": which way is scaled, and how.
Scale scaleOf(AtenContext &c, bool inverse) {
  std::string norm = c.text("norm", "backward");
  c.require(norm == "backward" || norm == "ortho" || norm == "forward", "norm '" + norm + "' is unknown");
  if (norm == "ortho")
    return Scale::Root;
  return (norm == "backward") == inverse ? Scale::Mean : Scale::None;
}

/// From what to what, as the operators' names say it.
enum class Kind { Complex, ToHalf, FromHalf };

/// The transforms along `axes`, the last of them real on one side. `lengths` has one an axis; a negative one is its
/// own.
ComplexParts along(AtenContext &c, ComplexParts x, llvm::ArrayRef<int64_t> axes, llvm::ArrayRef<Dim> lengths, Kind kind,
                   bool inverse, Scale scale) {
  Emitter &e = c.e;
  c.requireShape(!axes.empty() && axes.size() == lengths.size(), "there is no axis to transform, or no length for it");
  auto lengthOf = [&](size_t i, bool half) {
    if (!lengths[i].is(-1))
      return lengths[i];
    Dim own = x.re.extent(axes[i]);
    return half ? (own - 1) * 2 : own;
  };
  const size_t last = axes.size() - 1;
  if (kind == Kind::ToHalf)
    x = fourier(e, x, axes[last], lengthOf(last, false), {inverse, true, scale});
  for (size_t i = 0; i <= last; ++i)
    if (kind == Kind::Complex || i != last)
      x = fourier(e, x, axes[i], lengthOf(i, false), {inverse, false, scale});
  return kind == Kind::FromHalf ? fourier(e, x, axes[last], lengthOf(last, true), {inverse, true, scale}) : x;
}

ComplexParts floats(AtenContext &c) {
  ComplexParts x = c.parts("self");
  return {c.asFloat(x.re), x.im};
}

ComplexParts conjugate(Emitter &e, const ComplexParts &x) {
  return x.im ? ComplexParts{x.re, e.emit<NegOp>({x.im})} : x;
}
/// Of a spectrum that is real the other way round the transforms are those of a real signal, with the sign of the
/// exponent turned: what is complex is conjugated, and the other way is scaled.
template <Kind kind, bool inverse, bool hermitian>
void transform(AtenContext &c, ComplexParts x, llvm::ArrayRef<int64_t> axes, llvm::ArrayRef<Dim> lengths) {
  x = hermitian && kind == Kind::FromHalf ? conjugate(c.e, x) : x;
  x = along(c, x, axes, lengths, kind, inverse, scaleOf(c, inverse != hermitian));
  c.result(hermitian && kind == Kind::ToHalf ? conjugate(c.e, x) : x);
}

template <Kind kind, bool inverse, bool hermitian = false> void importOne(AtenContext &c) {
  ComplexParts x = floats(c);
  c.require(kind != Kind::ToHalf || !x.im, "the operator takes a real tensor");
  int64_t axis = c.axis("dim", x.re.rank());
  transform<kind, inverse, hermitian>(c, x, {axis}, {c.given("n") ? c.dim("n") : Dim(-1)});
}

/// Several axes: those named, or the last ones that `s` has sizes for, or all.
template <Kind kind, bool inverse, bool hermitian = false> void importSeveral(AtenContext &c) {
  ComplexParts x = floats(c);
  c.require(kind != Kind::ToHalf || !x.im, "the operator takes a real tensor");
  Dims lengths = c.given("s") ? c.dims("s") : Dims();
  std::vector<int64_t> axes;
  const int64_t rank = x.re.rank(), count = c.given("s") ? static_cast<int64_t>(lengths.size()) : rank;
  if (c.given("dim"))
    for (int64_t axis : c.integers("dim"))
      axes.push_back(AtenContext::normalizeAxis(axis, rank));
  else
    for (int64_t axis = rank - count; axis < rank; ++axis)
      axes.push_back(AtenContext::normalizeAxis(axis, rank));
  if (!c.given("s"))
    lengths.assign(axes.size(), -1);
  transform<kind, inverse, hermitian>(c, x, axes, lengths);
}

/// What the operators above are decomposed into; normalization is 0, 1 for 1 / sqrt(n), 2 for 1 / n.
template <Kind kind> void importPlain(AtenContext &c) {
  ComplexParts x = floats(c);
  std::vector<int64_t> axes;
  for (int64_t axis : c.integers("dim"))
    axes.push_back(AtenContext::normalizeAxis(axis, x.re.rank()));
  Dims lengths(axes.size(), -1);
  const int64_t scale = c.integer("normalization");
  c.require(scale >= 0 && scale <= 2, "normalization is 0, 1 or 2");
  bool inverse = kind == Kind::FromHalf || (kind == Kind::Complex && !c.flag("forward"));
  if (kind == Kind::FromHalf && !lengths.empty())
    lengths.back() = c.dim("last_dim_size");
  Kind actual = kind == Kind::ToHalf && !c.flag("onesided") ? Kind::Complex : kind;
  c.result(along(c, x, axes, lengths, actual, inverse, static_cast<Scale>(scale)));
}

/// The window of a frame: as it is given, ones without, in the middle of a longer frame.
Val windowOf(AtenContext &c, DType type, int64_t frame) {
  Emitter &e = c.e;
  const int64_t length = c.given("win_length") ? c.integer("win_length") : frame;
  c.require(length > 0 && length <= frame, "win_length is " + std::to_string(length) + " of " + std::to_string(frame));
  Val window = c.given("window") ? c.tensor("window") : e.splat(type, {length}, 1);
  c.requireShape(window.rank() == 1 && mayEqual(window.extent(0), length), "the window must have win_length elements");
  const int64_t before = (frame - length) / 2;
  return e.pad(c.cast(e.expectDims(window, {length}), type), e.scalar(type, 0), {before}, {frame - length - before});
}

void importStft(AtenContext &c) {
  Emitter &e = c.e;
  Val x = c.tensor("self");
  const int64_t frame = c.integer("n_fft"), step = c.given("hop_length") ? c.integer("hop_length") : frame / 4;
  c.require(frame > 0 && step > 0, "n_fft and hop_length must be positive");
  c.requireShape(x.rank() == 1 || x.rank() == 2, "expected a signal, or several as rows, not " + x.describe());
  const int64_t axis = x.rank() - 1;
  if (c.flag("center", false)) {
    std::string mode = c.text("pad_mode", "reflect");
    c.require(mode == "reflect" || mode == "constant", "pad_mode '" + mode + "' is not supported");
    Dims sides(x.rank(), 0);
    sides[axis] = frame / 2;
    x = e.pad(x, e.scalarLike(x, 0), sides, sides, {}, mode == "reflect" ? PadMode::reflect : PadMode::constant);
  }
  Dim room = x.extent(axis) - frame, frames = Dim::floorDiv(room, step) + 1;
  c.requireShape(room.valueOr(0) >= 0, "the signal is shorter than a frame of " + std::to_string(frame));
  Val each = e.mul(framed(e, x, axis, e.intScalar(DType::I64, step), frames, frame), windowOf(c, x.dtype(), frame));
  Scale scale = c.flag("normalized", false) ? Scale::Root : Scale::None;
  ComplexParts y = fourier(e, {each, Val()}, axis + 1, frame, {false, c.flag("onesided", true), scale});
  y = {e.transposeLast(y.re), e.transposeLast(y.im)};
  if (c.flag("return_complex", false))
    return c.result(y);
  const int64_t last = y.re.rank();
  c.result(e.concat({unsqueeze(e, y.re, last), unsqueeze(e, y.im, last)}, last));
}

/// Frames [.., count, n] laid over each other, `step` apart.
Val overlapped(AtenContext &c, const Val &frames, int64_t step) {
  const Dim count = frames.extent(-2), length = frames.extent(-1), total = (count - 1) * step + length;
  Val columns = c.e.transposeLast(frames);
  Arg kernel = Arg::intList({1, length});
  Val whole = callOperator(*AtenTable::get().find("col2im.default"),
                           {Arg::tensor(columns), Arg::intList({1, total}), kernel, Arg::intList({1, 1}),
                            Arg::intList({0, 0}), Arg::intList({1, step})},
                           c.name, c.e)
                  .front()
                  .tensors.front();
  return c.e.reshape(whole, {frames.extent(0), total});
}

void importIstft(AtenContext &c) {
  Emitter &e = c.e;
  ComplexParts x = c.parts("self");
  c.requireShape(bool(x.im) && (x.re.rank() == 2 || x.re.rank() == 3), "expected a complex tensor [.., bins, frames]");
  const int64_t frame = c.integer("n_fft"), step = c.given("hop_length") ? c.integer("hop_length") : frame / 4;
  const bool single = x.re.rank() == 2, half = c.flag("onesided", true);
  c.require(frame > 0 && step > 0, "n_fft and hop_length must be positive");
  c.require(!c.flag("return_complex", false), "return_complex is not supported");
  auto inRows = [&](const Val &part) { return e.transposeLast(single ? unsqueeze(e, part, 0) : part); };
  Scale scale = c.flag("normalized", false) ? Scale::Root : Scale::Mean;
  Val y = fourier(e, {inRows(x.re), inRows(x.im)}, 2, frame, {true, half, scale}).re;
  Val window = windowOf(c, y.dtype(), frame);
  Val shares = e.broadcast(square(e, window), {1, y.extent(1), frame});
  Val signal = overlapped(c, e.mul(y, window), step), total = overlapped(c, shares, step);
  const Dim start = c.flag("center", true) ? frame / 2 : 0, all = signal.extent(1);
  Dim end = c.flag("center", true) ? all - frame / 2 : all;
  if (c.given("length"))
    end = Dim::min(start + c.dim("length"), all);
  auto kept = [&](const Val &v) { return e.sliceAxis(v, 1, start, end - start); };
  Val result = e.div(kept(signal), kept(total));
  if (c.given("length"))
    result = fitted(e, result, 1, c.dim("length"));
  c.result(single ? e.reshape(result, {result.extent(1)}) : result);
}

} // namespace

std::vector<AtenRow> fourierOps() {
  const char *note = "a product with a matrix";
  return {
      {"fft_fft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor", importOne<Kind::Complex, false>,
       note},
      {"fft_ifft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor", importOne<Kind::Complex, true>,
       note},
      {"fft_rfft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor", importOne<Kind::ToHalf, false>,
       note},
      {"fft_irfft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor", importOne<Kind::FromHalf, true>,
       note},
      {"fft_fft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2, -1], str? norm=None) -> Tensor",
       importSeveral<Kind::Complex, false>, note},
      {"fft_ifft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2, -1], str? norm=None) -> Tensor",
       importSeveral<Kind::Complex, true>, note},
      {"fft_rfft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2, -1], str? norm=None) -> Tensor",
       importSeveral<Kind::ToHalf, false>, note},
      {"fft_irfft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2, -1], str? norm=None) -> Tensor",
       importSeveral<Kind::FromHalf, true>, note},
      {"fft_fftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor",
       importSeveral<Kind::Complex, false>, note},
      {"fft_ifftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor",
       importSeveral<Kind::Complex, true>, note},
      {"fft_rfftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor",
       importSeveral<Kind::ToHalf, false>, note},
      {"fft_irfftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor",
       importSeveral<Kind::FromHalf, true>, note},
      {"fft_hfft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor",
       importOne<Kind::FromHalf, true, true>, note},
      {"fft_ihfft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor",
       importOne<Kind::ToHalf, false, true>, note},
      {"fft_hfft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2, -1], str? norm=None) -> Tensor",
       importSeveral<Kind::FromHalf, true, true>, note},
      {"fft_ihfft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2, -1], str? norm=None) -> Tensor",
       importSeveral<Kind::ToHalf, false, true>, note},
      {"fft_hfftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor",
       importSeveral<Kind::FromHalf, true, true>, note},
      {"fft_ihfftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor",
       importSeveral<Kind::ToHalf, false, true>, note},
      {"_fft_r2c(Tensor self, int[] dim, int normalization, bool onesided) -> Tensor", importPlain<Kind::ToHalf>, note},
      {"_fft_c2c(Tensor self, SymInt[] dim, int normalization, bool forward) -> Tensor", importPlain<Kind::Complex>,
       note},
      {"_fft_c2r(Tensor self, int[] dim, int normalization, SymInt last_dim_size) -> Tensor",
       importPlain<Kind::FromHalf>, note},
      {"stft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, bool "
       "normalized=False, bool? onesided=None, bool? return_complex=None, bool? align_to_window=None) -> Tensor",
       importStft, note},
      {"stft.center(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, bool "
       "center=True, str pad_mode=\"reflect\", bool normalized=False, bool? onesided=None, bool? return_complex=None, "
       "bool? align_to_window=None) -> Tensor",
       importStft, note},
      {"istft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, bool "
       "center=True, bool normalized=False, bool? onesided=None, int? length=None, bool return_complex=False) -> "
       "Tensor",
       importIstft, note},
  };
}

} // namespace dmxc::torchfe
