//===- Einsum.cpp - Einstein sums as transposes and matrix products -------===//
#include "Einsum.h"
#include "Require.h"

#include <algorithm>
#include <map>

using namespace dmxc::dmir;

namespace dmxc::frontend {
namespace {

/// An operand and the label of each axis. Labels of the ellipsis are the
/// characters from 128 on, aligned right.
struct Term {
  Val value;
  std::vector<int> labels;
};

constexpr int kEllipsis = 128;

/// "ij...k" for an operand of `rank`; `width` is the number of axes the
/// ellipsis of the whole equation spans at most.
std::vector<int> parseLabels(const std::string &text, int64_t rank, int64_t width) {
  std::vector<int> labels;
  int64_t letters = std::count_if(text.begin(), text.end(), [](char ch) { return ch != '.'; });
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '.') {
      bool letter = (text[i] >= 'a' && text[i] <= 'z') || (text[i] >= 'A' && text[i] <= 'Z');
      requireAttr(letter, std::string("the equation has the character '") + text[i] + "'");
      labels.push_back(text[i]);
      continue;
    }
    requireAttr(text.compare(i, 3, "...") == 0, "the equation has dots that are no '...'");
    int64_t span = rank < 0 ? width : rank - letters;
    for (int64_t k = width - span; k < width; ++k)
      labels.push_back(kEllipsis + static_cast<int>(k));
    i += 2;
  }
  return labels;
}

/// Takes the diagonal of axes that share a label.
Term withoutRepeats(Emitter &e, Term term) {
  for (size_t i = 0; i < term.labels.size(); ++i)
    for (size_t j = i + 1; j < term.labels.size();) {
      if (term.labels[i] != term.labels[j]) {
        ++j;
        continue;
      }
      // Move both axes to the end, flatten them and keep every (n+1)-th
      // element.
      std::vector<int64_t> order;
      for (size_t k = 0; k < term.labels.size(); ++k)
        if (k != i && k != j)
          order.push_back(k);
      order.push_back(i);
      order.push_back(j);
      if (!mayEqual(term.value.extent(i), term.value.extent(j)))
        fail("op-shape", "a repeated label stands for different dims");
      Dim n = term.value.extent(i);
      Val moved = e.transpose(term.value, order);
      Dims flat = moved.dims();
      flat.pop_back_n(2);
      flat.push_back(n * n);
      int64_t last = flat.size() - 1, label = term.labels[i];
      moved = e.reshape(moved, flat);
      if (std::optional<int64_t> size = n.known())
        term.value = e.sliceAxis(moved, last, 0, n, *size + 1);
      else // the step of a slice is a number
        term.value = e.gather(moved, e.mul(e.iota(DType::I64, {n}, 0), e.size(n + 1)), last);
      std::vector<int> labels;
      for (size_t k = 0; k + 2 < order.size(); ++k)
        labels.push_back(term.labels[order[k]]);
      labels.push_back(static_cast<int>(label));
      term.labels = labels;
      i = 0;
      j = 1;
    }
  return term;
}

/// Sums over the labels that nothing else needs.
Term summed(Emitter &e, const Term &term, const std::vector<int> &needed) {
  std::vector<int64_t> axes;
  Term result;
  for (size_t i = 0; i < term.labels.size(); ++i)
    if (std::find(needed.begin(), needed.end(), term.labels[i]) == needed.end())
      axes.push_back(i);
    else
      result.labels.push_back(term.labels[i]);
  result.value = e.reduce(Reduction::sum, term.value, axes, false);
  return result;
}

