//===- SparsityTest.cpp - facts of random graphs, against their values ----===//
//
// Every claim is held against every element that the interpreter computes; what is not demanded becomes NaN, and no bit
// of a result may change.
//
//===----------------------------------------------------------------------===//
#include "RandomGraph.h"

#include "dmxc/Dialect/DMIR/Model.h"
#include "dmxc/Dialect/DMIR/masks/Sparsity.h"
#include "dmxc/Phases/Sparsity.h"
#include "dmxc/Reference/Interpreter.h"

#include "mlir/IR/Verifier.h"
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

using namespace mlir;
using namespace dmxc;

namespace {

bool all(StringRef) { return true; }

struct Count {
  int64_t facts = 0, elements = 0, excused = 0, demands = 0, changed = 0;
};

void forEachOutside(const dmir::Rule &rule, const Tensor &tensor, llvm::function_ref<void(int64_t element)> use) {
  SmallVector<int64_t> index(tensor.rank(), 0);
  for (int64_t i = 0; i < tensor.numElements(); ++i) {
    int64_t rest = i;
    for (size_t axis = index.size(); axis-- > 0; rest /= tensor.shape()[axis])
      index[axis] = rest % tensor.shape()[axis];
    if (!dmir::keeps(rule, index, {}))
      use(i);
  }
}

struct Facts : ::testing::Test {
  Facts() { context.loadDialect<dmir::DMIRDialect, func::FuncDialect>(); }

  /// What is false of the graph's claims; "" where nothing is.
  std::string contradiction(graphs::RandomGraph &graph, const std::vector<Tensor> &inputs, Count &count) {
    std::string found;
    bool isFinite = true; // what is not spreads into products with zeros
    auto look = [&](Operation *op, MutableArrayRef<Tensor> results) {
      std::optional<dmir::Known> known = results.size() == 1 ? dmir::knownOf(op->getResult(0)) : std::nullopt;
      if (known) {
        ++count.facts;
        forEachOutside(known->keep, results[0], [&](int64_t i) {
          double value = results[0].asDouble(i);
          ++count.elements;
          bool isExcused = std::isnan(value) && !isFinite;
          count.excused += isExcused;
          if (value != known->value && !isExcused && found.empty())
            found = op->getName().getStringRef().str() + " has " + std::to_string(value) + " at " + std::to_string(i);
        });
      }
      for (const Tensor &tensor : results)
        for (int64_t i = 0; i < tensor.numElements() && !isa<dmir::MaskOp>(op); ++i)
          isFinite &= std::isfinite(tensor.asDouble(i));
    };
    auto wanted = reference::evaluateFunction(graph.function(), inputs, look);
    EXPECT_TRUE(wanted) << wanted.error().message;
    auto spoil = [&](Operation *op, MutableArrayRef<Tensor> results) {
      std::optional<dmir::Demand> demand = results.size() == 1 ? dmir::demandOf(op->getResult(0)) : std::nullopt;
      if (!demand || results[0].dtype() != DType::F32)
        return;
      ++count.demands;
      Tensor spoilt(DType::F32, results[0].shape());
      std::memcpy(spoilt.mutableData(), results[0].data(), results[0].byteSize());
      forEachOutside(demand->keep, spoilt, [&](int64_t i) {
        spoilt.setDouble(i, std::numeric_limits<double>::quiet_NaN());
        ++count.changed;
      });
      results[0] = spoilt;
    };
    auto got = reference::evaluateFunction(graph.function(), inputs, spoil);
    EXPECT_TRUE(got) << got.error().message;
    for (auto [a, b] : llvm::zip(*wanted, *got))
      if (std::memcmp(a.data(), b.data(), a.byteSize()) != 0 && found.empty())
        found = "what is not demanded changes a result";
    return found;
  }