bool contains(const std::vector<int> &labels, int label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

/// The operand with axes in the order of `labels`; missing ones become 1.
Val arranged(Emitter &e, const Term &term, const std::vector<int> &labels) {
  std::vector<int64_t> permutation;
  Dims shape;
  for (int label : labels) {
    auto found = std::find(term.labels.begin(), term.labels.end(), label);
    if (found != term.labels.end())
      permutation.push_back(found - term.labels.begin());
    shape.push_back(found != term.labels.end() ? term.value.extent(found - term.labels.begin()) : Dim(1));
  }
  return e.reshape(e.transpose(term.value, permutation), shape);
}

Dim product(const Val &value, size_t from, size_t to) {
  return dmir::product(llvm::ArrayRef<Dim>(value.dims()).slice(from, to - from));
}

/// Two operands as one batched matrix product: batch labels stand in both and
/// are needed later, summed ones in both and are not.
Term contract(Emitter &e, const Term &a, const Term &b, const std::vector<int> &needed) {
  std::vector<int> batch, left, right, sum;
  for (int label : a.labels)
    (!contains(b.labels, label) ? left : contains(needed, label) ? batch : sum).push_back(label);
  for (int label : b.labels)
    if (!contains(a.labels, label))
      right.push_back(label);
  auto join = [](std::initializer_list<std::vector<int>> lists) {
    std::vector<int> all;
    for (const auto &list : lists)
      all.insert(all.end(), list.begin(), list.end());
    return all;
  };
  Val x = arranged(e, a, join({batch, left, sum})), y = arranged(e, b, join({batch, sum, right}));
  size_t nb = batch.size(), nl = left.size(), ns = sum.size(), nr = right.size();
  // Batch dims of 1 broadcast; they stay separate axes of the product.
  Dims xs(llvm::ArrayRef<Dim>(x.dims()).take_front(nb)), ys(llvm::ArrayRef<Dim>(y.dims()).take_front(nb));
  Dim k = product(x, nb + nl, nb + nl + ns), m = product(x, nb, nb + nl), n = product(y, nb + ns, nb + ns + nr);
  Dim otherK = product(y, nb, nb + ns);
  if (!mayEqual(k, otherK)) // a summed dim of 1 on one side is a broadcast too
    fail("op-shape", "a label stands for different dims");
  xs.append({m, k});
  ys.append({otherK, n});
  Val p = e.matmul(e.reshape(x, xs), e.reshape(y, ys));
  Dims shape = p.dims();
  shape.pop_back_n(2);
  for (size_t i = 0; i < nl; ++i)
    shape.push_back(x.extent(nb + i));
  for (size_t i = 0; i < nr; ++i)
    shape.push_back(y.extent(nb + ns + i));
  return {e.reshape(p, shape), join({batch, left, right})};
}

struct Equation {
  std::vector<std::string> inputs;
  std::string output;
  bool explicitOutput = false;
};

Equation parse(std::string text, size_t operands) {
  text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
  Equation equation;
  size_t arrow = text.find("->");
  if (arrow != std::string::npos) {
    equation.explicitOutput = true;
    equation.output = text.substr(arrow + 2);
    text.resize(arrow);
  }
  for (size_t at = 0;;) {
    size_t comma = text.find(',', at);
    equation.inputs.push_back(text.substr(at, comma - at));
    if (comma == std::string::npos)
      break;
    at = comma + 1;
  }
  requireAttr(equation.inputs.size() == operands, "the equation has " + std::to_string(equation.inputs.size()) +
                                                      " terms for " + std::to_string(operands) + " operands");
  return equation;
}

/// Without "->": the ellipsis, then the labels that occur once, sorted.
std::vector<int> implicitOutput(const std::vector<Term> &terms, int64_t width) {
  std::map<int, int> count;
  for (const Term &term : terms)
    for (int label : term.labels)
      ++count[label];
  std::vector<int> labels;
  for (int64_t k = 0; k < width; ++k)
    labels.push_back(kEllipsis + static_cast<int>(k));
  for (auto [label, times] : count)
    if (label < kEllipsis && times == 1)
      labels.push_back(label);
  return labels;
}

} // namespace

Val einsum(Emitter &e, std::string text, llvm::ArrayRef<Val> operands) {
  Equation equation = parse(std::move(text), operands.size());
  int64_t width = 0;
  for (size_t i = 0; i < equation.inputs.size(); ++i)
    if (const std::string &term = equation.inputs[i]; term.find("...") != std::string::npos)
      width = std::max<int64_t>(width, requireTensor(operands, i).rank() -
                                           std::count_if(term.begin(), term.end(), [](char ch) { return ch != '.'; }));
  std::vector<Term> terms;
  for (size_t i = 0; i < equation.inputs.size(); ++i) {
    Term term{requireTensor(operands, i), parseLabels(equation.inputs[i], requireTensor(operands, i).rank(), width)};
    requireShape(static_cast<int64_t>(term.labels.size()) == term.value.rank(),
                 "the term '" + equation.inputs[i] + "' does not fit rank " + std::to_string(term.value.rank()));
    terms.push_back(withoutRepeats(e, std::move(term)));
  }
  std::vector<int> output =
      equation.explicitOutput ? parseLabels(equation.output, -1, width) : implicitOutput(terms, width);
  for (int label : output) {
    bool known = false;
    for (const Term &term : terms)
      known |= contains(term.labels, label);
    requireAttr(known && std::count(output.begin(), output.end(), label) == 1,
                "the equation's result has an unknown or repeated label");
  }
  auto neededAfter = [&](size_t i) {
    std::vector<int> needed = output;
    for (size_t k = i; k < terms.size(); ++k)
      needed.insert(needed.end(), terms[k].labels.begin(), terms[k].labels.end());
    return needed;
  };
  Term result = terms[0];
  for (size_t i = 1; i < terms.size(); ++i) {
    std::vector<int> needed = neededAfter(i + 1), pair = needed, other = needed;
    pair.insert(pair.end(), terms[i].labels.begin(), terms[i].labels.end());
    other.insert(other.end(), result.labels.begin(), result.labels.end());
    result = contract(e, summed(e, result, pair), summed(e, terms[i], other), needed);
  }
  result = summed(e, result, output);
  return arranged(e, result, output);
}

} // namespace dmxc::frontend