  /// Every op's fact by `change`.
  static void tamper(ModuleOp module, StringRef key, llvm::function_ref<void(dmir::Rule &, double &)> change) {
    module.walk([&](Operation *op) {
      auto facts = op->getAttrOfType<DictionaryAttr>(dmir::kSparsityAttr);
      if (!facts || op->getNumResults() != 1 || !facts.get(key))
        return;
      NamedAttrList own(facts);
      Value result = op->getResult(0);
      if (key == dmir::kKnownKey) {
        dmir::Known known = *dmir::knownOf(result);
        change(known.keep, known.value);
        own.set(key, dmir::attrOf(known, elementOf(result)));
      } else {
        dmir::Demand demand = *dmir::demandOf(result);
        double value = 0;
        change(demand.keep, value);
        own.set(key, dmir::attrOf(demand, op->getContext()));
      }
      op->setAttr(dmir::kSparsityAttr, own.getDictionary(op->getContext()));
    });
  }

  static unsigned many() { return std::getenv("DMXC_LONG") ? 4000 : 200; }

  MLIRContext context;
};

std::string textOf(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream(text) << module;
  return text;
}

TEST_F(Facts, HoldForAllValues) {
  Count count;
  for (unsigned seed = 0; seed < many(); ++seed) {
    graphs::RandomGraph graph(context, seed);
    ASSERT_TRUE(succeeded(verify(*graph.module))) << textOf(*graph.module);
    findFacts(graph.function(), /*least=*/1);
    std::string fault = contradiction(graph, graph.inputs(), count);
    EXPECT_EQ(fault, "") << "seed " << seed << "\n" << textOf(*graph.module);
    for (const FalseFact &fact : falseFacts(*graph.module, all))
      ADD_FAILURE() << "seed " << seed << ": " << fact.what << "\n" << textOf(*graph.module);
  }
  std::cout << count.facts << " facts of " << count.elements << " elements, " << count.excused << " of them NaN; "
            << count.demands << " demands leave out " << count.changed << "\n";
  EXPECT_GT(count.facts, many() * 2);
  EXPECT_GT(count.elements, many() * 50);
  EXPECT_GT(count.changed, many() * 4);
  EXPECT_LT(count.excused * 20, count.elements);
}

/// Rules that leave out one more diagonal, as if `<` were `<=`; and another number.
TEST_F(Facts, OnesThatAreWrongAreFound) {
  unsigned seen = 0, named = 0, tried = 0, demandsSeen = 0, demandsNamed = 0, demandsTried = 0;
  for (unsigned seed = 0; seed < 80; ++seed) {
    for (StringRef key : {dmir::kKnownKey, dmir::kDemandedKey}) {
      graphs::RandomGraph graph(context, seed);
      findFacts(graph.function(), /*least=*/1);
      std::string before = textOf(*graph.module);
      tamper(*graph.module, key, [&](dmir::Rule &rule, double &value) {
        if (rule.cases.empty())
          value += 1;
        for (IntegerSet &set : rule.cases) {
          auto conditions = dmir::conditionsOf(set);
          conditions[0].expr = conditions[0].expr - 1;
          set = dmir::caseOf(rule.rank, set.getNumSymbols(), conditions);
        }
      });
      if (textOf(*graph.module) == before)
        continue;
      Count count;
      bool isSeen = !contradiction(graph, graph.inputs(), count).empty(),
           isNamed = !falseFacts(*graph.module, all).empty();
      bool isKnown = key == dmir::kKnownKey;
      ++(isKnown ? tried : demandsTried);
      (isKnown ? seen : demandsSeen) += isSeen;
      (isKnown ? named : demandsNamed) += isNamed;
      EXPECT_TRUE(isNamed || !isSeen) << "seed " << seed << "\n" << textOf(*graph.module);
    }
  }
  std::cout << "known: " << seen << " seen, " << named << " named of " << tried << "; demanded: " << demandsSeen << ", "
            << demandsNamed << " of " << demandsTried << "\n";
  EXPECT_GT(seen, tried * 3 / 4);
  EXPECT_GT(named, tried * 9 / 10);
  EXPECT_GT(demandsSeen, demandsTried / 2);
  EXPECT_GT(demandsNamed, demandsTried * 9 / 10);
}

} // namespace
